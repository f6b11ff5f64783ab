import { Sketch } from '../../job/statistics/sketch.js'
import { DAY_MS, floorTo } from '../../job/statistics/buckets.js'
import type { BucketRow, LastWindow, StatisticsQuery } from '../../store/observing/statistics.js'
import type { Store } from '../../store/store.js'
import type { World } from '../../world/world.js'
import {
  checkStatistics,
  DAYS_DEFAULT,
  instantOf,
  seriesWindow,
  TIMES_FIELDS,
  UNIT_MS,
  WINDOW_FIELDS,
} from './options.js'
import type { SeriesOptions, StatisticsOptions, TimesOptions } from './options.js'

/** Attempts of a queue. */
export interface RetryStatistics {
  /** Jobs that ended well. */
  readonly ok: number
  /** Attempts that failed and after which the job was retried. */
  readonly retries: number
  /** 100 · retries / ok. */
  readonly percentage: number
}

/** Durations of a queue, in the unit of the call. Count, least, greatest and average are exact, percentiles within 2 %. */
export interface TimeStatistics {
  readonly count: number
  readonly min: number
  readonly avg: number
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

/** Percentiles in ms. */
export interface SeriesTimes {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

export interface SeriesPoint {
  /** When the point begins. */
  readonly at: Date
  /** Jobs that ended well. */
  readonly done: number
  /** Jobs that failed for good. */
  readonly failed: number
  /** Failed attempts after which the job was retried. */
  readonly retried: number
  /** From the due time to the first start; undefined when none was counted. */
  readonly wait: SeriesTimes | undefined
  /** The last attempts of jobs that ended; undefined when none was counted. */
  readonly run: SeriesTimes | undefined
}

export interface StatisticsParts {
  readonly store: Store
  readonly world: Pick<World, 'clock'>
}

export async function readRetries(
  { store }: StatisticsParts,
  options: StatisticsOptions = {},
): Promise<Record<string, RetryStatistics>> {
  checkStatistics('retries', options, WINDOW_FIELDS)
  const counts = await byQueue(
    store,
    { ...queryOf(options), times: [] },
    () => ({ ok: 0, retries: 0 }),
    (sum, { done, retried }) => {
      sum.ok += done
      sum.retries += retried
    },
  )
  return mapValues(counts, ({ ok, retries }) => ({ ok, retries, percentage: retries === 0 ? 0 : (100 * retries) / ok }))
}

export async function readTimes(
  { store }: StatisticsParts,
  verb: 'processingTimes' | 'waitTimes',
  options: TimesOptions = {},
): Promise<Record<string, TimeStatistics>> {
  checkStatistics(verb, options, TIMES_FIELDS)
  const column = verb === 'waitTimes' ? 'wait' : 'run'
  const sketches = await byQueue(
    store,
    { ...queryOf(options), times: [column] },
    () => new Sketch(),
    (sketch, row) => sketch.addWritten(row[column]),
  )
  return mapValues(sketches, (sketch) => timesOf(sketch, UNIT_MS[options.unit ?? 'ms']))
}

/** Adds up the rows of each queue; a queue that the caller names has an entry in any case. */
async function byQueue<Sum>(
  store: Store,
  query: StatisticsQuery,
  empty: () => Sum,
  add: (sum: Sum, row: BucketRow) => void,
): Promise<Map<string, Sum>> {
  const { rows } = await store.observing.readStatistics(query)
  const sums = new Map<string, Sum>(query.queue === undefined ? [] : [[query.queue, empty()]])
  for (const row of rows) {
    const sum = sums.get(row.queue) ?? empty()
    sums.set(row.queue, sum)
    add(sum, row)
  }
  return sums
}

export function queryOf(options: StatisticsOptions): StatisticsQuery & { readonly window: LastWindow } {
  const { days = DAYS_DEFAULT, queue, job, now } = options
  return { window: { lastMs: days * DAY_MS, at: instantOf(now) }, queue, name: job }
}

/** An object without a prototype: a queue may have any name. */
function mapValues<From, To>(from: ReadonlyMap<string, From>, make: (value: From) => To): Record<string, To> {
  const to = Object.create(null) as Record<string, To>
  for (const [name, value] of [...from].toSorted(([a], [b]) => (a < b ? -1 : 1))) to[name] = make(value)
  return to
}

function timesOf(sketch: Sketch, unitMs: number): TimeStatistics {
  const { count, sum, min, max } = sketch
  const [p50, p90, p95, p99] = sketch.quantiles([0.5, 0.9, 0.95, 0.99]).map((ms) => ms / unitMs) as Four
  const [least, avg] = count === 0 ? [0, 0] : [min / unitMs, sum / count / unitMs]
  return { count, min: least, avg, p50, p90, p95, p99, max: max / unitMs }
}

type Four = [number, number, number, number]

export async function readSeries(
  { store, world }: StatisticsParts,
  options: SeriesOptions = {},
): Promise<SeriesPoint[]> {
  const { bucketMs, range } = seriesWindow(options, world.clock.now())
  const { rows } = await store.observing.readStatistics({ window: range, queue: options.queue, name: options.job })
  const sums = new Map<number, PointSum>()
  for (let at = range.from; at < range.to; at += bucketMs) sums.set(at, new PointSum())
  for (const row of rows) sums.get(floorTo(row.at, bucketMs))?.add(row)
  return [...sums].map(([at, sum]) => sum.point(at))
}

class PointSum {
  #done = 0
  #failed = 0
  #retried = 0
  readonly #wait = new Sketch()
  readonly #run = new Sketch()

  add(row: BucketRow): void {
    this.#done += row.done
    this.#failed += row.failed
    this.#retried += row.retried
    this.#wait.addWritten(row.wait)
    this.#run.addWritten(row.run)
  }

  point(at: number): SeriesPoint {
    return {
      at: new Date(at),
      done: this.#done,
      failed: this.#failed,
      retried: this.#retried,
      wait: seriesTimes(this.#wait),
      run: seriesTimes(this.#run),
    }
  }
}

function seriesTimes(sketch: Sketch): SeriesTimes | undefined {
  if (sketch.count === 0) return undefined
  const [p50, p95, p99] = sketch.quantiles([0.5, 0.95, 0.99]) as [number, number, number]
  return { p50, p95, p99 }
}
