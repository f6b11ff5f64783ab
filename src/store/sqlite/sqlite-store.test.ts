import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { storeContract } from '../../../test/contract/store-contract.js'
import { transactionContract } from '../../../test/contract/transaction-contract.js'
import type { CallerTransaction } from '../../../test/contract/transaction-fixture.js'
import { systemWorld } from '../../world/world.js'
import type { SqliteDatabase } from './connection/driver.js'
import { chooseLibrary } from './connection/library.js'
import { openFile } from './connection/open.js'
import { SqliteStore } from './sqlite-store.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-contract-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function open(target: string) {
  const world = systemWorld()
  const clock = { now: 1_800_000_000_000 }
  const file = await openFile({ target, durability: 'power' }, true, world)
  const store = new SqliteStore(file, world, { durability: 'power', now: () => clock.now })
  return {
    store,
    clock,
    openTransaction: () => begin(target === ':memory:' ? file.database : new file.library.open(target)),
  }
}

/** A transaction on a connection of the caller; in memory there is only the store's. */
function begin(tx: SqliteDatabase): CallerTransaction {
  tx.exec('begin')
  return { tx, commit: () => void tx.exec('commit'), rollBack: () => void tx.exec('rollback') }
}

describe('the store contract on an SQLite file', () => {
  for (const [i, { name, run }] of storeContract.entries())
    test(name, async () => run(await open(join(folder, `${i}.db`))))
  for (const [i, { name, run }] of transactionContract.entries())
    test(name, async () => run(await open(join(folder, `tx-${i}.db`))))
})

describe('the store contract on SQLite in memory', () => {
  for (const { name, run } of storeContract) test(name, async () => run(await open(':memory:')))
  for (const { name, run } of transactionContract) test(name, async () => run(await open(':memory:')))
})

/**
 * Every commit wakes every idle worker of a file: they must not contend for its lock when there is nothing to claim.
 */
test('a claim and a promotion with nothing to do succeed while another process writes', async () => {
  const path = join(folder, 'idle.db')
  const { store } = await open(path)
  await store.addWorker({ id: 'w', host: 'h', pid: 1 })
  const other = new (chooseLibrary().open)(path)
  other.exec('begin immediate')
  const request = { worker: 'w', fence: 1, names: undefined, max: 1, starting: 1, rooms: new Map<string, number>() }
  expect(await store.claimJobs({ ...request, suspects: 'none' })).toMatchObject({ jobs: [], lost: false })
  expect(await store.promoteJobs(10)).toMatchObject({ promoted: 0, expired: [], nextInMs: null })
  other.exec('rollback')
  other.close()
  await store.close()
})
