import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { WorkerBeat } from '../store/workers.js'
import type { Observation } from './observe-beats.js'
import { nextLookMs, NOTHING_SEEN, observeBeats } from './observe-beats.js'

const LEASE = 15_000

interface Look {
  /** By the observer's monotonic clock. */
  readonly at: number
  /** Its own beat; undefined when its row is not there. */
  readonly me: number | undefined
  readonly others: { readonly [id: string]: number | null }
}

/** Looks one after the other; who was dead at each. */
function deadAt(looks: readonly Look[], who: { readonly self: string | undefined } = { self: 'me' }): string[][] {
  let seen: Observation = NOTHING_SEEN
  return looks.map(({ at, me, others }) => {
    const beats: WorkerBeat[] = Object.entries(others).map(([id, beat]) => ({ id, beat }))
    if (me !== undefined) beats.push({ id: 'me', beat: me })
    const { observation, dead } = observeBeats(seen, beats, who.self, at, LEASE)
    seen = observation
    return dead.map(({ id }) => id)
  })
}

/** One look a second, from a start, with a beat of our own at each. */
const seconds = (count: number, other: (second: number) => number | null, start = 0): Look[] =>
  Array.from({ length: count }, (_, i) => ({ at: start + i * 1_000, me: i, others: { other: other(i) } }))

const lastDead = (looks: readonly Look[]): string[] => deadAt(looks).at(-1) as string[]

describe('a worker with a lease of its own', () => {
  const lookedAt = (leaseMs: number, count: number): string[][] => {
    let seen: Observation = NOTHING_SEEN
    return Array.from({ length: count }, (_, i) => {
      const beats: WorkerBeat[] = [
        { id: 'me', beat: i, leaseMs: LEASE },
        { id: 'other', beat: 7, leaseMs },
      ]
      const { observation, dead } = observeBeats(seen, beats, 'me', i * 1_000, LEASE)
      seen = observation
      return dead.map(({ id }) => id)
    })
  }
  const firstDead = (looks: readonly string[][]): number => looks.findIndex((ids) => ids.length > 0)

  test('that is longer than the observer’s is dead when that is over, and not before', () => {
    expect(firstDead(lookedAt(2 * LEASE, 40))).toBe(30)
  })

  test('that is shorter is dead after the observer’s: the observer’s own beats prove no shorter silence', () => {
    expect(firstDead(lookedAt(LEASE / 5, 40))).toBe(15)
  })

  test('is looked at when that is over', () => {
    const watches = new Map([['other', { beat: 7, since: 0, notBefore: 0, leaseMs: 2 * LEASE }]])
    expect(nextLookMs({ watches, at: 2 * LEASE - 10 }, 'me', LEASE)).toBe(10)
    expect(nextLookMs({ watches, at: LEASE - 10 }, 'me', LEASE)).toBe(1_000)
  })
})

describe('a worker', () => {
  test('whose beat moves lives', () => {
    expect(deadAt(seconds(100, (i) => i)).flat()).toEqual([])
  })

  test('whose beat moves once in a lease lives', () => {
    expect(deadAt(seconds(200, (i) => Math.floor(i / 14))).flat()).toEqual([])
  })

  test('whose beat stopped is dead after one lease, and not a second before', () => {
    const dead = deadAt(seconds(20, () => 7))
    expect(dead.findIndex((ids) => ids.length > 0)).toBe(15)
    expect(dead[15]).toEqual(['other'])
  })

  test('whose beat stopped is dead one lease after it was last seen to move', () => {
    const dead = deadAt(seconds(40, (i) => Math.min(i, 10)))
    expect(dead.findIndex((ids) => ids.length > 0)).toBe(25)
  })

  test('whose beat began anew at a lower number moved', () => {
    expect(deadAt(seconds(30, (i) => (i < 14 ? 100 : i < 28 ? 0 : 1))).flat()).toEqual([])
  })

  test('that is gone and left its leases is dead at once', () => {
    expect(deadAt(seconds(2, () => null))[1]).toEqual(['other'])
  })

  test('is never the observer itself', () => {
    const stuck = seconds(40, (i) => i).map((look) => ({ ...look, me: 0 }))
    expect(deadAt(stuck).flat()).toEqual([])
  })
})

describe('an observer', () => {
  test('whose own beats do not go through calls nobody dead', () => {
    const looks = seconds(60, () => 7).map((look) => ({ ...look, me: 3 }))
    // Its own beat is new at the first look and is believed for three quarters of a lease: less than a death takes.
    expect(deadAt(looks).flat()).toEqual([])
  })

  test('whose own beats do not go through leaves even the gone alone', () => {
    const looks = seconds(60, () => null).map((look) => ({ ...look, me: 3 }))
    expect(deadAt(looks).slice(12).flat()).toEqual([])
  })

  test('whose beats come back watches the others for a lease before it calls one dead', () => {
    const looks = seconds(50, () => 7).map((look, i) => ({ ...look, me: i < 30 ? 3 : i }))
    const dead = deadAt(looks)
    expect(dead.findIndex((ids) => ids.length > 0)).toBe(45)
  })

  test('that is the first to be back after nobody could write takes no live one for dead', () => {
    // Both stood still for twenty seconds; the other's next beat comes four seconds after ours.
    const looks = seconds(60, (i) => (i < 24 ? 7 : i)).map((look, i) => ({ ...look, me: i < 20 ? 3 : i }))
    expect(deadAt(looks).flat()).toEqual([])
  })

  test('that has no row of its own calls nobody dead', () => {
    const looks = seconds(60, () => 7).map((look) => ({ ...look, me: undefined }))
    expect(deadAt(looks).flat()).toEqual([])
  })

  test('that is no worker itself calls nobody dead', () => {
    expect(
      deadAt(
        seconds(60, () => 7),
        { self: undefined },
      ).flat(),
    ).toEqual([])
  })

  test('that did not look for half a lease begins all its watches anew', () => {
    const before = seconds(10, () => 7)
    const after = seconds(14, () => 7, 9_000 + LEASE / 2 + 1).map((look, i) => ({ ...look, me: 100 + i }))
    expect(deadAt([...before, ...after]).flat()).toEqual([])
    const longer = seconds(16, () => 7, 9_000 + LEASE / 2 + 1).map((look, i) => ({ ...look, me: 100 + i }))
    expect(lastDead([...before, ...longer])).toEqual(['other'])
  })

  test('that slept for a year wakes up and calls nobody dead', () => {
    const looks = [...seconds(14, () => 7), { at: 31_536_000_000, me: 20, others: { other: 7 } }]
    expect(deadAt(looks).flat()).toEqual([])
  })

  test('judges by its own monotonic clock, wherever that starts', () => {
    for (const start of [-1e12, 0, 5, 1e12])
      expect(deadAt(seconds(20, () => 7, start)).findIndex((ids) => ids.length > 0)).toBe(15)
  })

  test('forgets who is no longer there', () => {
    const seen = observeBeats(NOTHING_SEEN, [{ id: 'x', beat: 1 }], 'me', 0, LEASE).observation
    expect(observeBeats(seen, [], 'me', 1, LEASE).observation.watches.size).toBe(0)
  })
})

test('nobody whose beat was seen to move within a lease is ever called dead', () => {
  const steps = fc.array(fc.record({ wait: fc.integer({ min: 1, max: 20_000 }), other: fc.nat(3), mine: fc.nat(3) }), {
    maxLength: 80,
  })
  fc.assert(
    fc.property(steps, (given) => {
      let [at, other, me, movedAt, seen] = [0, 0, 0, 0, NOTHING_SEEN]
      for (const step of given) {
        at += step.wait
        if (step.other === 0) {
          other += 1
          movedAt = at
        }
        if (step.mine !== 0) me += 1
        const beats = [
          { id: 'me', beat: me },
          { id: 'other', beat: other },
        ]
        const judged = observeBeats(seen, beats, 'me', at, LEASE)
        seen = judged.observation
        if (judged.dead.length > 0) expect(at - movedAt).toBeGreaterThanOrEqual(LEASE)
      }
    }),
  )
})

describe('the next look', () => {
  const after = (at: number, since: { readonly [id: string]: number }): number => {
    const watches = new Map(
      Object.entries(since).map(([id, first]) => [id, { beat: 1, since: first, notBefore: first }]),
    )
    return nextLookMs({ watches, at }, 'me', LEASE)
  }

  test('comes after a second, or a tenth of a short lease', () => {
    expect(nextLookMs(NOTHING_SEEN, undefined, LEASE)).toBe(1_000)
    expect(nextLookMs(NOTHING_SEEN, undefined, 2_000)).toBe(200)
    expect(after(10_000, { me: 0, other: 9_000 })).toBe(1_000)
  })

  test('comes at the very moment at which somebody has been silent for a lease', () => {
    expect(after(14_600, { me: 14_600, one: 0, other: 14_000 })).toBe(400)
  })

  test('comes at the usual pace when the dead could not be freed, and whatever our own beat does', () => {
    expect(after(15_000, { me: 15_000, other: 0 })).toBe(1_000)
    expect(after(20_000, { me: 20_000, other: 0 })).toBe(1_000)
    expect(after(14_900, { me: 0 })).toBe(1_000)
  })
})
