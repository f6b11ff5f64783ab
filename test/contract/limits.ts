import assert from 'node:assert/strict'
import { keyNumber } from '../../src/job/limits/turns.js'
import type { JobLimits } from '../../src/job/limits/limits.js'
import type { LimitedClaimed, LimitedClaimRequest } from '../../src/store/limits.js'
import type { ClaimedJob, NewJob } from '../../src/store/store.js'
import { contract, only } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'

/** Limits, rates and fair turns: `claimLimited`. */
export const limitCases: readonly ContractCase[] = [
  contract('a limit bounds the jobs in flight of all workers, and the end of a claim frees its slot', async (b) => {
    const limits = limitsOf({ limit: { max: 2, isKeyed: false } })
    await b.insert(Array.from({ length: 5 }, () => b.job()))
    const [one, other] = [await b.worker(), await b.worker()]
    const first = await claimLimited(b, one, { limits })
    assert.deepEqual([first.jobs.length, first.starting, first.waitsForSlot], [2, 2, true])
    assert.deepEqual(counts(await claimLimited(b, other, { limits })), [0, true])
    await b.settle(first.jobs[0] as ClaimedJob)
    assert.deepEqual(counts(await claimLimited(b, other, { limits })), [1, true])
    // Given back, retried and ended are all ends of a claim.
    await b.settle(first.jobs[1] as ClaimedJob, { to: 'retrying', delayMs: 60_000, retries: 1 })
    const third = await claimLimited(b, one, { limits })
    assert.deepEqual(counts(third), [1, true])
    await b.settle(only(third), { to: 'ready' })
    assert.deepEqual(counts(await claimLimited(b, other, { limits, max: 5, starting: 5 })), [1, true])
  }),

  contract('a rescue frees the slots of a dead worker in its own transaction', async (b) => {
    const limits = limitsOf({ limit: { max: 1, isKeyed: false } })
    await b.insert([b.job(), b.job()])
    const [dead, alive] = [await b.worker(), await b.worker()]
    const taken = only(await claimLimited(b, dead, { limits }))
    assert.deepEqual(counts(await claimLimited(b, alive, { limits })), [0, true])
    await b.store.leases.rescueJobs(dead, 0, [b.settled(taken, { to: 'ready', attempt: 0 })])
    assert.deepEqual(counts(await claimLimited(b, alive, { limits })), [1, true])
  }),

  contract('the limit of a job counts its jobs in every queue, and that of a queue all its jobs', async (b) => {
    const limits = limitsOf({ limit: { max: 2, isKeyed: false } })
    await b.insert([b.job({ queue: 'a' }), b.job({ queue: 'b' }), b.job({ queue: 'c' })])
    const worker = await b.worker()
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 2)
    await b.store.queues.setLimits([{ queue: 'x', limits: { limit: { max: 3 } } }])
    await b.insert(['m', 'n', 'm', 'n', 'o'].map((name) => b.job({ queue: 'x', name })))
    const names = ['m', 'n', 'o']
    const mine = await claimLimited(b, worker, { names, limits: new Map() })
    assert.deepEqual(counts(mine), [3, true])
    assert.equal((await b.claim(worker, { names })).jobs.length, 0, 'a claim without limits takes none of its jobs')
    await b.settle(mine.jobs[0] as ClaimedJob)
    assert.equal((await claimLimited(b, worker, { names, limits: new Map() })).jobs.length, 1)
    await b.store.queues.setLimits([{ queue: 'x', limits: null }])
    assert.equal((await b.claim(worker, { names })).jobs.length, 1, 'without limits any claim takes its jobs')
  }),

  contract('a claim reports that queues have limits or that jobs with keys are ready', async (b) => {
    const worker = await b.worker()
    assert.equal((await b.claim(worker)).limited, undefined)
    await b.insert([keyed(b, 'a')])
    assert.equal((await b.claim(worker)).limited, true)
    const rest = await claimLimited(b, worker, { limits: new Map() })
    assert.equal(rest.jobs.length, 1, 'a job whose definition has no limit any more runs all the same')
    assert.equal((await b.claim(worker)).limited, undefined)
    await b.store.queues.setLimits([{ queue: 'other', limits: { rate: { max: 1, perMs: 1_000 } } }])
    assert.equal((await b.claim(worker)).limited, true)
    assert.deepEqual((await b.store.queues.readQueue('other')).limits, { rate: { max: 1, perMs: 1_000 } })
    assert.deepEqual((await b.store.queues.readQueue('default')).limits, {})
  }),

  contract('each key has slots of its own, and jobs without a key have theirs', async (b) => {
    const limits = limitsOf({ limit: { max: 1, isKeyed: true } })
    await b.insert([keyed(b, 'a'), keyed(b, 'a'), keyed(b, 'b'), b.job(), b.job()])
    const worker = await b.worker()
    const first = await claimLimited(b, worker, { limits })
    assert.deepEqual(counts(first), [3, true])
    for (const job of first.jobs) await b.settle(job)
    assert.deepEqual(counts(await claimLimited(b, worker, { limits })), [2, false])
  }),

  contract('keys take turns: a single job of a key starts before the second one of each other key', async (b) => {
    const limits = limitsOf({ limit: { max: 1_000, isKeyed: true } })
    const keys = Array.from({ length: 9 }, (_, n) => `tenant ${n}`)
    await b.insert(keys.flatMap((key) => Array.from({ length: 20 }, () => keyed(b, key))))
    const worker = await b.worker()
    const order: string[] = []
    for (let round = 0; round < 6; round += 1)
      for (const job of (await claimLimited(b, worker, { limits, max: 4, starting: 4 })).jobs)
        order.push(job.payload as string)
    for (let from = 0; from + 9 <= order.length; from += 1)
      assert.equal(
        new Set(order.slice(from, from + 9)).size,
        9,
        `each key once in ${order.slice(from, from + 9).join()}`,
      )
    await b.insert([keyed(b, 'late')])
    for (let round = 0; !order.includes('"late"'); round += 1) {
      assert.ok(round < 20, `the job of the new key starts within a turn, got ${order.slice(24).join()}`)
      for (const job of (await claimLimited(b, worker, { limits, max: 1, starting: 1 })).jobs)
        order.push(job.payload as string)
    }
    assert.ok(order.indexOf('"late"') - 24 <= 9, 'at most one job of each other key comes before it')
  }),

  contract('a rate bounds the starts in every window, by the clock of the store', async (b) => {
    const limits = limitsOf({ rate: { max: 10, perMs: 1_000, isKeyed: false } })
    await b.insert(Array.from({ length: 100 }, () => b.job()))
    const worker = await b.worker()
    const starts: number[] = []
    const end = b.clock.now + 3_500
    while (b.clock.now < end) {
      const claimed = await claimLimited(b, worker, { limits, max: 3, starting: 3 })
      for (const job of claimed.jobs) {
        starts.push(b.clock.now)
        await b.settle(job)
      }
      b.clock.now += 37
    }
    for (const at of starts) {
      const within = starts.filter((other) => other >= at && other < at + 1_000).length
      assert.ok(within <= 10, `${within} starts in the window from ${at}`)
    }
    assert.ok(starts.length >= 38, `the windows are used: ${starts.length} starts`)
  }),

  contract('a claim that a rate stops says when the window opens', async (b) => {
    const limits = limitsOf({ rate: { max: 2, perMs: 60_000, isKeyed: false } })
    await b.insert([b.job(), b.job(), b.job()])
    const worker = await b.worker()
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 2)
    b.clock.now += 20_000
    const stopped = await claimLimited(b, worker, { limits })
    assert.deepEqual([stopped.jobs.length, stopped.resumesInMs, stopped.waitsForSlot], [0, 40_000, false])
    b.clock.now += 39_999
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 0)
    b.clock.now += 1
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 1)
  }),

  contract('a clock that is set back stops a rate for one window at most', async (b) => {
    const limits = limitsOf({ rate: { max: 1, perMs: 1_000, isKeyed: false } })
    await b.insert([b.job(), b.job()])
    const worker = await b.worker()
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 1)
    b.clock.now -= 3_600_000
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 0)
    b.clock.now += 1_000
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 1)
  }),

  contract('a weight is what a start uses, and a heavy job is not passed by lighter ones behind it', async (b) => {
    const limits = limitsOf({ rate: { max: 10, perMs: 1_000, isKeyed: false } })
    const heavy = (weight: number | null): NewJob => b.job({ turn: { limit: null, rate: null, weight } })
    await b.insert([heavy(6), heavy(6), heavy(1), heavy(null)])
    const worker = await b.worker()
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 1)
    b.clock.now += 1_000
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 3)
    // More than the rate allows, since it was lowered: it needs an empty window.
    await b.insert([heavy(50)])
    b.clock.now += 999
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 0)
    b.clock.now += 1
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 1)
  }),

  contract('limit and rate may have different keys', async (b) => {
    const limits = limitsOf({ limit: { max: 1, isKeyed: true }, rate: { max: 1, perMs: 1_000, isKeyed: true } })
    const of = (tenant: string, host: string): NewJob =>
      b.job({ turn: { limit: keyNumber(tenant), rate: keyNumber(host), weight: null } })
    await b.insert([of('a', 'x'), of('b', 'x'), of('c', 'y'), of('c', 'z')])
    const worker = await b.worker()
    const first = await claimLimited(b, worker, { limits })
    assert.deepEqual(counts(first), [2, true], 'one of the two to host x, and the first of tenant c')
    b.clock.now += 1_000
    assert.deepEqual(counts(await claimLimited(b, worker, { limits })), [1, true], 'the other to host x')
  }),

  contract('jobs are held in advance only under a limit with many free slots, and never under a rate', async (b) => {
    await b.insert(Array.from({ length: 200 }, () => b.job()))
    const worker = await b.worker()
    const room = { max: 100, starting: 5 }
    const few = await claimLimited(b, worker, { ...room, limits: limitsOf({ limit: { max: 20, isKeyed: false } }) })
    assert.deepEqual([few.jobs.length, few.starting], [5, 5])
    const many = await claimLimited(b, worker, { ...room, limits: limitsOf({ limit: { max: 105, isKeyed: false } }) })
    assert.deepEqual([many.jobs.length, many.starting], [50, 5], 'half of the 100 free slots')
    const rated = { limit: { max: 1_000, isKeyed: false }, rate: { max: 1_000, perMs: 1_000, isKeyed: false } }
    assert.equal((await claimLimited(b, worker, { ...room, limits: limitsOf(rated) })).jobs.length, 5)
  }),

  contract('a claim under limits leaves paused and full queues and unknown names alone', async (b) => {
    const limits = limitsOf({ limit: { max: 10, isKeyed: true } })
    await b.insert([keyed(b, 'a', { queue: 'p' }), keyed(b, 'a', { queue: 'f' }), keyed(b, 'a', { name: 'other' })])
    const worker = await b.worker()
    await b.store.queues.pauseQueue({ queue: 'p', until: null })
    assert.equal((await claimLimited(b, worker, { limits, rooms: new Map([['f', 0]]) })).jobs.length, 0)
    assert.equal((await claimLimited(b, worker, { limits, queues: ['default'] })).jobs.length, 0)
    assert.equal((await claimLimited(b, worker, { limits })).jobs.length, 1)
  }),

  contract('a suspect under a limit is quarantined when its limit has a slot, one at a time', async (b) => {
    const limits = limitsOf({ limit: { max: 1, isKeyed: true } })
    await b.insert([keyed(b, 'a'), keyed(b, 'a')])
    const [dead, worker] = [await b.worker(), await b.worker()]
    const taken = only(await claimLimited(b, dead, { limits }))
    await b.store.leases.rescueJobs(dead, 0, [b.settled(taken, { to: 'ready', attempt: 0, streak: 2 })])
    const other = only(await claimLimited(b, worker, { limits, suspects: 'last' }))
    assert.notEqual(other.id, taken.id, 'other work comes first')
    const waits = await claimLimited(b, worker, { limits, suspects: 'first' })
    assert.deepEqual([waits.jobs.length, waits.suspectStreak, waits.waitsForSlot], [0, 2, true])
    await b.settle(other)
    const alone = await claimLimited(b, worker, { limits, suspects: 'first' })
    assert.deepEqual([only(alone).id, alone.isQuarantine, alone.suspectStreak], [taken.id, true, null])
    assert.equal((await b.store.leases.readLeases(worker))[0]?.quarantined, 1)
    assert.equal((await claimLimited(b, dead, { limits })).lost, true)
  }),

  contract('a job keeps its key through retries, pauses, edits of its queue and a retry after its end', async (b) => {
    const limits = limitsOf({ limit: { max: 1, isKeyed: true } })
    const [id] = (await b.insert([keyed(b, 'a')])).map((job) => job.id)
    const worker = await b.worker()
    const takes = async (why: string): Promise<ClaimedJob> => {
      const job = only(await claimLimited(b, worker, { limits }))
      assert.equal(job.id, id, why)
      return job
    }
    await b.settle(await takes('new'), { to: 'retrying', delayMs: 1_000, retries: 1, error: '{}' })
    b.clock.now += 1_000
    await b.store.jobs.promoteJobs(10)
    await b.settle(await takes('retried'), { to: 'ready' })
    assert.equal(await b.pause(id as string, 'ready'), 'changed')
    assert.equal(await b.resume(id as string), 'changed')
    const moved = {
      id: id as string,
      from: 'ready',
      to: 'ready',
      keepMs: Infinity,
      edit: { queue: 'elsewhere' },
    } as const
    assert.equal(await b.store.jobs.changeJob(moved), 'changed')
    assert.equal((await b.claim(worker)).jobs.length, 0, 'only a claim under limits takes it')
    await b.settle(await takes('moved'), { to: 'failed', error: '{}' })
    const again = { id: id as string, from: 'failed', to: 'ready', keepMs: Infinity, freshRetries: true } as const
    assert.equal(await b.store.jobs.changeJob(again), 'changed')
    const job = await takes('retried after its end')
    await b.insert([keyed(b, 'a', { queue: 'elsewhere' })])
    assert.deepEqual(counts(await claimLimited(b, worker, { limits })), [0, true], 'it still has the slot of its key')
    await b.settle(job)
  }),

  contract('concurrent claims never exceed a limit or a rate', async (b) => {
    const limits = limitsOf({ limit: { max: 7, isKeyed: false }, rate: { max: 12, perMs: 1_000, isKeyed: false } })
    await b.insert(Array.from({ length: 60 }, () => b.job()))
    const workers = [await b.worker(), await b.worker(), await b.worker(), await b.worker()]
    const room = { limits, max: 3, starting: 3 }
    const first = await Promise.all(workers.map((worker) => claimLimited(b, worker, room)))
    const jobs = first.flatMap((claimed) => claimed.jobs)
    assert.equal(jobs.length, 7)
    await Promise.all(jobs.map((job) => b.settle(job)))
    const second = await Promise.all(workers.map((worker) => claimLimited(b, worker, room)))
    assert.equal(second.flatMap((claimed) => claimed.jobs).length, 5, 'the rest of the window')
  }),
]

function limitsOf(limits: JobLimits): ReadonlyMap<string, JobLimits> {
  return new Map([['mail', limits]])
}

function keyed(b: ContractFixture, key: string, change: Partial<NewJob> = {}): NewJob {
  return b.job({ payload: JSON.stringify(key), turn: { limit: keyNumber(key), rate: null, weight: null }, ...change })
}

function claimLimited(
  b: ContractFixture,
  worker: string,
  change: Partial<LimitedClaimRequest> & Pick<LimitedClaimRequest, 'limits'>,
): Promise<LimitedClaimed> {
  const max = change.max ?? 100
  return b.store.leases.claimLimited({
    worker,
    fence: b.ids.fence(),
    names: ['mail'],
    max,
    starting: max,
    rooms: new Map(),
    suspects: 'none',
    ...change,
  })
}

function counts({ jobs, waitsForSlot }: LimitedClaimed): [number, boolean] {
  return [jobs.length, waitsForSlot]
}
