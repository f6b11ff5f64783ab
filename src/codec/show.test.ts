import { describe, expect, test } from 'vitest'
import { reason, show } from './show.js'

const SECRET = 'ge/he#im@ %41'

describe('a password', () => {
  test.each([
    `postgres://bob:${SECRET}@db/x`,
    ` postgres://bob:${SECRET}@db/x`,
    `\npostgres://bob:${SECRET}@db/x`,
    `"postgres://bob:${SECRET}@db/x"`,
    `jdbc:postgresql://bob:${SECRET}@db/x`,
    `postgres:bob:${SECRET}@db/x`,
    `mysql://bob:${SECRET}@db/x`,
    `postgres://db/x?user=bob&password=geheim`,
    `postgres://bob:${'geheim'.repeat(100)}@db/x`,
  ])('in a URL is not shown: %j', (address) => {
    expect(show(address)).not.toMatch(/ge.?he/)
    expect(show(address)).toContain('***')
    expect(show(address)).toContain('db')
  })

  test('in a URL in another error is not repeated', () => {
    const error = new Error('cannot connect to postgres://bob:geheim@db/x: ask ada@example.com')
    expect(reason(error)).toBe('cannot connect to postgres://bob:***@db/x: ask ada@example.com')
    const other = new Error('postgres://db:5432/x: ask ada@example.com')
    expect(reason(other)).toBe(other.message)
  })

  test.each(['mail:7:ada@example.com', 'http://localhost:3000/a', 'postgres://localhost:5432/app', 'ada@example.com'])(
    'is not found where there is none: %j',
    (text) => {
      expect(show(text)).toBe(JSON.stringify(text))
    },
  )
})

describe('a value in a message', () => {
  const throwing = new Proxy({}, { getPrototypeOf: (): never => JSON.parse('{') as never })
  class Übertrag {}

  test.each<[unknown, string]>([
    ['a', '"a"'],
    ['x'.repeat(60), `"${'x'.repeat(60)}"`],
    ['x'.repeat(61), `"${'x'.repeat(60)}"… (61 characters)`],
    [5n, '5n'],
    [10n ** 60n, `1${'0'.repeat(59)}…n`],
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [-1.5, '-1.5'],
    [Symbol('s'), 'Symbol(s)'],
    [Symbol('s'.repeat(60)), `Symbol(${'s'.repeat(53)}…`],
    [(): void => {}, 'a function'],
    [{}, 'an Object'],
    [[], 'an Array'],
    [new Map(), 'a Map'],
    [new Übertrag(), 'a Übertrag'],
    [new (class {})(), 'an object'],
    [Object.create(null), 'an object'],
    [Object.create({ constructor: undefined }), 'an object'],
    [Object.create({ constructor: { name: 5 } }), 'an object'],
    [throwing, 'an object'],
  ])('is short and on one line: %#', (value, text) => {
    expect(show(value)).toBe(text)
  })
})

describe('the reason of an error', () => {
  test.each<[unknown, string]>([
    [new Error('no'), 'no'],
    ['thrown text', 'thrown text'],
    [5, '5'],
    [{ message: 'no error' }, 'an Object'],
    [Object.assign(new Error(), { message: 7 }), '7'],
    [new Error('x'.repeat(500)), 'x'.repeat(500)],
    [new Error('x'.repeat(501)), `${'x'.repeat(500)}…`],
    [Object.defineProperty(new Error(), 'message', { get: () => JSON.parse('{') }), 'it throws when it is read'],
  ])('is its message, cut where it is long: %#', (error, text) => {
    expect(reason(error)).toBe(text)
  })
})
