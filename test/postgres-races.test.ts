import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { makeQueries } from '../src/store/postgres/queries/queries.js'
import type { Queries } from '../src/store/postgres/queries/queries.js'
import { PostgresStore } from '../src/store/postgres/postgres-store.js'
import { openDatabase } from '../src/store/postgres/connection/open.js'
import { targetOf } from '../src/store/postgres/connection/target.js'
import type { ClaimedJob, NewJob, SettledJob } from '../src/store/store.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { systemWorld } from '../src/world/world.js'

/**
 * The interleavings that READ COMMITTED allows, stepped through: one side is a transaction of a plain client that
 * waits at a chosen point, the other is the store. docs/decisions/postgres-locks.md says what decides each conflict.
 */
let database: Awaited<ReturnType<typeof freshDatabase>>
const clients: Client[] = []
const stores: PostgresStore[] = []
beforeAll(async () => {
  database = await freshDatabase()
}, 60_000)
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end()
  for (const store of stores.splice(0)) await store.close()
})
afterAll(() => database?.drop())

let schemas = 0
const world = systemWorld()

async function newStore(schema: string): Promise<PostgresStore> {
  const store = new PostgresStore(await openDatabase(await targetOf(database.url, schema), true, world), world)
  stores.push(store)
  return store
}

async function newClient(): Promise<Client> {
  const client = new Client(database.url)
  clients.push(client)
  await client.connect()
  return client
}

interface House {
  readonly schema: string
  readonly store: PostgresStore
  readonly other: PostgresStore
  readonly client: Client
  readonly queries: Queries
}

async function house(): Promise<House> {
  const schema = `races_${(schemas += 1)}`
  const store = await newStore(schema)
  const queries = makeQueries(`"${schema}"`, `millrace ${schema}`)
  return { schema, store, other: await newStore(schema), client: await newClient(), queries }
}

const aJob = (over: Partial<NewJob> = {}): NewJob =>
  ({
    id: world.ids.jobId(Date.now()),
    name: 'work',
    queue: 'default',
    priority: 0,
    key: null,
    payload: '{"n":1}',
    options: null,
    due: { inMs: 0 },
    expires: null,
    ...over,
  }) as NewJob

const OPTIONS = { onDuplicate: 'return', keepCancelledMs: 60_000 } as const

async function claim(store: PostgresStore, worker: string, max = 10): Promise<readonly ClaimedJob[]> {
  const request = {
    worker,
    fence: world.ids.fence(),
    names: undefined,
    rooms: new Map(),
    max,
    starting: max,
    suspects: 'none',
  }
  return (await store.claimJobs(request as never)).jobs
}

function ended(job: ClaimedJob, over: Partial<SettledJob> = {}): SettledJob {
  return {
    ...job,
    to: 'done',
    delayMs: null,
    attempt: 1,
    retries: 0,
    crashes: 0,
    streak: 0,
    startedAt: job.dueAt,
    worker: 'w',
    result: '1',
    error: null,
    reason: null,
    log: null,
    keepMs: 60_000,
    ...over,
  } as SettledJob
}

/** Claimed jobs that have begun. */
async function running(store: PostgresStore, count = 1, over: Partial<NewJob> = {}): Promise<readonly ClaimedJob[]> {
  await store.addWorker({ id: 'w', host: 'h', pid: 1 })
  await store.insertJobs(
    Array.from({ length: count }, () => aJob(over)),
    OPTIONS,
  )
  return claim(store, 'w')
}

const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms))
const only = <T>(list: readonly T[]): T => {
  expect(list).toHaveLength(1)
  return list[0] as T
}

/** A store that calls `meanwhile` before it runs the first statement that matches. */
async function interrupted(schema: string, like: RegExp, meanwhile: () => Promise<unknown>): Promise<PostgresStore> {
  const target = await targetOf(database.url, schema)
  let isDone = false
  const makeClient: typeof target.makeClient = () => {
    const client = target.makeClient()
    const query = client.query.bind(client)
    client.query = async (asked) => {
      if (!isDone && like.test(asked.text)) {
        isDone = true
        await meanwhile()
      }
      return query(asked)
    }
    return client
  }
  const store = new PostgresStore(await openDatabase({ ...target, makeClient }, true, world), world)
  stores.push(store)
  return store
}

/** Waits until another session waits for a lock. */
async function untilBlocked(): Promise<void> {
  const client = await newClient()
  await expect
    .poll(async () => (await client.query(`select 1 from pg_locks where not granted`)).rows.length, {
      timeout: 5_000,
      interval: 5,
    })
    .toBeGreaterThan(0)
}

describe('a command on a waiting job', () => {
  const edit = { keepMs: Infinity, edit: { payload: '{"n":2}' } } as const

  for (const state of ['ready', 'scheduled'] as const)
    test(`that has read an older version does not undo later writes: ${state}`, async () => {
      const { store, other, schema } = await house()
      const job = aJob({ due: { inMs: state === 'ready' ? 0 : 60_000 } })
      await store.insertJobs([job], OPTIONS)
      const pausing = await interrupted(schema, /^\s*delete from/, () =>
        other.changeJob({ id: job.id, from: state, to: state, ...edit }),
      )
      expect(await pausing.changeJob({ id: job.id, from: state, to: 'paused', keepMs: Infinity })).toBe('changed')
      const [row] = await store.readJobs([job.id])
      expect(row).toMatchObject({ state: 'paused', payload: '{"n":2}' })
    })

  test('that ended again since it was read decides from the new state', async () => {
    const { store, other, schema } = await house()
    const failed = { to: 'failed', result: null } as const
    const job = only(await running(store))
    await store.settleJobs([ended(job, failed)], [job.fence])
    const retry = { id: job.id, from: 'failed', to: 'ready', keepMs: Infinity } as const
    const retrying = await interrupted(schema, /delete from \S+history/, async () => {
      await other.changeJob(retry)
      const again = only(await claim(other, 'w'))
      await other.settleJobs([ended(again, { ...failed, attempt: 2 })], [again.fence])
    })
    expect(await retrying.changeJob(retry)).toBe('changed')
    expect((await store.readJobs([job.id]))[0]).toMatchObject({ state: 'ready', attempt: 2 })
  })
})

describe('a retry', () => {
  test('of a job that is deleted meanwhile leaves its key free', async () => {
    const { store, other, schema } = await house()
    const job = only(await running(store, 1, { key: 'k' }))
    await store.settleJobs([ended(job, { to: 'failed', result: null })], [job.fence])
    const retrying = await interrupted(schema, /delete from \S+history/, () =>
      other.changeJob({ id: job.id, from: 'failed', to: 'gone', keepMs: 0 }),
    )
    const retry = { id: job.id, from: 'failed', to: 'ready', keepMs: Infinity } as const
    expect(await retrying.changeJob(retry)).toBe('stale')
    expect(await store.insertJobs([aJob({ key: 'k' })], OPTIONS)).toMatchObject([{ isNew: true }])
  })
})

describe('the settlement of a job', () => {
  test('that waits for a requested change to be written applies it', async () => {
    const { store, client, queries, schema } = await house()
    const job = only(await running(store))
    await client.query('begin')
    await client.query(queries.lockLease, [String(job.fence)])
    await client.query(queries.putRequest, [String(job.ref), 'cancel', 'why', null, null])
    await client.query(queries.markRequested, [String(job.fence)])
    const settled = store.settleJobs([ended(job)], [job.fence])
    await untilBlocked()
    await client.query('commit')
    expect(await settled).toEqual({ refused: [], changed: [] })
    expect((await client.query(`select * from ${schema}.requests`)).rows).toEqual([])
    expect((await client.query(`select state from ${schema}.history`)).rows).toEqual([{ state: 'done' }])
  })

  test('that waits for a rescue is refused, and the job is ready once', async () => {
    const { store, client, queries, schema } = await house()
    const job = only(await running(store))
    await client.query('begin')
    await client.query(queries.endWorker, ['w', '0', null])
    await client.query(queries.lockLeasesOf, ['w'])
    const back = [{ ref: job.ref, fence: job.fence, state: 'ready', streak: null, attempt: null, begun: true }]
    await client.query(queries.requeueJobs, [JSON.stringify({ back })])
    await client.query(queries.dropLeases, [`{${job.fence}}`])
    const settled = store.settleJobs([ended(job)], [job.fence])
    await untilBlocked()
    await client.query('commit')
    expect((await settled).refused).toEqual([job.ref])
    expect((await client.query(`select ref from ${schema}.history`)).rows).toEqual([])
    expect((await client.query(`select ref from ${schema}.ready`)).rows).toHaveLength(1)
  })

  test('that is written twice, because its reply was lost, is no lost claim', async () => {
    const { store } = await house()
    const job = only(await running(store))
    expect((await store.settleJobs([ended(job)], [job.fence])).refused).toEqual([])
    expect((await store.settleJobs([ended(job)], [job.fence])).refused).toEqual([])
    expect((await store.settleJobs([ended(job, { worker: 'zombie' })], [job.fence])).refused).toEqual([job.ref])
  })

  test('in a handler’s transaction delays only itself', async () => {
    const { store, client, queries } = await house()
    const [first, second] = (await running(store, 2)) as [ClaimedJob, ClaimedJob]
    await client.query('begin')
    await client.query(queries.shareLease, [String(first.ref), String(first.fence)])
    expect((await store.settleJobs([ended(second)], [])).refused).toEqual([])
    const began = Date.now()
    await expect(store.settleJobs([ended(first, { to: 'ready', result: null })], [])).rejects.toMatchObject({
      code: 'E_STORE_LOCKED',
    })
    expect(Date.now() - began).toBeLessThan(8_000)
    await store.insertJobs([aJob()], OPTIONS)
    await client.query('rollback')
    expect((await store.settleJobs([ended(first, { to: 'ready', result: null })], [first.fence])).refused).toEqual([])
  })
})

describe('a rescue', () => {
  test('leaves a lease that a handler’s transaction has locked to the next round, and frees the rest', async () => {
    const { store, other, client, queries } = await house()
    await store.addWorker({ id: 'w', host: 'h', pid: 1 })
    await store.insertJobs([aJob(), aJob()], OPTIONS)
    const first = only(await claim(store, 'w', 1))
    const second = only(await claim(store, 'w', 1))
    await client.query('begin')
    await client.query(queries.shareLease, [String(first.ref), String(first.fence)])
    const crashed = [first, second].map((job) => ended(job, { to: 'ready', result: null, streak: 2 }))
    expect(await other.rescueJobs('w', 0, crashed)).toMatchObject({ refused: [first.ref] })
    expect((await other.readWorkers()).filter(({ id }) => id === 'w')).toEqual([{ id: 'w', beat: null }])
    expect(await other.rescueJobs('w', null, crashed.slice(0, 1))).toBeNull()
    await client.query('rollback')
    expect(await other.rescueJobs('w', null, crashed.slice(0, 1))).toMatchObject({ refused: [] })
    expect(await other.readWorkers()).toEqual([])
  })

  test('does nothing when the heartbeat changed while it waited', async () => {
    const { store, other, client, queries } = await house()
    const job = only(await running(store))
    await client.query('begin')
    await client.query(queries.beat, ['w'])
    const rescued = other.rescueJobs('w', 0, [ended(job, { to: 'ready', result: null })])
    await untilBlocked()
    await client.query('commit')
    expect(await rescued).toBeNull()
    expect((await store.settleJobs([ended(job)], [job.fence])).refused).toEqual([])
  })
})

describe('a job that is retried', () => {
  test('while it is being pruned keeps its row', async () => {
    const { store, other, client, queries, schema } = await house()
    const job = only(await running(store))
    await store.settleJobs([ended(job, { keepMs: 1 })], [job.fence])
    await pause(5)
    await client.query('begin')
    // What a retry writes, before it waits.
    await client.query(`delete from ${schema}.history where ref = ${job.ref}`)
    await client.query(queries.putReady, [JSON.stringify([{ lane: 1, sort: 0, ref: job.ref }])])
    expect((await other.pruneJobs(10)).pruned, 'the prune does not wait for it').toBe(0)
    await client.query('commit')
    expect((await other.pruneJobs(10)).pruned).toBe(0)
    expect((await client.query(`select ref from ${schema}.jobs`)).rows).toHaveLength(1)
  })

  test('while unique slots are swept keeps its slot', async () => {
    const { store, other, client, schema } = await house()
    const unique = { key: 'place', while: 'unfinished', onDuplicate: 'reject', forMs: null }
    const options = JSON.stringify({ unique: { key: 'place', while: 'unfinished' } })
    const job = only(await running(store, 1, { unique, options } as Partial<NewJob>))
    await store.settleJobs([ended(job, { to: 'failed', result: null })], [job.fence])
    await client.query('begin')
    await client.query(`update ${schema}.uniques set until = null`)
    await client.query(`delete from ${schema}.history`)
    const swept = other.sweepRows(10)
    await untilBlocked()
    await client.query('commit')
    expect((await swept).swept).toBe(0)
    expect((await client.query(`select key from ${schema}.uniques`)).rows).toEqual([{ key: 'place' }])
  })
})

describe('a key', () => {
  test('that a caller’s transaction holds blocks only enqueues of the same key', async () => {
    const { store, client, queries } = await house()
    await store.insertJobs([aJob()], OPTIONS)
    await client.query('begin')
    await client.query(queries.lockNames, [JSON.stringify(['key work\nk'])])
    const wanted = store.insertJobs([aJob({ key: 'k' })], OPTIONS)
    await pause(300)
    const began = Date.now()
    await store.insertJobs([aJob()], OPTIONS)
    expect(Date.now() - began).toBeLessThan(8_000)
    await client.query('commit')
    expect(only(await wanted)).toMatchObject({ isNew: true })
  })

  test('whose holder ends between two reads is free', async () => {
    const { store, other } = await house()
    await store.addWorker({ id: 'w', host: 'h', pid: 1 })
    for (let round = 0; round < 30; round += 1) {
      const held = only(await store.insertJobs([aJob({ key: 'k' })], { ...OPTIONS, onDuplicate: 'reject' }))
      const job = only(await claim(store, 'w'))
      const [, second] = await Promise.all([
        store.settleJobs([ended(job)], [job.fence]),
        other
          .insertJobs([aJob({ key: 'k' })], { ...OPTIONS, onDuplicate: 'replace' })
          .catch((error: { code: string }) => error.code),
      ])
      if (second === 'E_DUPLICATE_KEY') continue
      expect((second as readonly { id: string }[])[0]?.id).not.toBe(held.id)
      const next = only(await claim(store, 'w'))
      await store.settleJobs([ended(next)], [next.fence])
    }
  })
})

describe('a claim', () => {
  test('that began before a pause was written delays the pause', async () => {
    const { store, other, client, schema } = await house()
    await store.addWorker({ id: 'w', host: 'h', pid: 1 })
    await store.insertJobs([aJob()], OPTIONS)
    await client.query('begin')
    // What a claim has written when it waits.
    await client.query(
      `insert into ${schema}.leases (fence, worker, quarantined, claimed_at, starting, refs) select 7, 'w', 0, 0, 0, array_agg(ref) from ${schema}.ready`,
    )
    let isPaused = false
    const paused = other.pauseQueue({ queue: 'default', until: null }).then((answer) => {
      isPaused = true
      return answer
    })
    await untilBlocked()
    expect(isPaused).toBe(false)
    expect(await claim(store, 'w')).toEqual([])
    await client.query('commit')
    expect(await paused).toMatchObject({ held: true })
  })

  test('of four at once takes nothing twice and leaves nothing', { timeout: 60_000 }, async () => {
    const { store, schema } = await house()
    const four = await Promise.all(Array.from({ length: 4 }, () => newStore(schema)))
    await store.insertJobs(
      Array.from({ length: 2_000 }, () => aJob()),
      OPTIONS,
    )
    const taken = await Promise.all(
      four.map(async (one, i) => {
        await one.addWorker({ id: `w${i}`, host: 'h', pid: i })
        const refs: number[] = []
        for (let empty = 0; empty < 3;) {
          const jobs = await claim(one, `w${i}`, 7)
          refs.push(...jobs.map((job) => job.ref))
          empty = jobs.length === 0 ? empty + 1 : 0
        }
        return refs
      }),
    )
    expect(taken.flat()).toHaveLength(2_000)
    expect(new Set(taken.flat()).size).toBe(2_000)
  })

  test('races with cancels, and every job is either claimed or cancelled', { timeout: 60_000 }, async () => {
    const { store, other, schema, client } = await house()
    await store.addWorker({ id: 'w', host: 'h', pid: 1 })
    const jobs = Array.from({ length: 300 }, () => aJob())
    await store.insertJobs(jobs, OPTIONS)
    const change = { from: 'ready', to: 'cancelled', keepMs: 60_000, reason: 'r' } as const
    const cancelled = Promise.all(jobs.map(({ id }) => other.changeJob({ id, ...change })))
    const taken: ClaimedJob[] = []
    for (let empty = 0; empty < 3;) {
      const got = await claim(store, 'w', 5)
      taken.push(...got)
      empty = got.length === 0 ? empty + 1 : 0
    }
    const changed = (await cancelled).filter((answer) => answer === 'changed').length
    expect(changed + taken.length).toBe(300)
    const { rows } = await client.query(
      `select (select count(*) from ${schema}.history)::int as ended, (select count(*) from ${schema}.ready)::int as ready`,
    )
    expect(rows).toEqual([{ ended: changed, ready: 0 }])
  })
})

test(
  'bulks with keys and unique slots in any order, sweeps, promotions and cancels cause no deadlock',
  { timeout: 90_000 },
  async () => {
    const { schema } = await house()
    const eight = await Promise.all(Array.from({ length: 8 }, () => newStore(schema)))
    const random = (below: number): number => Math.floor(Math.random() * below)
    const met: unknown[] = []
    const end = Date.now() + 3_000
    let calls = 0
    const one = async (store: PostgresStore, i: number): Promise<void> => {
      const worker = `w${i}`
      await store.addWorker({ id: worker, host: 'h', pid: i })
      while (Date.now() < end) {
        calls += 1
        const placed = (place: number): object => {
          const unique = { key: `p${place}`, while: 'unfinished' }
          const onDuplicate = (['ignore', 'replace', 'reschedule'] as const)[random(3)]
          return { unique: { ...unique, onDuplicate, forMs: null }, options: JSON.stringify({ unique }) }
        }
        const bulk = Array.from({ length: 12 }, () =>
          aJob({
            key: random(2) === 0 ? null : `k${random(20)}`,
            ...(random(2) === 0 ? {} : placed(random(20))),
            due: { inMs: random(3) * 5 },
          } as Partial<NewJob>),
        )
        const onDuplicate = (['return', 'replace', 'move'] as const)[random(3)] as 'return'
        try {
          await store.insertJobs(bulk, { ...OPTIONS, onDuplicate }).catch((error: { code?: string }) => {
            if (!error.code?.startsWith('E_DUPLICATE')) throw error
          })
          const what = random(4)
          if (what === 0) await Promise.all([store.pruneJobs(50), store.sweepRows(50)])
          else if (what === 1) await store.promoteJobs(50)
          else if (what === 2)
            await Promise.all(
              bulk
                .slice(0, 4)
                .map(({ id }) => store.changeJob({ id, from: 'ready', to: 'cancelled', keepMs: 1, reason: 'r' })),
            )
          else {
            const jobs = await claim(store, worker, 10)
            if (jobs.length > 0)
              await store.settleJobs(
                jobs.map((job) => ended(job, { worker, keepMs: 5 })),
                [jobs[0]?.fence as number],
              )
          }
        } catch (error) {
          met.push(error)
        }
      }
    }
    await Promise.all(eight.map(one))
    console.log(`${calls} bulks by 8 stores in 3 s`)
    expect(met).toEqual([])
    const client = await newClient()
    // Every job is in exactly one table, and every key belongs to an unfinished job.
    const { rows } = await client.query(
      `select
       (select count(*) from ${schema}.jobs j where 1 <> (
          (select count(*) from ${schema}.ready r where r.ref = j.ref) + (select count(*) from ${schema}.waiting w where w.ref = j.ref)
          + (select count(*) from ${schema}.history h where h.ref = j.ref)
          + (select count(*) from ${schema}.leases e where j.ref = any(e.refs) and not j.ref = any(e.released)
               and not exists (select 1 from ${schema}.history h where h.ref = j.ref))))::int as astray,
       (select count(*) from ${schema}.keys k where not exists (select 1 from ${schema}.jobs j where j.ref = k.ref and j.key = k.key)
          or exists (select 1 from ${schema}.history h where h.ref = k.ref))::int as dangling,
       (select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database()))::int as locks`,
    )
    expect(rows).toEqual([{ astray: 0, dangling: 0, locks: 0 }])
  },
)

test('a late claim finds its fence in use, and takes nothing', async () => {
  const { store, schema, client } = await house()
  await store.addWorker({ id: 'w', host: 'h', pid: 1 })
  await store.insertJobs([aJob()], OPTIONS)
  const fence = world.ids.fence()
  expect(await store.voidClaims('w', [fence])).toEqual([])
  const late = {
    worker: 'w',
    fence,
    names: undefined,
    rooms: new Map(),
    max: 1,
    starting: 1,
    suspects: 'none' as const,
  }
  await expect(store.claimJobs(late)).rejects.toMatchObject({ cause: { code: '23505' } })
  expect(await claim(store, 'w')).toHaveLength(1)
  await store.dropWorker('w')
  // Only its own lease is left; the empty lease of the fence was deleted with the worker.
  expect((await client.query(`select fence from ${schema}.leases`)).rows).toHaveLength(1)
})
