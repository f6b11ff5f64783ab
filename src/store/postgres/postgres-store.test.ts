import { Client } from 'pg'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { emptyTables } from '../../../test/postgres/empty-tables.js'
import { freshDatabase } from '../../../test/postgres/shared-postgres.js'
import { storeContract } from '../../../test/contract/store-contract.js'
import { transactionContract } from '../../../test/contract/transaction-contract.js'
import type { CallerTransaction } from '../../../test/contract/transaction-fixture.js'
import { inMatrix } from '../../../test/support/fresh-store.js'
import { systemWorld } from '../../world/world.js'
import { openDatabase } from './connection/open.js'
import type { Opened } from './connection/open.js'
import { PostgresStore } from './postgres-store.js'
import { targetOf } from './connection/target.js'

let database: Awaited<ReturnType<typeof freshDatabase>>
let admin: Client
let opened: Opened
beforeAll(async () => {
  database = await freshDatabase()
  admin = new Client(database.url)
  await admin.connect()
  opened = await openDatabase(await targetOf(database.url, SCHEMA), true, systemWorld())
})
afterAll(async () => {
  await opened.close()
  await admin.end()
  await database.drop()
})

const SCHEMA = `a "schema" of one's own`

/**
 * The tables are created once and emptied for each case: to create them takes as long as a case itself. The connections are
 * shared too, because a new session of the server has to plan every statement again.
 */
async function open() {
  const clock = { now: 1_800_000_000_000 }
  await emptyTables(admin, [SCHEMA])
  const store = new PostgresStore({ ...opened, close: async () => {} }, systemWorld(), { now: () => clock.now })
  return { store, clock, openTransaction: begin }
}

/** A transaction on a connection of the caller's own. */
async function begin(): Promise<CallerTransaction> {
  const tx = new Client(database.url)
  await tx.connect()
  await tx.query('begin')
  const end = async (how: string): Promise<void> => {
    await tx.query(how)
    await tx.end()
  }
  return { tx, commit: () => end('commit'), rollBack: () => end('rollback') }
}

describe('the store contract on PostgreSQL', () => {
  for (const { name, run } of storeContract.filter(isFirstSeed)) test(name, async () => run(await open()))
  for (const { name, run } of transactionContract) test(name, async () => run(await open()))
})

/** Random cases take seconds here: outside the matrix they have one seed, on SQLite all. */
function isFirstSeed({ name }: { readonly name: string }): boolean {
  return inMatrix || !/\(seed [1-9]\)/.test(name)
}
