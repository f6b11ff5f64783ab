import { expect, test } from 'vitest'
import { admit, mayEverHold } from './limits.js'

/** When a claim under this full rate is repeated, in ms from now, if the first place becomes free in `freesInMs`. */
function repeatedIn(rate: { readonly max: number; readonly perMs: number }, freesInMs: number): number {
  const candidate = { ref: 1, turn: 1, sort: 1, rateTurn: null, weight: null }
  const job = { rate: { ...rate, isKeyed: false } }
  const lane = { lane: 1, queue: 'default', name: 'mail', job, ofQueue: undefined, candidates: [candidate] }
  const window = { used: rate.max, freesAt: 1_000 + freesInMs, lastsUntil: 9_000 }
  const inUse = { slots: new Map<string, number>(), rates: new Map([['job mail', window]]) }
  const { chosen, opensAt } = admit([lane], inUse, { starting: 5, max: 5, rooms: new Map() }, 1_000)
  expect(chosen).toEqual([])
  return opensAt - 1_000
}

test('under a full rate the claim is repeated when a place becomes free, and under a high one not for every place', () => {
  expect(repeatedIn({ max: 10, perMs: 1_000 }, 3)).toBe(3)
  expect(repeatedIn({ max: 1_000, perMs: 1_000 }, 3)).toBe(20)
  expect(repeatedIn({ max: 1_000, perMs: 1_000 }, 300)).toBe(300)
  expect(repeatedIn({ max: 1_000, perMs: 100 }, 1)).toBe(2)
  expect(repeatedIn({ max: 1_000, perMs: 3_600_000 }, 5)).toBe(20)
})

test('jobs are held in advance under wide limits in flight, and never under a rate', () => {
  const rate = { max: 1_000, perMs: 1_000, isKeyed: false }
  expect(mayEverHold(undefined, undefined)).toBe(true)
  expect(mayEverHold({ rate }, undefined)).toBe(false)
  expect(mayEverHold(undefined, { rate })).toBe(false)
  const under = (job: number, queue: number): boolean =>
    mayEverHold({ limit: { max: job, isKeyed: false } }, { limit: { max: queue } } as never)
  expect([under(50, 50), under(49, 1_000), under(1_000, 49)]).toEqual([true, false, false])
})
