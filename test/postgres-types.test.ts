import { Kysely, PostgresDialect } from 'kysely'
import { Client, Pool, types } from 'pg'
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { postgres } from '../src/postgres.js'
import { freshDatabase } from './postgres/shared-postgres.js'

/** An app that sets type parsers of `pg` for its whole process: the engine must not use them, and the app must keep them. */
const READ: readonly (readonly [string, number, (text: string) => unknown])[] = [
  ['boolean', 16, String],
  ['bytea', 17, String],
  ['bigint', 20, BigInt],
  ['smallint', 21, BigInt],
  ['integer', 23, BigInt],
  ['json', 114, String],
  ['double precision', 701, (text) => ({ double: text })],
  ['bigint[]', 1016, String],
  ['timestamptz', 1184, String],
  ['numeric', 1700, Number],
  ['uuid', 2950, (text) => Buffer.from(text)],
  ['jsonb', 3802, String],
]

let database: Awaited<ReturnType<typeof freshDatabase>>
beforeAll(async () => {
  database = await freshDatabase()
  for (const [, oid, parse] of READ) types.setTypeParser(oid, parse)
})
afterAll(() => database.drop())

const value = { a: ' x ', at: new Date(0), bytes: new Uint8Array([1, 0, 255]) }
const echo = job('echo', async (p: unknown) => p)
const unique = job('unique', { run: async (p: unknown) => p, unique: { by: 'a', for: '1h' } })

async function used(mill: Mill): Promise<void> {
  await mill.start()
  const handles = [
    await mill.enqueue(echo, value),
    await mill.enqueue(echo, value, { in: '50ms', expires: '1h' }),
    await mill.enqueue(echo, value, { key: 'k' }),
    await mill.enqueue(unique, value),
  ]
  for (const handle of handles) expect(await handle.result({ timeout: '20s' })).toEqual(value)
  expect(await mill.enqueue(unique, value)).toMatchObject({ isNew: false, id: handles[3]?.id })
  const found = []
  for await (const record of mill.find()) found.push(record.createdAt.getTime() > 0)
  expect(found).toEqual([true, true, true, true])
  await mill.queue('q').pauseUntil('1h')
  expect(await mill.queue('q').get()).toMatchObject({ paused: true, pausedUntil: expect.any(Date) })
}

test('the engine reads what it wrote, by URL and by pool', async () => {
  const warnings: unknown[] = []
  const warn = (...told: unknown[]): void => void warnings.push(told)
  const logger = { debug: () => undefined, info: () => undefined, warn, error: warn }
  const pool = new Pool({ connectionString: database.url })
  for (const store of [`${database.url}?schema=by_url`, postgres(pool, { schema: 'by_pool' })]) {
    const mill = await millrace({ store, jobs: [echo, unique], logger })
    await used(mill)
    await mill.close()
  }
  await pool.end()
  expect(JSON.stringify(warnings)).not.toMatch(/pooler|replica|read-only/)
  expect(warnings.filter((told) => /cannot/.test(JSON.stringify(told)))).toEqual([])
})

test('the engine does so in the app’s transactions too, of pg and of a library on it', async () => {
  const mill = await millrace({ store: database.url, jobs: [echo, unique], logger: false })
  await mill.start()
  const client = new Client(database.url)
  await client.connect()
  await client.query('begin')
  const first = await mill.enqueue(echo, value, { tx: client, key: 'pg' })
  expect(await mill.enqueue(echo, value, { tx: client, key: 'pg' })).toMatchObject({ isNew: false, id: first.id })
  const place = await mill.enqueue(unique, value, { tx: client })
  expect(await mill.enqueue(unique, value, { tx: client })).toMatchObject({ isNew: false, id: place.id })
  await client.query('commit')
  await client.end()
  const kysely = new Kysely<object>({
    dialect: new PostgresDialect({ pool: new Pool({ connectionString: database.url }) }),
  })
  const second = await kysely.transaction().execute(async (tx) => {
    const handle = await mill.enqueue(echo, value, { tx, key: 'kysely', in: '20ms' })
    expect(await mill.enqueue(echo, value, { tx, key: 'kysely' })).toMatchObject({ isNew: false, id: handle.id })
    return handle
  })
  await kysely.destroy()
  for (const handle of [first, place, second]) expect(await handle.result({ timeout: '20s' })).toEqual(value)
  await mill.close()
})

test('the app’s parsers apply in a transaction that the engine lends', async () => {
  const reads = job('reads', (_: undefined, ctx) =>
    ctx.transaction(async (tx: PoolClient) => {
      const { rows } = await tx.query('select 7::bigint as big, true as yes')
      return rows[0] as object
    }),
  )
  const mill = await millrace({ store: database.url, jobs: [reads], logger: false })
  await mill.start()
  expect(await (await mill.enqueue(reads)).result({ timeout: '20s' })).toEqual({ big: 7n, yes: 't' })
  await mill.close()
})
