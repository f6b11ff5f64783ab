import { existsSync } from 'node:fs'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { startPostgres } from '../src/testing/index.js'
import type { TestPostgres } from '../src/testing/index.js'
import { pgbouncer, startBouncer } from './postgres/pgbouncer.js'
import type { Bouncer } from './postgres/pgbouncer.js'
import { stockPrograms } from './postgres/stock-server.js'

/** F1: Debian's default server, with JIT on, compiles none of our statements. The server itself counts what it compiles. */
if (stockPrograms === undefined)
  test.skip('a stock server with JIT is tested where Debian’s PostgreSQL is installed (/usr/lib/postgresql)')

const bouncerProgram = pgbouncer ?? (existsSync('/usr/sbin/pgbouncer') ? '/usr/sbin/pgbouncer' : undefined)
const JOBS = 2_000

let server: TestPostgres
let sql: Client
let bouncer: Bouncer | undefined

describe.runIf(stockPrograms !== undefined)('a stock server with JIT', () => {
  beforeAll(async () => {
    server = await startPostgres({
      bin: stockPrograms as string,
      settings: { shared_preload_libraries: 'pg_stat_statements' },
    })
    sql = new Client(server.url)
    await sql.connect()
    await sql.query('create extension pg_stat_statements')
    if (bouncerProgram !== undefined) bouncer = await startBouncer(bouncerProgram, server.url)
  })
  afterAll(async () => {
    await bouncer?.end()
    await sql?.end()
    await server?.stop()
  })

  test('compiles a statement that costs enough, and counts it, or this file would prove nothing', async () => {
    await sql.query('set jit_above_cost = 0')
    await sql.query('select sum(number) as control from generate_series(1, 1000) as number')
    await sql.query('reset jit_above_cost')
    expect(await compiled()).toEqual([expect.stringContaining('control')])
  })

  test('compiles nothing of a drain, of single jobs, or of reads', { timeout: 60_000 }, async () => {
    await sql.query('select pg_stat_statements_reset()')
    await work(server.url)
    expect(await compiled()).toEqual([])
  })

  test.runIf(bouncerProgram !== undefined)('compiles nothing behind PgBouncer', { timeout: 60_000 }, async () => {
    await sql.query('select pg_stat_statements_reset()')
    await work((bouncer as Bouncer).url)
    expect(await compiled()).toEqual([])
  })
})

async function compiled(): Promise<string[]> {
  const { rows } = await sql.query<{ query: string }>('select query from pg_stat_statements where jit_functions > 0')
  return rows.map(({ query }) => query)
}

/** The normal work of a mill: bulks, single jobs, groups, links, pauses, times, and reading all of it. */
async function work(store: string): Promise<void> {
  let ran = 0
  const noop = job('noop', async (payload: { n: number }) => {
    ran += 1
    return payload.n
  })
  const mill: Mill = await millrace({ store, jobs: { noop }, logger: false, poll: '100ms' })
  const untilRan = (count: number): Promise<void> =>
    expect.poll(() => ran, { timeout: 30_000, interval: 5 }).toBe(count)
  await mill.enqueueMany(
    'noop',
    Array.from({ length: JOBS }, (_, n) => ({ n })),
  )
  await mill.start()
  await untilRan(JOBS)
  for (let n = 1; n <= 10; n += 1) {
    const handle = await mill.enqueue('noop', { n }, { key: `k${n}`, group: 'g' })
    await untilRan(JOBS + n)
    expect((await mill.get(handle.id))?.id).toBe(handle.id)
  }
  const first = await mill.enqueue('noop', { n: 0 }, { in: '200ms', expires: '1h' })
  await mill.enqueue('noop', { n: 1 }, { after: [first] })
  await untilRan(JOBS + 12)
  await mill.queue('default').pause()
  await mill.queue('default').resume()
  expect((await mill.group('g').progress()).total).toBeGreaterThanOrEqual(10)
  await mill.upcoming('1h')
  let found = 0
  for await (const each of mill.find({ state: 'done' })) if (each.id !== '') found += 1
  expect(found).toBeGreaterThanOrEqual(JOBS)
  await mill.close()
}
