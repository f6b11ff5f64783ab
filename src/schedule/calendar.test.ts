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
