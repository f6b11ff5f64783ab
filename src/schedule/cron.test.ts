import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DAY_MS } from '../job/duration/duration-units.js'
import { parseCron } from './cron.js'
import type { CronTimes } from './cron.js'

function times(text: string): CronTimes {
  const parsed = parseCron(text)
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  return parsed.times
}

const problemsOf = (text: string): readonly string[] => {
  const parsed = parseCron(text)
  return parsed.ok ? [] : parsed.problems
}

test.each([
  ['0 25 * * *', 'the 2nd field (hour) must be 0 to 23, got 25'],
  ['0 24 * * *', 'the 2nd field (hour) must be 0 to 23, got 24: midnight is 0'],
  ['0 0 25 * * *', 'the 3rd field (hour) must be 0 to 23, got 25'],
  ['60 * * * *', 'the 1st field (minute) must be 0 to 59, got 60'],
  ['60 * * * * *', 'the 1st field (second) must be 0 to 59, got 60'],
  ['0 0 0 * *', 'the 3rd field (day of month) must be 1 to 31, got 0'],
  ['0 0 * 13 *', 'the 4th field (month) must be 1 to 12 or JAN to DEC, got 13'],
  ['0 0 * JUNE *', 'the 4th field (month) must be 1 to 12 or JAN to DEC, got "JUNE"; did you mean "jun"?'],
  ['0 0 * * 8', 'the 5th field (day of week) must be 0 to 7 or SUN to SAT, got 8'],
  ['0 0 * * TEU', 'the 5th field (day of week) must be 0 to 7 or SUN to SAT, got "TEU"; did you mean "tue"?'],
  ['5/15 * * * *', 'the 1st field (minute) must have steps after "*" or a range, got "5/15": write "5-59/15"'],
  ['*/0 * * * *', 'the 1st field (minute) must have steps of 1 to 59, got "*/0"'],
  ['*/99 * * * *', 'the 1st field (minute) must have steps of 1 to 59, got "*/99"'],
  ['*/5/5 * * * *', 'the 1st field (minute) must have one step at most, got "*/5/5"'],
  ['0 22-2 * * *', 'the 2nd field (hour) must have ranges that go up, got "22-2": write "22-23,0-2"'],
  ['0 0 * * 7-1', 'the 5th field (day of week) must have ranges that go up, got "7-1": write "0-1"'],
  ['0 0 * * FRI-TUE', 'the 5th field (day of week) must have ranges that go up, got "FRI-TUE": write "FRI-6,0-TUE"'],
  ['0 0 * * 6-2', 'the 5th field (day of week) must have ranges that go up, got "6-2": write "6,0-2"'],
  ['0 0 31-1 * *', 'the 3rd field (day of month) must have ranges that go up, got "31-1": write "31,1"'],
  ['0 0 1 DEC-JAN *', 'the 4th field (month) must have ranges that go up, got "DEC-JAN": write "DEC,JAN"'],
  [
    '0 0 1-5W * *',
    'the 3rd field (day of month) must have W (nearest weekday) after one day, such as "15W", got "1-5W": for Monday to Friday write "MON-FRI" as the day of week',
  ],
  [
    '0 0 L-3 * *',
    'the 3rd field (day of month) must be 1 to 31, got "L-3": days are not counted back from the last: write "L" (the last), "LW" (the last weekday) or a day such as "28"',
  ],
  [
    '0 9 1 1 * 2030-2035',
    'the 6th field (day of week) must be 0 to 7 or SUN to SAT, got 2030: there is no field for the year: use the options from and until',
  ],
  [
    '0 9 * * MON *',
    'the 5th field (month) must be 1 to 12 or JAN to DEC, got "MON": the day of the week is the last field; of six the first is the second, and there is none for the year',
  ],
  ['0 1-2-3 * * *', 'the 2nd field (hour) must have ranges of two ends such as "0-23", got "1-2-3"'],
  [
    '0 1,,2 * * *',
    'the 2nd field (hour) must be 0 to 23, got nothing where a value should be: look for a comma too many',
  ],
  ['0 1,* * * *', 'the 2nd field (hour) must have "*" alone or a list without it, not both'],
  ['0 ? * * *', 'the 2nd field (hour) must be 0 to 23, got "?": write "*", since "?" is for the two day fields alone'],
  ['0 -1 * * *', 'the 2nd field (hour) must be 0 to 23, got "-1"'],
  ['0 0 1,LW * *', 'the 3rd field (day of month) must have "LW" (the last weekday) alone, not in a list'],
  ['0 0 32W * *', 'the 3rd field (day of month) must be 1 to 31, got 32'],
  [
    '0 0 MON#2 * *',
    'the 3rd field (day of month) must be 1 to 31, got "MON#2": # (which one of the month) belongs to the day of the week, such as "MON#2"',
  ],
  [
    '0 0 * * L',
    'the 5th field (day of week) must be 0 to 7 or SUN to SAT, got "L": for the last Friday of a month write "FRI#L"',
  ],
  [
    '0 0 * * 15W',
    'the 5th field (day of week) must be 0 to 7 or SUN to SAT, got "15W": W (nearest weekday) belongs to a day of the month, such as "15W"',
  ],
  ['0 0 * * MON#6', 'the 5th field (day of week) must have 1 to 5 or L (the last) after "#", got "MON#6"'],
  [
    '0 0 30 2 *',
    'the 3rd field (day of month) must be at most 29 in the months that are named, got 30: it would never fire; the last day of a month is "L"',
  ],
  [
    '0 0 31 4,6,SEP,11 *',
    'the 3rd field (day of month) must be at most 30 in the months that are named, got 31: it would never fire; the last day of a month is "L"',
  ],
  [
    '0 0 31W 4 *',
    'the 3rd field (day of month) must be at most 30 in the months that are named, got 31: it would never fire; the last day of a month is "L"',
  ],
])('%s is refused with the invalid field', (text, problem) => {
  expect(problemsOf(text)).toEqual([`${JSON.stringify(text)}: ${problem}`])
})

test.each([
  ['0 0 * * #', 0, 7],
  ['0 0 # * *', 1, 31],
  ['0 0 1 # *', 1, 12],
  ['0 # * * *', 0, 23],
])('the suggestion for the descending range %s is accepted', (text, min, max) => {
  const put = (range: string): string => text.replace('#', range)
  for (let from = min + 1; from <= max; from += 1)
    for (let to = min; to < from; to += 1) {
      const [problem = 'taken as it is: write "*"'] = problemsOf(put(`${from}-${to}`))
      const advice = /write "(?<text>[^"]*)"$/u.exec(problem)?.groups?.['text'] ?? 'no advice'
      expect(problemsOf(put(advice)), `${from}-${to}: ${advice}`).toEqual([])
    }
})

test('all invalid fields are reported together', () => {
  expect(problemsOf('60 25 0 * *')).toHaveLength(3)
})

test.each([
  [
    '',
    'must be a cron text of 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds first, got 0 in ""',
  ],
  ['* * * *', 'got 4 in "* * * *"'],
  ['0 0 0 1 1 * 2030', 'got 7 in "0 0 0 1 1 * 2030"; there is no field for the year: use the options from and until'],
  ['@dayly', 'got "@dayly"; did you mean "@daily"?'],
  ['@reboot', 'must be a time, got "@reboot": enqueue the job where your program starts'],
  ['*'.repeat(257), 'must have at most 256 characters, got 257'],
])('%s is not a cron text', (text, problem) => {
  expect(problemsOf(text)).toEqual([expect.stringContaining(problem)])
})

test.each([
  ['0 0 29 2 *', '2021-01-01', '2024-02-29'],
  ['0 0 * 2 MON#5', '2025-01-01', '2044-02-29'],
  ['0 0 30 2 MON', '2023-02-21', '2023-02-27'],
  ['0 0 1,31 * *', '2023-02-02', '2023-03-01'],
  ['0 0 1 * MON', '2025-02-25', '2025-03-01'],
  ['0 0 * * sun-sun', '2023-10-29', '2023-11-05'],
  ['0 0 * * 1-7', '2023-10-28', '2023-10-29'],
  ['0 0 L,1 * *', '2023-02-02', '2023-02-28'],
  ['0 0 ? * 5l', '2023-02-02', '2023-02-24'],
  ['@weekly', '2023-10-24', '2023-10-29'],
  [' \t0  0 1 jan *  ', '2023-10-24', '2024-01-01'],
])('%s after %s is %s', (text, after, expected) => {
  const found = times(text).nextReading(Date.parse(after))
  expect(new Date(found ?? 0).toISOString()).toBe(`${expected}T00:00:00.000Z`)
})

test.each([
  ['30 2 * * *', true],
  ['*/5 2,3 * * *', true],
  ['0 9-17 * * *', true],
  ['0 * * * *', false],
  ['0 */6 * * *', false],
  ['0 1-23/2 * * *', false],
  ['0 1,*/6 * * *', false],
  ['0 0-23 * * *', false],
])('%s has named hours: %s', (text, isFixed) => {
  expect(times(text).isFixed).toBe(isFixed)
})

/** The oracle for days: tests each day in turn. */
interface Days {
  readonly days: readonly (number | 'L' | 'LW' | `${number}W`)[]
  readonly months: readonly number[]
  readonly weekdays: readonly (number | `${number}#${number | 'L'}`)[]
}

function fits({ days, months, weekdays }: Days, at: Date): boolean {
  if (months.length > 0 && !months.includes(at.getUTCMonth() + 1)) return false
  const byDay = days.some((each) => dayOf(each, at) === at.getUTCDate())
  const byWeekday = weekdays.some((each) => fitsWeekday(each, at))
  if (days.length > 0 && weekdays.length > 0) return byDay || byWeekday
  return (days.length === 0 || byDay) && (weekdays.length === 0 || byWeekday)
}

/** The day of its month that is meant; 0 when the month has none. */
function dayOf(each: Days['days'][number], at: Date): number {
  const last = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate()
  if (typeof each === 'number') return each
  const wanted = each.startsWith('L') ? last : Number.parseInt(each, 10)
  if (each === 'L' || wanted > last) return each === 'L' ? last : 0
  const isWeekday = (day: number): boolean =>
    day >= 1 && day <= last && new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), day)).getUTCDay() % 6 !== 0
  return [0, -1, 1, -2, 2].map((by) => wanted + by).find(isWeekday) ?? 0
}

function fitsWeekday(each: Days['weekdays'][number], at: Date): boolean {
  if (typeof each === 'number') return at.getUTCDay() === each
  const [day, which] = each.split('#')
  if (at.getUTCDay() !== Number(day)) return false
  const nextWeek = new Date(at.getTime() + 7 * DAY_MS)
  return which === 'L' ? nextWeek.getUTCMonth() !== at.getUTCMonth() : Math.ceil(at.getUTCDate() / 7) === Number(which)
}

const number = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max })
const someDays = fc.record({
  days: fc.oneof(
    fc.constant(['LW' as const]),
    fc.uniqueArray(
      fc.oneof(
        number(1, 31),
        number(28, 31),
        fc.constant('L' as const),
        number(1, 31).map((n) => `${n}W` as const),
      ),
      { maxLength: 4 },
    ),
  ),
  months: fc.uniqueArray(fc.oneof(number(1, 12), fc.constant(2)), { maxLength: 4 }),
  weekdays: fc.uniqueArray(
    fc.oneof(
      number(0, 6),
      fc.tuple(number(0, 6), fc.constantFrom(1, 2, 3, 4, 5, 'L' as const)).map(([day, n]) => `${day}#${n}` as const),
    ),
    { maxLength: 3 },
  ),
})

/** Texts for which a search goes wrong if it tries days that a month does not have. */
const inFebruary = fc.tuple(number(1970, 1999), number(15, 29)).map(([year, day]) => Date.UTC(year, 1, day) / DAY_MS)

test('days, months and weekdays of any kind agree with testing each day in turn', () => {
  const or = (items: readonly unknown[]): string => (items.length === 0 ? '*' : items.join(','))
  fc.assert(
    fc.property(someDays, fc.oneof(number(0, 30 * 365), inFebruary), (days, from) => {
      const parsed = parseCron(`0 0 ${or(days.days)} ${or(days.months)} ${or(days.weekdays)}`)
      fc.pre(parsed.ok)
      const start = from * DAY_MS
      let expected: number | undefined
      for (let at = start + DAY_MS; expected === undefined && at < start + 41 * 366 * DAY_MS; at += DAY_MS)
        if (fits(days, new Date(at))) expected = at
      expect(parsed.ok ? parsed.times.nextReading(start) : 0).toBe(expected)
    }),
    { seed: 7, numRuns: 3000 },
  )
})
