import { expect, test } from 'vitest'
import type { Ahead, RateUse } from '../limits/latest-turn.js'
import { STATES } from '../rules/states.js'
import { decideWhy } from './why.js'
import type { WhyReason, WhySnapshot, WhyWorker } from './why.js'
import { inWords, listed } from './words.js'

const NOW = 1_800_000_000_000

const NONE: Ahead = { jobs: 0, heaviest: 1, isAll: true }
const rate = (used: number, ahead: Ahead): RateUse => ({
  of: 'queue default',
  max: 10,
  perMs: 60_000,
  weight: 1,
  starts: used === 0 ? [] : [{ used, until: NOW + 30_000 }],
  ahead,
})

/** Random snapshots, most of which a store can have, and some that only a race could show. */
function snapshots(count: number): WhySnapshot[] {
  let seed = 7
  const draw = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  const pick = <T>(...of: readonly T[]): T => of[draw(of.length)] as T
  const worker = (id: string): WhyWorker => ({
    id,
    host: `host-${id}`,
    isAlive: draw(3) > 0,
    names: pick(undefined, ['mail'], ['other'], ['mail', 'other']),
    slots: pick(undefined, 1, 2, 10),
    queues: pick<Record<string, number>>({}, { default: 1 }, { other: 1 }),
    running: pick(
      [],
      [{ job: 'slow', queue: 'default', count: 1, since: NOW - 5_000 }],
      [{ job: 'slow', queue: 'other', count: 2, since: NOW - 5_000 }],
    ),
  })
  const ahead = (): Ahead => pick(NONE, { jobs: 1, heaviest: 1, isAll: true }, { jobs: 90, heaviest: 4, isAll: false })
  const holder = (): WhySnapshot['holder'] => pick(undefined, { worker: 'w1', host: 'host-w1' })
  return Array.from({ length: count }, () => ({
    now: NOW,
    job: {
      id: 'id',
      job: 'mail',
      queue: 'default',
      state: pick(...STATES, 'ready', 'ready', 'ready', 'ready'),
      claimed: draw(8) === 0,
      dueAt: NOW + pick(-1_000, 0, 40_000),
      startedAt: pick(null, NOW - 90_000),
      streak: pick(0, 0, 1, 2, 3),
      reason: pick(null, 'because of a test.'),
      error: pick(null, 'CardError: declined'),
    },
    parents: pick([], [{ id: 'p', job: 'extract', state: 'running' as const }]),
    holder: holder(),
    pause: pick(undefined, undefined, undefined, { until: null }, { until: NOW - 1 }, { until: NOW + 60_000 }),
    workers: Array.from({ length: draw(4) }, (_, n) => worker(`w${n}`)),
    limits: pick([], [], [{ of: 'queue default', max: 2, inFlight: pick(0, 2), holders: ['h1'], ahead: ahead() }]),
    rates: pick([], [], [rate(draw(12), ahead())]),
    outage: pick(undefined, { waiting: 388 }),
    waits: pick([], [], ['event:approved'], ['call:child'], ['!start']),
    suspended: pick(undefined, { wakeAt: null }, { wakeAt: NOW + 60_000 }),
  }))
}

/** Each reason by a condition of its own; exactly one must be true of every snapshot. */
const TRUE_WHEN: Record<WhyReason, (s: WhySnapshot) => boolean> = {
  ended: ({ job }) => ['done', 'failed', 'cancelled'].includes(job.state),
  running: ({ job }) => job.state === 'running',
  paused: ({ job }) => job.state === 'paused',
  parked: ({ job }) => job.state === 'parked',
  parents: ({ job, parents }) => job.state === 'blocked' && parents.length > 0,
  event: (s) =>
    (s.job.state === 'blocked' && s.parents.length === 0 && s.waits.length > 0) ||
    (isTimed(s) && s.waits.some((each) => each !== '!start')),
  time: (s) => isTimed(s) && s.waits.every((each) => each === '!start') && s.job.dueAt > NOW,
  probing: (s) =>
    s.job.state === 'retrying' && s.waits.every((each) => each === '!start') && s.job.dueAt <= NOW && !!s.outage,
  'queue-paused': (s) => s.job.state === 'ready' && isQueuePaused(s),
  held: (s) => isOpen(s) && s.job.claimed && !!s.holder,
  'no-worker': (s) => isFree(s) && !s.workers.some((worker) => worker.isAlive),
  'unknown-name': (s) => isFree(s) && s.workers.some((worker) => worker.isAlive) && knowing(s) === 0,
  suspect: (s) => isFree(s) && knowing(s) > 0 && s.job.streak > 1,
  slot: (s) => isWanted(s) && withRoom(s) === 0,
  limit: (s) => isWanted(s) && withRoom(s) > 0 && isLimited(s),
  rate: (s) => isWanted(s) && withRoom(s) > 0 && !isLimited(s) && isRated(s),
  turn: (s) => isWanted(s) && withRoom(s) > 0 && !isLimited(s) && !isRated(s) && hasTurnsBefore(s),
  starting: (s) =>
    (isWanted(s) && withRoom(s) > 0 && !isLimited(s) && !isRated(s) && !hasTurnsBefore(s)) ||
    (s.job.state === 'blocked' && s.parents.length === 0 && s.waits.length === 0) ||
    (isTimed(s) &&
      s.waits.every((each) => each === '!start') &&
      s.job.dueAt <= NOW &&
      !(s.job.state === 'retrying' && s.outage)),
}

const isTimed = ({ job }: WhySnapshot): boolean => job.state === 'scheduled' || job.state === 'retrying'
const isQueuePaused = ({ pause }: WhySnapshot): boolean => !!pause && !(pause.until !== null && pause.until <= NOW)
const isOpen = (s: WhySnapshot): boolean => s.job.state === 'ready' && !isQueuePaused(s)
const isFree = (s: WhySnapshot): boolean => isOpen(s) && !(s.job.claimed && s.holder)
const knowing = ({ workers }: WhySnapshot): number =>
  workers.filter((w) => w.isAlive && (w.names ?? ['mail']).indexOf('mail') >= 0).length
const isWanted = (s: WhySnapshot): boolean => isFree(s) && knowing(s) > 0 && s.job.streak < 2
const isLimited = ({ limits }: WhySnapshot): boolean => limits.some((limit) => limit.max - limit.inFlight < 1)
const hasTurnsBefore = ({ limits }: WhySnapshot): boolean => limits.some((l) => l.inFlight + l.ahead.jobs >= l.max)
/** Started within the window, to start before it, and itself: more than the rate. */
const isRated = ({ rates }: WhySnapshot): boolean =>
  rates.some(({ max, starts, ahead }) => (starts[0]?.used ?? 0) + ahead.jobs * ahead.heaviest + 1 > max)
const withRoom = ({ workers }: WhySnapshot): number => {
  let rooms = 0
  for (const { isAlive, names, slots, queues, running } of workers) {
    if (!isAlive || (names !== undefined && !names.includes('mail'))) continue
    let [all, here] = [0, 0]
    for (const { queue, count } of running) [all, here] = [all + count, here + (queue === 'default' ? count : 0)]
    if (all < (slots ?? Infinity) && here < (queues['default'] ?? Infinity)) rooms += 1
  }
  return rooms
}

test('of every snapshot exactly one reason is true, and it is the one given', () => {
  const seen = new Set<string>()
  for (const snapshot of snapshots(4_000)) {
    const expected = Object.entries(TRUE_WHEN).flatMap(([reason, isTrue]) => (isTrue(snapshot) ? [reason] : []))
    const { reason, text, blockers } = decideWhy(snapshot)
    expect(expected, JSON.stringify(snapshot)).toEqual([reason])
    expect(text).toMatch(/^[A-Z].*[^.]\.$/)
    expect(text).not.toMatch(/undefined|null|NaN|Infinity/)
    for (const { id } of blockers) expect(text + JSON.stringify(snapshot.workers)).toContain(id)
    seen.add(reason)
  }
  expect([...seen].sort()).toEqual(Object.keys(TRUE_WHEN).sort())
})

test('the sentence says what a person would', () => {
  const [any] = snapshots(1) as [WhySnapshot]
  const base: WhySnapshot = {
    ...any,
    job: {
      ...any.job,
      state: 'ready',
      claimed: false,
      streak: 0,
      reason: null,
      error: null,
      dueAt: NOW,
      startedAt: null,
    },
    parents: [],
    holder: undefined,
    pause: undefined,
    workers: [],
    limits: [],
    rates: [],
    outage: undefined,
    waits: [],
    suspended: undefined,
  }
  const job = (change: Partial<WhySnapshot['job']>): WhySnapshot['job'] => ({ ...base.job, ...change })
  const text = (change: Partial<WhySnapshot>): string => decideWhy({ ...base, ...change }).text
  const busy: WhyWorker = {
    id: 'w1',
    host: 'web-1',
    isAlive: true,
    names: ['mail'],
    slots: 2,
    queues: {},
    running: [{ job: 'slow', queue: 'default', count: 2, since: NOW - 3_725_000 }],
  }
  expect(text({})).toBe('No worker is running: call mill.start() in any process.')
  expect(text({ workers: [{ ...busy, names: [] }] })).toBe(
    'The worker that is running does not know the job "mail": register it in jobs.',
  )
  expect(text({ workers: [busy] })).toBe(
    'Every slot of the worker that can run it is taken by slow ×2, the oldest for 1 h 2 m.',
  )
  expect(text({ pause: { until: NOW + 90_000 } })).toBe('Queue default is paused for another 1 m 30 s.')
  expect(text({ job: job({ state: 'retrying', dueAt: NOW + 40_000 }) })).toBe(
    `It failed and is tried again in 40 s (${new Date(NOW + 40_000).toISOString()}).`,
  )
  expect(text({ job: job({ state: 'parked', reason: 'its payload does not decode.' }) })).toBe(
    'It is parked and waits for a person: its payload does not decode.',
  )
  expect(text({ job: job({ state: 'blocked' }), parents: [{ id: 'p', job: 'extract', state: 'failed' }] })).toBe(
    'It waits for extract p, which is failed.',
  )
  const until = new Date(NOW + 60_000).toISOString()
  const free = { workers: [{ ...busy, slots: 9 }] }
  const holders = ['a', 'b', 'c', 'd']
  const limit = { of: 'job send', max: 6, inFlight: 6, holders, ahead: NONE }
  expect(text({ ...free, limits: [limit] })).toBe(
    'The limit of job send is reached, 6 of 6 are in flight: a, b, c and 1 more.',
  )
  expect(text({ ...free, limits: [{ ...limit, inFlight: 5, ahead: { ...NONE, jobs: 2 } }] })).toBe(
    'It waits for its turn under the limit of job send: 2 jobs come before it.',
  )
  const after = (ms: number): string => new Date(NOW + ms).toISOString()
  expect(text({ ...free, rates: [rate(10, NONE)] })).toBe(
    `Under the rate of queue default, 10 in 1 m, 10 have started; no job comes before it, and its turn is in 30 s (${after(30_320)}) at the latest if a worker has a slot.`,
  )
  expect(text({ ...free, rates: [rate(10, { jobs: 1_000, heaviest: 1, isAll: false })] })).toBe(
    'Under the rate of queue default, 10 in 1 m, 10 have started; more than 1000 jobs come before it.',
  )
  const asleep = { job: job({ state: 'scheduled', dueAt: NOW + 60_000 }), suspended: { wakeAt: null } }
  expect(text(asleep)).toBe(`It sleeps for 1 m (${until}).`)
  const blocked = { job: job({ state: 'blocked' }), waits: ['event:approved'], suspended: { wakeAt: NOW + 60_000 } }
  expect(text(blocked)).toBe(`It waits for event approved, for 1 m (${until}) at most.`)
  expect(text({ ...blocked, suspended: { wakeAt: null } })).toBe('It waits for event approved.')
  expect(text({ job: job({ state: 'scheduled', dueAt: NOW + 60_000 }), waits: ['event:approved'] })).toBe(
    `It waits for event approved, for 1 m (${new Date(NOW + 60_000).toISOString()}) at most.`,
  )
})

test('durations and lists are short', () => {
  expect([0, 999, 1_000, 61_000, 3_600_000, 90_061_000, -5].map(inWords)).toEqual([
    '0 ms',
    '999 ms',
    '1 s',
    '1 m 1 s',
    '1 h',
    '1 d 1 h',
    '0 ms',
  ])
  expect([1, 2, 3, 4, 9].map((n) => listed(Array.from({ length: n }, (_, i) => `${i}`)))).toEqual([
    '0',
    '0 and 1',
    '0, 1 and 2',
    '0, 1, 2 and 1 more',
    '0, 1, 2 and 6 more',
  ])
})
