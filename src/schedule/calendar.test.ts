import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nextTick, parseRule } from './calendar.js'
import type { Rule } from './calendar.js'

function rule(given: unknown, timezone?: string): Rule {
  const parsed = parseRule(given, timezone)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  return parsed.rule
}

/** The next ticks after an instant, to the minute. */
function ticks(given: unknown, timezone: string, after: string, count: number): string[] {
  const found: string[] = []
  for (let at: number | undefined = Date.parse(after); found.length < count;) {
    at = nextTick(rule(given, timezone), at, 0)
    if (at === undefined) break
    found.push(new Date(at).toISOString().slice(0, 16))
  }
  return found
}

// The clocks of New York go from 2:00 to 3:00 at 07:00Z on 12 March 2023, and from 2:00 back to 1:00 at 06:00Z on 5 November.
const IN_GAP = '2023-03-12T05:00Z'
const IN_FOLD = '2023-11-05T04:30Z'

test.each([
  ['a named time in a gap fires at the first instant after it', '30 2 * * *', IN_GAP, ['03-12T07:00', '03-13T06:30']],
  ['so does one of a list', '30 2,14 * * *', IN_GAP, ['03-12T07:00', '03-12T18:30', '03-13T06:30']],
  ['and all of one gap fire together', '*/15 2 * * *', IN_GAP, ['03-12T07:00', '03-13T06:00', '03-13T06:15']],
  ['together with what is due at that instant', '0 2,3 * * *', IN_GAP, ['03-12T07:00', '03-13T06:00']],
  [
    'hours that go round leave out what a gap leaves out',
    '30 * * * *',
    IN_GAP,
    ['03-12T05:30', '03-12T06:30', '03-12T07:30'],
  ],
  ['steps too', '0 */2 * * *', IN_GAP, ['03-12T08:00', '03-12T10:00']],
  ['a named time in a fold fires once, the first time', '30 1 * * *', IN_FOLD, ['11-05T05:30', '11-06T06:30']],
  ['so does each of a list', '0,30 1 * * *', IN_FOLD, ['11-05T05:00', '11-05T05:30', '11-06T06:00']],
  ['hours that go round fire in both passes', '30 * * * *', IN_FOLD, ['11-05T05:30', '11-05T06:30', '11-05T07:30']],
])('%s: %s', (_, cron, after, expected) => {
  expect(ticks(cron, 'America/New_York', after, expected.length)).toEqual(expected.map((each) => `2023-${each}`))
})

test.each([
  [
    'a gap that ends at midnight',
    '45 23 * * *',
    'Asia/Pyongyang',
    '2018-05-04T00:00Z',
    ['2018-05-04T15:00', '2018-05-05T14:45'],
  ],
  [
    'a gap over the end of the day',
    '30 23 * * *',
    'America/Nuuk',
    '2024-03-30T02:00Z',
    ['2024-03-31T01:00', '2024-04-01T00:30'],
  ],
  [
    'a day that was left out',
    '0 9 * * *',
    'Pacific/Apia',
    '2011-12-29T12:00Z',
    ['2011-12-29T19:00', '2011-12-30T10:00', '2011-12-30T19:00'],
  ],
  [
    'a midnight that is not there',
    '0 0,12 * * *',
    'America/Santiago',
    '2023-09-02T17:00Z',
    ['2023-09-03T04:00', '2023-09-03T15:00'],
  ],
  [
    'a gap of half an hour',
    '15 2 * * *',
    'Australia/Lord_Howe',
    '2023-09-30T00:00Z',
    ['2023-09-30T15:30', '2023-10-01T15:15'],
  ],
  [
    'a fold of two hours',
    '30 2 * * *',
    'Antarctica/Troll',
    '2023-10-28T12:00Z',
    ['2023-10-29T00:30', '2023-10-30T02:30'],
  ],
  [
    'a fold of two hours, hours that go round',
    '0 */2 * * *',
    'Antarctica/Troll',
    '2023-10-28T22:00Z',
    ['2023-10-29T00:00', '2023-10-29T02:00', '2023-10-29T04:00'],
  ],
])('%s: %s in %s', (_, cron, zone, after, expected) => {
  expect(ticks(cron, zone, after, expected.length)).toEqual(expected)
})

test('every counts from its anchor, which is its first tick', () => {
  const every = rule({ every: '90s' })
  expect(nextTick(every, 0, 1_000_500)).toBe(1_000_500)
  expect(nextTick(every, 1_000_499, 1_000_500)).toBe(1_000_500)
  expect(nextTick(every, 1_000_500, 1_000_500)).toBe(1_090_500)
  expect(nextTick(every, 1_090_499, 1_000_500)).toBe(1_090_500)
})

test('there is no tick in the year 3000, and none before 1970', () => {
  expect(nextTick(rule('* * * * *'), Date.UTC(2999, 11, 31, 23, 59), 0)).toBeUndefined()
  expect(nextTick(rule({ every: '1d' }), Date.UTC(2999, 11, 31), 0)).toBeUndefined()
  expect(nextTick(rule('0 0 * * *'), -8.64e15, 0)).toBe(0)
})

const problems = (given: unknown, timezone?: unknown): string[] => {
  const parsed = parseRule(given, timezone)
  return parsed.ok ? [] : parsed.problems.map(({ path, message }) => `${path} ${message}`)
}

test.each([
  ['0 25 * * *', undefined, 'rule "0 25 * * *": the 2nd field (hour) must be 0 to 23, got 25'],
  [undefined, undefined, 'rule must be a cron text such as "0 9 * * *" or { every: "15m" }, got undefined'],
  [900, undefined, 'rule must be a cron text such as "0 9 * * *" or { every: "15m" }, got 900'],
  [[], undefined, 'rule must be an object, got an Array'],
  [
    {},
    undefined,
    'rule.every must be a duration such as "5s", "1h30m", "PT5M" or a number of milliseconds, got undefined',
  ],
  [{ evry: '5m' }, undefined, 'rule.evry is not an option; did you mean "every"?'],
  [{ every: 0 }, undefined, 'rule.every must be 1 second or more, got 0'],
  [{ every: '999ms' }, undefined, 'rule.every must be 1 second or more, got "999ms"'],
  [{ every: '1y' }, undefined, expect.stringContaining('years have no fixed length')],
  [
    '@daily',
    'Europe/Olso',
    'options.timezone must be a time zone such as "Europe/Oslo" or "UTC", got "Europe/Olso"; did you mean "Europe/Oslo"?',
  ],
  [
    '@daily',
    'new york',
    'options.timezone must be a time zone such as "Europe/Oslo" or "UTC", got "new york"; did you mean "America/New_York"?',
  ],
  [
    '@daily',
    '+02:00',
    'options.timezone must be a time zone such as "Europe/Oslo" or "UTC", got "+02:00"; an offset is no zone: name a place, or for UTC+2 "Etc/GMT-2"',
  ],
  ['@daily', 2, 'options.timezone must be a time zone such as "Europe/Oslo" or "UTC", got 2'],
])('%j in %j is refused', (given, timezone, problem) => {
  expect(problems(given, timezone)).toEqual([problem])
})

test('an invalid rule and an invalid zone are reported together', () => {
  expect(problems('60 25 * * *', 'Nowhere')).toHaveLength(3)
})

const ZONES = [
  'UTC',
  'America/New_York',
  'Australia/Lord_Howe',
  'Antarctica/Troll',
  'Pacific/Apia',
  'Africa/Casablanca',
]
const CRONS = [
  '30 2 * * *',
  '*/20 1-3 * * *',
  '0 * * * *',
  '*/7 */5 * * *',
  '0 0 L * *',
  '*/25 30 0,2 * * SUN',
  '0 3 * * MON#1',
]
const cronRules = ZONES.flatMap((zone) => CRONS.map((cron) => rule(cron, zone)))
const anyRule = fc.oneof(
  fc.constantFrom(...cronRules),
  fc.integer({ min: 1000, max: 1e9 }).map((everyMs): Rule => ({ kind: 'every', everyMs })),
)
const instant = fc.integer({ min: Date.UTC(2005, 0, 1), max: Date.UTC(2035, 0, 1) })

test('ticks increase, and from any instant between two ticks the next one is the second', () => {
  fc.assert(
    fc.property(
      anyRule,
      instant,
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (each, after, share) => {
        const first = nextTick(each, after, 0) as number
        const second = nextTick(each, first, 0) as number
        expect(first).toBeGreaterThan(after)
        expect(second).toBeGreaterThan(first)
        expect(nextTick(each, after + Math.floor((first - after) * share), 0)).toBe(first)
        expect(nextTick(each, first + Math.floor((second - first) * share), 0)).toBe(second)
        expect(nextTick(each, first - 1, 0)).toBe(first)
      },
    ),
    { seed: 3, numRuns: 2000 },
  )
})

test('every never drifts: however late it is computed, its ticks are whole steps from the anchor', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1000, max: 3e11 }),
      instant,
      fc.array(fc.integer({ min: 0, max: 1e9 }), { minLength: 1, maxLength: 20 }),
      (everyMs, anchor, delays) => {
        let at = anchor
        for (const delay of delays) {
          const late = at + delay
          at = nextTick({ kind: 'every', everyMs }, late, anchor) as number
          expect((at - anchor) % everyMs).toBe(0)
          expect(at - late).toBeLessThanOrEqual(everyMs)
          expect(at).toBeGreaterThan(late)
        }
      },
    ),
    { seed: 4 },
  )
})
