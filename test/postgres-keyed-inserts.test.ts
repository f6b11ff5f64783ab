import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openDatabase } from '../src/store/postgres/connection/open.js'
import { Session } from '../src/store/postgres/connection/session.js'
import { targetOf } from '../src/store/postgres/connection/target.js'
import { PostgresStore } from '../src/store/postgres/postgres-store.js'
import { makeQueries } from '../src/store/postgres/queries/queries.js'
import type { InsertOptions, Inserted, NewJob } from '../src/store/store.js'
import { systemWorld } from '../src/world/world.js'
import { freshDatabase } from './postgres/shared-postgres.js'

/** Enqueues of one job with a key or a unique slot that arrive together share transactions; each has its own answer. */

const world = systemWorld()
let database: Awaited<ReturnType<typeof freshDatabase>>
let store: PostgresStore
let client: Client
const query = vi.spyOn(Session.prototype, 'query')
beforeAll(async () => {
  database = await freshDatabase()
  store = new PostgresStore(await openDatabase(await targetOf(database.url, 'keyed'), true, world), world)
  client = new Client(database.url)
  await client.connect()
}, 60_000)
afterAll(async () => {
  vi.restoreAllMocks()
  await store?.close()
  await client?.end()
  await database?.drop()
})

const LATER = { inMs: 10_000_000 }

function aJob(over: Partial<NewJob>): NewJob {
  const rest = { queue: 'q', priority: 0, key: null, payload: '{}', options: null, due: LATER, expires: null }
  return { id: world.ids.jobId(Date.now()), name: 'a', ...rest, ...over }
}

async function insert(job: NewJob, onDuplicate: InsertOptions['onDuplicate'] = 'return'): Promise<Inserted> {
  const [inserted] = await store.insertJobs([job], { onDuplicate, keepCancelledMs: 60_000 })
  return inserted as Inserted
}

const under = (key: string, count: number): NewJob[] => Array.from({ length: count }, () => aJob({ key }))
const stateOf = async (id: string): Promise<string | undefined> => (await store.readJobs([id]))[0]?.state

test('calls that arrive together share their statements', async () => {
  await insert(aJob({ key: 'warm' }))
  query.mockClear()
  const jobs = Array.from({ length: 100 }, (_, n) => aJob({ key: `together ${n}` }))
  const inserted = await Promise.all(jobs.map((job) => insert(job)))
  expect(inserted).toEqual(jobs.map(({ id }) => ({ id, isNew: true })))
  // The first call has its own transaction of 4 statements; the others share one of 4.
  expect(query.mock.calls.length).toBeLessThanOrEqual(12)
})

describe('calls under one key', () => {
  test('return: one job is written, and all get its id', async () => {
    const inserted = await Promise.all(under('return', 20).map((job) => insert(job)))
    expect(inserted.filter(({ isNew }) => isNew)).toHaveLength(1)
    expect(new Set(inserted.map(({ id }) => id)).size).toBe(1)
  })

  test('reject: one job is written, and each other call gets the error with its id', async () => {
    const settled = await Promise.allSettled(under('reject', 20).map((job) => insert(job, 'reject')))
    const written = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []))
    expect(written).toHaveLength(1)
    for (const one of settled)
      if (one.status === 'rejected')
        expect(one.reason).toMatchObject({ code: 'E_DUPLICATE_KEY', existingId: written[0] })
  })

  test('replace: the last job stays, and the others are cancelled', async () => {
    const jobs = under('replace', 20)
    const inserted = await Promise.all(jobs.map((job) => insert(job, 'replace')))
    expect(inserted.every(({ isNew }) => isNew)).toBe(true)
    const states = await Promise.all(jobs.map(({ id }) => stateOf(id)))
    expect(states.filter((state) => state === 'scheduled')).toHaveLength(1)
    expect(states.filter((state) => state === 'cancelled')).toHaveLength(19)
  })

  test('with a policy of its own each', async () => {
    const [held, ...rest] = under('mixed', 4) as [NewJob, ...NewJob[]]
    await insert(held)
    const [returned, rejected, replaced] = await Promise.allSettled(
      (['return', 'reject', 'replace'] as const).map((policy, n) => insert(rest[n] as NewJob, policy)),
    )
    expect(returned).toMatchObject({ value: { id: held.id, isNew: false } })
    expect(rejected).toMatchObject({ reason: { code: 'E_DUPLICATE_KEY' } })
    expect(replaced).toMatchObject({ value: { id: rest[2]?.id, isNew: true } })
    expect(await stateOf(held.id)).toBe('cancelled')
  })
})

test('calls for one unique slot: one job is written', async () => {
  const slot = { key: 'u', while: 'unfinished' as const }
  const options = JSON.stringify({ unique: slot })
  const jobs = Array.from({ length: 20 }, () =>
    aJob({ options, unique: { ...slot, forMs: null, onDuplicate: 'ignore' } }),
  )
  const inserted = await Promise.all(jobs.map((job) => insert(job)))
  expect(inserted.filter(({ isNew }) => isNew)).toHaveLength(1)
  expect(new Set(inserted.map(({ id }) => id)).size).toBe(1)
})

test('a key that another transaction holds delays only its own call', async () => {
  const { lockNames } = makeQueries('"keyed"', 'millrace keyed')
  await client.query('begin')
  await client.query(lockNames, [JSON.stringify(['key a\nlocked'])])
  let isWritten = false
  const first = insert(aJob({ key: 'before' }))
  const locked = insert(aJob({ key: 'locked' })).then(() => (isWritten = true))
  const others = Array.from({ length: 10 }, (_, n) => insert(aJob({ key: `beside ${n}` })))
  await Promise.all([first, ...others])
  expect(isWritten).toBe(false)
  await client.query('commit')
  expect(await locked).toBe(true)
})
