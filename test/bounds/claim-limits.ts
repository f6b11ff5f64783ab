import { expect } from 'vitest'
import { job } from '../../src/index.js'
import { limitsOf, turnOf } from '../../src/job/definition/limit-options.js'
import { admit } from '../../src/job/limits/limits.js'
import { afterFailures, OUTAGE_AFTER } from '../../src/job/limits/outage.js'
import { refusedAbove, text } from './bound.js'
import type { Bound } from './bound.js'

const REFUSED = 'E_INVALID_OPTIONS'
const run = (): undefined => undefined

/** How many of a hundred jobs a claim takes under a limit with so many free slots, of which none may start at once. */
function heldWith(free: number): number {
  const candidates = Array.from({ length: 100 }, (_, ref) => ({
    ref,
    turn: 1,
    sort: ref,
    rateTurn: null,
    weight: null,
  }))
  const limits = limitsOf({ max: free }, undefined)
  const lane = { lane: 1, queue: 'q', name: 'n', job: limits, ofQueue: undefined, candidates }
  const room = { starting: 0, max: 100, rooms: new Map() }
  return admit([lane], { slots: new Map(), rates: new Map() }, room, 0).chosen.length
}

/** Limits of limits, rates and outages. */
export const claimLimits: readonly Bound[] = [
  {
    of: 'src/job/definition/limit-options.ts#LIMIT_MAX',
    at: 1_000_000,
    on: 'none',
    holds: async (size, bench) => {
      const refusal = { code: REFUSED, text: /must be a whole number from 1 to 1000000, got 1000001/ }
      await refusedAbove(size, 1_000_000, () => job('n', { run, limit: { max: size } }), refusal)
      await refusedAbove(size, 1_000_000, () => job('n', { run, rate: { max: size, per: '1s' } }), refusal)
      await refusedAbove(size, 1_000_000, () => bench.another({ queues: { q: { limit: { max: size } } } }), refusal)
    },
  },
  {
    of: 'src/job/definition/limit-options.ts#RATE_PER_MIN_MS',
    at: 10,
    on: 'none',
    holds: (size) =>
      refusedAbove(-size, -10, () => job('n', { run, rate: { max: 1, per: size } }), {
        code: REFUSED,
        text: /rate\.per must be 10 ms or more, got 9/,
      }),
  },
  {
    of: 'src/job/definition/limit-options.ts#RATE_PER_MAX_MS',
    at: 366 * 24 * 60 * 60 * 1000,
    on: 'none',
    holds: (size) =>
      refusedAbove(size, 366 * 86_400_000, () => job('n', { run, rate: { max: 1, per: size } }), {
        code: REFUSED,
        text: /rate\.per must be at most 366 days/,
      }),
  },
  {
    of: 'src/job/definition/limit-options.ts#LIMIT_KEY_MAX',
    at: 1_000,
    on: 'none',
    holds: (size) => {
      const answer = turnOf({ max: 1, key: (() => text(size)) as never }, undefined, {}, 'payload')
      expect(answer.ok).toBe(size <= 1_000)
    },
  },
  {
    of: 'src/job/limits/limits.ts#HOLD_FROM_FREE',
    at: 50,
    on: 'none',
    holds: (size) => expect(heldWith(size)).toBe(size < 50 ? 0 : Math.ceil(size / 2)),
  },
  {
    of: 'src/job/limits/outage.ts#OUTAGE_AFTER',
    at: 5,
    on: 'none',
    holds: (size) =>
      expect(afterFailures(undefined, size, OUTAGE_AFTER, 1).state).toBe(size < 5 ? 'counting' : 'closed'),
  },
  {
    of: 'src/mill/options.ts#OUTAGE_AFTER_MAX',
    at: 1_000_000,
    on: 'none',
    holds: (size, bench) =>
      refusedAbove(size, 1_000_000, () => bench.another({ outage: { after: size } }), {
        code: REFUSED,
        text: /outage\.after must be a whole number from 1 to 1000000, got 1000001/,
      }),
  },
]
