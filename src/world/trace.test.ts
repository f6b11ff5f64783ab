import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, describe, expect, test } from 'vitest'
import { traceContext } from './trace.js'

/** What OpenTelemetry's API stores under its global symbol once an SDK has registered: a copy of its shape. */
const API = Symbol.for('opentelemetry.js.api.1')
const global = globalThis as { [API]?: unknown }
afterEach(() => delete global[API])

type Span = { readonly trace: string; readonly baggage?: string } | undefined
interface Setter {
  set(carrier: object, key: string, value: string): void
}
interface Getter {
  get(carrier: object, key: string): string | undefined
  keys(carrier: object): string[]
}

function register(): AsyncLocalStorage<Span> {
  const active = new AsyncLocalStorage<Span>()
  const propagation = {
    inject(span: Span, carrier: object, setter: Setter) {
      if (span === undefined) return
      setter.set(carrier, 'traceparent', `00-${span.trace}-01`)
      if (span.baggage !== undefined) setter.set(carrier, 'baggage', span.baggage)
    },
    extract(base: Span, carrier: object, getter: Getter): Span {
      const parent = getter.get(carrier, 'traceparent')
      return parent === undefined ? base : { trace: `${parent} of ${getter.keys(carrier).join()}` }
    },
  }
  const context = { active: () => active.getStore(), with: (span: Span, call: () => unknown) => active.run(span, call) }
  global[API] = { version: '1.9.0', context, propagation }
  return active
}

test('without OpenTelemetry there is no carrier, and run just calls', () => {
  expect(traceContext.getStore()).toBeUndefined()
  expect(traceContext.run({ traceparent: 'x' }, () => 5)).toBe(5)
})

test.each([{}, { context: {} }, { propagation: {} }])('an API without a registered SDK counts as none: %j', (api) => {
  global[API] = api
  expect(traceContext.getStore()).toBeUndefined()
  expect(traceContext.run({ traceparent: 'x' }, () => 5)).toBe(5)
})

describe('with OpenTelemetry', () => {
  test('the propagator writes the active context; without one there is no carrier', () => {
    const active = register()
    expect(traceContext.getStore()).toBeUndefined()
    expect(active.run({ trace: 'abc', baggage: 'a=1' }, () => traceContext.getStore())).toEqual({
      traceparent: '00-abc-01',
      baggage: 'a=1',
    })
  })

  test('the written context is active inside the call, also after an await', async () => {
    const active = register()
    const inside = traceContext.run({ traceparent: '00-abc-01', tracestate: 'x=1' }, async () => {
      await Promise.resolve()
      return active.getStore()
    })
    expect(await inside).toEqual({ trace: '00-abc-01 of traceparent,tracestate' })
    expect(active.getStore()).toBeUndefined()
  })

  test('a field that does not fit is left out, so that it never makes an enqueue fail', () => {
    const active = register()
    const taken = active.run({ trace: 'abc', baggage: 'b'.repeat(20_000) }, () => traceContext.getStore())
    expect(taken).toEqual({ traceparent: '00-abc-01' })
  })

  test('a propagator that throws loses the trace and has no other effect', () => {
    register()
    const broken = (): never => {
      throw new Error('tracing is broken')
    }
    ;(global[API] as { propagation: object }).propagation = { inject: broken, extract: broken }
    expect(traceContext.getStore()).toBeUndefined()
    expect(traceContext.run({ traceparent: 'x' }, () => 5)).toBe(5)
  })

  test.each([null, 5, 'text', undefined])('an invalid carrier counts as an empty one: %j', (carrier) => {
    const active = register()
    expect(traceContext.run(carrier, () => active.getStore())).toBeUndefined()
  })
})
