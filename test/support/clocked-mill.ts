import { buildMill } from '../../src/mill.js'
import type { Mill, MillOptions } from '../../src/index.js'
import { STORE_CHOICE } from '../../src/store/choice.js'
import { openDatabase } from '../../src/store/postgres/connection/open.js'
import { PostgresStore } from '../../src/store/postgres/postgres-store.js'
import { schemaOf, targetOf } from '../../src/store/postgres/connection/target.js'
import { openFile } from '../../src/store/sqlite/connection/open.js'
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js'
import type { Store } from '../../src/store/store.js'
import { systemWorld } from '../../src/world/world.js'
import { onPostgres } from './fresh-store.js'

/** The database's clock, which moves only when the test moves it. */
export interface TestClock {
  now: number
}

/** A mill on a store whose clock is the test's; timers are real, and polls short, so that a step is seen soon. */
export function clockedMill(where: string, clock: TestClock, options: MillOptions): Promise<Mill> {
  const world = systemWorld()
  const choice = { [STORE_CHOICE]: true as const, open: () => openClocked(where, clock) }
  return buildMill({ logger: false, poll: '10ms', ...options }, { world, store: choice })
}

async function openClocked(where: string, clock: TestClock): Promise<Store> {
  const world = systemWorld()
  const now = (): number => clock.now
  if (!onPostgres) {
    const file = await openFile({ target: where, durability: 'process' }, true, world)
    return new SqliteStore(file, world, { durability: 'process', now })
  }
  const { where: url, schema } = schemaOf(where)
  return new PostgresStore(await openDatabase(await targetOf(url, schema ?? 'millrace'), true, world), world, { now })
}
