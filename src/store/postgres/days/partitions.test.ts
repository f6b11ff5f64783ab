import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { ContractFixture, only } from '../../../../test/contract/fixture.js'
import { freshDatabase } from '../../../../test/postgres/shared-postgres.js'
import type { JobStore } from '../../store.js'
import { systemWorld } from '../../../world/world.js'
import { openDatabase } from '../connection/open.js'
import { PostgresStore } from '../postgres-store.js'
import { dayQueries } from '../queries/days.js'
import { targetOf } from '../connection/target.js'

const DAY_MS = 86_400_000
const NOON = Date.UTC(2040, 0, 10, 12)

let database: Awaited<ReturnType<typeof freshDatabase>>
let sql: Client
let schemas = 0
let schema: string
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
  schemas += 1
  schema = `days ${schemas} "of" o'many`
  clock = { now: NOON }
  b = new ContractFixture({ store: await open(), clock })
})
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
})

/** One more process. */
async function open(now: () => number = () => clock.now): Promise<PostgresStore> {
  const world = systemWorld()
  const store = new PostgresStore(await openDatabase(await targetOf(database.url, schema), true, world), world, { now })
  stores.push(store)
  return store
}

const home = (): string => `"${schema.replaceAll('"', '""')}"`

async function tables(): Promise<string[]> {
  const { rows } = await sql.query('select tablename from pg_tables where schemaname = $1 order by 1', [schema])
  return rows.map((row: { tablename: string }) => row.tablename).filter((name) => /_\d{4}_/.test(name))
}

async function whereIs(table: 'jobs' | 'history' | 'labels'): Promise<Record<string, number>> {
  const { rows } = await sql.query(
    `select c.relname as name, count(*)::integer as rows from ${home()}.${table} t join pg_class c on c.oid = t.tableoid group by 1`,
  )
  return Object.fromEntries(rows.map(({ name, rows }: { name: string; rows: number }) => [name, rows]))
}

/** Done jobs that are kept for `keepMs`. */
async function done(count: number, keepMs: number): Promise<string[]> {
  const jobs = Array.from({ length: count }, () => b.job({ options: '{"labels":["done"]}' }))
  await b.insert(jobs)
  const { jobs: claimed } = await b.claim(await b.worker())
  await b.store.leases.settleJobs(
    claimed.map((job) => b.settled(job, { keepMs })),
    [],
  )
  return jobs.map(({ id }) => id)
}

/** Returns how many jobs were pruned row by row or dropped with their days. */
const prune = async (store: Pick<JobStore, 'pruneJobs' | 'sweepRows'> = b.store.jobs): Promise<number> =>
  (await store.pruneJobs(500)).pruned + (await store.sweepRows(500)).swept

describe('days', () => {
  test('exist from the first moment', async () => {
    const real = await open(Date.now)
    await real.insertJobs([b.job()], { onDuplicate: 'return', keepCancelledMs: Infinity })
    expect(await tables()).toHaveLength(9)
    // Midnight may pass in between.
    const [where] = Object.keys(await whereIs('jobs'))
    expect((await tables()).filter((name) => name.startsWith('jobs')).slice(0, 2)).toContain(where)
  })

  test('are created ahead, today and the next two, at every sweep', async () => {
    for (let i = 0; i < 3; i += 1) {
      await prune()
      clock.now += 3_600_000
    }
    const made = ['2040_01_10', '2040_01_11', '2040_01_12']
    expect((await tables()).filter((name) => name.includes('2040'))).toEqual(
      ['history', 'jobs', 'labels'].flatMap((of) => made.map((day) => `${of}_${day}`)),
    )
    clock.now += DAY_MS
    await prune()
    expect(await tables()).toContain('jobs_2040_01_13')
  })

  test('hold a job that was on its way into the default partition when they were added', async () => {
    const day = Math.floor(NOON / DAY_MS)
    const queries = dayQueries(home())
    await sql.query('begin')
    await sql.query(`lock table ${home()}.jobs_rest in access exclusive mode`)
    const inserted = b.one()
    await vi.waitFor(async () => {
      await sql.query('select pg_stat_clear_snapshot()')
      const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
      expect((await sql.query(waiting)).rowCount).toBe(1)
    })
    await sql.query(queries.create('jobs', day))
    await sql.query(queries.attach('jobs', day))
    await sql.query('commit')
    await inserted
    expect(await whereIs('jobs')).toEqual({ jobs_2040_01_10: 1 })
  })

  test('hold the jobs that are enqueued on them, and their later ends', async () => {
    await prune()
    await b.one()
    clock.now += DAY_MS
    await done(2, Infinity)
    expect(await whereIs('jobs')).toEqual({ jobs_2040_01_10: 1, jobs_2040_01_11: 2 })
    expect(await whereIs('history')).toEqual({ history_2040_01_10: 1, history_2040_01_11: 2 })
  })

  test('are not needed: jobs without a partition for their day are kept, run and are pruned all the same', async () => {
    const ids = await done(3, 2 * DAY_MS)
    expect(await whereIs('jobs')).toEqual({ jobs_rest: 3 })
    expect(await prune()).toBe(0)
    // Its rows stay where they are; partitions of the following days are created.
    expect(await tables()).not.toContain('jobs_2040_01_10')
    expect(await tables()).toContain('jobs_2040_01_11')
    clock.now += 2 * DAY_MS
    expect(await whereIs('labels')).toEqual({ labels_rest: 3 })
    expect(await prune()).toBe(3)
    expect(await b.state(ids[0] as string)).toBe('gone')
    expect(await whereIs('labels')).toEqual({})
  })
})

describe('a past day', () => {
  test('is dropped whole when all its jobs have expired', async () => {
    await prune()
    const ids = await done(20, 2 * DAY_MS)
    clock.now += DAY_MS
    expect(await prune()).toBe(0)
    expect(await b.state(ids[0] as string)).toBe('done')
    clock.now += DAY_MS
    expect(await prune()).toBe(20)
    expect(await tables()).not.toContain('jobs_2040_01_10')
    expect(await tables()).not.toContain('history_2040_01_10')
    expect(await tables()).not.toContain('labels_2040_01_10')
    expect(await whereIs('labels')).toEqual({})
    expect(await b.found({})).toEqual([])
  })

  test('is dropped with its labels if those had no partition of their own', async () => {
    await prune()
    await sql.query(`drop table ${home()}.labels_2040_01_10`)
    await done(20, DAY_MS)
    expect(await whereIs('labels')).toEqual({ labels_rest: 20 })
    clock.now += 3 * DAY_MS
    expect(await prune()).toBe(20)
    expect(await tables()).not.toContain('jobs_2040_01_10')
    expect(await whereIs('labels')).toEqual({})
  })

  test('leaves jobs that are unfinished or kept longer, with all their data', async () => {
    await prune()
    const scheduled = await b.one({
      due: { inMs: 9 * DAY_MS },
      key: 'k',
      priority: 7,
      options: '{"labels":["l"]}',
      expires: { inMs: 20 * DAY_MS },
    })
    const worker = await b.worker()
    const [running, failed, forEver] = [await b.one(), await b.one(), await b.one()]
    const { jobs } = await b.claim(worker)
    const claimed = new Map(jobs.map((job) => [job.id, job]))
    await b.settle(claimed.get(failed)!, { to: 'failed', error: '{"message":"no"}', keepMs: 30 * DAY_MS })
    await b.settle(claimed.get(forEver)!, { result: '42' })
    await done(60, DAY_MS)
    const before = await b.store.jobs.readJobs([scheduled, running, failed, forEver])
    clock.now += 3 * DAY_MS
    expect(await prune()).toBe(60)
    expect(await tables()).not.toContain('jobs_2040_01_10')
    expect(await whereIs('jobs')).toEqual({ jobs_rest: 4 })
    expect(await whereIs('labels')).toEqual({ labels_rest: 1 })
    expect(await b.store.jobs.readJobs([scheduled, running, failed, forEver])).toEqual(before)

    await b.settle(claimed.get(running)!, { result: '1' })
    expect((await b.read(running)).result).toBe('1')
    expect(await b.store.jobs.changeJob({ id: failed, from: 'failed', to: 'ready', keepMs: 0 })).toBe('changed')
    expect(only(await b.claim(worker)).id).toBe(failed)
    expect((await b.found({ label: 'l' })).map(({ id }) => id)).toEqual([scheduled])
    expect((await b.store.jobs.readKeyed('mail', 'k'))?.id).toBe(scheduled)
    clock.now += 9 * DAY_MS
    expect((await b.store.jobs.promoteJobs(10)).promoted).toBe(1)
    expect(only(await b.claim(worker)).id).toBe(scheduled)
    clock.now += 3_650 * DAY_MS
    await prune()
    expect((await b.read(forEver)).result).toBe('42')
  })

  test('stays while too many of its jobs are kept, and not for ever', async () => {
    await prune()
    await done(10, DAY_MS)
    await done(5, 30 * DAY_MS)
    clock.now += 5 * DAY_MS
    expect(await prune()).toBe(0)
    expect(await whereIs('jobs')).toEqual({ jobs_2040_01_10: 15 })
    clock.now += 7 * DAY_MS
    expect(await prune()).toBe(10)
    expect(await whereIs('history')).toEqual({ history_rest: 5 })
    clock.now += 30 * DAY_MS
    expect(await prune()).toBe(5)
    expect(await b.found({})).toEqual([])
  })

  test('leaves no end behind without its job, and no job without its end', async () => {
    // The jobs were in the default partition before the partition of history was created.
    const ids = await done(2, DAY_MS)
    await sql.query(`delete from ${home()}.history`)
    await sql.query(
      `create table ${home()}.history_2040_01_10 partition of ${home()}.history for values from (${25_576n << 38n}) to (${25_577n << 38n})`,
    )
    await sql.query(
      `insert into ${home()}.history (ref, settled_at, keep_until, state) select ref, $1, $2, 'done' from ${home()}.jobs`,
      [NOON, NOON + DAY_MS],
    )
    clock.now += 12 * DAY_MS
    await prune()
    clock.now += 3_600_000
    await prune()
    expect(await tables()).not.toContain('history_2040_01_10')
    expect(await b.state(ids[0] as string)).toBe('gone')
    expect(await whereIs('history')).toEqual({})
    expect(await whereIs('labels')).toEqual({})
  })

  test('is dropped once by several processes at the same time, and the jobs that they enqueue meanwhile are kept', async () => {
    await prune()
    await done(50, DAY_MS)
    const others = [b.store.jobs as PostgresStore, await open(), await open()]
    clock.now += 3 * DAY_MS
    const late: string[] = []
    const enqueue = async (): Promise<void> => {
      for (let i = 0; i < 30; i += 1) late.push(await b.one())
    }
    const prunes = (): Promise<number[]> => Promise.all(others.map((store) => prune(store)))
    const [pruned] = await Promise.all([prunes(), enqueue()])
    // Processes that met each other's locks try again.
    for (let i = 0; i < 20 && (await tables()).includes('jobs_2040_01_10'); i += 1) pruned.push(...(await prunes()))
    expect(pruned.reduce((sum, each) => sum + each, 0)).toBe(50)
    expect(await tables()).not.toContain('jobs_2040_01_10')
    expect((await b.store.jobs.readJobs(late)).filter((row) => row?.state === 'ready')).toHaveLength(30)
  })

  test('is not dropped while a transaction reads it, and no other statement waits meanwhile', async () => {
    await prune()
    await done(10, DAY_MS)
    clock.now += 3 * DAY_MS
    const reader = new Client(database.url)
    await reader.connect()
    await reader.query('begin')
    await reader.query(`select count(*) from ${home()}.jobs`)
    // The reader keeps its lock during all of this: that these calls return shows that they gave up or did not need the
    // lock.
    const [pruned, id] = await Promise.all([prune(), b.one()])
    expect([pruned, await b.state(id)]).toEqual([0, 'ready'])
    expect(await tables()).toContain('jobs_2040_01_10')
    await reader.query('commit')
    await reader.end()
    expect(await prune()).toBe(10)
    expect(await tables()).not.toContain('jobs_2040_01_10')
  })

  test('keeps jobs that were enqueued or revived between its scan and its drop', async () => {
    await prune()
    const ids = await done(20, DAY_MS)
    const late = await open(() => NOON)
    clock.now += 3 * DAY_MS
    const reader = new Client(database.url)
    await reader.connect()
    await reader.query('begin')
    await reader.query(`select count(*) from ${home()}.jobs`)
    expect(await prune()).toBe(0) // The scan is done, and the drop waits for the reader.
    const revived = ids[3] as string
    expect(await b.store.jobs.changeJob({ id: revived, from: 'done', to: 'ready', keepMs: 0 })).toBe('changed')
    const enqueued = b.job()
    await late.insertJobs([enqueued], { onDuplicate: 'return', keepCancelledMs: Infinity })
    expect(await whereIs('jobs')).toEqual({ jobs_2040_01_10: 21 })
    await reader.query('commit')
    await reader.end()
    expect(await prune()).toBe(19)
    expect(await whereIs('jobs')).toEqual({ jobs_rest: 2 })
    const { jobs } = await b.claim(await b.worker())
    expect(new Set(jobs.map(({ id }) => id))).toEqual(new Set([revived, enqueued.id]))
    for (const job of jobs) await b.settle(job, { keepMs: DAY_MS })
    clock.now += DAY_MS
    expect(await prune()).toBe(2)
    expect((await sql.query(`select ref from ${home()}.revived`)).rows).toEqual([])
  })

  test('waits for a transaction that enqueued on it and has not committed', async () => {
    await prune()
    await done(20, DAY_MS)
    const writer = new Client(database.url)
    await writer.connect()
    await writer.query('begin')
    await writer.query(
      `insert into ${home()}.jobs (ref, id, created_at, due_at, lane, priority, payload)
       select max(ref) + 1, gen_random_uuid(), $1, $1, max(lane), 0, '1' from ${home()}.jobs`,
      [NOON],
    )
    await sql.query(`select nextval('${home().replaceAll(`'`, `''`)}.job_number')`)
    clock.now += 3 * DAY_MS
    expect(await prune()).toBe(0)
    await writer.query('commit')
    await writer.end()
    expect(await prune()).toBe(20)
    expect(await whereIs('jobs')).toEqual({ jobs_rest: 1 })
  })

  test('is read in slices when it is large, and claims run between them', async () => {
    await prune()
    await done(1, DAY_MS)
    const count = 30_000
    await sql.query(`select setval('${home().replaceAll(`'`, `''`)}.job_number', ${count * 2})`)
    await sql.query(
      `insert into ${home()}.jobs (ref, id, created_at, due_at, lane, priority, payload)
       select ref + n, gen_random_uuid(), $1, $1, lane, 0, '1' from ${home()}.jobs, generate_series(1, ${count}) n`,
      [NOON],
    )
    await sql.query(
      `insert into ${home()}.history (ref, settled_at, keep_until, state)
       select min(ref) + n, $1, $2, 'done' from ${home()}.history, generate_series(1, ${count}) n group by n`,
      [NOON, NOON + DAY_MS],
    )
    clock.now += 3 * DAY_MS
    const worker = await b.worker()
    let [isOver, claims] = [false, 0]
    const claiming = (async () => {
      for (; !isOver; claims += 1) await b.claim(worker)
    })()
    const forgotten = await prune()
    isOver = true
    await claiming
    expect(forgotten).toBe(count + 1)
    // Two looks of 16 slices each, and at least every second statement is a claim.
    expect(claims).toBeGreaterThan(16)
  })
})
