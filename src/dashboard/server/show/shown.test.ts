import { expect, test } from 'vitest'
import { shownText, toShown } from './shown.js'

const shown = (value: unknown): unknown => toShown(value, 65_536).value

test('values that JSON has not are shown exactly, in stored order', () => {
  expect(shown({ b: 1, a: [true, null] })).toEqual({
    is: 'object',
    entries: [
      ['b', 1],
      ['a', { is: 'list', items: [true, null] }],
    ],
  })
  expect(shown(2n ** 63n - 1n)).toEqual({ is: 'tag', tag: 'BigInt', text: '9223372036854775807' })
  expect(shown(new Date(0))).toEqual({ is: 'tag', tag: 'Date', text: '1970-01-01T00:00:00.000Z' })
  expect(shown([Number.NaN, -0, undefined])).toMatchObject({
    items: [{ text: 'NaN' }, { text: '-0' }, { tag: 'undefined' }],
  })
  expect(shown(new Map([['k', 1]]))).toMatchObject({ tag: 'Map', entries: [['k', 1]] })
})

test('a value that is too large is cut, and says so', () => {
  const { value, isCut, bytes } = toShown({ text: 'x'.repeat(100_000), more: 1 }, 1_000)
  expect(isCut).toBe(true)
  expect(bytes).toBeGreaterThan(100_000)
  expect(JSON.stringify(value).length).toBeLessThan(1_200)
  expect(value).toMatchObject({ is: 'object', more: 1 })
})

test('the text of a value is indented, and JSON where the value is', () => {
  const value = { a: [1, 'x'], b: {} }
  expect(JSON.parse(shownText(toShown(value, 1_000).value))).toEqual(value)
})
