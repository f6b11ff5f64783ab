import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { ContractFixture } from '../../../../test/contract/fixture.js'
import { freshDatabase } from '../../../../test/postgres/shared-postgres.js'
import { systemWorld } from '../../../world/world.js'
import { openDatabase } from '../connection/open.js'
import { PostgresStore } from '../postgres-store.js'
import { targetOf } from '../connection/target.js'

const MINUTE_MS = 60_000
const BEFORE_MIDNIGHT = Date.UTC(2040, 0, 10, 23, 59)

let database: Awaited<ReturnType<typeof freshDatabase>>
let sql: Client
let clock: { now: number }
let b: ContractFixture
const stores: PostgresStore[] = []

beforeAll(async () => {
  database = await freshDatabase()
  sql = new Client(database.url)
  await sql.connect()
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})
beforeEach(async () => {
  clock = { now: BEFORE_MIDNIGHT }
  b = new ContractFixture({ store: await open(), clock })
  await b.store.jobs.sweepRows(1) // Creates the partitions of that day and the next.
})
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  await sql.query('drop schema millrace cascade')
})

/** One more process: its first step begins at the oldest row. */
async function open(): Promise<PostgresStore> {
  const world = systemWorld()
  const opened = await openDatabase(await targetOf(database.url, 'millrace'), true, world)
  const store = new PostgresStore(opened, world, { now: () => clock.now })
  stores.push(store)
  return store
}

/** Done jobs, one for each duration, in that order in their tables. */
async function done(keepMs: readonly number[]): Promise<string[]> {
  const jobs = keepMs.map(() => b.job())
  await b.insert(jobs)
  const { jobs: claimed } = await b.claim(await b.worker())
  await b.store.leases.settleJobs(
    jobs.map(({ id }, i) => {
      const job = claimed.find((each) => each.id === id) as (typeof claimed)[number]
      return b.settled(job, { keepMs: keepMs[i] as number })
    }),
    [],
  )
  return jobs.map(({ id }) => id)
}

async function left(table: 'jobs' | 'history'): Promise<string[]> {
  const { rows } = await sql.query<{ id: string }>(
    `select j.id::text as id from millrace.${table} t join millrace.jobs j on j.ref = t.ref order by j.ref`,
  )
  return rows.map(({ id }) => id)
}

test('a step skips done jobs that another transaction has locked, and a later one takes them', async () => {
  const [body, end] = (await done([MINUTE_MS, MINUTE_MS, MINUTE_MS, MINUTE_MS])) as [string, string]
  clock.now += MINUTE_MS
  await sql.query('begin')
  await sql.query('select 1 from millrace.jobs where id = $1 for key share', [body])
  await sql.query(
    'select 1 from millrace.history where ref = (select ref from millrace.jobs where id = $1) for update',
    [end],
  )
  const pruned = await b.store.jobs.pruneJobs(10)
  await sql.query('commit')
  expect(pruned.pruned).toBe(2)
  expect([await left('jobs'), await left('history')]).toEqual([
    [body, end],
    [body, end],
  ])
  const other = await open()
  expect(await other.jobs.pruneJobs(10)).toEqual({ pruned: 2, nextInMs: null })
  expect([await left('jobs'), await left('history')]).toEqual([[], []])
})

test('a step over two days deletes only due jobs, though rows of both days have the same ctid', async () => {
  const [, first, second] = await done([2 * MINUTE_MS, 60 * MINUTE_MS, 60 * MINUTE_MS, 2 * MINUTE_MS])
  clock.now += MINUTE_MS
  const [third, , , fourth] = await done([60 * MINUTE_MS, MINUTE_MS, MINUTE_MS, 60 * MINUTE_MS])
  const { rows } = await sql.query('select count(distinct tableoid)::integer as tables from millrace.history')
  expect(rows).toEqual([{ tables: 2 }])
  clock.now += MINUTE_MS
  expect(await b.store.jobs.pruneJobs(10)).toEqual({ pruned: 4, nextInMs: 58 * MINUTE_MS })
  const kept = [first, second, third, fourth]
  expect([await left('jobs'), await left('history')]).toEqual([kept, kept])
})
