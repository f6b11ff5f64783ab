import { textHandler } from './text-handler.js'
import type { TextHandler } from './text-handler.js'
import type { Transition, Transitions } from './transitions.js'
import { TRANSITIONS } from './transitions.js'

/** The part of a mill that the handler reads. */
interface Measured {
  healthy(): boolean | null
  workers(options: { readonly limit: number }): Promise<{ readonly rows: readonly MeasuredWorker[] }>
  readonly live: { readonly queues: AsyncIterable<readonly MeasuredQueue[]> }
  readonly [TRANSITIONS]?: Transitions
}

interface MeasuredQueue {
  readonly name: string
  readonly counts: Readonly<Record<string, number>>
  readonly paused: boolean
  readonly oldestDueAt: Date | undefined
}

interface MeasuredWorker {
  readonly state: string
  readonly slots: number | undefined
}

/** Workers that are counted. */
const WORKERS_MAX = 1_000

/**
 * A Fetch handler that gives the metrics of a mill as Prometheus text: gauges of the whole store, and counters of this process since the
 * handler was made. It answers any caller: mount it where only your scraper reaches it.
 *
 * ```ts
 * import { millrace, prometheusHandler } from 'millrace'
 * const mill = await millrace({ store: ':memory:' })
 * const { fetch } = prometheusHandler(mill)
 * console.log(await (await fetch(new Request('http://localhost/metrics'))).text())
 * await mill.close()
 * ```
 */
export function prometheusHandler(mill: object): TextHandler {
  const measured = mill as Measured
  const counters = new Counters()
  const handler = textHandler('prometheusHandler()', mill, async () => ({
    text: `${[...(await gauges(measured)), ...counters.lines()].join('\n')}\n`,
    version: 'version=0.0.4',
  }))
  measured[TRANSITIONS]?.listen((transition) => counters.count(transition))
  return handler
}

async function gauges(mill: Measured): Promise<string[]> {
  const [queues, { rows: workers }] = await Promise.all([first(mill.live.queues), mill.workers({ limit: WORKERS_MAX })])
  const states = ['alive', 'silent', 'dead']
  const isHealthy = mill.healthy()
  return [
    ...metric(
      'millrace_jobs',
      'gauge',
      'Unfinished and failed jobs; each count stops at 10,000.',
      queues.flatMap(({ name, counts }) =>
        Object.entries(counts).map(([state, count]) => [{ queue: name, state }, count] as const),
      ),
    ),
    ...metric(
      'millrace_queue_oldest_due_timestamp_seconds',
      'gauge',
      'When the first ready job of the queue became due.',
      queues.flatMap(({ name, oldestDueAt }) =>
        oldestDueAt === undefined ? [] : [[{ queue: name }, oldestDueAt.getTime() / 1_000] as const],
      ),
    ),
    ...metric(
      'millrace_queue_paused',
      'gauge',
      '1 while the queue is paused.',
      queues.map(({ name, paused }) => [{ queue: name }, paused ? 1 : 0] as const),
    ),
    ...metric(
      'millrace_workers',
      'gauge',
      'Workers of the fleet, by state.',
      states.map((state) => [{ state }, workers.filter((worker) => worker.state === state).length] as const),
    ),
    ...metric('millrace_slots', 'gauge', 'Handlers that all live workers run at once.', [
      [{}, workers.reduce((sum, { state, slots }) => sum + (state === 'alive' ? (slots ?? 0) : 0), 0)],
    ]),
    ...metric(
      'millrace_healthy',
      'gauge',
      '0 when a job has been in error for too long; absent until it is known.',
      isHealthy === null ? [] : [[{}, isHealthy ? 1 : 0]],
    ),
  ]
}

async function first<T>(values: AsyncIterable<readonly T[]>): Promise<readonly T[]> {
  for await (const value of values) return value
  return []
}

/** What this process did. */
class Counters {
  readonly #transitions = new Map<string, number>()
  readonly #seconds = new Map<string, { sum: number; count: number }>()

  count({ job, queue, state, ms }: Transition): void {
    const key = labels({ job, queue, state })
    this.#transitions.set(key, (this.#transitions.get(key) ?? 0) + 1)
    if (ms === undefined) return
    const of = labels({ job, queue })
    const { sum, count } = this.#seconds.get(of) ?? { sum: 0, count: 0 }
    this.#seconds.set(of, { sum: sum + ms / 1_000, count: count + 1 })
  }

  lines(): string[] {
    const seconds = 'millrace_attempt_duration_seconds'
    return [
      ...head('millrace_transitions_total', 'counter', 'Transitions that this process made, by the new state.'),
      ...[...this.#transitions].map(([key, count]) => `millrace_transitions_total${key} ${count}`),
      ...head(seconds, 'summary', 'How long the attempts of this process took.'),
      ...[...this.#seconds].flatMap(([key, { sum, count }]) => [
        `${seconds}_sum${key} ${sum}`,
        `${seconds}_count${key} ${count}`,
      ]),
    ]
  }
}

type Sample = readonly [Readonly<Record<string, string>>, number]

function metric(name: string, type: string, help: string, samples: readonly Sample[]): string[] {
  return [...head(name, type, help), ...samples.map(([given, value]) => `${name}${labels(given)} ${value}`)]
}

function head(name: string, type: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]
}

function labels(given: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(given).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`)
}
