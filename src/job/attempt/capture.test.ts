import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { codec, defaultCodec } from '../../codec/codec.js'
import type { Codec } from '../../codec/codec.js'
import { Capture, CAPTURED_MAX_BYTES, readCaptured } from './capture.js'
import type { ContextStore } from './capture.js'

const capture = (stores: Record<string, ContextStore>, trace?: ContextStore, by: Codec = defaultCodec): Capture =>
  new Capture(stores, trace, by)
const holding = (value: unknown): ContextStore => ({ getStore: () => value, run: (_, call) => call() })
const enter = <T>(within: (<R>(call: () => R) => R) | undefined, call: () => T): T => {
  if (within === undefined) throw new Error('nothing was captured')
  return within(call)
}

describe('capture', () => {
  test('reads every store, and omits those without a value', () => {
    const [tenant, user] = [new AsyncLocalStorage(), new AsyncLocalStorage()]
    const both = capture({ tenant, user })
    expect(both.capture()).toEqual({ captured: undefined, problems: [] })
    expect(tenant.run({ id: 7, since: new Date(0) }, () => both.capture())).toEqual({
      captured: { tenant: { text: '{"id":7,"since":{"$":"Date","v":"1970-01-01T00:00:00.000Z"}}' } },
      problems: [],
    })
    expect(Object.keys(tenant.run(null, () => user.run(0, () => both.capture())).captured ?? {})).toEqual([
      'tenant',
      'user',
    ])
  })

  test('reports every value that cannot be encoded, with its store and path', () => {
    const { problems } = capture({
      request: holding({ db: { query: () => 1 } }),
      user: holding(Symbol('me')),
    }).capture()
    expect(problems.map((p) => p.path)).toEqual(['captured.request.db.query', 'captured.user'])
    expect(problems[0]?.message).toContain('capture takes it at each enqueue')
  })

  test('reports a store whose getStore() throws', () => {
    const throwing: ContextStore = {
      getStore: () => {
        throw new Error('no store today')
      },
      run: (_, call) => call(),
    }
    expect(capture({ throwing }).capture().problems).toEqual([
      {
        path: 'captured.throwing',
        message: 'could not be written: no store today (capture takes it at each enqueue)',
      },
    ])
  })

  test('has a limit on the stored bytes of all values together', () => {
    const text = (bytes: number): string => 'x'.repeat(bytes - 2)
    const fits = { a: holding(text(CAPTURED_MAX_BYTES - 10)), b: holding(text(10)) }
    expect(capture(fits).capture().problems).toEqual([])
    const tooLarge = { a: holding(text(CAPTURED_MAX_BYTES - 10)), b: holding(text(11)) }
    expect(capture(tooLarge).capture().problems).toEqual([
      {
        path: 'captured',
        message: expect.stringMatching(/has 16385 bytes and the limit is 16384 \(a 16374, b 11\)/) as string,
      },
    ])
    expect(capture({ a: holding('é'.repeat(8_192)) }).capture().problems).toHaveLength(1)
  })

  test('accepts __proto__ as a name', () => {
    const hostile = capture(Object.fromEntries([['__proto__', holding(1)]]))
    const { captured } = hostile.capture()
    expect(Object.keys(captured ?? {})).toEqual(['__proto__'])
    expect(readCaptured(JSON.parse(JSON.stringify(captured)) as never, defaultCodec)).toEqual(
      Object.fromEntries([['__proto__', 1]]),
    )
    expect(readCaptured(undefined, defaultCodec)).toEqual({})
  })
})

describe('restore', () => {
  const tenant = new AsyncLocalStorage<unknown>()
  const user = new AsyncLocalStorage<unknown>()
  const both = capture({ tenant, user })
  const values = (): unknown[] => [tenant.getStore(), user.getStore()]

  test('gives each store its captured value, also across awaits', async () => {
    const { captured } = tenant.run('acme', () => user.run(new Map([[1, 2n]]), () => both.capture()))
    const seen = await enter(both.restore(captured), async () => {
      await Promise.resolve()
      return values()
    })
    expect(seen).toEqual(['acme', new Map([[1, 2n]])])
    expect(values()).toEqual([undefined, undefined])
  })

  test('gives undefined to a store that had no value, also when the surrounding context has one', () => {
    const { captured } = tenant.run('acme', () => both.capture())
    const seen = user.run('another user', () => enter(both.restore(captured), values))
    expect(seen).toEqual(['acme', undefined])
    expect(tenant.run('the waker', () => enter(both.restore(undefined), values))).toEqual([undefined, undefined])
  })

  test('ignores names that this mill does not capture, without decoding them', () => {
    const { captured } = tenant.run('acme', () => both.capture())
    const stored = { ...captured, other: { text: 'not even JSON' } }
    expect(enter(both.restore(stored), values)).toEqual(['acme', undefined])
    expect(readCaptured(stored, defaultCodec)).toEqual({ tenant: 'acme' })
  })

  test('refuses a value that does not decode, by name', () => {
    expect(() => both.restore({ tenant: { text: '{"$":"Money","v":1}' } })).toThrow(
      /what was captured as "tenant" does not decode: .*Money/,
    )
  })

  test('works with a codec that writes bytes', () => {
    const bytes = codec({
      encode: (value) => new TextEncoder().encode(JSON.stringify(value)),
      decode: (written) => JSON.parse(new TextDecoder().decode(written as Uint8Array)) as unknown,
    })
    const inBytes = capture({ tenant }, undefined, bytes)
    const { captured } = tenant.run('acme', () => inBytes.capture())
    expect(captured).toEqual({ tenant: { base64: Buffer.from('"acme"').toString('base64') } })
    expect(enter(inBytes.restore(captured), () => tenant.getStore())).toBe('acme')
    expect(readCaptured(captured, bytes)).toEqual({ tenant: 'acme' })
  })

  test('returns and throws what the call did, also for a store whose run() returns nothing', () => {
    const silent: ContextStore = { getStore: () => 1, run: (_, call) => void call() }
    const quiet = capture({ silent })
    expect(enter(quiet.restore(undefined), () => 5)).toBe(5)
    expect(() =>
      enter(quiet.restore(undefined), () => {
        throw new RangeError('inside')
      }),
    ).toThrow('inside')
  })

  test('throws when a store does not call back', () => {
    const dead = capture({ dead: { getStore: () => 1, run: () => undefined } })
    expect(() => enter(dead.restore(undefined), () => 5)).toThrow('did not call back')
  })
})

describe('the trace', () => {
  const calls: unknown[] = []
  const trace: ContextStore = {
    getStore: () => ({ traceparent: '00-a-b-01' }),
    run: (value: unknown, call) => {
      calls.push(value)
      return call()
    },
  }
  test('is restored for jobs that have one, and costs the others nothing', () => {
    const traced = capture({}, trace)
    expect(traced.restore(undefined)).toBeUndefined()
    expect(traced.restore({ tenant: { text: '1' } })).toBeUndefined()
    enter(traced.restore(traced.capture().captured), () => undefined)
    expect(calls).toEqual([{ traceparent: '00-a-b-01' }])
  })
})
