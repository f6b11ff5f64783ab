import { describe, expect, test } from 'vitest'
import { inspectParts, readLogged } from './log-text.js'

const loop: Record<string, unknown> = {}
loop['self'] = loop
const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error('trap')
    },
    getPrototypeOf: () => {
      throw new Error('trap')
    },
  },
)

describe('a logged line', () => {
  test.each<[parts: unknown[], line: string]>([
    [[], ''],
    [['sent'], 'sent'],
    [['to', 'ada', 3, true, null, undefined, 5n], 'to ada 3 true null undefined 5'],
    [[{ a: 1, b: [2] }], '{"a":1,"b":[2]}'],
    [[new TypeError('no')], 'TypeError: no'],
    [[[1, 2]], '[1,2]'],
    [[Symbol('s')], 'Symbol(s)'],
    [[{ err: new TypeError('no') }], '{"err":"TypeError: no"}'],
    [[new Date(0)], '"1970-01-01T00:00:00.000Z"'],
    [['a\u0000b\ud800'], 'a\u0000b\ud800'],
    [[-0, NaN], '0 NaN'],
  ])('of arguments number %# is what console.log would show', (parts, line) => {
    expect(inspectParts(parts)).toBe(line)
  })

  test.each<[string, unknown]>([
    ['a cycle', loop],
    ['a getter that throws', Object.defineProperty({}, 'a', { enumerable: true, get: () => JSON.parse('{') as never })],
    ['a proxy that throws', hostile],
    ['a BigInt inside', { n: 5n }],
    ['a toJSON that throws', { toJSON: () => JSON.parse('{') as never }],
  ])('with %s is still written', (_, part) => {
    expect(inspectParts(['before', part, 'after'])).toBe('before [unprintable] after')
  })

  test('with a toJSON that returns undefined says so', () => {
    expect(inspectParts([{ toJSON: () => undefined }])).toBe('[unprintable]')
  })
})

describe('a call of ctx.log', () => {
  const error = new TypeError('no')
  const date = new Date(0)
  test.each<[parts: unknown[], fields: object, message: string, line: string]>([
    [['sent', { to: 'ada' }], {}, 'sent {"to":"ada"}', 'sent {"to":"ada"}'],
    [[{ orderId: 7 }, 'charged', 5], { orderId: 7 }, 'charged 5', 'charged 5 {"orderId":7}'],
    [[{ orderId: 7 }], { orderId: 7 }, '', '{"orderId":7}'],
    [[Object.assign(Object.create(null) as object, { a: 1 }), 'x'], { a: 1 }, 'x', 'x {"a":1}'],
    [[error], { err: error }, 'no', 'TypeError: no'],
    [[error, 'while charging'], { err: error }, 'while charging', 'while charging TypeError: no'],
    [[[1], 'list'], {}, '[1] list', '[1] list'],
    [[date, 'x'], {}, '"1970-01-01T00:00:00.000Z" x', '"1970-01-01T00:00:00.000Z" x'],
    [[{}, 'x'], {}, '{} x', '{} x'],
    [[hostile, 'x'], {}, '[unprintable] x', '[unprintable] x'],
    [[], {}, '', ''],
  ])('number %# has fields, a message and a line, as pino reads it', (parts, fields, message, line) => {
    expect(readLogged(parts)).toEqual({ fields, message, line })
  })
})
