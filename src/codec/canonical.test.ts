import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalText, codec, defaultCodec } from './codec.js'

const text = (value: unknown): string => canonicalText(defaultCodec, value)

test('keys are sorted at every depth, and lists keep their order', () => {
  expect(text({ b: 1, a: { d: [3, 1, 2], c: null } })).toBe('{"a":{"c":null,"d":[3,1,2]},"b":1}')
})

test('an undefined field equals a missing one; undefined anywhere else is kept', () => {
  expect(text({ a: 1, b: undefined })).toBe(text({ a: 1 }))
  expect(text([undefined])).not.toBe(text([]))
  expect(text(undefined)).toBe('{"$":"undefined"}')
})

test('sets and maps are equal whatever their insertion order', () => {
  expect(text(new Set([2, 1, { b: 1, a: 2 }]))).toBe(text(new Set([{ a: 2, b: 1 }, 1, 2])))
  expect(text(new Map([[1, 'a'] as const, [2, 'b'] as const]))).toBe(
    text(new Map([[2, 'b'] as const, [1, 'a'] as const])),
  )
  expect(text(new Map([[1, 'b'] as const, [2, 'a'] as const]))).not.toBe(
    text(new Map([[1, 'a'] as const, [2, 'b'] as const])),
  )
})

test('values of different types have different texts', () => {
  const values = [
    1,
    '1',
    1n,
    true,
    'true',
    null,
    'null',
    [1],
    { 0: 1 },
    new Date(1),
    new Set([1]),
    new URL('http://a'),
    0,
    -0,
  ]
  expect(new Set(values.map(text)).size).toBe(values.length)
})

test('hostile keys and text stay data', () => {
  const hostile = JSON.parse('{"__proto__":{"x":1},"constructor":2,"$":"Set","v":[2,1],"\\u0000\\ud800":3}') as object
  expect(text(hostile)).toBe('{"\\u0000\\ud800":3,"$$":"Set","__proto__":{"x":1},"constructor":2,"v":[2,1]}')
})

test('equal values have the same text, and different values have different texts', () => {
  const value = fc.jsonValue({ maxDepth: 4 })
  fc.assert(
    fc.property(value, (one) => {
      expect(text(shuffled(one))).toBe(text(one))
    }),
  )
  fc.assert(
    fc.property(value, value, (one, other) => {
      const same = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other))
      expect(text(one) === text(other)).toBe(same)
    }),
  )
})

test('a codec with its own encode is not used, because it may write another text each time', () => {
  let n = 0
  const salted = codec({ encode: (value) => `${(n += 1)}${String(JSON.stringify(value))}`, decode: () => 0 })
  expect(canonicalText(salted, { b: 1, a: 2 })).toBe('{"a":2,"b":1}')
  expect(n).toBe(0)
})

test('registered types are written, and a value of another class is refused with its path', () => {
  class Money {
    cents = 5
  }
  const is = (value: unknown): value is Money => value instanceof Money
  const shop = codec({ types: { money: { is, write: (m) => m.cents, read: () => new Money() } } })
  expect(canonicalText(shop, { price: new Money() })).toBe('{"price":{"$":"money","v":5}}')
  expect(() => text({ price: new Money() })).toThrow(/^price is an instance of the class Money/)
})

/** The same value with the keys of every record in reverse order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, part]) => [key, shuffled(part)]),
  )
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  // The codec distinguishes negative zero, and JSON.stringify does not show it.
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 'minus zero' : value
  return Object.entries(value)
    .map(([key, part]) => [key, sorted(part)])
    .sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1))
    .concat([['record', 'record']])
}
