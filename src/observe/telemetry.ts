import type { Context } from '../job/attempt/context.js'
import type { EnqueueCall, Hooks } from '../job/attempt/hooks.js'
import { openTelemetry } from '../world/open-telemetry.js'
import type { Attributes, Instruments, Span, Tracer } from '../world/open-telemetry.js'

/** The kinds of spans, and the status of an error, in OpenTelemetry's numbers. */
const [PRODUCER, CONSUMER, ERROR] = [3, 4, 2]
const NAME = 'millrace'

/**
 * Hooks that report to OpenTelemetry, where the app has set it up: a span for each enqueue and, as its child in whatever process, one for
 * each attempt; counters and durations. Names are those of the messaging conventions. Without OpenTelemetry they do nothing.
 *
 * ```ts
 * import { millrace, telemetry } from 'millrace'
 * const mill = await millrace({ store: ':memory:', hooks: telemetry() })
 * await mill.close()
 * ```
 */
export function telemetry(): Hooks {
  const { now, instrumentsOf, tracer } = openTelemetry(NAME)
  return {
    enqueue: (call, next) => {
      const attributes = { ...common(queueOf(call)), ...SEND, 'millrace.job': call.job }
      const begun = WRITTEN.has(call.verb) ? undefined : now()
      const run = (span?: Span): unknown => {
        span?.setAttribute('messaging.batch.message_count', call.items.length)
        // Called within this turn: with `tx` the jobs must be written before anything is awaited.
        const written = next()
        return written.then(
          (handles) => {
            const [only] = handles
            if (handles.length === 1 && only !== undefined) span?.setAttribute('messaging.message.id', only.id)
            ended(instrumentsOf(), { begun, now: now(), attributes, count: handles.length }, 'sent')
            span?.end()
            return handles
          },
          (error: unknown) => {
            ended(instrumentsOf(), { begun, now: now(), attributes, count: call.items.length, error }, 'sent')
            failed(span, error)
            throw error
          },
        )
      }
      const options = { kind: PRODUCER, attributes: { ...attributes, ...causeOf(call) } }
      return inSpan(tracer(), `send ${queueOf(call)}`, options, run)
    },

    start: (ctx, next) => {
      const attributes = { ...common(ctx.queue.name), ...PROCESS, 'millrace.job': ctx.job }
      const begun = now()
      const run = async (span?: Span): Promise<unknown> => {
        try {
          const result = await next()
          ended(instrumentsOf(), { begun, now: now(), attributes, count: 1 }, 'consumed')
          span?.end()
          return result
        } catch (error) {
          ended(instrumentsOf(), { begun, now: now(), attributes, count: 1, error }, 'consumed')
          failed(span, error)
          throw error
        }
      }
      return inSpan(
        tracer(),
        `process ${ctx.queue.name}`,
        { kind: CONSUMER, attributes: ofAttempt(attributes, ctx) },
        run,
      )
    },

    settle: (job, { state }) => {
      instrumentsOf()?.settled.add(1, { ...common(job.queue), 'millrace.job': job.job, 'millrace.state': state })
    },
  }
}

const SEND = { 'messaging.operation.name': 'enqueue', 'messaging.operation.type': 'send' }
const PROCESS = { 'messaging.operation.name': 'run', 'messaging.operation.type': 'process' }

function common(queue: string): Attributes {
  return { 'messaging.system': NAME, 'messaging.destination.name': queue }
}

function ofAttempt(attributes: Attributes, { id, attempt, tick }: Context): Attributes {
  const schedule = tick === undefined ? {} : { 'millrace.schedule': tick.schedule }
  return { ...attributes, 'messaging.message.id': id, 'millrace.attempt': attempt, ...schedule }
}

/** The calls for jobs that the engine or SQL wrote. */
const WRITTEN: ReadonlySet<EnqueueCall['verb']> = new Set(['tick', 'whenDone', 'sql'])

function causeOf({ verb, schedule, group }: EnqueueCall): Attributes {
  return {
    ...(WRITTEN.has(verb) ? { 'millrace.enqueued_by': verb } : {}),
    ...(schedule === undefined ? {} : { 'millrace.schedule': schedule }),
    ...(group === undefined ? {} : { 'millrace.group': group }),
  }
}

/** The queue of the first item. */
function queueOf({ items, queue }: EnqueueCall): string {
  return items[0]?.options.queue ?? queue
}

function inSpan<T>(
  tracer: Tracer | undefined,
  name: string,
  options: { readonly kind: number; readonly attributes: Attributes },
  run: (span?: Span) => T,
): T {
  return tracer === undefined ? run() : tracer.startActiveSpan(name, options, run)
}

function failed(span: Span | undefined, error: unknown): void {
  span?.recordException(error instanceof Error ? error : String(error))
  span?.setStatus({ code: ERROR, message: error instanceof Error ? error.message : String(error) })
  span?.end()
}

interface Ended {
  /** Undefined where the jobs were written before the hook was called: how long that took is not known. */
  readonly begun: number | undefined
  readonly now: number
  readonly attributes: Attributes
  readonly count: number
  readonly error?: unknown
}

function ended(
  instruments: Instruments | undefined,
  { begun, now, attributes, count, error }: Ended,
  what: 'sent' | 'consumed',
): void {
  if (instruments === undefined) return
  const type = error === undefined ? {} : { 'error.type': error instanceof Error ? error.name : '_OTHER' }
  const full = { ...attributes, ...type }
  instruments[what].add(count, full)
  if (begun === undefined) return
  const duration = what === 'sent' ? instruments.sendDuration : instruments.processDuration
  duration.record((now - begun) / 1_000, full)
}
