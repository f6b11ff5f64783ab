import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nextTick, parseRule } from './calendar.js'

/**
 * No input may keep a process busy. CPU time is measured, not the wall clock, so that a busy machine does not fail the test. A
 * case over the bound is repeated, so that a pause of the garbage collector does not.
 */
const ANSWER_MAX_MS = 50

function cpuMs(work: () => void): number {
  let least = Infinity
  for (let tries = 0; tries < 5 && least > ANSWER_MAX_MS; tries++) {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / 1000)
  }
  return least
}

let accepted = 0

/** Parses the rule and computes ticks, as a schedule does. */
function answer(text: unknown, zone: unknown, after = 0): void {
  const parsed = parseRule(text, zone)
  if (!parsed.ok) {
    expect(parsed.problems.length).toBeGreaterThan(0)
    return
  }
  accepted++
  const found = nextTick(parsed.rule, after, 0)
  if (found !== undefined) expect(found).toBeGreaterThan(after)
}

const list = (from: number, to: number): string => Array.from({ length: to - from + 1 }, (_, i) => from + i).join(',')

test.each([
  ['a megabyte of stars', '*'.repeat(1 << 20)],
  ['a megabyte of commas', `${','.repeat(1 << 20)} * * * *`],
  ['spaces', ' '.repeat(1 << 20)],
  ['a field of steps', `${'*/1,'.repeat(60)}* * * * *`],
  ['a step of many digits', `*/${'9'.repeat(200)} * * * *`],
  ['a nickname that never ends', `@${'a'.repeat(200)}`],
  ['a fifth weekday of February', '59 59 23 * 2 0#5'],
  ['29 February', '59 59 23 29 2 *'],
  ['a weekday near 29 February', '59 59 23 29W 2 *'],
  ['the fifth Monday of February, or the 30th', '0 0 0 30 2 1#5'],
  ['all seconds', `${list(0, 59)} ${'0'} 0 29 2 *`],
  ['all marks', `0 0 ${list(1, 31).replaceAll(',', 'W,')}W 2 0#5`],
  ['all days of February that are no day', '0 0 30,31 2 *'],
  ['30 February', '0 0 30 2 *'],
])('%s is handled within the bound', (_, text) => {
  const zones = ['UTC', 'America/New_York', 'Antarctica/Troll', 'Australia/Lord_Howe']
  for (const zone of zones)
    for (const after of [0, Date.UTC(1999, 11, 31), Date.UTC(2096, 2, 1), Date.UTC(2999, 0, 1), 8.64e15])
      expect(
        cpuMs(() => answer(text, zone, after)),
        `${zone}, ${after}`,
      ).toBeLessThan(ANSWER_MAX_MS)
})

test.each([
  ['x'.repeat(1 << 20)],
  ['a/'.repeat(32)],
  ['+'.repeat(64)],
  ['Europe/Olso'],
  ['\u0000'],
  [''],
  [{}],
  [null],
  [Symbol('zone')],
])('a hostile zone is handled within the bound (%#)', (zone) => {
  expect(cpuMs(() => answer('0 9 * * *', zone))).toBeLessThan(ANSWER_MAX_MS)
})

const piece = fc.constantFrom(
  '*',
  '?',
  '/',
  '-',
  ',',
  '#',
  'L',
  'W',
  'LW',
  ' ',
  '  ',
  '\t',
  '@',
  '+',
  '0',
  '1',
  '2',
  '5',
  '7',
  '9',
  '23',
  '24',
  '29',
  '30',
  '31',
  '59',
  '60',
  '99',
  'mon',
  'SUN',
  'feb',
  'Dec',
  '*/2',
  '1-5',
  '@daily',
  '\u0000',
  'é',
  '💥',
  '٣',
  '-1',
  '1e3',
  '0x1',
)
const joined = (pieces: fc.Arbitrary<string>, min: number, max: number, by: string): fc.Arbitrary<string> =>
  fc.array(pieces, { minLength: min, maxLength: max }).map((each) => each.join(by))
const fieldOf = (...items: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof(fc.constant('*'), joined(fc.constantFrom(...items), 1, 3, ','))
/** Valid texts that match as rarely as possible. */
const rareText = fc
  .tuple(
    fieldOf('0', '59', '*/59', '1-2'),
    fieldOf('0', '59', '*/7', '58-59'),
    fieldOf('0', '2', '23', '*/23'),
    fieldOf('1', '29', '30', '31', '29W', '31W', 'L', '28-31'),
    fieldOf('2', 'feb', '2,4', '12', '*/11'),
    fieldOf('0#5', '1#5', '6#5', 'fri#L', 'sat', '7'),
  )
  .map((fields) => fields.join(' '))
const hostileText = fc.oneof(
  rareText,
  joined(piece, 0, 40, ''),
  joined(joined(piece, 1, 2, ''), 5, 6, ' '),
  fc.string({ maxLength: 300 }),
)

test('any text is refused with a reason or parsed, within the bound', () => {
  accepted = 0
  fc.assert(
    fc.property(hostileText, fc.integer({ min: 0, max: 4e12 }), (text, after) => {
      expect(cpuMs(() => answer(text, 'Europe/Oslo', after))).toBeLessThan(ANSWER_MAX_MS)
    }),
    { seed: 11, numRuns: 2_000 },
  )
  // Otherwise the texts would not test the search.
  expect(accepted).toBeGreaterThan(300)
})

test('an accepted rule fires', () => {
  fc.assert(
    fc.property(hostileText, (text) => {
      const parsed = parseRule(text, 'UTC')
      if (parsed.ok) expect(nextTick(parsed.rule, Date.UTC(2026, 0, 1), 0)).toBeGreaterThan(Date.UTC(2026, 0, 1))
    }),
    { seed: 12, numRuns: 2_000 },
  )
})
