import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Hand } from './claim.js'
import { BATCH_MAX, lookAhead, planClaim, SUSPECT_PATIENCE_MS } from './claim.js'

const idle: Hand = {
  concurrency: 10,
  running: 0,
  held: 0,
  unwritten: false,
  averageMs: undefined,
  averageBytes: 20,
  fullForMs: 0,
  batchesAhead: 1,
  alone: false,
  suspectsSince: null,
  now: 100_000,
}
const plan = (change: Partial<Hand>): ReturnType<typeof planClaim> => planClaim({ ...idle, ...change })

describe('how much to claim', () => {
  test.each<[string, Partial<Hand>, ReturnType<typeof planClaim>]>([
    ['idle, nothing measured: every slot', {}, { claim: true, max: 10, starting: 10, suspects: 'alone' }],
    [
      'idle, fast handlers: every slot and 50 ms of work',
      { averageMs: 5 },
      { claim: true, max: 110, starting: 10, suspects: 'alone' },
    ],
    [
      'idle, very fast: no more than a batch',
      { averageMs: 0.01 },
      { claim: true, max: BATCH_MAX, starting: 10, suspects: 'alone' },
    ],
    [
      'idle, slow handlers: nothing ahead',
      { averageMs: 60_000 },
      { claim: true, max: 10, starting: 10, suspects: 'alone' },
    ],
    ['some running: the free slots', { running: 4 }, { claim: true, max: 6, starting: 6, suspects: 'none' }],
    [
      'some running, fast: the free slots and 50 ms of work',
      { running: 4, averageMs: 25 },
      { claim: true, max: 26, starting: 6, suspects: 'none' },
    ],
    ['full, slow: nothing', { running: 10, averageMs: 60_000 }, { claim: false, againInMs: null }],
    ['full, nothing measured: nothing', { running: 10 }, { claim: false, againInMs: null }],
    [
      'full, fast, hand empty: 50 ms of work, and none of it begins',
      { running: 10, averageMs: 5 },
      { claim: true, max: 100, starting: 0, suspects: 'none' },
    ],
    [
      'full, fast, more than half in hand: nothing yet',
      { running: 10, held: 51, averageMs: 5 },
      { claim: false, againInMs: null },
    ],
    [
      'full, fast, half in hand: the other half',
      { running: 10, held: 50, averageMs: 5 },
      { claim: true, max: 50, starting: 0, suspects: 'none' },
    ],
    [
      'more in hand than there are slots after a change of concurrency',
      { running: 20 },
      { claim: false, againInMs: null },
    ],
    ['a suspect runs alone: nothing joins it', { alone: true, running: 1 }, { claim: false, againInMs: null }],
    [
      'suspects wait and something runs: hold back until they have waited long enough',
      { running: 1, suspectsSince: 99_500 },
      { claim: false, againInMs: SUSPECT_PATIENCE_MS - 500 },
    ],
    [
      'suspects have waited long enough: one beside the others',
      { running: 1, suspectsSince: 100_000 - SUSPECT_PATIENCE_MS },
      { claim: true, max: 9, starting: 9, suspects: 'beside' },
    ],
    [
      'suspects have waited, but every slot is taken',
      { running: 10, suspectsSince: 0 },
      { claim: false, againInMs: null },
    ],
    [
      'suspects wait and nothing runs: now, alone',
      { suspectsSince: 99_999 },
      { claim: true, max: 10, starting: 10, suspects: 'alone' },
    ],
  ])('%s', (_, change, expected) => {
    expect(plan(change)).toEqual(expected)
  })

  const anyHand = fc.record({
    concurrency: fc.integer({ min: 1, max: 2_000 }),
    running: fc.nat(2_000),
    held: fc.nat(600),
    averageMs: fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined }),
    averageBytes: fc.nat(2_000_000),
    fullForMs: fc.nat(1_000),
    batchesAhead: fc.constantFrom(1, 2),
    alone: fc.boolean(),
    suspectsSince: fc.option(fc.nat(200_000)),
    now: fc.constant(200_000),
    unwritten: fc.boolean(),
  })

  test('never begins more than there are free slots', () => {
    fc.assert(
      fc.property(anyHand, (hand) => {
        const made = planClaim(hand)
        if (made.claim)
          expect(made.starting + hand.running + hand.held).toBeLessThanOrEqual(
            Math.max(hand.concurrency, hand.running + hand.held),
          )
      }),
    )
  })

  test('never claims nothing, and never more than a batch unless that many slots are free', () => {
    fc.assert(
      fc.property(anyHand, (hand) => {
        const made = planClaim(hand)
        if (!made.claim) return
        expect(made.max).toBeGreaterThan(0)
        if (made.suspects !== 'beside') expect(made.max).toBeLessThanOrEqual(BATCH_MAX)
        else expect(made.max).toBeLessThanOrEqual(hand.concurrency)
      }),
    )
  })

  test('takes a suspect alone only when nothing else is in hand', () => {
    fc.assert(
      fc.property(anyHand, (hand) => {
        const made = planClaim(hand)
        if (made.claim && made.suspects === 'alone') expect(hand.running + hand.held).toBe(0)
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
