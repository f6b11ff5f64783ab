import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Duration, formatDuration, parseDuration, parseInstant, parseWhen, type When } from './duration.js'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const WEEK = 7 * DAY
const NOW = Date.UTC(2026, 10, 1)

function problemWith(
  value: unknown,
  parse: (value: unknown) => { ok: boolean; problem?: string } = parseDuration,
): string {
  const parsed = parse(value)
  expect(parsed.ok).toBe(false)
  return parsed.problem ?? ''
}

const hostile = new Proxy({}, { get: trap, has: trap, ownKeys: trap, getPrototypeOf: trap })
function trap(): never {
  throw new Error('trap')
}

describe('a duration', () => {
  it.each<[Duration, number]>([
    [0, 0],
    [-0, 0],
    [1500, 1500],
    [0.4, 0],
    ['500ms', 500],
    ['5s', 5 * SECOND],
    ['1h30m', 90 * MINUTE],
    ['30m1h', 90 * MINUTE],
    ['1.5h', 90 * MINUTE],
    ['1.1s', 1100],
    ['0s', 0],
    ['2d', 2 * DAY],
    ['1w', WEEK],
    ['1w1d1h', WEEK + DAY + HOUR],
    ['PT5M', 5 * MINUTE],
    ['PT0S', 0],
    ['P1DT12H', 36 * HOUR],
    ['P2W', 2 * WEEK],
    ['PT1.5H', 90 * MINUTE],
    ['PT1H30M15S', 90 * MINUTE + 15 * SECOND],
    ['PT0.5S', 500],
    ['PT1,5S' as Duration, 1500],
    ['P0.5D', 12 * HOUR],
    [`${'0'.repeat(63)}s` as Duration, 0],
    [{ hours: 1, minutes: 30 }, 90 * MINUTE],
    [{ weeks: 1, years: 0, months: 0 } as Duration, WEEK],
    [{ microseconds: 1500 }, 2],
    [10 * 365.25 * DAY, 10 * 365.25 * DAY],
    [{ nanoseconds: 2_000_000, microseconds: 3000 }, 5],
  ])('%j is %d ms', (value, ms) => {
    const parsed = parseDuration(value)
    expect(parsed).toStrictEqual({ ok: true, ms })
  })

  it('is read from every unit together, and with a comma in ISO text, though the types know neither', () => {
    expect(parseDuration('PT0,25S')).toStrictEqual({ ok: true, ms: 250 })
    expect(parseDuration('1w1d1h1m1s1ms')).toStrictEqual({ ok: true, ms: WEEK + DAY + HOUR + MINUTE + SECOND + 1 })
  })

  it('is read from a Temporal.Duration, whose fields are getters of its class', () => {
    class Like {
      get years(): number {
        return 0
      }
      get hours(): number {
        return 2
      }
    }
    expect(parseDuration(new Like())).toStrictEqual({ ok: true, ms: 2 * HOUR })
  })

  it.each<[unknown, RegExp]>([
    ['5', /got "5"; text needs a unit: did you mean "5s", or the number 5 \(milliseconds\)\?/],
    ['', /got ""; it is empty/],
    ['  ', /it is empty/],
    ['5 s ', /did you mean "5s"\?/],
    ['1 hour and 30 minutes', /did you mean "1h30m"\?/],
    ['5S', /"S" is no unit.*did you mean "5s"\?/],
    ['1,5h', /did you mean "1.5h"\?/],
    ['.5h', /did you mean "0.5h"\?/],
    ['1M', /months have no fixed length.*minutes are "m"/],
    ['1mo', /months have no fixed length/],
    ['2 years', /a number with a unit should follow/],
    ['2years', /years have no fixed length/],
    ['1h1h', /"h" comes twice/],
    ['1e3ms', /"e" is no unit/],
    ['1x', /"x" is no unit/],
    ['-5s', /negative/],
    ['1h-5m', /at "-5m" a number with a unit/],
    ['h', /at "h"/],
    ['5constructor', /"constructor" is no unit/],
    ['soon', /at "soon"/],
    ['P1M', /months have no fixed length/],
    ['P1Y2D', /years have no fixed length/],
    ['P', /no ISO 8601 duration/],
    ['PT', /no ISO 8601 duration/],
    ['P1DT', /no ISO 8601 duration/],
    ['PT5M1H', /no ISO 8601 duration/],
    ['PT1.5H30M', /no ISO 8601 duration/],
    ['-PT5M', /negative/],
    ['pt5m', /did you mean "PT5M"\?/],
    ['11y', /years/],
    ['3653d', /more than 10 years/],
    [-1, /negative/],
    [Number.NaN, /got NaN/],
    [Infinity, /more than 10 years/],
    [NOW, /did you mean a Date\? new Date\(\d+\) is 2026-11-01T00:00:00.000Z/],
    [1e300, /more than 10 years/],
    [{ months: 1 }, /months have no fixed length/],
    [{ hour: 1 }, /without any of the fields weeks, days, hours/],
    [{ hours: 1, minuets: 1 }, /with the field "minuets"/],
    [{ hours: -1 }, /negative/],
    [{ hours: '1' }, /whose hours are "1"/],
    [{ hours: Infinity }, /more than 10 years/],
    [{}, /got an Object/],
    [null, /got null/],
    [undefined, /got undefined/],
    [5n, /got 5n/],
    [true, /got true/],
    [new Date(0), /got a Date/],
    [() => 1, /got a function/],
  ])('%o is refused', (value, says) => {
    const problem = problemWith(value)
    expect(problem).toMatch(/^must be a duration such as "5s", "1h30m", "PT5M" or a number of milliseconds, got /)
    expect(problem).toMatch(says)
  })

  it('that is a giant text is refused unread, and shown cut', () => {
    for (const text of ['1'.repeat(1e6), '1h'.repeat(5e5), ' '.repeat(1e6), `P${'1'.repeat(1e6)}D`]) {
      const before = process.cpuUsage()
      const problem = problemWith(text)
      expect(process.cpuUsage(before).user / 1000).toBeLessThan(100)
      expect(problem.length).toBeLessThan(400)
      expect(problem).toMatch(/… \(\d+ characters\); it is longer than 64 characters$/)
    }
  })

  it('whose object throws is refused', () => {
    expect(problemWith(hostile)).toContain('throws when it is read')
    expect(
      problemWith({
        get hours() {
          return trap()
        },
      }),
    ).toContain('throws when it is read')
  })

  it('of any units is their sum', () => {
    const sizes = { w: WEEK, d: DAY, h: HOUR, m: MINUTE, s: SECOND, ms: 1 }
    const parts = fc.uniqueArray(
      fc.tuple(fc.constantFrom(...(Object.keys(sizes) as (keyof typeof sizes)[])), fc.nat(300)),
      {
        selector: ([unit]) => unit,
        minLength: 1,
      },
    )
    fc.assert(
      fc.property(parts, (given) => {
        const ms = given.reduce((sum, [unit, count]) => sum + count * sizes[unit], 0)
        expect(parseDuration(given.map(([unit, count]) => `${count}${unit}`).join(''))).toStrictEqual({ ok: true, ms })
      }),
    )
  })

  it('is exact around the places where timers and integers overflow', () => {
    for (const edge of [2 ** 31, 2 ** 32]) {
      for (const ms of [edge - 1, edge, edge + 1]) {
        expect(parseDuration(ms)).toStrictEqual({ ok: true, ms })
        expect(parseDuration(`${ms}ms`)).toStrictEqual({ ok: true, ms })
        expect(parseDuration(`PT${(ms / 1000).toFixed(3)}S`)).toStrictEqual({ ok: true, ms })
        expect(parseDuration({ milliseconds: ms })).toStrictEqual({ ok: true, ms })
        expect(parseWhen(ms, NOW)).toStrictEqual({ ok: true, atMs: NOW + ms })
      }
    }
  })
})

describe('a duration that is refused', () => {
  it.each<[unknown, string]>([
    ['5 msec', ': did you mean "5ms"?'],
    ['5 millis', ': did you mean "5ms"?'],
    ['1 min', ': did you mean "1m"?'],
    ['2 Hours', ': did you mean "2h"?'],
    ['20 days', ': did you mean "20d"?'],
    ['1 wk', ': did you mean "1w"?'],
    ['1 day and 2 hours', ': did you mean "1d2h"?'],
    ['.5h', ': did you mean "0.5h"?'],
    ['1,5h', ': did you mean "1.5h"?'],
    ['pt5m', ': did you mean "PT5M"?'],
    ['p1d', ': did you mean "P1D"?'],
    ['5 fortnights', '; at "5 fortnights" a number with a unit should follow'],
    ['xp1d', '; at "xp1d" a number with a unit should follow'],
    ['x5.5', '; at "x5.5" a number with a unit should follow'],
    ['5m5', '; at "5" a number with a unit should follow'],
    ['5.5', '; text needs a unit: did you mean "5.5s", or the number 5.5 (milliseconds)?'],
    ['5ymo', '; "ymo" is no unit, which are ms, s, m (minutes), h, d and w'],
    ['5moz', '; "moz" is no unit, which are ms, s, m (minutes), h, d and w'],
    ['5mo', '; months have no fixed length, so write weeks or days, or pass a Date'],
    ['5years', '; years have no fixed length, so write weeks or days, or pass a Date'],
    ['5M', '; months have no fixed length, so write weeks or days, or pass a Date; minutes are "m"'],
    [{ hours: Number.NaN }, ' whose hours are NaN; they must be a number'],
    [{ hours: '1' }, ' whose hours are "1"; they must be a number'],
    [{ hours: -1, days: 1 }, '; a duration cannot be negative'],
    [10 * 365.25 * DAY + 1, ' is 1980-01-01T12:00:00.001Z'],
    ['P9999999D', '; that is more than 10 years'],
    [true, ', got true'],
    [null, ', got null'],
    [() => 1, ', got a function'],
    [
      { x: 1 },
      ' without any of the fields weeks, days, hours, minutes, seconds, milliseconds, microseconds, nanoseconds',
    ],
    [`${'0'.repeat(64)}s`, '; it is longer than 64 characters'],
  ])('is refused with what to write instead: %j', (value, end) => {
    expect(problemWith(value).slice(-end.length)).toBe(end)
  })
})

describe('an instant', () => {
  it.each<[unknown, number]>([
    [new Date(5), 5],
    [new Date(-5), -5],
    [{ epochMilliseconds: NOW }, NOW],
    ['2026-11-01T00:00:00Z', NOW],
    ['2026-11-01T00:00Z', NOW],
    ['2026-11-01 01:00:00+01:00', NOW],
    ['2026-10-31T20:30:00.000-0330', NOW],
    ['2026-11-01T00:00:00.123456789Z', NOW + 123],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['0050-01-01T00:00:00Z', Date.parse('0050-01-01T00:00:00Z')],
    ['+275760-09-13T00:00:00Z', 8.64e15],
    [{ epochMilliseconds: 8.64e15 }, 8.64e15],
    [{ epochMilliseconds: 1.9 }, 1],
    ['2026-11-01T00:59:59Z', NOW + HOUR - SECOND],
    ['2026-11-01T23:00:00+23:59', NOW - 59 * MINUTE],
    ['2026-11-01T00:00:00.5Z', NOW + 500],
    ['2026-11-01T00:00:00,12Z', NOW + 120],
  ])('%j is read', (value, atMs) => {
    expect(parseInstant(value)).toStrictEqual({ ok: true, atMs })
  })

  it.each<[unknown, RegExp]>([
    [new Date(Number.NaN), /got a Date that is invalid/],
    ['2026-11-01', /a day begins at another instant in each zone: did you mean "2026-11-01T00:00:00Z"\?/],
    ['2026-11-01T08:00:00', /it has no zone.*did you mean "2026-11-01T08:00:00Z"\?/],
    ['2026-02-30T00:00:00Z', /no such day/],
    ['2026-13-01T00:00:00Z', /no such day/],
    ['2026-11-00T00:00:00Z', /no such day/],
    ['2026-11-01T24:00:00Z', /no such time/],
    ['2026-11-01T10:60:00Z', /no such time/],
    ['2026-11-01T10:00:60Z', /no such time/],
    ['2026-11-01T10:00:00+00:60', /no such time/],
    ['2026-11-31T00:00:00Z', /no such day/],
    [true, /got true$/],
    [undefined, /got undefined$/],
    [() => 1, /got a function$/],
    ['x'.repeat(64), /no ISO 8601 instant/],
    ['x'.repeat(65), /longer than 64/],
    ['2026-11-01T10:00:00+24:00', /no such time/],
    ['+275760-09-13T00:00:01Z', /out of range/],
    ['+999999-01-01T00:00:00Z', /no such day|out of range/],
    ['2026-11-01T08:00:00+01:00[Europe/Vienna]', /leave out the zone in brackets/],
    ['tomorrow', /no ISO 8601 instant/],
    [NOW, /pass new Date\(milliseconds\)/],
    [{ epochMilliseconds: '5' }, /epochMilliseconds are no number/],
    [{ epochMilliseconds: Infinity }, /out of range/],
    [{}, /got an Object$/],
    [null, /got null$/],
    ['2'.repeat(1e6), /longer than 64/],
    [hostile, /throws when it is read/],
  ])('%# is refused', (value, says) => {
    const problem = problemWith(value, parseInstant)
    expect(problem).toMatch(/^must be an instant such as a Date/)
    expect(problem).toMatch(says)
    expect(problem.length).toBeLessThan(400)
  })

  it('as Date writes it is read exactly', () => {
    fc.assert(
      fc.property(fc.date({ noInvalidDate: true }), (date) => {
        expect(parseInstant(date.toISOString())).toStrictEqual({ ok: true, atMs: date.getTime() })
      }),
    )
  })
})

describe('a point in time', () => {
  it.each<[When, number]>([
    [0, NOW],
    [5000, NOW + 5000],
    ['1h', NOW + HOUR],
    ['PT1H', NOW + HOUR],
    [{ hours: 1 }, NOW + HOUR],
    [new Date(5), 5],
    ['2026-11-02T00:00:00Z', NOW + DAY],
    ['1999-01-01T00:00:00Z', Date.UTC(1999, 0, 1)],
    [{ epochMilliseconds: 7 }, 7],
    [new Date(NOW + 100 * 365.25 * DAY), NOW + 100 * 365.25 * DAY],
  ])('%j is added to now, or is an instant', (value, atMs) => {
    expect(parseWhen(value, NOW)).toStrictEqual({ ok: true, atMs })
  })

  it.each<[unknown, RegExp]>([
    [new Date(NOW + 100 * 365.25 * DAY + 1), /more than 100 years away/],
    ['x2026-11', /got "x2026-11"; at "x2026-11" a number with a unit should follow$/],
    ['2127-01-01T00:00:00Z', /more than 100 years away/],
    [new Date(8.64e15), /more than 100 years away/],
    ['2026-11-02', /did you mean "2026-11-02T00:00:00Z"/],
    ['5', /did you mean "5s"/],
    [NOW, /did you mean a Date\?/],
    [null, /got null/],
    [undefined, /got undefined/],
    [new Date(Number.NaN), /invalid/],
    [{ hours: 1, epoch: 1 }, /with the field "epoch"/],
    [hostile, /throws when it is read/],
  ])('%# is refused', (value, says) => {
    const problem = problemWith(value, (given) => parseWhen(given, NOW))
    expect(problem).toMatch(/^must be a duration such as .*, or an instant such as .*, got /)
    expect(problem).toMatch(says)
  })

  it('is read from anything without a throw', () => {
    const nearMisses = fc.string({ unit: fc.constantFrom(...'0123456789.,-+:TZPYMWDHSmshdw []ae'.split('')) })
    const anything = fc.oneof(
      fc.anything({ withDate: true, withBigInt: true, withNullPrototype: true }),
      nearMisses,
      fc.double(),
    )
    fc.assert(
      fc.property(anything, (value) => {
        for (const parsed of [parseDuration(value), parseInstant(value), parseWhen(value, NOW)]) {
          if (!parsed.ok) expect(parsed.problem).toMatch(/^must be /)
          else expect(Number.isSafeInteger('ms' in parsed ? parsed.ms : parsed.atMs)).toBe(true)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

describe('the types', () => {
  it('accept what is meant and no plain text', () => {
    const accepted: readonly Duration[] = [
      5,
      '5s',
      '1h30m',
      '1d12h30m',
      '1.5h',
      '500ms',
      'PT5M',
      'P1DT2H',
      'P2W',
      { hours: 1 },
    ]
    const moments: readonly When[] = [...accepted, new Date(0), { epochMilliseconds: 5 }, '2026-01-01T00:00:00Z']
    expect([accepted.length, moments.length]).toStrictEqual([10, 13])
    const text: string = 'soon'
    // @ts-expect-error plain text is no duration
    const plain: Duration = text
    // @ts-expect-error a number in quotes has no unit
    const bare: Duration = '5'
    // @ts-expect-error M would be months
    const months: Duration = '1M'
    // @ts-expect-error months have no fixed length
    const isoMonths: Duration = 'P1M'
    // @ts-expect-error a Date is an instant, not a span
    const date: Duration = new Date(0)
    // @ts-expect-error nor is text a moment
    const moment: When = text
    expect([plain, bare, months, isoMonths, date, moment]).toHaveLength(6)
  })
})

describe('formatDuration', () => {
  it.each([
    [0, '0 ms'],
    [0.35, '0.3 ms'],
    [3.21, '3.2 ms'],
    [9, '9 ms'],
    [9.94, '9.9 ms'],
    [9.95, '10 ms'],
    [350, '350 ms'],
    [999.4, '999 ms'],
    [999.5, '1.0 s'],
    [5000, '5.0 s'],
    [59_949, '59.9 s'],
    [59_950, '1 m'],
    [125_000, '2 m 5 s'],
    [3_599_499, '59 m 59 s'],
    [3_599_500, '1 h'],
    [7_500_000, '2 h 5 m'],
    [5_429_999, '1 h 30 m'],
    [5_430_000, '1 h 31 m'],
    [DAY - 30_001, '23 h 59 m'],
    [DAY - 30_000, '1 d'],
    [2 * DAY + 4.5 * HOUR - 1, '2 d 4 h'],
    [2 * DAY + 4.5 * HOUR, '2 d 5 h'],
    [3 * DAY + 4 * HOUR, '3 d 4 h'],
    [-5000, '-5.0 s'],
    [Infinity, 'Infinity'],
  ])('%d ms reads %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })
})
