import { createRequire } from 'node:module'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import createKnex from 'knex'
import { Kysely, SqliteDialect } from 'kysely'
import { DataSource } from 'typeorm'
import { expect, test } from 'vitest'
import { TransactionError } from '../../../errors.js'
import { checkOpen } from './check-open.js'
import { executorOf } from './handles.js'

/** Handles that are refused without a server; test/postgres-handles.test.ts has the rest, on a real one. */
const require = createRequire(import.meta.url)
const Libsql = require('libsql') as new (path: string) => { close(): void }

function refusalOf(tx: unknown): TransactionError {
  try {
    executorOf(tx)
  } catch (error) {
    if (error instanceof TransactionError) return error
    throw error
  }
  throw new Error('it was accepted')
}

test.each([
  [undefined, 'got undefined'],
  [null, 'got null'],
  [5, 'got 5'],
  ['begin', 'got "begin"'],
  [true, 'got true'],
  [{}, 'got an Object'],
  [new Map(), 'got a Map'],
  [() => undefined, 'got a function'],
  [{ query: 'select 1' }, 'got an Object'],
  [{ session: {} }, 'got an Object'],
  [Promise.resolve(), 'got a promise; await it first'],
  [{ execute: () => 1, batch: () => 1 }, 'got what looks like an SQLite client (@libsql/client)'],
])('%o is no transaction, and the error says what is accepted', (tx, got) => {
  const refusal = refusalOf(tx)
  expect(refusal.code).toBe('E_TX_UNKNOWN')
  expect(refusal.message).toContain('tx must be an open PostgreSQL transaction')
  expect(refusal.message).toContain(got)
})

test('handles on SQLite are refused, whatever the library', () => {
  const db = new Libsql(':memory:')
  const handles = [
    db,
    drizzle(db as never),
    new Kysely<object>({ dialect: new SqliteDialect({ database: db as never }) }),
    createKnex({ client: 'better-sqlite3', connection: ':memory:', useNullAsDefault: true }),
    new DataSource({ type: 'better-sqlite3', database: ':memory:' }),
    { $queryRawUnsafe: () => 1, _activeProvider: 'sqlite' },
  ]
  for (const handle of handles) {
    const refusal = refusalOf(handle)
    expect(refusal.code).toBe('E_TX_UNKNOWN')
    expect(refusal.message).toMatch(/sqlite.*this store is in PostgreSQL/is)
  }
  db.close()
})

const home = { schema: '"millrace"', token: 'this one', oid: '1', cluster: null }

test.each([
  [undefined, 'gave undefined'],
  [{ records: [] }, 'gave an Object'],
  [[], 'does not answer as PostgreSQL does'],
  [{ rows: [['a', 'b']] }, 'does not answer as PostgreSQL does'],
])('a { query } that returns %o is refused', async (answer, message) => {
  const tx = { query: () => Promise.resolve(answer) }
  await expect(checkOpen(executorOf(tx), home)).rejects.toMatchObject({
    code: 'E_TX_UNKNOWN',
    message: expect.stringContaining(message),
  })
})

test('the error of a { query } is the cause of the refusal', async () => {
  const thrown = new Error('the socket is gone')
  const check = checkOpen(executorOf({ query: () => Promise.reject(thrown) }), home)
  await expect(check).rejects.toMatchObject({ code: 'E_TX_NOT_OPEN', cause: thrown })
  await expect(check).rejects.toThrow('the socket is gone')
})
