import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { UniquePolicy } from '../src/job/rules/unique.js'
import { openDatabase } from '../src/store/postgres/connection/open.js'
import { Session } from '../src/store/postgres/connection/session.js'
import { targetOf } from '../src/store/postgres/connection/target.js'
import { PostgresStore } from '../src/store/postgres/postgres-store.js'
import type { Firing, PlannedTick } from '../src/store/schedules.js'
import type { GuardedChange, InsertOptions, NewJob } from '../src/store/store.js'
import { systemWorld } from '../src/world/world.js'
import { freshDatabase } from './postgres/shared-postgres.js'

/** How many statements a cold verb sends, each a round trip. A verb that sends more must say why in its commit. */

let database: Awaited<ReturnType<typeof freshDatabase>>
let store: PostgresStore
const query = vi.spyOn(Session.prototype, 'query')
beforeAll(async () => {
  database = await freshDatabase()
  const world = systemWorld()
  store = new PostgresStore(await openDatabase(await targetOf(database.url, 'trips'), true, world), world)
})
afterAll(async () => {
  vi.restoreAllMocks()
  await store.close()
  await database.drop()
})

async function count(verb: () => Promise<unknown>): Promise<number> {
  query.mockClear()
  await verb().catch(() => undefined) // A refusal has its statements too.
  return query.mock.calls.length
}

const world = systemWorld()
const LATER = { inMs: 10_000_000 }

function job(over: Partial<NewJob> = {}): NewJob {
  const id = world.ids.jobId(Date.now())
  const rest = { queue: 'q', priority: 0, key: null, payload: '{}', options: null, due: { inMs: 0 }, expires: null }
  return { id, name: 'a', ...rest, ...over }
}

function insert(jobs: readonly NewJob[], options: Partial<InsertOptions> = {}): Promise<number> {
  return count(() => store.insertJobs(jobs, { onDuplicate: 'return', keepCancelledMs: 1_000, ...options }))
}

test('of inserts under a key', async () => {
  expect(await insert([job({ key: 'k', due: LATER })])).toBe(4)
  expect(await insert([job({ key: 'k' })])).toBe(4)
  expect(await insert([job({ key: 'k' })], { onDuplicate: 'reject' })).toBe(4)
  expect(await insert([job({ key: 'k', due: LATER })], { onDuplicate: 'move' })).toBe(7)
  expect(await insert([job({ key: 'k', due: LATER })], { onDuplicate: 'replace' })).toBe(9)
  expect(await insert(Array.from({ length: 10 }, (_, i) => job({ key: `bulk ${i}` })))).toBe(4)
})

test('of inserts with a unique slot', async () => {
  const unique = (onDuplicate: UniquePolicy): NewJob => {
    const slot = { key: 'u', while: 'unfinished' as const }
    return job({
      due: LATER,
      options: JSON.stringify({ unique: slot }),
      unique: { ...slot, forMs: 60_000, onDuplicate },
    })
  }
  expect(await insert([unique('ignore')])).toBe(4)
  expect(await insert([unique('ignore')])).toBe(4)
  expect(await insert([unique('reschedule')])).toBe(7)
  expect(await insert([unique('replace')])).toBe(8)
})

test('of links and groups', async () => {
  const parent = job({ due: LATER })
  expect(await insert([parent])).toBe(1)
  expect(await insert([job({ after: [{ id: parent.id }] })])).toBe(8)
  expect(await insert([job({ group: 'g' })])).toBe(4)
  expect(await insert([job({ group: 'g' })])).toBe(2)
  expect(await count(() => store.groups.sealGroup({ group: 'g', whenDone: null }))).toBe(2)
  expect(await count(() => store.groups.readGroup('g'))).toBe(1)
})

test('of commands', async () => {
  const [parent, target] = [job({ due: LATER }), job({ due: LATER })]
  await insert([parent, target])
  const change = (command: Partial<GuardedChange> & Pick<GuardedChange, 'from' | 'to'>): Promise<number> =>
    count(() => store.changeJob({ id: target.id, keepMs: 1_000_000, ...command }))
  expect(await change({ from: 'scheduled', to: 'paused' })).toBe(5)
  expect(await change({ from: 'paused', to: 'ready' })).toBe(6)
  expect(await change({ from: 'scheduled', to: 'scheduled', edit: { priority: 3 } })).toBe(5)
  const after = { parents: [{ id: parent.id }], onFailure: 'wait' as const, keepMs: 1 }
  expect(await change({ from: 'scheduled', to: 'scheduled', edit: { after } })).toBe(12)
  expect(await change({ from: 'blocked', to: 'cancelled' })).toBe(5)
  expect(await change({ from: 'cancelled', to: 'ready' })).toBe(6)
  expect(await change({ from: 'ready', to: 'gone' })).toBe(8)
  expect(await change({ from: 'ready', to: 'gone' })).toBe(2)
})

test('of requested changes and pauses', async () => {
  await store.addWorker({ id: 'w', host: 'here', pid: 1 })
  const running = job({ name: 'runs' })
  await insert([running])
  const claim = { worker: 'w', fence: 77, max: 1, starting: 1, rooms: new Map(), suspects: 'none' as const }
  await store.claimJobs({ ...claim, names: ['runs'] })
  const request = { id: running.id, verb: 'cancel' as const, reason: 'enough', keepMs: 1 }
  expect(await count(() => store.requestChange(request))).toBe(6)
  expect(await count(() => store.pauseQueue({ queue: 'q', until: null }))).toBe(5)
  expect(await count(() => store.readPause('q'))).toBe(1)
  expect(await count(() => store.resumeQueue('q'))).toBe(1)
})

test('of a claim without limits', async () => {
  await store.addWorker({ id: 'plain', host: 'here', pid: 1 })
  await insert([job({ name: 'unlimited' })])
  const claim = { worker: 'plain', fence: 999, max: 1, starting: 1, rooms: new Map(), suspects: 'none' as const }
  expect(await count(() => store.claimJobs({ ...claim, names: ['unlimited'] }))).toBe(1)
})

test('of claims under limits', async () => {
  await store.addWorker({ id: 'limited', host: 'here', pid: 1 })
  let fence = 1_000
  const limits = new Map([
    ['rated', { limit: { max: 100, isKeyed: true }, rate: { max: 6, perMs: 60_000, isKeyed: false } }],
  ])
  const room = { names: ['rated'], max: 2, starting: 2, rooms: new Map(), suspects: 'none' as const, limits }
  const claim = async (): Promise<number> => {
    const { jobs } = await store.claimLimited({ worker: 'limited', fence: (fence += 1), ...room })
    return jobs.length
  }
  expect(await count(claim)).toBe(1)
  const turned = (key: number): NewJob => job({ name: 'rated', turn: { limit: key, rate: null, weight: null } })
  await insert(Array.from({ length: 10 }, (_, key) => turned(key)))
  // The first claim of a job makes its row, under locks.
  expect(await count(claim)).toBe(4)
  expect(await count(claim)).toBe(2)
  // Of two at once the second one finds that the first one took jobs, and reads again under locks: nothing is left.
  let taken: number[] = []
  expect(await count(async () => (taken = await Promise.all([claim(), claim()])))).toBe(6)
  expect(taken.toSorted((a, b) => a - b)).toEqual([0, 2])
  expect(await count(claim)).toBe(1)
})

test('of schedules', async () => {
  const put = { id: 's', spec: '{}', createdAt: 1, pausedAt: null, nextAt: 5 }
  expect(await count(() => store.schedules.putSchedule(put, null))).toBe(2)
  expect(await count(() => store.schedules.dueSchedules(10))).toBe(2)
  const tick = (at: number, planned: NewJob): PlannedTick => ({
    at,
    byHand: false,
    outcome: 'ran',
    reason: null,
    job: planned,
  })
  const fire = async (overlap: Firing['overlap'], ticks: readonly PlannedTick[], stale = 0): Promise<number> => {
    const revision = ((await store.schedules.readSchedule('s')).schedule?.revision ?? 0) - stale
    const rest = { onDuplicate: 'return' as const, keepCancelledMs: 1, nextAt: 1e14, pausedAt: null }
    return count(() => store.schedules.fireTicks({ id: 's', revision, overlap, ticks, ...rest }))
  }
  expect(await fire('allow', [tick(1, job()), tick(2, job())])).toBe(6)
  expect(await fire('skip', [tick(3, job({ due: LATER }))])).toBe(6)
  expect(await fire('cancel', [tick(4, job({ due: LATER }))])).toBe(19)
  expect(await fire('cancel', [tick(5, job({ due: LATER }))])).toBe(13)
  expect(await fire('allow', [], 1)).toBe(1)
  expect(await count(() => store.schedules.upcomingJobs(1_000, 10))).toBe(3)
  expect(await count(() => store.schedules.dropSchedule('s'))).toBe(2)
})
