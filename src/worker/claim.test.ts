import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { WorkerLoad } from './claim.js'
import { BATCH_MAX, lookAhead, planClaim } from './claim.js'

const idle: WorkerLoad = {
  concurrency: 10,
  running: 0,
  held: 0,
  unwritten: false,
  averageMs: undefined,
  averageBytes: 20,
  fullForMs: 0,
  batchesAhead: 1,
  abandoned: 0,
  isQuarantine: false,
  isDraining: false,
}
const plan = (change: Partial<WorkerLoad>): ReturnType<typeof planClaim> => planClaim({ ...idle, ...change })

describe('how much to claim', () => {
  test.each<[string, Partial<WorkerLoad>, ReturnType<typeof planClaim>]>([
    ['idle, nothing measured: every slot', {}, { claim: true, max: 10, starting: 10, suspects: 'last' }],
    [
      'idle, fast handlers: every slot and 50 ms of work',
      { averageMs: 5 },
      { claim: true, max: 110, starting: 10, suspects: 'last' },
    ],
    [
      'idle, very fast: no more than a batch',
      { averageMs: 0.01 },
      { claim: true, max: BATCH_MAX, starting: 10, suspects: 'last' },
    ],
    [
      'idle, slow handlers: nothing ahead',
      { averageMs: 60_000 },
      { claim: true, max: 10, starting: 10, suspects: 'last' },
    ],
    ['some running: the free slots', { running: 4 }, { claim: true, max: 6, starting: 6, suspects: 'none' }],
    [
      'some running, fast: the free slots and 50 ms of work',
      { running: 4, averageMs: 25 },
      { claim: true, max: 26, starting: 6, suspects: 'none' },
    ],
    ['full, slow: nothing', { running: 10, averageMs: 60_000 }, { claim: false }],
    ['full, nothing measured: nothing', { running: 10 }, { claim: false }],
    [
      'full, fast, none held: 50 ms of work, and none of it begins',
      { running: 10, averageMs: 5 },
      { claim: true, max: 100, starting: 0, suspects: 'none' },
    ],
    ['full, fast, more than half held: nothing yet', { running: 10, held: 51, averageMs: 5 }, { claim: false }],
    [
      'full, fast, half held: the other half',
      { running: 10, held: 50, averageMs: 5 },
      { claim: true, max: 50, starting: 0, suspects: 'none' },
    ],
    ['more running than there are slots after a change of concurrency', { running: 20 }, { claim: false }],
    ['a quarantine is on: nothing begins beside it', { isQuarantine: true, running: 1 }, { claim: false }],
    ['a quarantine is on and its suspect has just ended: still nothing', { isQuarantine: true }, { claim: false }],
    ['it drains and something runs: nothing', { running: 1, isDraining: true }, { claim: false }],
    ['it drains and an end is not written yet: nothing', { unwritten: true, isDraining: true }, { claim: false }],
    ['it has drained: suspects first', { isDraining: true }, { claim: true, max: 10, starting: 10, suspects: 'first' }],
    [
      'it has drained but for handlers that hang, settled long ago: suspects first, in the free slots',
      { isDraining: true, running: 2, abandoned: 2 },
      { claim: true, max: 8, starting: 8, suspects: 'first' },
    ],
    ['handlers that hang have all slots: nothing', { running: 10, abandoned: 10 }, { claim: false }],
  ])('%s', (_, change, expected) => {
    expect(plan(change)).toEqual(expected)
  })

  const anyLoad = fc.record({
    concurrency: fc.integer({ min: 1, max: 2_000 }),
    running: fc.nat(2_000),
    held: fc.nat(600),
    averageMs: fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined }),
    averageBytes: fc.nat(2_000_000),
    fullForMs: fc.nat(1_000),
    batchesAhead: fc.constantFrom(1, 2),
    abandoned: fc.constant(0),
    isQuarantine: fc.boolean(),
    isDraining: fc.boolean(),
    unwritten: fc.boolean(),
  })

  test('never begins more than there are free slots', () => {
    fc.assert(
      fc.property(anyLoad, (load) => {
        const made = planClaim(load)
        if (made.claim)
          expect(made.starting + load.running + load.held).toBeLessThanOrEqual(
            Math.max(load.concurrency, load.running + load.held),
          )
      }),
    )
  })

  test('never claims nothing, and never more than a batch unless that many slots are free', () => {
    fc.assert(
      fc.property(anyLoad, (load) => {
        const made = planClaim(load)
        if (!made.claim) return
        expect(made.max).toBeGreaterThan(0)
        expect(made.max).toBeLessThanOrEqual(BATCH_MAX)
      }),
    )
  })

  test('takes suspects only when nothing else is in flight', () => {
    fc.assert(
      fc.property(anyLoad, (load) => {
        const made = planClaim(load)
        if (made.claim && made.suspects !== 'none') expect(load.running + load.held).toBe(0)
      }),
    )
  })
})

describe('looking ahead', () => {
  test.each([
    [undefined, 20, 10, 0],
    [50, 20, 10, 10],
    [51, 20, 1, 0],
    [1, 20, 2, 100],
    [0, 20, 1, BATCH_MAX],
    [0, 0, 1, BATCH_MAX],
    [0, 4_096, 10, 128],
    [0, 1_048_576, 10, 0],
    [1e9, 20, 1_000, 0],
  ])('at %s ms and %d bytes with %d slots is %d jobs', (averageMs, averageBytes, concurrency, jobs) => {
    expect(lookAhead({ averageMs, averageBytes, concurrency, fullForMs: 50, batchesAhead: 1 })).toBe(jobs)
  })

  test('is nothing while no slot comes free', () => {
    expect(lookAhead({ averageMs: 0.01, averageBytes: 20, concurrency: 10, fullForMs: 51, batchesAhead: 1 })).toBe(0)
  })
})
