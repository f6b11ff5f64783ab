import fc from 'fast-check'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { CodecError, InvalidOptionsError } from '../errors.js'
import { codec, type Codec, defaultCodec } from './codec.js'
import { PARTS_MAX } from './limits.js'
import { joinPath, problemOf } from './path.js'

const { encode, decode } = defaultCodec

const roundTrip = (value: unknown, using: Codec = defaultCodec): unknown => using.decode(using.encode(value))

function refusal(value: unknown, using: Codec = defaultCodec): CodecError {
  try {
    using.encode(value)
  } catch (error) {
    expect(error).toBeInstanceOf(CodecError)
    return error as CodecError
  }
  throw new Error('it was written')
}

function unread(text: string | Uint8Array, using: Codec = defaultCodec): CodecError {
  try {
    using.decode(text)
  } catch (error) {
    expect(error).toBeInstanceOf(CodecError)
    return error as CodecError
  }
  throw new Error('it was read')
}

/**
 * Whether two values are equal in every listed respect, order included. Written here, because vitest takes an own key
 * `constructor` for the class, and Node 20 does not compare invalid dates in a Set.
 */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b)
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false
  if (a instanceof Date) return Object.is(a.getTime(), (b as Date).getTime())
  if (a instanceof URL) return a.href === (b as URL).href
  if (a instanceof Map || a instanceof Set) return isSame([...a], [...(b as Set<unknown>)])
  const keysOf = (value: object): string[] =>
    value instanceof Error ? [...ERROR_KEYS, ...Object.keys(value)] : Object.keys(value)
  const at = (value: object, key: string): unknown => (value as Record<string, unknown>)[key]
  return isSame(keysOf(a).join('\n'), keysOf(b).join('\n')) && keysOf(a).every((key) => isSame(at(a, key), at(b, key)))
}

const ERROR_KEYS = ['name', 'message', 'stack', 'cause']

/** Text with difficult code units: NUL, lone surrogates, quotes, the tag mark. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('\0', '\ud800', '\udc00', '"', '\\', '$', 'a', '\u2028') }),
)
const anyKey = fc.oneof(
  anyText,
  fc.constantFrom('$', '$$', '$$$', '$set', 'v', '__proto__', 'constructor', 'prototype', 'toJSON', 'then'),
)

const anyValue = fc.letrec<{ value: unknown; error: Error }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    anyText,
    fc.double(),
    fc.integer(),
    fc.boolean(),
    fc.constantFrom(null, undefined, Number.NaN, -0, 0, Infinity, -Infinity),
    fc.bigInt(),
    fc.date({ noInvalidDate: false }),
    fc.uint8Array(),
    fc.webUrl().map((href) => new URL(href)),
    fc.array(tie('value')),
    fc.array(fc.tuple(anyKey, tie('value'))).map((entries) => Object.fromEntries(entries)),
    fc.array(fc.tuple(tie('value'), tie('value'))).map((entries) => new Map(entries)),
    fc.array(tie('value')).map((values) => new Set(values)),
    tie('error'),
  ),
  error: fc
    .tuple(anyText, tie('value'), fc.constantFrom(Error, TypeError, RangeError), anyText)
    .map(([message, cause, Class, code]) => Object.assign(new Class(message, { cause }), { code })),
})).value

describe('round trip', () => {
  it('returns every value of the listed types unchanged', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        expect(isSame(roundTrip(value), value)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it('writes a JSON value as exactly that JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const normal: unknown = JSON.parse(JSON.stringify(value))
        // Only the key that marks a tag is escaped.
        fc.pre(!/"\$+":/u.test(JSON.stringify(normal)))
        expect(encode(normal)).toBe(JSON.stringify(normal))
      }),
    )
    expect(encode({ $set: { a: 1 }, list: [1, 'b', null] })).toBe('{"$set":{"a":1},"list":[1,"b",null]}')
  })

  it('writes text without NUL or lone surrogates, and reads them back', () => {
    fc.assert(
      fc.property(anyText, anyKey, (text, key) => {
        const written = encode({ [key]: text, at: new Date(0) }) as string
        expect(written).not.toMatch(/\p{Surrogate}/u)
        expect(written).not.toContain('\0')
      }),
    )
    expect(roundTrip('a\0b\ud800c\udc00\ud83d\ude00')).toBe('a\0b\ud800c\udc00\ud83d\ude00')
  })

  it('writes a tag only where JSON has no such value', () => {
    expect(encode({ at: new Date(0), n: 1 })).toBe('{"at":{"$":"Date","v":"1970-01-01T00:00:00.000Z"},"n":1}')
    expect(encode(undefined)).toBe('{"$":"undefined"}')
    expect(encode([-0])).toBe('[{"$":"-0"}]')
    expect(encode({ $: 1, $$: 2, $a: 3 })).toBe('{"$$":1,"$$$":2,"$a":3}')
  })

  it('keeps invalid dates and the first and last date', () => {
    expect(roundTrip(new Date(Number.NaN))).toStrictEqual(new Date(Number.NaN))
    expect(roundTrip(new Date(8.64e15))).toStrictEqual(new Date(8.64e15))
    expect(roundTrip(new Date(-8.64e15))).toStrictEqual(new Date(-8.64e15))
  })

  it('takes the dates of fake timers for dates, under them and after', () => {
    vi.useFakeTimers({ now: 5 })
    const made = new Date()
    const written = '{"$":"Date","v":"1970-01-01T00:00:00.005Z"}'
    try {
      expect(encode(made)).toBe(written)
      expect(roundTrip([made])).toEqual([made])
    } finally {
      vi.useRealTimers()
    }
    expect(encode(made)).toBe(written)
    class Day extends Date {}
    expect(refusal(new Day(5)).message).toContain('Day')
  })

  it('reads back holes as undefined, an object without prototype as a plain one, and a Buffer as bytes', () => {
    const holes: unknown[] = [1]
    holes[2] = 3
    expect(roundTrip(holes)).toStrictEqual([1, undefined, 3])
    expect(roundTrip(Object.assign(Object.create(null), { a: 1 }))).toStrictEqual({ a: 1 })
    const bytes = roundTrip(Buffer.from('hello')) as Uint8Array
    expect(bytes).toStrictEqual(new Uint8Array([104, 101, 108, 108, 111]))
    expect(bytes.buffer.byteLength).toBe(5)
  })

  it('writes a shared object twice', () => {
    const shared = { at: new Date(0) }
    expect(roundTrip({ a: shared, b: [shared, shared] })).toStrictEqual({ a: shared, b: [shared, shared] })
  })

  it('keeps the own key __proto__ and pollutes nothing', () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}}}')
    for (const extra of [{}, { at: new Date(0) }, { $: 1 }]) {
      const back = roundTrip({ inner: value, ...extra }) as { inner: object }
      expect(Object.keys(back.inner)).toStrictEqual(['__proto__', 'constructor'])
      expect(Object.getPrototypeOf(back.inner)).toBe(Object.prototype)
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    }
    const tagged = decode('{"__proto__":{"$":"Map","v":[["__proto__",1]]},"$$":2}') as object
    expect(Object.getOwnPropertyDescriptor(tagged, '__proto__')?.value).toStrictEqual(new Map([['__proto__', 1]]))
    expect(tagged).toHaveProperty('$', 2)
  })

  it('accepts values of another realm', () => {
    const value: unknown = runInNewContext(
      '({ at: new Date(0), list: [new Map([[1, new Set([2])]])], why: new TypeError("no") })',
    )
    const back = roundTrip(value) as { why: Error }
    expect(back).toMatchObject({ at: new Date(0), list: [new Map([[1, new Set([2])]])] })
    expect(back.why).toBeInstanceOf(TypeError)
  })

  it('reads bytes as UTF-8', () => {
    expect(decode(new TextEncoder().encode('{"a":"ä"}'))).toStrictEqual({ a: 'ä' })
    expect(unread(new Uint8Array([0xff])).message).toContain('UTF-8')
    expect(unread(5 as unknown as string).message).toBe('the value must be text or bytes to decode, got 5')
  })
})

describe('errors', () => {
  class PaymentError extends Error {
    override name = 'PaymentError'
    readonly code = 'E_PAY'
    readonly detail = { at: new Date(0) }
  }

  it('keep name, message, stack, code, cause and their own properties', () => {
    const error = new PaymentError('declined', { cause: new RangeError('limit') })
    const back = roundTrip(error) as PaymentError
    expect(back).toBeInstanceOf(Error)
    expect(back.cause).toBeInstanceOf(RangeError)
    expect(back).toMatchObject({
      name: 'PaymentError',
      message: 'declined',
      code: 'E_PAY',
      detail: { at: new Date(0) },
    })
    expect(back.stack).toBe(error.stack)
    expect(Object.keys(back)).toStrictEqual(['code', 'detail'])
  })

  it('are read back as aggregates, and with a cause that is undefined', () => {
    const back = roundTrip(new AggregateError([new Error('a'), 'b'], 'both', { cause: undefined })) as AggregateError
    expect(back).toBeInstanceOf(AggregateError)
    expect(back.errors).toStrictEqual([new Error('a'), 'b'])
    expect(Object.hasOwn(back, 'cause')).toBe(true)
    expect(Object.hasOwn(roundTrip(new Error('none')) as Error, 'cause')).toBe(false)
  })

  it('of a platform class are read back by name', () => {
    expect(roundTrip(new DOMException('gone', 'AbortError'))).toMatchObject({ name: 'AbortError', message: 'gone' })
  })
})

describe('refusals', () => {
  class Money {
    readonly cents: number
    constructor(cents: number) {
      this.cents = cents
    }
  }
  const cyclic: { a: { back?: unknown } } = { a: {} }
  cyclic.a.back = cyclic
  const inner: { list: unknown[] } = { list: [] }
  inner.list.push(inner)

  const cases: readonly [what: string, value: unknown, path: string, says: RegExp][] = [
    ['a function', { user: { db: () => 1 } }, 'user.db', /^user\.db is a function/],
    ['a function at the root', () => 1, '', /^the value is a function/],
    ['a symbol', [Symbol('s')], '[0]', /is a symbol/],
    [
      'a class instance',
      { lines: [{ price: new Money(1) }] },
      'lines[0].price',
      /class Money .*codec\(\{ types: \{ money:/,
    ],
    [
      'a class with toJSON',
      {
        m: new (class Coin {
          toJSON() {
            return 1
          }
        })(),
      },
      'm',
      /class Coin.*toJSON is not used/,
    ],
    ['a subclass of a built-in', { m: new (class Index extends Map {})() }, 'm', /class Index/],
    ['a subclass of Array', { m: new (class Row extends Array {})() }, 'm', /class Row/],
    ['an object made from another', { o: Object.create({ a: 1 }) }, 'o', /prototype of its own/],
    ['a promise', { mail: Promise.resolve(1) }, 'mail', /did you forget await\?/],
    [
      'a query that can be awaited',
      {
        rows: new (class Query {
          // oxlint-disable-next-line unicorn/no-thenable -- being awaitable is what is refused
          then() {}
        })(),
      },
      'rows',
      /Query with a then.*await/,
    ],
    ['a WeakMap', { w: new WeakMap() }, 'w', /WeakMap/],
    ['a WeakRef', { w: new WeakRef({}) }, 'w', /WeakRef/],
    ['a RegExp', { p: /a/ }, 'p', /codec\(\{ regExp: true \}\)/],
    ['another typed array', { f: new Float64Array(1) }, 'f', /Float64Array.*Uint8Array/],
    ['an ArrayBuffer', { f: new ArrayBuffer(1) }, 'f', /ArrayBuffer.*Uint8Array/],
    ['a boxed string', { s: new String('a') }, 's', /class String/],
    [
      'a getter',
      {
        user: {
          get name() {
            return 'a'
          },
        },
      },
      'user.name',
      /getter/,
    ],
    ['a cycle', cyclic, 'a.back', /points back to the whole value/],
    ['a cycle below the root', { x: inner }, 'x.list[0]', /points back to x, /],
    [
      'a date with a property',
      { at: Object.assign(new Date(0), { zone: 'UTC' }) },
      'at',
      /"zone", which would be lost/,
    ],
    ['an odd key', { 'a b': { '': Symbol('s') } }, '["a b"][""]', /symbol/],
    ['a value in a Map', { users: new Map([['ada', { db: Symbol('s') }]]) }, 'users.get("ada").db', /symbol/],
    ['a value in a Map under an object', { m: new Map([[{}, Symbol('s')]]) }, 'm.values()[0]', /symbol/],
    ['a key in a Map', { m: new Map([[Symbol('s'), 1]]) }, 'm.keys()[0]', /symbol/],
    ['a value in a Set', { s: new Set([1, Symbol('s')]) }, 's.values()[1]', /symbol/],
    [
      'a property of an error',
      { e: Object.assign(new Error('x'), { socket: new Money(1) }) },
      'e.socket',
      /class Money/,
    ],
    ['a cause of an error', { e: new Error('x', { cause: Symbol('s') }) }, 'e.cause', /symbol/],
  ]
  it.each(cases)('%s is refused with its path', (_what, value, path, says) => {
    const error = refusal(value)
    expect(error.path).toBe(path)
    expect(error.message).toMatch(says)
    expect(error.code).toBe('E_CODEC')
  })

  it('an error becomes a problem of the caller without saying the path twice', () => {
    const problem = problemOf(refusal({ user: { db: Symbol('s') } }), 'payload')
    expect(problem).toStrictEqual({
      path: 'payload.user.db',
      message: 'is a symbol, which cannot be written; pass a string instead',
    })
    expect(problemOf(refusal(Symbol('s')), 'payload')).toMatchObject({ path: 'payload', message: problem.message })
    expect(joinPath('payloads', '[3].to')).toBe('payloads[3].to')
  })

  const nested = (depth: number, wrap: (inside: unknown) => unknown, seed: unknown = 1): unknown => {
    let value = seed
    for (let level = 0; level < depth; level++) value = wrap(value)
    return value
  }

  it('writes a thousand levels, and no more', () => {
    for (const seed of [1, new Date(0)]) {
      expect(encode(decode(encode(nested(990, (inside) => [inside], seed))))).toBe(
        encode(nested(990, (inside) => [inside], seed)),
      )
      expect(encode(decode(encode(nested(990, (a) => ({ a }), seed))))).toBe(encode(nested(990, (a) => ({ a }), seed)))
    }
    expect(roundTrip(nested(1000, (a) => ({ a })))).toBeTypeOf('object')
    for (const depth of [1001, 100_000]) {
      expect(refusal(nested(depth, (a) => ({ a }))).message).toContain('nested more than 1000 levels deep')
      expect(refusal(nested(depth, (inside) => [inside])).message).toContain('nested more than 1000 levels deep')
      expect(refusal(nested(depth, (inside) => new Set([inside]))).path.length).toBeLessThan(2000)
      expect(refusal(nested(depth, (cause) => new Error('x', { cause }))).message).toContain('levels deep')
    }
  })

  it('reads maps as deep as it writes them', () => {
    const value = nested(333, (inside) => new Map([[1, inside]]))
    expect(roundTrip(value)).toStrictEqual(value)
  })

  it('refuses a graph that unfolds for ever, or an array of holes, in bounded time', () => {
    const wide = nested(40, (inside) => [inside, inside])
    expect(refusal(wide).message).toContain(String(PARTS_MAX))
    expect(refusal({ a: new Array(2 ** 32 - 1) }).path).toBe('a')
  })

  it('a proxy that throws is refused with its cause and path', () => {
    const cause = new Error('trap')
    const trap = (): never => {
      throw cause
    }
    for (const handler of [{ getPrototypeOf: trap }, { ownKeys: trap }, { getOwnPropertyDescriptor: trap }]) {
      const error = refusal({ deep: [new Proxy({ a: 1 }, handler)] })
      expect(error.path).toMatch(/^deep\[0\]/)
      expect(error.cause).toBe(cause)
    }
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(refusal({ proxy }).path).toBe('proxy')
    expect(roundTrip(new Proxy({ a: [1] }, {}))).toStrictEqual({ a: [1] })
  })
})

describe('reading', () => {
  it('accepts only the listed tags', () => {
    for (const name of ['Function', 'constructor', '__proto__', 'toString', 'RegExp', 'money']) {
      const error = unread(`{"a":[{"$":${JSON.stringify(name)},"v":1}]}`)
      expect(error.path).toBe('a[0]')
      expect(error.message).toContain(JSON.stringify(name))
    }
    expect(unread('{"$":"date"}').message).toContain('did you mean "Date"?')
    for (const written of ['"soon"', '"2026-01-01"', '"+275760-09-13T00:00:00.001Z"'])
      expect(unread(`{"$":"Date","v":${written}}`).message).toContain('as Date.prototype.toISOString writes it')
  })

  it.each([
    '{"$":"Date","v":"yesterday"}',
    '{"$":"Date","v":5}',
    '{"$":"Date","v":"2026-02-30T00:00:00.000Z"}',
    '{"$":"BigInt","v":"1.5"}',
    '{"$":"BigInt","v":""}',
    '{"$":"Map","v":[1]}',
    '{"$":"Map","v":[[1,2,3]]}',
    '{"$":"Map","v":{}}',
    '{"$":"Set","v":"abc"}',
    '{"$":"URL","v":"nowhere"}',
    '{"$":"Uint8Array","v":"***"}',
    '{"$":"Uint8Array","v":[1]}',
    '{"$":"Error","v":"x"}',
    '{"$":"Error","v":{"name":1,"message":"x"}}',
    '{"$":"Error","v":{"name":"Error","message":"x","errors":5}}',
    '{"$":"NaN","v":1}',
    '{"$":5}',
    '{"$":"Date","v":null,"w":1}',
    '{"\\u0024":"nope"}',
    '{',
    '',
  ])('damaged text is an error: %s', (text) => {
    expect(unread(text).message.length).toBeGreaterThan(20)
  })

  it('of any JSON returns or throws CodecError, and does not change a prototype', () => {
    const names = fc.constantFrom('$', '$$', 'v', '__proto__', 'constructor', 'prototype', 'a')
    const tags = fc.constantFrom('Date', 'Map', 'Set', 'Error', 'BigInt', 'URL', 'Uint8Array', 'undefined', '-0', 'x')
    const hostile = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        tags,
        fc.jsonValue({ maxDepth: 1 }),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.array(fc.tuple(names, tie('value')), { maxLength: 3 }).map((entries) => Object.fromEntries(entries)),
        fc.tuple(tags, tie('value')).map(([$, v]) => ({ $, v })),
      ),
    })).value
    const seesNothing = (text: string): void => {
      try {
        decode(text)
      } catch (error) {
        expect(error).toBeInstanceOf(CodecError)
      }
      expect(Object.keys(Object.prototype)).toStrictEqual([])
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    }
    fc.assert(
      fc.property(hostile, (value) => seesNothing(JSON.stringify(value))),
      { numRuns: 1000 },
    )
    fc.assert(fc.property(fc.string(), seesNothing))
  })

  it('of a very deep text returns a value or an error, and does not crash', () => {
    expect(unread(`${'['.repeat(100_000)}{"$":"NaN"}${']'.repeat(100_000)}`).message).toContain('levels deep')
    expect(decode(`${'['.repeat(5000)}${']'.repeat(5000)}`)).toHaveLength(1)
  })
})

describe('options', () => {
  class Money {
    readonly cents: bigint
    readonly at: Date
    constructor(cents: bigint, at: Date) {
      this.cents = cents
      this.at = at
    }
  }
  const money = {
    is: (value: unknown): value is Money => value instanceof Money,
    write: (value: Money) => ({ cents: value.cents, at: value.at }),
    read: (written: unknown) => {
      const { cents, at } = written as Money
      return new Money(cents, at)
    },
  }

  it('register types, which may be nested and are tried before the built-in ones', () => {
    const using = codec({ types: { money } })
    const value = { list: [new Map([['a', new Money(5n, new Date(0))]])] }
    expect(roundTrip(value, using)).toStrictEqual(value)
    const upper = codec({
      types: { big: { is: (v) => typeof v === 'bigint', write: (v) => `${String(v)}!`, read: () => 7n } },
    })
    expect(upper.encode(5n)).toBe('{"$":"big","v":"5!"}')
  })

  it('infer the value type from is()', () => {
    const using = codec({
      types: {
        point: {
          is: (value: unknown): value is { readonly x: number } =>
            typeof value === 'object' && value !== null && 'x' in value,
          write: (point) => ({ x: point.x + 0 }),
          read: (written) => written as { readonly x: number },
        },
      },
    })
    // The written form looks like the value; is() of a type is not called for its own written form.
    expect(using.encode({ p: { x: 1 } })).toBe('{"p":{"$":"point","v":{"x":1}}}')
    expect(roundTrip({ p: { x: 1 } }, using)).toStrictEqual({ p: { x: 1 } })
    const same = codec({ types: { same: { is: (v) => typeof v === 'object', write: (v) => v, read: (v) => v } } })
    expect(same.encode({ x: 1 })).toBe('{"$":"same","v":{"x":1}}')
  })

  it('report an error of a type with the path and the cause', () => {
    const cause = new CodecError('elsewhere', 'no')
    const broken = codec({
      types: {
        money: {
          is: (v) => v instanceof Money,
          write: () => {
            throw cause
          },
          read: () => {
            throw cause
          },
        },
      },
    })
    expect(refusal({ a: new Money(1n, new Date()) }, broken)).toMatchObject({ path: 'a', cause })
    expect(unread('{"a":{"$":"money"}}', broken)).toMatchObject({ path: 'a', cause })
    const worse = codec({
      types: {
        w: {
          is: () => {
            throw cause
          },
          write: () => 1,
          read: () => 1,
        },
      },
    })
    expect(refusal([{}], worse)).toMatchObject({ path: '', cause })
    const endless = codec({ types: { e: { is: (v) => v instanceof Money, write: (v) => [v], read: () => 1 } } })
    expect(refusal(new Money(1n, new Date()), endless).message).toContain('points back')
  })

  it('exclude built-in types, for writing and reading, and free their names', () => {
    const using = codec({ without: ['Date', 'undefined', 'Temporal.Instant'] })
    expect(refusal({ at: new Date() }, using).message).toBe(
      'at is of the type Date, which this codec leaves out (without: ["Date"])',
    )
    expect(refusal({ at: undefined }, using).path).toBe('at')
    expect(unread('{"$":"Date","v":null}', using).message).toContain('does not know')
    const own = codec({
      without: ['Date'],
      types: { Date: { is: (v) => v instanceof Date, write: Number, read: (n) => new Date(Number(n)) } },
    })
    expect(own.encode(new Date(5))).toBe('{"$":"Date","v":5}')
    expect(roundTrip(new Date(5), own)).toStrictEqual(new Date(5))
  })

  it('switch RegExp on', () => {
    const using = codec({ regExp: true })
    expect(roundTrip({ p: /a\/"b/giu }, using)).toStrictEqual({ p: /a\/"b/giu })
    expect(unread('{"$":"RegExp","v":{"source":"(","flags":""}}', using).path).toBe('')
  })

  it('replace encode and decode, with text or bytes; their errors are CodecErrors too', () => {
    const using = codec({ encode: (value) => new TextEncoder().encode(String(value)), decode: (bytes) => bytes.length })
    expect(roundTrip('hello', using)).toBe(5)
    const broken = codec({
      encode: () => 5 as unknown as string,
      decode: () => {
        throw new Error('bad')
      },
    })
    expect(refusal(1, broken).message).toContain('must return a string or a Uint8Array')
    expect(unread('x', broken).message).toContain('bad')
  })

  it('report all problems at once', () => {
    const wrong = {
      typs: {},
      types: { Date: money, money: { is: 5, write: money.write, raed: money.read }, '': money, none: null },
      without: ['date', 5],
      regExp: 'yes',
      temporal: 1,
      encode: () => '',
    }
    let error: unknown
    try {
      codec(wrong as never)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toBeInstanceOf(InvalidOptionsError)
    const problems = (error as InvalidOptionsError).problems.map(({ path, message }) => `${path} ${message}`)
    expect(problems.join('\n')).toMatchInlineSnapshot(`
      "typs is no option of a codec; did you mean "types"?
      types.Date is the name of a built-in type; leave that one out with without: ["Date"] or choose another
      types.money.is must be a function, got 5
      types.money.read must be a function, got undefined
      types.money.raed is no part of a type, which has is, write and read; did you mean "read"?
      types[""] has no name; the name is what marks the type in the text
      types.none must be { is, write, read }, got null
      without[0] must be the name of a built-in type, got "date"; did you mean "Date"?
      without[1] must be the name of a built-in type, got 5
      regExp must be true or false, got "yes"
      temporal must be the Temporal namespace, got 1
      decode is missing; encode and decode are replaced together
      types has no effect when encode and decode are replaced; leave it out
      without has no effect when encode and decode are replaced; leave it out
      regExp has no effect when encode and decode are replaced; leave it out
      temporal has no effect when encode and decode are replaced; leave it out"
    `)
    expect(() => codec('json' as never)).toThrow(InvalidOptionsError)
    expect(() => codec({ without: 'Date' as never, types: [] as never })).toThrow(/2 problems/)
  })
})

describe('Temporal', () => {
  class Instant {
    readonly #text: string
    constructor(text: string) {
      this.#text = text
    }
    static from(text: string): Instant {
      if (!text.endsWith('Z')) throw new RangeError('no instant')
      return new Instant(text)
    }
    toString(): string {
      return this.#text
    }
    get [Symbol.toStringTag](): string {
      return 'Temporal.Instant'
    }
  }
  class Duration {
    // Private, as in Temporal, where the fields are getters of the class.
    readonly #fields: Readonly<Record<string, number>>
    constructor(fields: Readonly<Record<string, number>>) {
      this.#fields = fields
    }
    static from(written: string | Record<string, number>): Duration {
      return new Duration(typeof written === 'string' ? { hours: Number(written.slice(2, -1)) } : written)
    }
    get hours(): number {
      return this.#fields['hours'] ?? 0
    }
    get milliseconds(): number {
      return this.#fields['milliseconds'] ?? 0
    }
    toString(): string {
      return `PT${this.hours}H`
    }
    get [Symbol.toStringTag](): string {
      return 'Temporal.Duration'
    }
  }
  const using = codec({ temporal: { Instant, Duration } as never })

  it('types given by option are written as their text, and durations in full', () => {
    expect(using.encode({ at: new Instant('2026-01-01T00:00:00Z') })).toBe(
      '{"at":{"$":"Temporal.Instant","v":"2026-01-01T00:00:00Z"}}',
    )
    expect(String(roundTrip(new Instant('2026-01-01T00:00:00Z'), using))).toBe('2026-01-01T00:00:00Z')
    expect(using.encode(new Duration({ hours: 2 }))).toBe('{"$":"Temporal.Duration","v":"PT2H"}')
    expect(roundTrip(new Duration({ hours: 2, milliseconds: 1500 }), using)).toMatchObject({
      hours: 2,
      milliseconds: 1500,
    })
    expect(unread('{"$":"Temporal.Instant","v":"soon"}', using).message).toContain('no instant')
    expect(unread('{"$":"Temporal.Instant","v":{}}', using).message).toContain('expected text')
  })

  it('types of the runtime are used where no option gives others', () => {
    const runtime = globalThis as { Temporal?: unknown }
    const before = Object.getOwnPropertyDescriptor(runtime, 'Temporal')
    Object.defineProperty(runtime, 'Temporal', { value: { Instant, Duration }, configurable: true, writable: true })
    try {
      expect(defaultCodec.decode('{"$":"Temporal.Instant","v":"2026-01-01T00:00:00Z"}')).toBeInstanceOf(Instant)
    } finally {
      if (before === undefined) delete runtime.Temporal
      else Object.defineProperty(runtime, 'Temporal', before)
    }
  })

  it('refuses types of another Temporal, because they would be read back as this one', () => {
    class Stranger {
      get [Symbol.toStringTag](): string {
        return 'Temporal.Instant'
      }
    }
    expect(refusal({ at: new Stranger() }, using)).toMatchObject({ path: 'at' })
    expect(refusal({ at: new Stranger() }, using).message).toContain('another Temporal')
  })

  const temporal = (globalThis as { Temporal?: Record<string, { from(text: string): { toString(): string } }> })
    .Temporal

  // Only runtimes without Temporal (Node before 26) can test this.
  it.skipIf(temporal !== undefined)('reports a Temporal tag where the runtime has no Temporal', () => {
    expect(unread('{"at":{"$":"Temporal.Instant","v":"2026-01-01T00:00:00Z"}}')).toMatchObject({ path: 'at' })
    expect(unread('{"$":"Temporal.Instant","v":"2026-01-01T00:00:00Z"}').message).toContain(
      'this runtime has no Temporal',
    )
    expect(refusal(new Instant('2026-01-01T00:00:00Z')).message).toContain('codec({ temporal: Temporal })')
  })

  // Only runtimes with Temporal (Node 26 on) can test this.
  it.skipIf(temporal === undefined).each([
    ['Instant', '2026-01-01T00:00:00.123456789Z'],
    ['PlainDate', '2026-01-01[u-ca=hebrew]'],
    ['PlainTime', '10:20:30.5'],
    ['PlainDateTime', '2026-01-01T10:20:30'],
    ['ZonedDateTime', '2026-01-01T10:20:30+01:00[Europe/Vienna]'],
    ['Duration', 'P1Y2M3W4DT5H6M7.008009010S'],
    ['PlainYearMonth', '2026-01'],
    ['PlainMonthDay', '12-24'],
  ])('the native %s round-trips', (name, text) => {
    const value = temporal?.[name]?.from(text)
    expect(String(roundTrip(value))).toBe(value?.toString())
    expect(roundTrip(value)).toBeInstanceOf(temporal?.[name])
  })
})
