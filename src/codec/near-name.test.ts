import { expect, test } from 'vitest'
import { didYouMean } from './near-name.js'

const near = (given: string, ...known: readonly string[]): string | undefined =>
  /"(.*)"/.exec(didYouMean(given, known))?.[1]

test.each([
  ['a letter changed', 'retrx', 'retry'],
  ['a letter missing', 'rety', 'retry'],
  ['a letter too many', 'rettry', 'retry'],
  ['the first letter missing', 'etry', 'retry'],
  ['the last letter missing', 'retr', 'retry'],
  ['two letters swapped', 'retyr', 'retry'],
  ['the first two letters swapped', 'erty', 'rety'],
  ['other capitals', 'TIMEOUT', 'timeOut'],
  ['no capitals', 'maxattempts', 'MAXATTEMPTS'],
  ['one wrong letter of a short name', 'ab', 'ac'],
  ['one letter too many of a short name', 'abc', 'ab'],
  ['one letter missing of a short name', 'ab', 'abc'],
  ['two letters swapped of a short name', 'ba', 'ab'],
  ['three wrong letters of nine', 'xyzority1', 'priority1'],
  ['the beginning', 'fail', 'failed'],
  ['three letters of a long name', 'ret', 'retryLimitOfJobs'],
])('%s is near', (_, given, known) => {
  expect(near(given, known)).toBe(known)
})

test.each([
  ['two of five letters', 'rexxy', 'retry'],
  ['two of three letters', 'axx', 'abc'],
  ['a letter twice instead of two letters', 'aab', 'bab1'],
  ['two pairs swapped in five letters', 'ertyr', 'retry'],
  ['two swapped letters with another between them', 'cba', 'abc'],
  ['four of nine letters', 'wxyzity12', 'prioity12'],
  ['nothing at all', 'abc', ''],
  ['two letters of a long name', 're', 'retryLimitOfJobs'],
])('%s are far', (_, given, known) => {
  expect(near(given, known)).toBeUndefined()
})

test('there is no hint where no name is near', () => {
  expect(didYouMean('color', ['retry'])).toBe('')
})

test('the beginning of two names is near to neither', () => {
  expect(near('create', 'createdAfter', 'createdBefore')).toBeUndefined()
})

test('the nearest name is given, and of equally near ones the first', () => {
  expect(near('priorit', 'priors', 'priority', 'prior')).toBe('priority')
  expect(near('bat', 'cat', 'hat')).toBe('cat')
})

test('a name of 64 letters is compared, a longer one is not', () => {
  expect(near(`${'a'.repeat(63)}b`, 'a'.repeat(64))).toBe('a'.repeat(64))
  expect(near('a'.repeat(65), 'a'.repeat(64))).toBeUndefined()
})
