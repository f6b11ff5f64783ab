import assert from 'node:assert/strict'
import { DAY_MS, HOUR_MS, MINUTE_MS, windowOf } from '../../src/job/statistics/buckets.js'
import { failureOf } from '../../src/job/statistics/failure.js'
import { Sketch } from '../../src/job/statistics/sketch.js'
import { FAILURE_GROUPS_MAX } from '../../src/store/observing/statistics.js'
import type { StatisticsQuery } from '../../src/store/observing/statistics.js'
import type { ClaimedJob, NewJob, SettledJob } from '../../src/store/store.js'
import { contract, only } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'

/** Statistics: what ended attempts add to the counts, and how it is read. */
export const statisticsCases: readonly ContractCase[] = [
  contract('ended attempts are counted by queue and name, before and after they are folded', async (b) => {
    await end(b, { queue: 'a' }, { to: 'done', statistics: { waitMs: 10, runMs: 20, failure: null } })
    await end(b, { queue: 'a' }, { to: 'failed', statistics: { waitMs: 30, runMs: 40, failure: null } })
    await end(
      b,
      { queue: 'a' },
      { to: 'retrying', delayMs: HOUR_MS, statistics: { waitMs: 50, runMs: 60, failure: null } },
    )
    await end(b, { queue: 'a' }, { to: 'cancelled', statistics: { waitMs: 70, runMs: null, failure: null } })
    await end(b, { queue: 'b' }, { to: 'done', statistics: { waitMs: null, runMs: 1, failure: null } })
    await end(b, { queue: 'b' }, { to: 'ready', delayMs: HOUR_MS })
    await end(
      b,
      { queue: 'b' },
      { to: 'done', keepMs: 0, key: null, statistics: { waitMs: null, runMs: 3, failure: null } },
    )
    const wanted = [
      { lane: 'a mail', done: 1, failed: 1, retried: 1, wait: sketch(10, 30, 50, 70), run: sketch(20, 40) },
      { lane: 'b mail', done: 2, failed: 0, retried: 0, wait: null, run: sketch(1, 3) },
    ]
    assert.deepEqual(await totals(b), wanted)
    b.clock.now += MINUTE_MS
    await b.store.jobs.sweepRows(100)
    assert.deepEqual(await totals(b), wanted)
    assert.deepEqual(await totals(b, { queue: 'b' }), wanted.slice(1))
    assert.deepEqual(await totals(b, { name: 'mail', queue: 'a' }), wanted.slice(0, 1))
    assert.deepEqual(await totals(b, { name: 'other' }), [])
    assert.deepEqual(await totals(b, { queue: 'other' }), [])
    const [waits] = await totals(b, { queue: 'a', times: ['wait'] })
    assert.deepEqual([waits?.wait, waits?.run], [sketch(10, 30, 50, 70), null])
    const [none] = await totals(b, { queue: 'a', times: [] })
    assert.deepEqual([none?.done, none?.wait, none?.run], [1, null, null])
  }),

  contract('batches with plain, keyed and failed ends are counted once, without those that were refused', async (b) => {
    await b.insert([b.job(), b.job({ key: 'k' }), b.job({ group: 'g' }), b.job(), b.job()])
    const { jobs } = await b.claim(await b.worker())
    const ran = { statistics: { waitMs: 1, runMs: 1, failure: null } }
    const settled = jobs.map((job, n) => b.settled(job, n === 3 ? { ...ran, to: 'failed' } : ran))
    const lost = { ...(settled[4] as SettledJob), fence: 12_345 }
    const batch = [...settled.slice(0, 4), lost]
    assert.deepEqual((await b.store.leases.settleJobs(batch, [])).refused, [lost.ref])
    assert.deepEqual(counts(await totals(b)), ['default mail 3 1 0 4'])
    // The answer was lost, and the worker settles again.
    await b.store.leases.settleJobs(batch, [])
    assert.deepEqual(counts(await totals(b)), ['default mail 3 1 0 4'])
    await b.store.leases.settleJobs([settled[4] as SettledJob], [])
    assert.deepEqual(counts(await totals(b)), ['default mail 4 1 0 5'])
  }),

  contract('plain ends whose lease is lost, or has a request, are counted as they are written', async (b) => {
    const ids = (await b.insert(Array.from({ length: 6 }, () => b.job()))).map(({ id }) => id)
    const worker = await b.worker()
    const first = await b.claim(worker, { max: 3, starting: 3 })
    const second = await b.claim(worker, { max: 3, starting: 3 })
    assert.equal(await b.request(ids[0] as string, 'cancel'), 'noted')
    const ran = { statistics: { waitMs: 1, runMs: 1, failure: null } }
    const batch = [...first.jobs, ...second.jobs].map((job, n) => b.settled(job, n === 5 ? { ...ran, fence: 99 } : ran))
    const { refused } = await b.store.leases.settleJobs(batch, [])
    assert.deepEqual(refused, [batch[5]?.ref])
    const states = await Promise.all(ids.map((id) => b.state(id)))
    assert.deepEqual(counts(await totals(b)), [
      `default mail ${states.filter((state) => state === 'done').length} 0 0 5`,
    ])
  }),

  contract('ends of jobs that are not kept are counted, all of a batch or as they are written', async (b) => {
    await b.insert(Array.from({ length: 4 }, () => b.job()))
    const { jobs } = await b.claim(await b.worker())
    const ran = { keepMs: 0, statistics: { waitMs: 2, runMs: 3, failure: null } }
    await b.store.leases.settleJobs(
      jobs.slice(0, 2).map((job) => b.settled(job, ran)),
      [],
    )
    assert.deepEqual(counts(await totals(b)), ['default mail 2 0 0 2'])
    const rest = jobs.slice(2).map((job, n) => b.settled(job, n === 0 ? ran : { ...ran, fence: 7 }))
    await b.store.leases.settleJobs(rest, [])
    assert.deepEqual(counts(await totals(b)), ['default mail 3 0 0 3'])
  }),

  contract(
    'windows of any length equal a recount of their buckets, also when the shorter buckets are deleted',
    async (b) => {
      const ended: { at: number; lane: string; ms: number }[] = []
      const start = b.clock.now
      for (let n = 0; n < 60; n += 1) {
        const lane = n % 3 === 0 ? 'x' : 'y'
        const ms = (n * 7_919) % 100_000
        await end(b, { queue: lane }, { to: 'done', statistics: { waitMs: ms, runMs: ms, failure: null } })
        ended.push({ at: b.clock.now, lane, ms })
        b.clock.now = start + Math.floor(100 * DAY_MS * (n / 60) ** 0.3)
        if (n % 7 === 0) await b.store.jobs.sweepRows(100)
      }
      b.clock.now += 5 * MINUTE_MS
      for (let round = 0; round < 2; round += 1) {
        for (const days of [0.01, 0.5, 1, 1.5, 30, 90, 95, 1_000, Infinity]) {
          const { from, to } = windowOf(b.clock.now - days * DAY_MS, b.clock.now, b.clock.now)
          const within = ended.filter(({ at }) => at >= from && at < to)
          const wanted = ['x', 'y'].flatMap((queue) => {
            const mine = within.filter(({ lane }) => lane === queue).map(({ ms }) => ms)
            return mine.length === 0 ? [] : [{ lane: `${queue} mail`, wait: sketch(...mine), run: sketch(...mine) }]
          })
          const found = await totals(b, { window: { lastMs: days * DAY_MS } })
          assert.deepEqual(
            found.map(({ lane, wait, run }) => ({ lane, wait, run })),
            wanted,
            `${days} days`,
          )
        }
        await b.store.jobs.sweepRows(100)
      }
    },
  ),

  contract('buckets of a minute, an hour and a day are read for a day, 90 days and for ever', async (b) => {
    await end(b, {}, { to: 'done', statistics: { waitMs: 1, runMs: 1, failure: null } })
    const at = b.clock.now
    const spans = async (): Promise<number[]> => {
      await end(b, {}, { to: 'ready', statistics: { waitMs: 1, runMs: 1, failure: null } })
      b.clock.now += 2 * MINUTE_MS
      await b.store.jobs.sweepRows(100)
      const found: number[] = []
      for (const spanMs of [MINUTE_MS, HOUR_MS, DAY_MS]) {
        const from = Math.floor(at / spanMs) * spanMs
        const { rows } = await b.store.observing.readStatistics({ window: { spanMs, from, to: from + spanMs } })
        if (rows.some(({ done }) => done === 1)) found.push(spanMs)
      }
      return found
    }
    assert.deepEqual(await spans(), [MINUTE_MS, HOUR_MS, DAY_MS])
    b.clock.now += 2 * DAY_MS
    assert.deepEqual(await spans(), [HOUR_MS, DAY_MS])
    b.clock.now += 90 * DAY_MS
    assert.deepEqual(await spans(), [DAY_MS])
    b.clock.now += 5_000 * DAY_MS
    assert.deepEqual(await spans(), [DAY_MS])
  }),

  contract('folds at the same time count nothing twice', async (b) => {
    for (let n = 0; n < 8; n += 1)
      await end(b, { queue: `q${n % 3}` }, { to: 'done', statistics: { waitMs: n, runMs: n, failure: null } })
    b.clock.now += MINUTE_MS
    await Promise.all(Array.from({ length: 5 }, () => b.store.jobs.sweepRows(10)))
    assert.deepEqual(counts(await totals(b)), ['q0 mail 3 0 0 3', 'q1 mail 3 0 0 3', 'q2 mail 2 0 0 2'])
  }),

  contract('counts outlive the jobs that are pruned or deleted', async (b) => {
    const id = await end(b, {}, { to: 'done', keepMs: 1, statistics: { waitMs: 1, runMs: 1, failure: null } })
    const other = await end(b, {}, { to: 'failed', statistics: { waitMs: 1, runMs: 1, failure: null } })
    b.clock.now += MINUTE_MS
    assert.equal(await b.prune(10), 1)
    await b.store.jobs.changeJob({ id: other, from: 'failed', to: 'gone', keepMs: 0 })
    assert.deepEqual([await b.state(id), await b.state(other)], ['gone', 'gone'])
    assert.deepEqual(counts(await totals(b)), ['default mail 1 1 0 2'])
  }),

  contract('failures of one job, class and place are one group, by day and queue', async (b) => {
    const start = b.clock.now
    const one = await end(b, { queue: 'a' }, failing('Broken', 'no 1'))
    await end(b, { queue: 'b' }, failing('Broken', 'no 2'))
    await end(b, { queue: 'a' }, failing('TypeError', 'odd \u0000 \ud800'))
    b.clock.now += 2 * DAY_MS
    const last = await end(b, { queue: 'a' }, failing('Broken', 'no 3'))
    const groups = async (query: object = {}, lastMs = Infinity): Promise<string[]> =>
      (await b.store.observing.readFailures({ window: { lastMs }, ...query })).map(
        ({ error, place, count, firstSeen, lastSeen, samples }) =>
          `${error} at ${place}: ${count}, ${firstSeen - start} to ${lastSeen - start}, ${samples.map(({ id }) => (id === one ? 'one' : id === last ? 'last' : 'id')).join(' ')}`,
      )
    for (let round = 0; round < 2; round += 1) {
      assert.deepEqual(await groups(), [
        `Broken at f (src/x.ts): 3, 0 to ${2 * DAY_MS}, one id last`,
        'TypeError at f (src/x.ts): 1, 0 to 0, id',
      ])
      assert.deepEqual(await groups({ queue: 'b' }), ['Broken at f (src/x.ts): 1, 0 to 0, id'])
      assert.deepEqual(await groups({ name: 'other' }), [])
      const lately = await groups({}, DAY_MS)
      assert.equal(lately.length, 1)
      // What is not folded yet does not know what came before it.
      if (round === 1) assert.deepEqual(lately, [`Broken at f (src/x.ts): 1, 0 to ${2 * DAY_MS}, last`])
      b.clock.now += MINUTE_MS
      await b.store.jobs.sweepRows(100)
    }
  }),

  contract('a sample of an error group has the message as it was', async (b) => {
    const id = await end(b, {}, failing('Broken', 'no 3'))
    const [group] = await b.store.observing.readFailures({ window: { lastMs: DAY_MS } })
    assert.deepEqual(group?.samples, [{ id, at: b.clock.now, message: 'no 3' }])
  }),

  contract('the error groups of a day are bounded, and none of the failures is lost', async (b) => {
    const total = FAILURE_GROUPS_MAX + 20
    await b.insert(Array.from({ length: total }, () => b.job()))
    const { jobs } = await b.claim(await b.worker(), { max: total })
    await b.store.leases.settleJobs(
      jobs.map((job, n) => b.settled(job, failing(`Error${n}`, 'no'))),
      [],
    )
    b.clock.now += MINUTE_MS
    await b.store.jobs.sweepRows(100)
    const groups = await b.store.observing.readFailures({ window: { lastMs: DAY_MS } })
    assert.equal(groups.length, FAILURE_GROUPS_MAX + 1)
    assert.deepEqual(
      groups.filter(({ count }) => count > 1).map(({ error, count }) => `${error} ${count}`),
      ['(other errors) 20'],
    )
    assert.equal(
      groups.reduce((sum, { count }) => sum + count, 0),
      total,
    )
  }),

  contract('queues are counted by state', async (b) => {
    await b.insert([
      b.job({ queue: 'a' }),
      b.job({ queue: 'a', due: { inMs: HOUR_MS } }),
      b.job({ queue: 'b', turn: { limit: 7, rate: null, weight: 1 } }),
      b.job({ queue: 'b', name: 'other' }),
      b.job({ queue: 'c' }),
    ])
    const paused = await b.one({ queue: 'b', name: 'other' })
    await b.pause(paused, 'ready')
    const running = only(await b.claim(await b.worker(), { queues: ['c'], starting: 1 }))
    await end(b, { queue: 'd' }, { to: 'failed' })
    await end(b, { queue: 'd' }, { to: 'parked' })
    await end(b, { queue: 'd' }, { to: 'retrying', delayMs: HOUR_MS })
    const found = await b.store.observing.countQueues()
    const shown = found.flatMap(({ queue, state, count }) => (count === 0 ? [] : [`${queue} ${state} ${count}`]))
    assert.deepEqual(shown.toSorted(), [
      'a ready 1',
      'a scheduled 1',
      'b paused 1',
      'b ready 2',
      'c running 1',
      'd failed 1',
      'd parked 1',
      'd retrying 1',
    ])
    assert.equal(found.find(({ queue, state }) => queue === 'a' && state === 'ready')?.dueAt, b.clock.now)
    assert.ok(found.every(({ isMore }) => !isMore))
    await b.settle(running)
    assert.equal(
      (await b.store.observing.countQueues()).some(({ state }) => state === 'running'),
      false,
    )
  }),
]

/** Runs a job of its own to this end, and returns its id. */
async function end(b: ContractFixture, job: Partial<NewJob>, change: Partial<SettledJob>): Promise<string> {
  const id = await b.one(job)
  const { jobs } = await b.claim(await b.worker(), { queues: [job.queue ?? 'default'] })
  const claimed = jobs.find((each) => each.id === id) as ClaimedJob
  assert.deepEqual(await b.settle(claimed, change), [])
  return id
}

function failing(error: string, message: string): Partial<SettledJob> {
  const failure = failureOf('mail', {
    name: error,
    message,
    stack: `${error}: ${message}\n    at f (/app/src/x.ts:1:2)`,
  })
  return { to: 'failed', statistics: { waitMs: 0, runMs: 0, failure } }
}

function sketch(...values: readonly number[]): string | null {
  const all = new Sketch()
  for (const value of values) all.add(value)
  return all.write()
}

interface LaneTotal {
  readonly lane: string
  readonly done: number
  readonly failed: number
  readonly retried: number
  readonly wait: string | null
  readonly run: string | null
}

/** What the rows of each lane add up to. */
async function totals(b: ContractFixture, query: Partial<StatisticsQuery> = {}): Promise<LaneTotal[]> {
  const { rows } = await b.store.observing.readStatistics({ window: { lastMs: Infinity }, ...query })
  const lanes = [...new Set(rows.map(({ queue, name }) => `${queue} ${name}`))].toSorted()
  return lanes.map((lane) => {
    const mine = rows.filter(({ queue, name }) => `${queue} ${name}` === lane)
    const [wait, run] = [new Sketch(), new Sketch()]
    for (const row of mine) {
      wait.addWritten(row.wait)
      run.addWritten(row.run)
    }
    const sum = (of: 'done' | 'failed' | 'retried'): number => mine.reduce((all, row) => all + row[of], 0)
    return {
      lane,
      done: sum('done'),
      failed: sum('failed'),
      retried: sum('retried'),
      wait: wait.write(),
      run: run.write(),
    }
  })
}

function counts(lanes: readonly LaneTotal[]): string[] {
  return lanes.map(
    ({ lane, done, failed, retried, wait }) => `${lane} ${done} ${failed} ${retried} ${wait?.split(',')[0]}`,
  )
}
