import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DecisionPolicy, JobCounters } from './decide.js'
import { decide } from './decide.js'
import type { Outcome } from './outcome.js'
import { isFinal, LEGAL_MOVES } from './states.js'

const error = { name: 'Error', message: 'no' }
const policy: DecisionPolicy = { crashBudget: 3, keepMs: { done: 1, failed: 2, cancelled: 3 } }
const fresh: JobCounters = { attempt: 0, retries: 0, crashes: 0, streak: 0 }
const failed = (change: Partial<Extract<Outcome, { kind: 'failed' }>> = {}): Outcome => ({
  kind: 'failed',
  error,
  retryable: true,
  retryLimit: 25,
  delayMs: 1_000,
  ...change,
})

const crash = (change: Partial<Extract<Outcome, { kind: 'crashed' }>> = {}): Outcome => ({
  kind: 'crashed',
  hasBegun: true,
  quarantined: 0,
  ...change,
})

describe('an outcome becomes a settlement', () => {
  test('a returned handler makes the job done, with its result and its note', () => {
    expect(decide(fresh, { kind: 'succeeded', result: '1', note: 'cut' }, policy)).toEqual({
      to: 'done',
      attempt: 1,
      retries: 0,
      crashes: 0,
      streak: 0,
      delayMs: null,
      result: '1',
      error: null,
      reason: 'cut',
      isLogged: false,
      exit: null,
      keepMs: 1,
    })
    expect(decide(fresh, { kind: 'succeeded', result: null }, policy).reason).toBeNull()
  })

  test('a failure with retries left is retried after its delay, and counts as an attempt and as a retry', () => {
    const settlement = decide({ attempt: 4, retries: 2, crashes: 1, streak: 0 }, failed(), policy)
    expect(settlement).toMatchObject({ to: 'retrying', attempt: 5, retries: 3, crashes: 1, delayMs: 1_000, error })
    expect(settlement.isLogged).toBe(true)
    expect(settlement.keepMs).toBe(Infinity)
  })

  test.each([
    ['the limit is reached', { attempt: 3, retries: 2, crashes: 0, streak: 0 }, failed({ retryLimit: 2 })],
    ['the limit is 0', fresh, failed({ retryLimit: 0 })],
    ['it is not worth another try', fresh, failed({ retryable: false, retryLimit: Infinity })],
    [
      'the limit was lowered below what was used',
      { attempt: 9, retries: 9, crashes: 0, streak: 0 },
      failed({ retryLimit: 2 }),
    ],
  ])('a failure is for good when %s', (_, counters, outcome) => {
    const settlement = decide(counters, outcome, policy)
    expect(settlement).toMatchObject({
      to: 'failed',
      attempt: counters.attempt + 1,
      retries: counters.retries,
      keepMs: 2,
      isLogged: true,
    })
    expect(settlement.delayMs).toBeNull()
  })

  test('a limit of Infinity never ends', () => {
    const counters = { attempt: 1e9, retries: 1e9, crashes: 0, streak: 0 }
    expect(decide(counters, failed({ retryLimit: Infinity }), policy).to).toBe('retrying')
  })

  test('an abort fails the job at once, also with retries left', () => {
    expect(decide(fresh, { kind: 'aborted', error }, policy)).toMatchObject({
      to: 'failed',
      attempt: 1,
      retries: 0,
      error,
      isLogged: true,
      keepMs: 2,
    })
  })

  test('a snooze waits and counts nothing', () => {
    const counters = { attempt: 2, retries: 1, crashes: 1, streak: 0 }
    expect(decide(counters, { kind: 'snoozed', delayMs: 600_000 }, policy)).toMatchObject({
      ...counters,
      to: 'scheduled',
      delayMs: 600_000,
      exit: 'snoozed',
      isLogged: true,
    })
  })

  test('a payload that does not decode parks the job with the reason, and counts no attempt', () => {
    expect(decide(fresh, { kind: 'unreadable', error }, policy)).toMatchObject({
      ...fresh,
      to: 'parked',
      error,
      reason: 'no',
      keepMs: Infinity,
    })
  })

  test('a released job keeps its due time and its streak, and counts no attempt', () => {
    const counters = { attempt: 1, retries: 1, crashes: 2, streak: 3 }
    expect(decide(counters, { kind: 'released' }, policy)).toMatchObject({ ...counters, to: 'ready', delayMs: null })
  })

  test.each([0, 3])(
    'a crash outside quarantine, or in one of %d, is charged to no job and lengthens its streak',
    (n) => {
      const counters = { attempt: 1, retries: 1, crashes: 2, streak: 0 }
      expect(decide(counters, crash({ quarantined: n }), policy)).toMatchObject({
        ...counters,
        to: 'ready',
        streak: 1,
        reason: null,
        exit: 'crashed',
        isLogged: true,
      })
    },
  )

  test('the second crash in a row makes a suspect, and its record says so', () => {
    const { to, streak, reason } = decide({ ...fresh, streak: 1 }, crash(), policy)
    expect([to, streak]).toEqual(['ready', 2])
    expect(reason).toBe('it was in flight at 2 crashes in a row: it runs in quarantine')
    expect(decide({ ...fresh, streak: 2 }, { kind: 'released' }, policy).reason).toBe(reason)
  })

  test('a job that blocked the event loop is a suspect at once, and its record says so', () => {
    const settled = decide(fresh, crash({ isBlocking: true }), policy)
    expect(settled).toMatchObject({ to: 'ready', streak: 2, crashes: 0 })
    expect(settled.reason).toMatch(/blocked the event loop/)
    expect(decide({ ...fresh, streak: 4 }, crash({ isBlocking: true }), policy)).toMatchObject({ streak: 5 })
  })

  test('a job that had not begun never becomes a suspect by crashes', () => {
    expect(decide(fresh, crash({ hasBegun: false }), policy)).toMatchObject({ streak: 1, crashes: 0 })
    expect(decide({ ...fresh, streak: 1 }, crash({ hasBegun: false }), policy)).toMatchObject({ streak: 1, crashes: 0 })
    expect(decide({ ...fresh, streak: 4 }, crash({ hasBegun: false, quarantined: 1 }), policy)).toMatchObject({
      streak: 4,
      crashes: 0,
    })
  })

  test('a crash outside quarantine never parks, however often the job was charged before', () => {
    expect(decide({ ...fresh, crashes: 99, streak: 9 }, crash(), policy).to).toBe('ready')
  })

  test('a crash of the worker beside a process of its own does not count as one in a row', () => {
    expect(decide({ ...fresh, streak: 1 }, crash({ isIsolated: true }), policy)).toMatchObject({
      to: 'ready',
      streak: 0,
    })
  })

  test.each([
    [0, 'ready'],
    [1, 'ready'],
    [2, 'parked'],
  ] as const)('the end of its thread or process after %d others leaves it %s under a budget of 3', (crashes, to) => {
    const settlement = decide({ ...fresh, crashes, streak: 1 }, { kind: 'child-crashed', exit: 'exit code 3' }, policy)
    expect(settlement).toMatchObject({ to, crashes: crashes + 1, attempt: 0, streak: 0, isLogged: true })
    if (to === 'parked') expect(settlement.reason).toContain('ended 3 times, last with: exit code 3')
  })

  test.each([
    [0, 'ready'],
    [1, 'ready'],
    [2, 'parked'],
  ] as const)('a crash in a quarantine of one after %d others leaves it %s under a budget of 3', (crashes, to) => {
    const settlement = decide({ ...fresh, crashes, streak: 2 }, crash({ quarantined: 1 }), policy)
    expect(settlement).toMatchObject({ to, crashes: crashes + 1, attempt: 0, streak: to === 'ready' ? 3 : 0 })
    expect(settlement).toMatchObject({ isLogged: true, exit: 'crashed' })
    if (to === 'parked') expect(settlement.reason).toContain('3 times')
  })

  test('any other end than a crash ends the streak', () => {
    const counters = { ...fresh, streak: 5 }
    for (const outcome of [
      { kind: 'succeeded', result: null },
      failed(),
      { kind: 'aborted', error },
      { kind: 'snoozed', delayMs: 1 },
    ] as const)
      expect(decide(counters, outcome, policy).streak).toBe(0)
  })

  test('a handler that throws after a cancel ends the job, counts an attempt, and its error is kept', () => {
    const outcome: Outcome = { kind: 'cancelled', error, reason: 'cancel() was called' }
    expect(decide({ attempt: 1, retries: 1, crashes: 0, streak: 0 }, outcome, policy)).toMatchObject({
      to: 'cancelled',
      attempt: 2,
      retries: 1,
      error,
      reason: 'cancel() was called',
      keepMs: 3,
      delayMs: null,
      isLogged: true,
      exit: 'cancelled',
    })
  })

  test('an expired job is cancelled with that reason, and kept as cancelled', () => {
    expect(decide(fresh, { kind: 'expired' }, policy)).toMatchObject({
      ...fresh,
      to: 'cancelled',
      reason: 'it expired before it began',
      keepMs: 3,
      exit: 'expired',
    })
  })
})

const anyTally = fc.record({
  attempt: fc.nat(1_000),
  retries: fc.nat(1_000),
  crashes: fc.nat(1_000),
  streak: fc.nat(50),
})
const anyOutcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.record({ kind: fc.constant('succeeded' as const), result: fc.option(fc.string()) }),
  fc.record({
    kind: fc.constant('failed' as const),
    error: fc.constant(error),
    retryable: fc.boolean(),
    retryLimit: fc.oneof(fc.nat(1_000), fc.constant(Infinity)),
    delayMs: fc.nat(),
  }),
  fc.record({ kind: fc.constant('aborted' as const), error: fc.constant(error) }),
  fc.record({ kind: fc.constant('snoozed' as const), delayMs: fc.nat() }),
  fc.record({
    kind: fc.constant('cancelled' as const),
    error: fc.option(fc.constant(error)),
    reason: fc.string(),
  }),
  fc.record({ kind: fc.constant('unreadable' as const), error: fc.constant(error) }),
  fc.record({ kind: fc.constant('released' as const) }),
  fc.record({ kind: fc.constant('crashed' as const), hasBegun: fc.boolean(), quarantined: fc.nat(20) }),
  fc.record({ kind: fc.constant('child-crashed' as const), exit: fc.string() }),
  fc.record({ kind: fc.constant('expired' as const) }),
)
const anyPolicy: fc.Arbitrary<DecisionPolicy> = fc.record({
  crashBudget: fc.integer({ min: 1, max: 1_000 }),
  keepMs: fc.record({ done: fc.nat(), failed: fc.nat(), cancelled: fc.nat() }),
})

describe('for every outcome', () => {
  const always = (holds: (counters: JobCounters, outcome: Outcome, policy: DecisionPolicy) => void): void =>
    fc.assert(fc.property(anyTally, anyOutcome, anyPolicy, holds), { numRuns: 2_000 })

  test('the settlement is a legal move from running', () => {
    always((counters, outcome, p) => {
      expect(LEGAL_MOVES.running).toContain(decide(counters, outcome, p).to)
    })
  })

  test('no counter decreases, and an attempt counts at most once', () => {
    always((counters, outcome, p) => {
      const settlement = decide(counters, outcome, p)
      expect(settlement.attempt - counters.attempt).toBeOneOf([0, 1])
      expect(settlement.retries - counters.retries).toBeOneOf([0, 1])
      expect(settlement.crashes - counters.crashes).toBeOneOf([0, 1])
    })
  })

  test('a retry is counted only when the job is retried, and never beyond the limit', () => {
    always((counters, outcome, p) => {
      const settlement = decide(counters, outcome, p)
      expect(settlement.retries > counters.retries).toBe(settlement.to === 'retrying')
      if (settlement.to === 'retrying' && outcome.kind === 'failed')
        expect(settlement.retries).toBeLessThanOrEqual(outcome.retryLimit)
    })
  })

  test('a crash is charged exactly to a job that had begun in a quarantine of one, and that of a child to its job', () => {
    always((counters, outcome, p) => {
      const charged = decide(counters, outcome, p).crashes > counters.crashes
      const isAlone = outcome.kind === 'crashed' && outcome.hasBegun && outcome.quarantined === 1
      expect(charged).toBe(isAlone || outcome.kind === 'child-crashed')
    })
  })

  test('keepMs comes from the policy for final states, and is Infinity for others', () => {
    always((counters, outcome, p) => {
      const { to, keepMs } = decide(counters, outcome, p)
      expect(keepMs).toBe(isFinal(to) ? p.keepMs[to] : Infinity)
    })
  })

  test('exactly the states that wait for a time have a delay', () => {
    always((counters, outcome, p) => {
      const { to, delayMs } = decide(counters, outcome, p)
      expect(delayMs !== null).toBe(to === 'retrying' || to === 'scheduled')
    })
  })

  test('only a job that will run again has a streak', () => {
    always((counters, outcome, p) => {
      const { to, streak } = decide(counters, outcome, p)
      if (streak > 0) expect(to).toBe('ready')
    })
  })
})
