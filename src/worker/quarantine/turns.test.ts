import { describe, expect, test } from 'vitest'
import { afterHoldingBack, firstTurns, nextTurn } from './turns.js'
import type { Turn, Turns } from './turns.js'

const MINUTE = 60_000
const FIRST_DRAIN_MS = MINUTE / 32

/** A worker's turns, moved by hand. */
function worker(streak: number | null = 2): {
  at: (now: number) => Turn
  hold: (since: number, now: number) => void
  wait: (streak: number | null) => void
} {
  let turns: Turns = firstTurns(0, MINUTE)
  let waiting = streak
  return {
    at: (now) => {
      const [next, turn] = nextTurn(turns, waiting, now, MINUTE)
      turns = next
      return turn
    },
    hold: (since, now) => (turns = afterHoldingBack(turns, turns.drainSince ?? since, now)),
    wait: (next) => (waiting = next),
  }
}

describe('whose turn it is', () => {
  test('while no suspect waits: that of other work', () => {
    expect(worker(null).at(5)).toEqual({ of: 'others', leftMs: null })
  })

  test('a suspect that was in no quarantine before is waited for at once', () => {
    expect(worker(2).at(10)).toEqual({ of: 'drain', leftMs: FIRST_DRAIN_MS })
  })

  test('a worker that has just started gives other work the time of the last quarantine first', () => {
    const { at } = worker(4)
    expect(at(0)).toEqual({ of: 'others', leftMs: 2 * MINUTE })
    expect(at(2 * MINUTE - 1)).toEqual({ of: 'others', leftMs: 1 })
    expect(at(2 * MINUTE)).toMatchObject({ of: 'drain' })
  })

  test('after a quarantine other work gets as long, with the time of the drain before it', () => {
    const { at, hold } = worker()
    at(0)
    hold(500, 3_500)
    expect(at(3_500)).toEqual({ of: 'others', leftMs: 3_500 })
    expect(at(6_999)).toEqual({ of: 'others', leftMs: 1 })
    expect(at(7_000)).toMatchObject({ of: 'drain' })
  })

  test('a drain that fails gives other work as long, and the next lasts twice as long, up to a bound', () => {
    const { at } = worker()
    let now = 0
    const drains: number[] = []
    for (let i = 0; i < 15; i += 1) {
      const drain = at(now)
      expect(drain.of).toBe('drain')
      drains.push(drain.leftMs as number)
      now += drain.leftMs as number
      expect(at(now)).toEqual({ of: 'others', leftMs: drain.leftMs })
      now += drain.leftMs as number
    }
    expect(drains.slice(0, 4)).toEqual([1, 2, 4, 8].map((times) => times * FIRST_DRAIN_MS))
    expect(Math.max(...drains)).toBe(32 * MINUTE)
  })

  test('a drain ends when the suspects it was for are gone', () => {
    const { at, wait } = worker()
    at(0)
    wait(null)
    expect(at(1)).toEqual({ of: 'others', leftMs: null })
    wait(2)
    expect(at(2)).toEqual({ of: 'drain', leftMs: FIRST_DRAIN_MS })
  })
})
