import { openDatabase } from '../../src/store/postgres/connection/open.js'
import { targetOf } from '../../src/store/postgres/connection/target.js'
import { PostgresStore } from '../../src/store/postgres/postgres-store.js'
import { openFile } from '../../src/store/sqlite/connection/open.js'
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js'
import { chooseLibrary } from '../../src/store/sqlite/connection/library.js'
import type { Store } from '../../src/store/store.js'
import { systemWorld } from '../../src/world/world.js'
import { ContractFixture } from '../contract/fixture.js'
import { freshSchema } from '../support/fresh-store.js'
import type { Bench } from './bound.js'

/** For bounds of verbs that only the worker and the upkeep call: the store alone, with the fixture of the contract. */
export async function openStore(bench: Bench): Promise<ContractFixture> {
  const known = bench.notes.find((note) => note instanceof ContractFixture)
  if (known !== undefined) return known
  const clock = { now: 1_800_000_000_000 }
  const store = await open(() => clock.now)
  const fixture = new ContractFixture({ store, clock })
  bench.notes.push(fixture)
  bench.closeToo(() => store.close())
  return fixture
}

async function open(now: () => number): Promise<Store> {
  const world = systemWorld()
  const fresh = freshSchema()
  if (fresh !== undefined)
    return new PostgresStore(await openDatabase(await targetOf(fresh.url, fresh.schema), true, world), world, { now })
  const target = new (chooseLibrary().open)(':memory:')
  return new SqliteStore(await openFile({ target, durability: 'process' }, true, world), world, {
    durability: 'process',
    now,
  })
}
