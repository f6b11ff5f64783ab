import { describe, expect, test } from 'vitest'
import { Abort, job, Snooze } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { openedMills } from './support/opened-mills.js'

/** Statistics through the public API. What is counted, and when, is in test/contract/statistics.ts. */

const { open } = openedMills('statistics')

class Declined extends Error {}

const send = job('send', async (n: number) => n)
const retry = { limit: 2, backoff: () => 0, jitter: 0 } as const
const flaky = job('flaky', {
  run: (n: number, ctx) => {
    if (ctx.attempt <= n) throw new Declined(`no ${n}`)
  },
  retry,
})
const abort = job('abort', () => {
  throw new Abort('never')
})
const snooze = job('snooze', (_: unknown, ctx) => {
  if (ctx.attempt === 1 && !seen.has(ctx.id)) {
    seen.add(ctx.id)
    throw new Snooze(1)
  }
})
const seen = new Set<string>()

async function ended(mill: Mill, count: number): Promise<void> {
  await expect
    .poll(async () => (await mill.count({ state: ['done', 'failed'] })).count, { timeout: 20_000 })
    .toBe(count)
}

test('counts, durations, series and error groups are those of what ran', async () => {
  const mill = await open({ jobs: [send, flaky, abort, snooze] })
  expect(await mill.stats.retries()).toEqual({})
  await mill.enqueueMany(send, [1, 2, 3], { queue: 'mail' })
  await mill.enqueueMany(flaky, [0, 1, 2, 9], { queue: 'billing' })
  await mill.enqueue(abort, undefined, { queue: 'billing' })
  await mill.enqueue(snooze, undefined, { queue: 'mail' })
  await mill.start()
  await ended(mill, 9)

  expect(await mill.stats.retries()).toEqual({
    billing: { ok: 3, retries: 5, percentage: 500 / 3 },
    mail: { ok: 4, retries: 0, percentage: 0 },
  })
  expect(await mill.stats.retries({ job: 'send', queue: 'mail' })).toEqual({
    mail: { ok: 3, retries: 0, percentage: 0 },
  })
  const run = await mill.stats.processingTimes({ days: Infinity })
  expect(run['billing']?.count).toBe(5)
  expect(run['mail']?.count).toBe(4)
  const wait = await mill.stats.waitTimes()
  expect([wait['billing']?.count, wait['mail']?.count]).toEqual([5, 4])
  for (const times of [...Object.values(run), ...Object.values(wait)]) {
    const order = [times.min, times.p50, times.p90, times.p95, times.p99, times.max]
    expect(order).toEqual(order.toSorted((a, b) => a - b))
    expect(times.avg).toBeGreaterThanOrEqual(times.min)
  }
  const points = await mill.stats.series({ queue: 'billing', from: new Date(Date.now() - 120_000) })
  expect(points.length).toBeGreaterThanOrEqual(3)
  const sum = (of: 'done' | 'failed' | 'retried'): number => points.reduce((all, point) => all + point[of], 0)
  expect([sum('done'), sum('failed'), sum('retried')]).toEqual([3, 2, 5])
  expect(points.some(({ run: times }) => times !== undefined)).toBe(true)

  const groups = await mill.stats.errorGroups()
  expect(groups.cursor).toBeUndefined()
  const declined = groups.rows.find(({ job: name }) => name === 'flaky')
  expect(declined).toMatchObject({ error: 'Declined', count: 6, place: expect.stringContaining('statistics.test.ts') })
  expect(declined?.samples.length).toBe(5)
  expect(declined?.samples.at(-1)?.message).toMatch(/^no \d$/)
  expect(groups.rows.find(({ job: name }) => name === 'abort')?.count).toBe(1)
  const [first] = (await mill.stats.errorGroups({ limit: 1 })).rows
  const next = await mill.stats.errorGroups({ limit: 1, cursor: (await mill.stats.errorGroups({ limit: 1 })).cursor })
  expect(new Set([first?.fingerprint, next.rows[0]?.fingerprint]).size).toBe(2)
  expect(next.cursor).toBeUndefined()

  expect(await mill.stats.errors('billing')).toEqual({ retrying: 0, parked: 0, failed: 2, exact: true })
  const { billing } = await mill.stats.queues()
  expect(billing).toMatchObject({ ready: 0, running: 0, failed: 2, exact: true, emptyInMs: 0, waitingSince: undefined })
  expect(billing?.perMinute).toBeGreaterThan(0)
})

test('a queue says when it will be empty, at its pace', async () => {
  const mill = await open({ jobs: [send] })
  await mill.enqueueMany(send, [1, 2, 3, 4])
  const { default: before } = await mill.stats.queues()
  expect(before).toMatchObject({ ready: 4, perMinute: 0, emptyInMs: undefined, waitingSince: expect.any(Date) })
  await mill.start()
  await ended(mill, 4)
  await mill.stop()
  await mill.enqueueMany(send, [5, 6])
  const { default: after } = await mill.stats.queues()
  const pace = after?.perMinute ?? 0
  expect(pace).toBeGreaterThanOrEqual(4 / 5)
  expect(after?.emptyInMs).toBeCloseTo((2 / pace) * 60_000, -1)
})

test('what is not known gives zeros and empty lists', async () => {
  const mill = await open({ jobs: [send] })
  const zeros = { count: 0, min: 0, avg: 0, p50: 0, p90: 0, p95: 0, p99: 0, max: 0 }
  expect(await mill.stats.queues()).toEqual({})
  expect(await mill.stats.retries({ queue: 'nope' })).toEqual({ nope: { ok: 0, retries: 0, percentage: 0 } })
  expect(await mill.stats.waitTimes({ queue: 'nope', job: 'none' })).toEqual({ nope: zeros })
  expect(await mill.stats.processingTimes({ queue: '__proto__' })).toEqual(
    Object.assign(Object.create(null), { ['__proto__']: zeros }),
  )
  expect(await mill.stats.errors('nope')).toEqual({ retrying: 0, parked: 0, failed: 0, exact: true })
  expect(await mill.stats.errorGroups({ job: 'nope' })).toEqual({ rows: [], cursor: undefined })
  const points = await mill.stats.series({ job: 'nope' })
  expect(points.length).toBe(61)
  expect(points.every(({ done, failed, wait }) => done === 0 && failed === 0 && wait === undefined)).toBe(true)
})

test('messages of encrypted jobs are in no sample', async () => {
  const secret = job('secret', {
    encrypt: true,
    run: () => {
      throw new Abort('card 4242')
    },
  })
  const encryption = { keys: { k1: Buffer.alloc(32, 1) }, current: 'k1' }
  const mill = await open({ jobs: [secret], encryption })
  await mill.enqueue(secret)
  await mill.start()
  await ended(mill, 1)
  const [group] = (await mill.stats.errorGroups()).rows
  expect(group).toMatchObject({ job: 'secret', count: 1 })
  expect(group?.samples[0]?.message).toBeUndefined()
})

describe('wrong options are refused', () => {
  const day = 86_400_000
  const ago = (ms: number): Date => new Date(Date.now() - ms)
  const cases: readonly (readonly [string, (stats: Mill['stats']) => Promise<unknown>, RegExp])[] = [
    ['a typo', (s) => s.retries({ dys: 3 } as never), /dys is not an option; did you mean "days"\?/],
    ['a number for an object', (s) => s.retries(7 as never), /did you mean \{ days: 7 \}\?/],
    ['a name for an object', (s) => s.waitTimes('mail' as never), /did you mean \{ queue: "mail" \}\?/],
    ['no days', (s) => s.waitTimes({ days: 0 }), /days must be a number of days above 0, .*, or Infinity, got 0/],
    ['too many days', (s) => s.waitTimes({ days: 1e9 }), /days must be/],
    ['days as text', (s) => s.processingTimes({ days: '30' as never }), /days must be .*, got "30"/],
    [
      'an unknown unit',
      (s) => s.processingTimes({ unit: 'sec' as never }),
      /unit must be one of ms, s, m, h, d, got "sec"/,
    ],
    ['a unit of counts', (s) => s.retries({ unit: 's' } as never), /unit is not an option/],
    ['a wrong now', (s) => s.retries({ now: 'yesterday' as never }), /now must be an instant/],
    ['a queue that is no name', (s) => s.errors('' as never), /queue must/],
    ['no queue', (s) => (s.errors as () => Promise<unknown>)(), /queue must/],
    ['a turned range', (s) => s.series({ from: ago(0), to: ago(day) }), /from must be before to/],
    [
      'too many points',
      (s) => s.series({ from: ago(day * 80), bucket: '1m' }),
      /at most 2000 points, got \d+; try .* "1h"/,
    ],
    ['minutes of last week', (s) => s.series({ from: ago(day * 2), to: ago(day * 1.9) }), /bucket must be whole hours/],
    ['hours of last year', (s) => s.series({ from: ago(day * 99), to: ago(day * 98), bucket: '1h' }), /whole days/],
    ['half a minute', (s) => s.series({ bucket: '30s' }), /bucket must be whole minutes, got "30s"/],
    ['a cursor of another list', (s) => s.errorGroups({ cursor: '7' }), /cursor must be the cursor that an earlier/],
    ['an offset', (s) => s.errorGroups({ offset: 7 } as never), /offset is not an option; use cursor/],
  ]
  test.each(cases)('%s', async (_, call, message) => {
    const mill = await open({ store: ':memory:' })
    await expect(call(mill.stats)).rejects.toThrow(message)
  })
})
