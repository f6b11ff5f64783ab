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

  it('counts the bytes of every code unit, alone and in pairs', () => {
    const units = Array.from({ length: 65_536 }, (_, unit) => String.fromCharCode(unit))
    const pairs = ['\ud800\udc00', '\udbff\udfff', '\udbff\ue000', '\ud7ff\udc00', '\udc00\ud800']
    expect([...units, ...pairs].filter((text) => jsonBytes(text) !== bytesOf(text))).toEqual([])
  })

  it('keeps a text that fits exactly, and cuts a longer one to what the mark leaves', () => {
    expect(cutText('a'.repeat(98), 100)).toBe('a'.repeat(98))
    expect(cutText('ä'.repeat(49), 100)).toBe('ä'.repeat(49))
    expect(cutText('a'.repeat(99), 100)).toBe(`${'a'.repeat(50)}… [49 more characters]`)
    expect(cutText('ä'.repeat(50), 100)).toBe(`${'ä'.repeat(25)}… [25 more characters]`)
    expect(cutText(`${'a'.repeat(48)}${'\ud83d\ude00'.repeat(20)}`, 100)).toBe(
      `${'a'.repeat(48)}… [40 more characters]`,
    )
    expect(cutText(`${'a'.repeat(46)}${'\ud83d\ude00'.repeat(20)}`, 100)).toBe(
      `${'a'.repeat(46)}\ud83d\ude00… [38 more characters]`,
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

  it('describes an error that occurs twice both times, since that is no cycle', () => {
    const twice = new Error('twice')
    const record = describeError(new AggregateError([twice, twice], 'both', { cause: twice }))
    expect([record.cause, ...(record.errors ?? [])].map((each) => each?.message)).toEqual(['twice', 'twice', 'twice'])
  })

  it('keeps eight errors of an aggregate, and none of a field that is no list', () => {
    const errors = Array.from({ length: 9 }, (_, n) => new Error(`${n}`))
    expect(describeError(new AggregateError(errors.slice(0, 8))).errors).toHaveLength(8)
    expect(describeError(new AggregateError(errors)).errors?.at(-1)?.message).toBe('7')
    expect(describeError(Object.assign(new Error('x'), { errors: 'several' }))).toMatchObject({ message: 'x' })
    expect(Object.keys(describeError(Object.assign(new Error('x'), { errors: 5 })))).toEqual([
      'name',
      'message',
      'stack',
    ])
  })

  it('keeps the class of an error whose name is inherited', () => {
    class HttpError extends RangeError {}
    const record = describeError(new HttpError('busy'))
    expect(record).toMatchObject({ name: 'RangeError', type: 'HttpError' })
    expect(describeError(new RangeError('far'))).not.toHaveProperty('type')
    const [back, plain] = [reviveError(record), reviveError(describeError(new RangeError('far')))]
    expect([back.constructor.name, plain.constructor]).toEqual(['HttpError', RangeError])
    expect(back).toBeInstanceOf(RangeError)
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

  /** Every text of it is too long. */
  function hugeError(depth: number): Error {
    const fields = { name: 'N'.repeat(900), code: '"'.repeat(900), stack: '\0'.repeat(9_000), url: 'u'.repeat(900) }
    const related = depth === 0 ? [] : Array.from({ length: 3 }, () => hugeError(depth - 1))
    return Object.assign(new AggregateError(related, '\n'.repeat(9_000), { cause: related[0] }), fields)
  }

  it.each([1_024, 1_500, 2_000, 3_000, 5_000, 9_000, 20_000, 65_536])(
    'keeps to a limit of %i bytes where every text is too long, and uses most of it',
    (limit) => {
      const taken = bytesOf(describeError(hugeError(2), limit))
      expect(taken).toBeLessThanOrEqual(limit)
      expect(taken).toBeGreaterThan(limit / 3)
    },
  )

  it('has a limit of 1,024 bytes at least', () => {
    expect(describeError('x'.repeat(5_000), 10)).toEqual(describeError('x'.repeat(5_000), 1_024))
    expect(bytesOf(describeError('x'.repeat(5_000), 2_000))).toBeGreaterThan(1_800)
  })

  it('gives the message half of the limit, the stack half of the rest, and the cause what is left', () => {
    const [message, cause] = ['m'.repeat(20_000), new Error('c'.repeat(20_000))]
    const error = Object.assign(new Error(message, { cause }), { stack: 's'.repeat(20_000) })
    const record = describeError(error, 10_000)
    const shares = [record.message, record.stack, record.cause].map((part) => bytesOf(part) / 10_000)
    for (const [at, most] of [0.5, 0.25, 0.25].entries()) {
      expect(shares[at]).toBeLessThanOrEqual(most)
      expect(shares[at]).toBeGreaterThan(most - 0.05)
    }
    expect(bytesOf(describeError(Object.assign(new Error('m'), { stack: error.stack }), 10_000).stack)).toBeGreaterThan(
      9_500,
    )
  })

  it('gives the fields a quarter of what the message leaves', () => {
    const fields = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`field${n}`, 'f'.repeat(20)]))
    const { props } = describeError(Object.assign(new Error('m'), fields), 4_096)
    expect(bytesOf(props)).toBeGreaterThan(900)
    expect(bytesOf(props)).toBeLessThan(1_024)
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

  it('adds no field that the record has not, and makes an aggregate of one with errors', () => {
    const back = reviveError({ name: 'PayError', message: 'declined' })
    expect(Object.keys(back)).toEqual([])
    expect(Object.hasOwn(back, 'cause')).toBe(false)
    const gathered = reviveError({ name: 'AggregateError', message: 'both', errors: [{ name: 'Error', message: 'a' }] })
    expect(gathered).toBeInstanceOf(AggregateError)
    expect((gathered as AggregateError).errors).toMatchObject([{ message: 'a' }])
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
