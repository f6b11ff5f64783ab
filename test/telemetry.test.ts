import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Abort, job, millrace, prometheusHandler, telemetry } from '../src/index.js'
import type { Mill } from '../src/index.js'

/** S6: spans and metrics of OpenTelemetry, and Prometheus text. */

const API = Symbol.for('opentelemetry.js.api.1')
interface Made {
  readonly name: string
  readonly parent: string | undefined
  readonly attributes: Record<string, unknown>
  error?: string
  isEnded: boolean
}
let spans: Made[] = []
let measured: [string, number, Record<string, unknown>][] = []
let mill: Mill | undefined

/** The part of OpenTelemetry's API that is used, over an AsyncLocalStorage, with the names of spans as trace context. */
function registered(): object {
  const active = new AsyncLocalStorage<string>()
  const instrument = (name: string): object => ({
    add: (count: number, attributes: Record<string, unknown>) => measured.push([name, count, attributes]),
    record: (value: number, attributes: Record<string, unknown>) => measured.push([name, value, attributes]),
  })
  return {
    context: {
      active: () => active.getStore(),
      with: (context: string | undefined, call: () => unknown) => active.run(context as string, call),
    },
    propagation: {
      inject: (context: string | undefined, carrier: object, setter: { set: (...args: unknown[]) => void }) =>
        context === undefined ? undefined : setter.set(carrier, 'traceparent', context),
      extract: (_: unknown, carrier: unknown, getter: { get: (from: unknown, key: string) => unknown }) =>
        getter.get(carrier, 'traceparent'),
    },
    trace: {
      getTracer: () => ({
        startActiveSpan: (name: string, options: { attributes: object }, run: (span: object) => unknown) => {
          const made: Made = { name, parent: active.getStore(), attributes: { ...options.attributes }, isEnded: false }
          spans.push(made)
          const span = {
            setAttribute: (key: string, value: unknown) => void (made.attributes[key] = value),
            setStatus: ({ message }: { message: string }) => void (made.error = message),
            recordException: () => undefined,
            end: () => void (made.isEnded = true),
          }
          return active.run(`${name} ${spans.length}`, () => run(span))
        },
      }),
    },
    metrics: { getMeter: () => ({ createCounter: instrument, createHistogram: instrument }) },
  }
}

beforeEach(() => {
  spans = []
  measured = []
  Object.assign(globalThis, { [API]: registered() })
})
afterEach(async () => {
  await mill?.close({ deadline: 0 })
  Reflect.deleteProperty(globalThis, API)
})

test('a run is a child of the span of its enqueue, and both are measured', async () => {
  const mail = job('mail', async (to: string) => {
    if (to === '') throw new Abort('no address')
  })
  mill = await millrace({ store: ':memory:', logger: false, jobs: [mail], hooks: telemetry() })
  await mill.start()
  const good = await mill.enqueue(mail, 'ada', { queue: 'letters' })
  await good.result()
  const bad = await mill.enqueue(mail, '')
  await expect(bad.result()).rejects.toThrow('no address')
  await expect.poll(() => spans.map(({ isEnded }) => isEnded)).toEqual([true, true, true, true])
  expect(spans.map(({ name, parent, error }) => [name, parent, error])).toEqual([
    ['send letters', undefined, undefined],
    ['process letters', 'send letters 1', undefined],
    ['send default', undefined, undefined],
    ['process default', 'send default 3', 'no address'],
  ])
  expect(spans[1]?.attributes).toMatchObject({
    'messaging.system': 'millrace',
    'messaging.destination.name': 'letters',
    'messaging.operation.type': 'process',
    'messaging.message.id': good.id,
    'millrace.job': 'mail',
    'millrace.attempt': 1,
  })
  await expect.poll(() => measured.filter(([name]) => name === 'millrace.job.settled')).toHaveLength(2)
  expect(measured.map(([name]) => name).toSorted()).toEqual([
    'messaging.client.consumed.messages',
    'messaging.client.consumed.messages',
    'messaging.client.operation.duration',
    'messaging.client.operation.duration',
    'messaging.client.sent.messages',
    'messaging.client.sent.messages',
    'messaging.process.duration',
    'messaging.process.duration',
    'millrace.job.settled',
    'millrace.job.settled',
  ])
  expect(measured.find(([, , { 'error.type': type }]) => type !== undefined)?.[2]).toMatchObject({
    'error.type': 'Abort',
  })
})

test('a send names the queue of the definition, unless its options name another', async () => {
  const mail = job('mail', { run: async (to: string) => to, queue: 'letters' })
  mill = await millrace({ store: ':memory:', logger: false, jobs: [mail], hooks: telemetry() })
  await mill.enqueue(mail, 'a')
  await mill.enqueue(mail, 'b', { queue: 'parcels' })
  await mill.schedule(mail, 'c', '1h')
  await mill.sequence(mail, ['d', 'e'])
  await mill.flow((f) => f.add(mail, 'f'))
  await mill.enqueueMany(mail, ['g'])
  const names = ['letters', 'parcels', 'letters', 'letters', 'letters', 'letters']
  expect(spans.map(({ name }) => name)).toEqual(names.map((queue) => `send ${queue}`))
  expect(spans.map(({ attributes }) => attributes['messaging.destination.name'])).toEqual(names)
})

test('the job of a tick, and what follows a group, have a send span in the trace that their runs are in', async () => {
  const mail = job('mail', async (to: string) => to)
  mill = await millrace({ store: ':memory:', logger: false, jobs: [mail], hooks: telemetry() })
  const { context } = Reflect.get(globalThis, API) as {
    context: { with: <T>(active: string, call: () => T) => T }
  }
  const opened = mill
  await context.with('setup', () => opened.recurring('beat', mail, 'a', { every: '1h' }, { queue: 'clock' }))
  await context.with('request', () => opened.group('g', { whenDone: [mail, 'b'] }).seal())
  await mill.start()
  await mill.schedules.runNow('beat')
  await expect.poll(() => spans.map(({ isEnded }) => isEnded)).toEqual([true, true, true, true])
  expect(spans.map(({ name, parent }) => `${name} in ${parent}`).toSorted()).toEqual([
    'process clock in setup',
    'process default in request',
    'send clock in setup',
    'send default in request',
  ])
  const attributesOf = (name: string): object => spans.find((span) => span.name === name)?.attributes ?? {}
  expect(attributesOf('send clock')).toMatchObject({ 'millrace.enqueued_by': 'tick', 'millrace.schedule': 'beat' })
  expect(attributesOf('send default')).toMatchObject({ 'millrace.enqueued_by': 'whenDone', 'millrace.group': 'g' })
  for (const queue of ['clock', 'default'])
    expect(attributesOf(`send ${queue}`)).toHaveProperty(
      ['messaging.message.id'],
      Reflect.get(attributesOf(`process ${queue}`), 'messaging.message.id'),
    )
  const counts = measured.filter(([name]) => name === 'messaging.client.sent.messages')
  expect(counts.map(([, count]) => count)).toEqual([1, 1])
  expect(measured.filter(([name]) => name === 'messaging.client.operation.duration')).toEqual([])
})

test('without OpenTelemetry the hooks change nothing', async () => {
  Reflect.deleteProperty(globalThis, API)
  const echo = job('echo', async (text: string) => text)
  mill = await millrace({ store: ':memory:', logger: false, jobs: [echo], hooks: telemetry() })
  await mill.start()
  expect(await (await mill.enqueue(echo, 'hello')).result()).toBe('hello')
})

test('Prometheus text has the gauges of the store and the counters of this process', async () => {
  const mail = job('mail', async () => undefined)
  mill = await millrace({ store: ':memory:', logger: false, jobs: [mail] })
  const { fetch } = prometheusHandler(mill)
  await mill.start()
  await (await mill.enqueue(mail)).result()
  await mill.enqueue(mail, undefined, { queue: 'a"b\\c', in: '1h' })
  await mill.queue('default').pause()
  const scrape = async (method = 'GET'): Promise<Response> => fetch(new Request('http://localhost/metrics', { method }))
  const response = await scrape()
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const lines = (await response.text()).split('\n')
  expect(lines).toEqual(
    expect.arrayContaining([
      '# TYPE millrace_jobs gauge',
      'millrace_jobs{queue="default",state="ready"} 0',
      String.raw`millrace_jobs{queue="a\"b\\c",state="scheduled"} 1`,
      'millrace_queue_paused{queue="default"} 1',
      'millrace_workers{state="alive"} 1',
      'millrace_slots 10',
      'millrace_transitions_total{job="mail",queue="default",state="done"} 1',
      'millrace_attempt_duration_seconds_count{job="mail",queue="default"} 1',
    ]),
  )
  expect([(await scrape('POST')).status, await (await scrape('HEAD')).text()]).toEqual([405, ''])
})
