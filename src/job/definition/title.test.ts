import { describe, expect, test } from 'vitest'
import { fillTitle } from './title.js'

describe('a title', () => {
  test.each([
    ['Mail to {to}', { to: 'ada' }, 'Mail to ada'],
    ['{a}{b}{a}', { a: 1, b: true }, '1true1'],
    ['Order {order.id} of {order.by.name}', { order: { id: 7n, by: { name: 'Bo' } } }, 'Order 7 of Bo'],
    ['{0}', ['first'], 'first'],
    ['no places', { to: 'ada' }, 'no places'],
    ['{$in} {a_b}', { $in: 'x', a_b: 'y' }, 'x y'],
    ['empty {text}', { text: '' }, 'empty '],
    ['{zero}', { zero: 0 }, '0'],
  ])('%j is filled from the payload', (title, payload, filled) => {
    expect(fillTitle(title, payload)).toBe(filled)
  })

  test.each([
    ['{missing}', {}],
    ['{a.b.c}', { a: 'text' }],
    ['{a}', { a: null }],
    ['{a}', { a: undefined }],
    ['{a}', { a: { nested: 1 } }],
    ['{a}', { a: () => 1 }],
    ['{to}', null],
    ['{to}', undefined],
    ['{to}', 'a text'],
    ['{}', { '': 1 }],
    ['{a-b}', { 'a-b': 1 }],
  ])('%j without a printable value stays as it is', (title, payload) => {
    expect(fillTitle(title, payload)).toBe(title)
  })

  test.each(['{__proto__}', '{constructor}', '{toString}', '{a.constructor.name}', '{length.constructor}'])(
    '%j shows nothing that the payload only inherits',
    (title) => {
      expect(fillTitle(title, { a: {} })).toBe(title)
    },
  )

  test('shows no field of a prototype', () => {
    expect(fillTitle('{a}', Object.create({ a: 1 }))).toBe('{a}')
  })

  test('must be synchronous, and the rejection of a promise does not end the process', async () => {
    const late = (): never => Promise.reject(new Error('late')) as never
    expect(() => fillTitle(late, {})).toThrow('it returned a promise; title() must be synchronous')
    await new Promise((next) => setImmediate(next))
  })

  test('does not fill a placeholder inside a value of the payload', () => {
    expect(fillTitle('{a}', { a: '{b}', b: 'secret' })).toBe('{b}')
  })

  test('treats replacement patterns in a payload as plain text', () => {
    expect(fillTitle('[{a}]', { a: '$& $1 $$ $`' })).toBe('[$& $1 $$ $`]')
  })

  test('of a hundred thousand braces is read in linear time', () => {
    const braces = '{'.repeat(100_000)
    expect(fillTitle(braces, {})).toBe(braces)
  })

  test('may be a function of the payload, whose result is converted to text', () => {
    expect(fillTitle((p) => `for ${(p as { to: string }).to}`, { to: 'ada' })).toBe('for ada')
    expect(fillTitle(() => 5 as never, {})).toBe('5')
  })
})
