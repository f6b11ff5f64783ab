import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { WorkerBeat } from '../store/workers.js'
import type { Observation } from './observe-beats.js'
import { nextObservationMs, NOTHING_SEEN, observeBeats } from './observe-beats.js'

const LEASE = 15_000

interface Observed {
  /** The time of the observer's monotonic clock. */
  readonly at: number
  /** The observer's own beat; undefined when its row does not exist. */
  readonly me: number | undefined
  readonly others: { readonly [id: string]: number | null }
}

/** Runs the observations one after the other; returns the workers judged dead at each. */
function deadAt(
  observations: readonly Observed[],
  who: { readonly self: string | undefined } = { self: 'me' },
): string[][] {
  let seen: Observation = NOTHING_SEEN
  return observations.map(({ at, me, others }) => {
    const beats: WorkerBeat[] = Object.entries(others).map(([id, beat]) => ({ id, beat }))
    if (me !== undefined) beats.push({ id: 'me', beat: me })
    const { observation, dead } = observeBeats(seen, beats, who.self, at, LEASE)
    seen = observation
    return dead.map(({ id }) => id)
  })
}

/** One observation a second, from `start`, with a beat of the observer at each. */
const seconds = (count: number, other: (second: number) => number | null, start = 0): Observed[] =>
  Array.from({ length: count }, (_, i) => ({ at: start + i * 1_000, me: i, others: { other: other(i) } }))

const lastDead = (observations: readonly Observed[]): string[] => deadAt(observations).at(-1) as string[]

describe('a worker with a lease of its own', () => {
  const observedWith = (leaseMs: number, count: number): string[][] => {
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
  const firstDead = (dead: readonly string[][]): number => dead.findIndex((ids) => ids.length > 0)

  test('that is longer than the observer’s is dead when that is over, and not before', () => {
    expect(firstDead(observedWith(2 * LEASE, 40))).toBe(30)
  })

  test('that is shorter is dead after the observer’s: the observer’s own beats prove no shorter silence', () => {
    expect(firstDead(observedWith(LEASE / 5, 40))).toBe(15)
  })

  test('is observed when that is over', () => {
    const watches = new Map([['other', { beat: 7, since: 0, notBefore: 0, leaseMs: 2 * LEASE }]])
    expect(nextObservationMs({ watches, at: 2 * LEASE - 10 }, 'me', LEASE)).toBe(10)
    expect(nextObservationMs({ watches, at: LEASE - 10 }, 'me', LEASE)).toBe(1_000)
  })
})

describe('a worker', () => {
  test('whose beat moves is alive', () => {
    expect(deadAt(seconds(100, (i) => i)).flat()).toEqual([])
  })

  test('whose beat moves once in a lease is alive', () => {
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

  test('whose beat restarts at a lower number is alive', () => {
    expect(deadAt(seconds(30, (i) => (i < 14 ? 100 : i < 28 ? 0 : 1))).flat()).toEqual([])
  })

  test('that has ended and left its leases is dead at once', () => {
    expect(deadAt(seconds(2, () => null))[1]).toEqual(['other'])
  })

  test('is never the observer itself', () => {
    const stuck = seconds(40, (i) => i).map((each) => ({ ...each, me: 0 }))
    expect(deadAt(stuck).flat()).toEqual([])
  })
})

describe('an observer', () => {
  test('whose own beats are not written judges no worker dead', () => {
    const observations = seconds(60, () => 7).map((each) => ({ ...each, me: 3 }))
    // Its own beat is new at the first observation and trusted for three quarters of a lease: less than a death takes.
    expect(deadAt(observations).flat()).toEqual([])
  })

  test('whose own beats are not written does not free ended workers either', () => {
    const observations = seconds(60, () => null).map((each) => ({ ...each, me: 3 }))
    expect(deadAt(observations).slice(12).flat()).toEqual([])
  })

  test('whose beats are written again observes the others for a lease before it judges one dead', () => {
    const observations = seconds(50, () => 7).map((each, i) => ({ ...each, me: i < 30 ? 3 : i }))
    const dead = deadAt(observations)
    expect(dead.findIndex((ids) => ids.length > 0)).toBe(45)
  })

  test('that writes first after an outage of the store judges no live worker dead', () => {
    // Neither could write for twenty seconds; the other's next beat comes four seconds after ours.
    const observations = seconds(60, (i) => (i < 24 ? 7 : i)).map((each, i) => ({ ...each, me: i < 20 ? 3 : i }))
    expect(deadAt(observations).flat()).toEqual([])
  })

  test('that has no row of its own judges no worker dead', () => {
    const observations = seconds(60, () => 7).map((each) => ({ ...each, me: undefined }))
    expect(deadAt(observations).flat()).toEqual([])
  })

  test('that is no worker itself judges no worker dead', () => {
    expect(
      deadAt(
        seconds(60, () => 7),
        { self: undefined },
      ).flat(),
    ).toEqual([])
  })

  test('that did not observe for half a lease starts all its watches again', () => {
    const before = seconds(10, () => 7)
    const after = seconds(14, () => 7, 9_000 + LEASE / 2 + 1).map((each, i) => ({ ...each, me: 100 + i }))
    expect(deadAt([...before, ...after]).flat()).toEqual([])
    const longer = seconds(16, () => 7, 9_000 + LEASE / 2 + 1).map((each, i) => ({ ...each, me: 100 + i }))
    expect(lastDead([...before, ...longer])).toEqual(['other'])
  })

  test('that was suspended for a year judges no worker dead when it resumes', () => {
    const observations = [...seconds(14, () => 7), { at: 31_536_000_000, me: 20, others: { other: 7 } }]
    expect(deadAt(observations).flat()).toEqual([])
  })

  test('judges by its own monotonic clock, whatever its start', () => {
    for (const start of [-1e12, 0, 5, 1e12])
      expect(deadAt(seconds(20, () => 7, start)).findIndex((ids) => ids.length > 0)).toBe(15)
  })

  test('drops the watches of workers that no longer exist', () => {
    const seen = observeBeats(NOTHING_SEEN, [{ id: 'x', beat: 1 }], 'me', 0, LEASE).observation
    expect(observeBeats(seen, [], 'me', 1, LEASE).observation.watches.size).toBe(0)
  })
})

test('no worker whose beat was seen to move within a lease is ever judged dead', () => {
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

describe('the next observation', () => {
  const after = (at: number, since: { readonly [id: string]: number }): number => {
    const watches = new Map(
      Object.entries(since).map(([id, first]) => [id, { beat: 1, since: first, notBefore: first }]),
    )
    return nextObservationMs({ watches, at }, 'me', LEASE)
  }

  test('comes after a second, or a tenth of a short lease', () => {
    expect(nextObservationMs(NOTHING_SEEN, undefined, LEASE)).toBe(1_000)
    expect(nextObservationMs(NOTHING_SEEN, undefined, 2_000)).toBe(200)
    expect(after(10_000, { me: 0, other: 9_000 })).toBe(1_000)
  })

  test('comes at the moment at which a worker has been silent for a lease', () => {
    expect(after(14_600, { me: 14_600, one: 0, other: 14_000 })).toBe(400)
  })

  test('comes at the usual interval when the dead could not be rescued, whatever the own beat does', () => {
    expect(after(15_000, { me: 15_000, other: 0 })).toBe(1_000)
    expect(after(20_000, { me: 20_000, other: 0 })).toBe(1_000)
    expect(after(14_900, { me: 0 })).toBe(1_000)
  })
})
