import { describe, expect, test } from 'vitest'
import { inspectParts } from './log-text.js'

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
    [[new Date(0)], '"1970-01-01T00:00:00.000Z"'],
    [['a\u0000b\ud800'], 'a\u0000b\ud800'],
    [[-0, NaN], '0 NaN'],
  ])('of given parts number %# is what console.log would show', (parts, line) => {
    expect(inspectParts(parts)).toBe(line)
  })

  test.each<[string, unknown]>([
    ['a cycle', loop],
    ['a getter that throws', Object.defineProperty({}, 'a', { enumerable: true, get: () => JSON.parse('{') as never })],
    ['a proxy that throws', hostile],
    ['a BigInt inside', { n: 5n }],
    ['a toJSON that throws', { toJSON: () => JSON.parse('{') as never }],
  ])('with %s is still a line', (_, part) => {
    expect(inspectParts(['before', part, 'after'])).toBe('before [unprintable] after')
  })

  test('with a toJSON that gives nothing is still a text', () => {
    expect(typeof inspectParts([{ toJSON: () => undefined }])).toBe('string')
  })
})
