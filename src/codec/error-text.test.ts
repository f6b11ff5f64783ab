import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { codec, defaultCodec } from './codec.js'
import { cutText, jsonBytes } from './cut-text.js'
import { describeError, reviveError } from './error-text.js'

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

const surprises = fc.string({
  unit: fc.constantFrom('\0', '\n', '\ud800', '\udc00', '\ud83d\ude00', '"', '\\', 'ä', '€', 'a'),
})

describe('cutting', () => {
  it('counts the bytes that JSON takes', () => {
    fc.assert(
      fc.property(fc.oneof(surprises, fc.string({ unit: 'binary' })), (text) => {
        expect(jsonBytes(text)).toBe(bytesOf(text))
      }),
    )
  })

  it('keeps to the limit, appends how much is missing and splits no surrogate pair', () => {
    fc.assert(
      fc.property(surprises, fc.integer({ min: 52, max: 120 }), fc.nat(20), (text, limit, times) => {
        const long = text.repeat(times)
        const cut = cutText(long, limit)
        expect(bytesOf(cut)).toBeLessThanOrEqual(limit)
        if (cut === long) return
        const found = /^(?<kept>.*)… \[(?<missing>\d+) more characters\]$/su.exec(cut)
        const kept = found?.groups?.['kept'] ?? '?'
        expect(long.startsWith(kept)).toBe(true)
        expect(kept.length + Number(found?.groups?.['missing'])).toBe(long.length)
        const isHalved = /[\ud800-\udbff]$/.test(kept) && /^[\udc00-\udfff]/.test(long.slice(kept.length))
        expect(isHalved).toBe(false)
      }),
    )
  })
})

describe('describeError', () => {
  it('keeps name, message, stack, code, cause and the errors of an aggregate', () => {
    const cause = Object.assign(new TypeError('inner'), { code: 'ECONNREFUSED' })
    const error = new AggregateError([new Error('a'), 'b'], 'outer', { cause })
    expect(describeError(error)).toStrictEqual({
      name: 'AggregateError',
      message: 'outer',
      stack: error.stack,
      cause: { name: 'TypeError', message: 'inner', stack: cause.stack, code: 'ECONNREFUSED' },
      errors: [
        { name: 'Error', message: 'a', stack: (error.errors[0] as Error).stack },
        { name: 'NonError', message: 'b' },
      ],
    })
  })

  it.each([
    ['boom', { name: 'NonError', message: 'boom' }],
    [null, { name: 'NonError', message: 'null' }],
    [undefined, { name: 'NonError', message: 'undefined' }],
    [5n, { name: 'NonError', message: '5n' }],
    [Symbol('s'), { name: 'NonError', message: 'Symbol(s)' }],
    [() => 1, { name: 'NonError', message: 'a function' }],
    [
      { status: 404, body: {} },
      { name: 'NonError', message: '{ "status": 404, "body": an Object }' },
    ],
    [[1, 'a'], { name: 'NonError', message: '[1, "a"]' }],
    [new Uint8Array(5), { name: 'NonError', message: 'an Uint8Array' }],
    [
      { message: 'like one', code: 7 },
      { name: 'Error', message: 'like one', code: 7 },
    ],
    [
      { message: 'like one', name: '', code: Number.NaN },
      { name: 'Error', message: 'like one' },
    ],
  ])('describes a thrown value: %s', (thrown, record) => {
    expect(describeError(thrown)).toStrictEqual(record)
  })

  it('reads only the shown part of a huge array', () => {
    expect(describeError(new Array(1e9)).message).toBe(`[${'undefined, '.repeat(20)}… 999999980 more]`)
  })

  it('survives hostile values', () => {
    const bomb = (): never => {
      throw new Error('trap')
    }
    const everyTrap = new Proxy({}, { get: () => bomb })
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    const getters = Object.defineProperties(new Error('x'), {
      // First: to redefine it later, the JavaScript engine would format the stack and read the message.
      stack: { get: bomb },
      message: { get: bomb },
      name: { get: bomb },
      cause: { get: bomb },
      code: { get: bomb },
    })
    expect(describeError(getters)).toStrictEqual({ name: 'Error', message: '' })
    for (const thrown of [new Proxy({}, everyTrap), new Proxy(new Error('x'), everyTrap), revoked.proxy]) {
      expect(describeError(thrown).name).toBeTypeOf('string')
    }
    expect(
      describeError({
        toString: bomb,
        toJSON: bomb,
        get a() {
          return bomb()
        },
      }).message,
    ).toBe('an Object')
  })

  it('follows causes up to a bound and stops at a cycle', () => {
    const error = new Error('a')
    error.cause = new Error('b', { cause: error })
    expect(describeError(error).cause?.cause?.message).toBe('(cycle: an error above)')
    let deep: unknown = 'end'
    for (let level = 0; level < 10_000; level++) deep = new Error(String(level), { cause: deep })
    let length = 0
    for (let at: { readonly cause?: unknown } | undefined = describeError(deep); at; at = at.cause as typeof at)
      length += 1
    expect(length).toBe(9)
  })

  it('keeps the whole within the limit, with the frames of a stack whose message is huge', () => {
    const giant = new Error('x'.repeat(50_000_000), { cause: new Error('\0'.repeat(1_000_000)) })
    const record = describeError(giant)
    expect(bytesOf(record)).toBeLessThanOrEqual(65_536)
    expect(record.message).toMatch(/x… \[\d+ more characters\]$/)
    expect(record.stack).toContain('error-text.test.ts')
    expect(record.cause?.message).toMatch(/more characters\]$/)
    expect(bytesOf(describeError('\ud800'.repeat(1_000_000)))).toBeLessThanOrEqual(65_536)
  })

  it('never throws, keeps to the limit and returns a value that the codec can write, for any input', () => {
    const errors = fc.letrec<{ any: unknown }>((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        fc.anything(),
        surprises.map((text) => text.repeat(50)),
        fc
          .tuple(surprises, tie('any'), fc.anything(), fc.array(tie('any'), { maxLength: 10 }))
          .map(([message, cause, code, list]) =>
            Object.assign(new AggregateError(list, message.repeat(50), { cause }), { code }),
          ),
      ),
    })).any
    fc.assert(
      fc.property(errors, fc.integer({ min: 1024, max: 5000 }), (thrown, limit) => {
        const record = describeError(thrown, limit)
        expect(bytesOf(record)).toBeLessThanOrEqual(limit)
        expect(defaultCodec.decode(defaultCodec.encode(record))).toStrictEqual(record)
        expect(reviveError(record)).toBeInstanceOf(Error)
      }),
      { numRuns: 500 },
    )
  })
})

describe('reviveError', () => {
  it('creates an error with the same description', () => {
    const error = new RangeError('far', {
      cause: Object.assign(new Error('near'), { code: 'E_NEAR', name: 'NearError' }),
    })
    const record = describeError(error)
    const back = reviveError(record)
    expect(back).toBeInstanceOf(RangeError)
    expect(back.cause).toMatchObject({ name: 'NearError', message: 'near', code: 'E_NEAR' })
    expect(describeError(back)).toStrictEqual(record)
    expect(codec().decode(codec().encode(back))).toMatchObject({ name: 'RangeError', message: 'far' })
  })

  it('gives an error without a stack its name and message as the stack', () => {
    expect(reviveError({ name: 'PayError', message: 'declined' }).stack).toBe('PayError: declined')
  })
})

describe('the fields of an error', () => {
  class HttpError extends Error {
    override readonly name = 'HttpError'
    readonly status = 503
    readonly retryable = true
    readonly detail = null
    readonly code = 'E_BUSY'
    readonly request = { headers: { authorization: 'secret' } }
    readonly rate = Number.NaN
  }

  it('are kept where they are plain, and are read back on a class of that name', () => {
    const record = describeError(new HttpError('busy'))
    expect(record).toMatchObject({ code: 'E_BUSY', props: { status: 503, retryable: true, detail: null } })
    expect(Object.keys(record.props ?? {})).toEqual(['status', 'retryable', 'detail'])
    const back = reviveError(record)
    expect(back.constructor.name).toBe('HttpError')
    expect(Object.fromEntries(Object.entries(back))).toEqual({
      status: 503,
      retryable: true,
      detail: null,
      code: 'E_BUSY',
    })
    expect(describeError(back)).toStrictEqual(record)
  })

  it('are bounded, each and together', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`field${n}`, n]))
    expect(bytesOf(describeError(Object.assign(new Error('x'), many)).props)).toBeLessThanOrEqual(4_098)
    const long = describeError(Object.assign(new Error('x'), { body: 'y'.repeat(1e6), status: 5 }))
    expect(long.props?.['body']).toMatch(/y… \[\d+ more characters\]$/)
    expect(long.props?.['status']).toBe(5)
  })
})
