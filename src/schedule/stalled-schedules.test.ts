import { describe, expect, test } from 'vitest'
import type { ScheduleRow } from '../store/schedules.js'
import { writeSpec } from './spec.js'
import { StalledSchedules } from './stalled-schedules.js'

const NOON = Date.UTC(2030, 0, 1, 12)
const [MINUTE, DAY] = [60_000, 86_400_000]

const job = {
  name: 'report',
  queue: 'default',
  priority: 0,
  key: null,
  onDuplicate: 'return',
  payload: { text: '1' },
  options: null,
  expiresMs: null,
} as const

function row(change: Partial<ScheduleRow> & { readonly rule?: string } = {}): ScheduleRow {
  const { rule, ...given } = change
  const how = { timezone: 'UTC', missed: 'once', overlap: 'allow', jitterMs: 0, fromAt: null, untilAt: null } as const
  const spec = writeSpec({ job, rule: rule ?? { every: MINUTE }, ...how })
  const ahead = { createdAt: NOON - DAY, pausedAt: null, lastAt: NOON + DAY, nextAt: NOON + DAY + MINUTE }
  return { id: 'r', revision: 1, spec, open: [], ...ahead, ...given }
}

/** The stalled schedules at the first check and after one and two minutes; `rows` returns what is stored then. */
function stalledAt(rows: (minute: number) => ScheduleRow): boolean[] {
  const stalled = new StalledSchedules()
  return [0, 1, 2].map((m) => stalled.find([rows(m)], NOON + m * MINUTE, 500 + m * MINUTE).length > 0)
}

describe('a cron', () => {
  const minutely = (change: Partial<ScheduleRow> = {}): ScheduleRow => row({ rule: '* * * * *', ...change })

  test('is stalled when its rule has a tick before the next one and it was not fired for an interval', () => {
    expect(stalledAt(() => minutely())).toEqual([false, false, true])
  })

  test('that fires once a day is stalled after an hour', () => {
    const stalled = new StalledSchedules()
    const daily = row({ rule: '0 0 * * *', lastAt: NOON + 300 * DAY, nextAt: NOON + 300.5 * DAY })
    const found = [0, 30, 60, 61].map((m) => stalled.find([daily], NOON + m * MINUTE, m * MINUTE).length > 0)
    expect(found).toEqual([false, false, false, true])
  })

  test.each<[string, (minute: number) => ScheduleRow]>([
    ['a process whose clock is ahead fires it', (minute) => minutely({ revision: minute })],
    ['its next tick is that of its rule', (minute) => minutely({ nextAt: NOON + (minute + 1) * MINUTE })],
    ['its last tick is past', () => minutely({ lastAt: NOON - 1 })],
  ])('is not stalled when %s', (_, rows) => {
    expect(stalledAt(rows)).toEqual([false, false, false])
  })
})

describe('an "every" schedule', () => {
  test('is stalled when its next tick is far ahead and it was not fired for an interval', () => {
    expect(stalledAt(() => row())).toEqual([false, false, true])
  })

  test('is stalled when it was created by a clock that was ahead, and never fired', () => {
    expect(stalledAt(() => row({ createdAt: NOON + DAY, lastAt: null }))).toEqual([false, false, true])
  })

  test.each<[string, (minute: number) => ScheduleRow]>([
    ['a process whose clock is ahead fires it', (minute) => row({ revision: minute })],
    ['its next tick is within an interval', (minute) => row({ nextAt: NOON + minute * MINUTE + 1 })],
    ['it is due', () => row({ nextAt: NOON })],
    ['it is paused', () => row({ pausedAt: NOON, nextAt: null })],
    ['it is paused and keeps its next tick', () => row({ pausedAt: NOON })],
    ['it has no further tick', () => row({ nextAt: null })],
    ['its next tick is exactly an interval away', (minute) => row({ nextAt: NOON + (minute + 1) * MINUTE })],
    ['its last tick is now', (minute) => row({ lastAt: NOON + minute * MINUTE })],
    ['its last tick is past: it may wait for its "from"', () => row({ lastAt: NOON - 1 })],
    ['it cannot be read here', () => ({ ...row(), spec: '{' })],
  ])('is not stalled when %s', (_, rows) => {
    expect(stalledAt(rows)).toEqual([false, false, false])
  })
})
