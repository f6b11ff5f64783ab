import { performance } from 'node:perf_hooks'

/** The parts of OpenTelemetry's API that are called, as they are registered under its global symbol (see `trace.ts`). */
export interface Span {
  setAttribute(name: string, value: string | number): unknown
  setStatus(status: { readonly code: number; readonly message?: string }): unknown
  recordException(error: Error | string): void
  end(): void
}

export type Attributes = Readonly<Record<string, string | number>>

export interface Tracer {
  startActiveSpan<T>(
    name: string,
    options: { readonly kind: number; readonly attributes: Attributes },
    run: (span: Span) => T,
  ): T
}

interface Counter {
  add(count: number, attributes: Attributes): void
}
interface Histogram {
  record(value: number, attributes: Attributes): void
}

export interface Instruments {
  readonly sent: Counter
  readonly consumed: Counter
  readonly settled: Counter
  readonly sendDuration: Histogram
  readonly processDuration: Histogram
}

interface Meter {
  createCounter(name: string, options: { readonly unit: string; readonly description: string }): Counter
  createHistogram(name: string, options: { readonly unit: string; readonly description: string }): Histogram
}

interface Registered {
  readonly trace?: { getTracer(name: string): Tracer } | undefined
  readonly metrics?: { getMeter(name: string): Meter } | undefined
}

const API = Symbol.for('opentelemetry.js.api.1')

/** What the app has registered, read at each call, because it is often set up after a mill was created. */
export function openTelemetry(name: string): {
  readonly now: () => number
  readonly tracer: () => Tracer | undefined
  readonly instrumentsOf: () => Instruments | undefined
} {
  const registered = (): Registered => (globalThis as { [API]?: Registered })[API] ?? {}
  const made = new WeakMap<object, Instruments>()
  return {
    now: () => performance.now(),
    tracer: () => registered().trace?.getTracer(name),
    instrumentsOf: () => {
      const { metrics } = registered()
      if (metrics === undefined) return undefined
      const instruments = made.get(metrics) ?? instrumentsFrom(metrics.getMeter(name))
      made.set(metrics, instruments)
      return instruments
    },
  }
}

function instrumentsFrom(meter: Meter): Instruments {
  const counter = (name: string, unit: string, description: string): Counter =>
    meter.createCounter(name, { unit, description })
  const seconds = (name: string, description: string): Histogram =>
    meter.createHistogram(name, { unit: 's', description })
  return {
    sent: counter('messaging.client.sent.messages', '{message}', 'Jobs that were enqueued'),
    consumed: counter('messaging.client.consumed.messages', '{message}', 'Attempts that ended'),
    settled: counter(
      'millrace.job.settled',
      '{job}',
      'Ends of attempts that are recorded, by the new state of the job',
    ),
    sendDuration: seconds('messaging.client.operation.duration', 'How long an enqueue took'),
    processDuration: seconds('messaging.process.duration', 'How long an attempt took'),
  }
}
