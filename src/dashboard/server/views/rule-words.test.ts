import { expect, test } from 'vitest'
import { ruleWords } from './rule-words.js'

test.each([
  ['0 9 * * *', 'every day at 09:00'],
  ['*/5 * * * *', 'every 5 minutes'],
  ['* * * * *', 'every minute'],
  ['30 * * * *', 'every hour at minute 30'],
  ['0 */2 * * *', 'every 2 hours'],
  ['0 9,12,18 * * *', 'every day at 09:00, 12:00 and 18:00'],
  ['15 8 * * 1-5', 'Monday to Friday at 08:15'],
  ['0 8 * * mon,thu', 'every Monday and Thursday at 08:00'],
  ['0 0 1 * *', 'on day 1 of the month at 00:00'],
  ['0 0 L * *', 'on the last day of the month at 00:00'],
  ['*/10 * * * * *', 'every 10 seconds'],
  ['@daily', 'every day at 00:00'],
  ['0 9 * 3 *', 'by the rule 0 9 * 3 *'],
  ['0 9 * * 1#2', 'by the rule 0 9 * * 1#2'],
  ['constructor', 'by the rule constructor'],
])('%s: %s', (rule, words) => {
  expect(ruleWords(rule)).toBe(words)
})

test('an interval is shown as it was given', () => {
  expect(ruleWords({ every: '5m' })).toBe('every 5m')
})

test('a rule of any length costs no more than its beginning', () => {
  expect(ruleWords('1,'.repeat(100_000)).length).toBeLessThan(300)
})
