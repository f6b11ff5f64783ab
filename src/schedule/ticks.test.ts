import { describe, expect, test } from 'vitest'
import type { ScheduleSpec } from './spec.js'
import { continued, dueTicks, jitterOf, nextAfter, timingOf } from './ticks.js'
import type { Timing } from './ticks.js'

const NOON = Date.UTC(2030, 0, 1, 12)
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

function timing(rule: ScheduleSpec['rule'], change: Partial<ScheduleSpec> = {}): Timing {
  const spec = { rule, timezone: 'UTC', fromAt: null, untilAt: null, ...change } as ScheduleSpec
  return timingOf(spec, NOON)
}

describe('the next tick', () => {
  test('is strictly after the instant, from the creation on, and counts from `from`', () => {
    expect(nextAfter(timing({ every: HOUR }), NOON)).toBe(NOON + HOUR)
    expect(nextAfter(timing({ every: HOUR }, { fromAt: NOON + 5 }), NOON)).toBe(NOON + 5)
    expect(nextAfter(timing('0 13 * * *'), NOON + HOUR)).toBe(NOON + HOUR + DAY)
  })

  test('does not exist after until, and may be at until', () => {
    const bounded = timing({ every: HOUR }, { untilAt: NOON + HOUR })
    expect([nextAfter(bounded, NOON), nextAfter(bounded, NOON + HOUR)]).toEqual([NOON + HOUR, null])
  })

  test('of a rule that cannot be read here is an error that names it', () => {
    expect(() => timing('0 9 * * *', { timezone: 'Mars/Base' })).toThrow(/timezone/)
  })
})

test('a schedule that had ticks and then got a later from waits for it', () => {
  const spec = { rule: { every: MINUTE }, timezone: 'UTC', fromAt: NOON + DAY, untilAt: null } as ScheduleSpec
  expect(continued(spec, { createdAt: NOON - DAY, lastAt: NOON - MINUTE }, NOON)).toBe(spec)
  // It has started, and then the clock was set back.
  // By the old count a tick is now: the new count begins 1 ms earlier, so that no tick is in the ledger already.
  expect(continued(spec, { createdAt: NOON - DAY, lastAt: NOON + DAY }, NOON).anchorAt).toBe(NOON - 1)
  expect(continued(spec, { createdAt: NOON - DAY, lastAt: NOON + DAY }, NOON + 1).anchorAt).toBe(NOON + 1)
})

describe('ticks that have come due', () => {
  test('are all of them when they are few', () => {
    const due = dueTicks(timing({ every: HOUR }), NOON + HOUR, NOON + 3 * HOUR, 10)
    expect(due).toEqual({ newest: [1, 2, 3].map((h) => NOON + h * HOUR), older: null })
  })

  test('are the newest, with a summary of the rest', () => {
    const due = dueTicks(timing({ every: HOUR }), NOON + HOUR, NOON + 5 * HOUR, 2)
    expect(due.newest).toEqual([NOON + 4 * HOUR, NOON + 5 * HOUR])
    expect(due.older).toEqual({ count: 3, isMore: false, first: NOON + HOUR, last: NOON + 3 * HOUR })
  })

  test.each([
    ['of a second, after a year', { every: 1_000 }, 365 * DAY],
    ['of a second by cron, after a month', '* * * * * *', 30 * DAY],
    // The next cluster lies far behind the one that is searched.
    ['of a second, in the mornings alone', '* * 0-11 * * *', 30 * DAY + 11 * HOUR],
  ] as const)('are the newest %s, without walking all the way', (_, rule, ms) => {
    const each = timing(rule)
    const now = NOON + ms
    const { newest, older } = dueTicks(each, nextAfter(each, NOON) as number, now, 1_000)
    expect(newest).toHaveLength(1_000)
    expect(nextAfter(each, newest.at(-1) as number)).toBeGreaterThan(now)
    for (let i = 1; i < newest.length; i += 1) expect(nextAfter(each, newest[i - 1] as number)).toBe(newest[i])
    expect(older?.isMore).toBe(true)
    expect(nextAfter(each, older?.last ?? 0)).toBe(newest[0])
  })
})

describe('jitter', () => {
  test('is the same for the same tick, within its bounds, and spread', () => {
    const drawn = Array.from({ length: 1_000 }, (_, i) => jitterOf('nightly', NOON + i * MINUTE, 999))
    expect(drawn).toEqual(Array.from({ length: 1_000 }, (_, i) => jitterOf('nightly', NOON + i * MINUTE, 999)))
    expect([Math.min(...drawn) >= 0, Math.max(...drawn) <= 999]).toEqual([true, true])
    const tenths = Array.from({ length: 10 }, (_, t) => drawn.filter((ms) => Math.floor(ms / 100) === t).length)
    for (const count of tenths) expect(count).toBeGreaterThan(60)
    expect(jitterOf('nightly', NOON, 0)).toBe(0)
    expect(jitterOf('weekly', NOON, 1e9)).not.toBe(jitterOf('nightly', NOON, 1e9))
  })
})
