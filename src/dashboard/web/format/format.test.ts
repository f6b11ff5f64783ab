import { expect, test } from 'vitest'
import { age, duration, seconds } from './duration.js'
import { bounded, bytes, count, percent, plural, rate } from './number.js'
import { listed, sentence, shortId, visible } from './text.js'
import { clockTime, dayAndTime, exact, relative } from './time.js'

const plain = (text: string): string => text.replaceAll('\u202f', ' ')
const NOW = Date.UTC(2026, 10, 18, 14, 31, 7)

test('counts are whole up to 9,999 and have three digits after it', () => {
  const shown = [0, 999, 9_999, 10_000, 12_449, 99_949, 99_950, 999_499, 999_500, 1_284_903, 2_000_000_000].map(count)
  expect(shown).toEqual(['0', '999', '9,999', '10.0k', '12.4k', '99.9k', '100k', '999k', '1.00M', '1.28M', '2.00G'])
})

test('an unknown number is a dash and never 0 or NaN', () => {
  expect([count(undefined), rate(Number.NaN), percent(undefined), bytes(undefined), duration(undefined)]).toEqual([
    '–',
    '–',
    '–',
    '–',
    '–',
  ])
})

test('per cent is never a false 0 or 100', () => {
  expect([0, 0.004, 0.18, 0.995, 1].map((share) => plain(percent(share)))).toEqual([
    '0 %',
    '< 1 %',
    '18 %',
    '> 99 %',
    '100 %',
  ])
})

test('rates below ten keep a decimal', () => {
  expect([0, 0.04, 0.5, 9.94, 9.96, 1_204].map(rate)).toEqual(['0', '< 0.1', '0.5', '9.9', '10', '1,204'])
})

test('one job is singular', () => {
  expect([plural(0, 'job'), plural(1, 'job'), plural(12_400, 'job')]).toEqual(['0 jobs', '1 job', '12.4k jobs'])
})

test('a bounded count says that it is a bound', () => {
  expect([bounded(10_000, false), bounded(412, true)]).toEqual(['> 10,000', '412'])
})

test('durations have at most two units and no false precision', () => {
  const lengths = [0.2, 842, 999.6, 3_400, 9_960, 59_600, 125_000, 3_599_600, 11_520_000, 367_200_000]
  expect(lengths.map((ms) => plain(duration(ms)))).toEqual([
    '< 1 ms',
    '842 ms',
    '1 s',
    '3.4 s',
    '10 s',
    '1 m 00 s',
    '2 m 05 s',
    '1 h 00 m',
    '3 h 12 m',
    '4 d 6 h',
  ])
})

test('a negative length is unknown', () => {
  expect([duration(-1), seconds(-1_000)]).toEqual(['–', '–'])
})

test('an age has one unit and never runs backwards', () => {
  expect([-5_000, 12_000, 200_000, 7_300_000].map((ms) => plain(age(ms)))).toEqual(['0 s', '12 s', '3 m', '2 h'])
})

test('times in lists are relative for a day and dated after it', () => {
  const at = (ms: number): string => plain(relative(NOW + ms, NOW, 'UTC'))
  expect([-12_000, 40_000, -86_400_000, 5 * 86_400_000, -400 * 86_400_000].map(at)).toEqual([
    '12 s ago',
    'in 40 s',
    'yesterday 14:31',
    '23 Nov 14:31',
    '14 Oct 2025 14:31',
  ])
})

test('a zone changes the wall clock and the title names it', () => {
  expect(clockTime(NOW, 'Europe/Oslo', true)).toBe('15:31:07')
  expect(dayAndTime(NOW + 9 * 3_600_000, NOW, 'Europe/Oslo')).toBe('tomorrow 00:31')
  expect(exact(NOW, 'Europe/Oslo')).toMatch(/^2026-11-18 15:31:07 (CET|GMT\+1) · 2026-11-18T14:31:07\.000Z$/)
})

test('ids are cut in the middle', () => {
  expect(shortId('01980f2c-aaaa-7bbb-8ccc-0123456789e41')).toBe('01980f2c…e41')
})

test('control and direction characters are shown as escapes', () => {
  expect(visible('a\u202eb\u0007c')).toBe('a\\u202eb\\u0007c')
})

test('sentences and lists', () => {
  expect(sentence('viewers cannot')).toBe('Viewers cannot')
  expect([listed([]), listed(['a']), listed(['a', 'b', 'c'])]).toEqual(['', 'a', 'a, b and c'])
})
