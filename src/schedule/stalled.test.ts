import { describe, expect, test } from 'vitest'
import type { ScheduleRow } from '../store/schedules.js'
import { writeSpec } from './spec.js'
import { Stalled } from './stalled.js'

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

/** What is found at the first look and after one and two minutes, while `rows` gives what is stored then. */
function looks(rows: (minute: number) => ScheduleRow): boolean[] {
  const stalled = new Stalled()
  return [0, 1, 2].map((m) => stalled.of([rows(m)], NOON + m * MINUTE, 500 + m * MINUTE).length > 0)
}

describe('a cron', () => {
  const minutely = (change: Partial<ScheduleRow> = {}): ScheduleRow => row({ rule: '* * * * *', ...change })

  test('stands still when its rule has a tick before the next one and it was not fired for an interval', () => {
    expect(looks(() => minutely())).toEqual([false, false, true])
  })

  test('that fires once a day stands still after an hour', () => {
    const stalled = new Stalled()
    const daily = row({ rule: '0 0 * * *', lastAt: NOON + 300 * DAY, nextAt: NOON + 300.5 * DAY })
    const found = [0, 30, 60, 61].map((m) => stalled.of([daily], NOON + m * MINUTE, m * MINUTE).length > 0)
    expect(found).toEqual([false, false, false, true])
  })

  test.each<[string, (minute: number) => ScheduleRow]>([
    ['a process whose clock is ahead fires it', (minute) => minutely({ revision: minute })],
    ['its next tick is that of its rule', (minute) => minutely({ nextAt: NOON + (minute + 1) * MINUTE })],
    ['its last tick is past', () => minutely({ lastAt: NOON - 1 })],
  ])('does not stand still when %s', (_, rows) => {
    expect(looks(rows)).toEqual([false, false, false])
  })
})

describe('an "every" schedule', () => {
  test('stands still when its next tick is far ahead and it was not fired for an interval', () => {
    expect(looks(() => row())).toEqual([false, false, true])
  })

  test('stands still when it was made by a clock that was ahead, and never fired', () => {
    expect(looks(() => row({ createdAt: NOON + DAY, lastAt: null }))).toEqual([false, false, true])
  })

  test.each<[string, (minute: number) => ScheduleRow]>([
    ['a process whose clock is ahead fires it', (minute) => row({ revision: minute })],
    ['its next tick is within an interval', (minute) => row({ nextAt: NOON + minute * MINUTE + 1 })],
    ['it is due', () => row({ nextAt: NOON })],
    ['it is paused', () => row({ pausedAt: NOON, nextAt: null })],
    ['its last tick is past: it may wait for its "from"', () => row({ lastAt: NOON - 1 })],
    ['it cannot be read here', () => ({ ...row(), spec: '{' })],
  ])('does not stand still when %s', (_, rows) => {
    expect(looks(rows)).toEqual([false, false, false])
  })
})
