import type { Page } from '../read/page.js'
import { listErrorGroups } from './error-groups.js'
import type { ErrorGroup, ErrorGroupOptions } from './error-groups.js'
import type { SeriesOptions, StatisticsOptions, TimesOptions } from './options.js'
import { readErrors, readQueues } from './queues.js'
import type { QueueErrors, QueueStatistics } from './queues.js'
import { readRetries, readSeries, readTimes } from './statistics.js'
import type { RetryStatistics, SeriesPoint, StatisticsParts, TimeStatistics } from './statistics.js'

/**
 * Statistics of the whole store. Counts are kept with each settlement, so that they outlive pruned jobs, and reading them
 * costs the same however many jobs are kept. A window is made of whole buckets: minutes for a day back, hours for 90 days,
 * then days, in UTC.
 *
 * ```ts
 * import { millrace } from 'millrace'
 * const mill = await millrace({ store: ':memory:' })
 * const { mail } = await mill.stats.processingTimes({ days: 7, queue: 'mail', unit: 's' })
 * console.log(mail?.p95)
 * for (const { at, done, failed } of await mill.stats.series({ queue: 'mail' })) console.log(at, done, failed)
 * await mill.close()
 * ```
 */
export interface Stats {
  /** Each queue now: its jobs by state, its pace, and when it will be empty. */
  queues(): Promise<Record<string, QueueStatistics>>
  /** Jobs that ended well and retries, by queue. */
  retries(options?: StatisticsOptions): Promise<Record<string, RetryStatistics>>
  /** How long the last attempts of ended jobs ran, by queue. */
  processingTimes(options?: TimesOptions): Promise<Record<string, TimeStatistics>>
  /** How long jobs waited from their due time to their first start, by queue. */
  waitTimes(options?: TimesOptions): Promise<Record<string, TimeStatistics>>
  /** The jobs of a queue that are retrying, parked or failed. */
  errors(queue: string): Promise<QueueErrors>
  /** Counts and durations over time: a point for each bucket, also where nothing ended. */
  series(options?: SeriesOptions): Promise<SeriesPoint[]>
  /** One page of failures grouped by job, error class and place, the latest first. */
  errorGroups(options?: ErrorGroupOptions): Promise<Page<ErrorGroup>>
}

export function statsOf(parts: StatisticsParts): Stats {
  return {
    queues: () => readQueues(parts),
    retries: (options) => readRetries(parts, options),
    processingTimes: (options) => readTimes(parts, 'processingTimes', options),
    waitTimes: (options) => readTimes(parts, 'waitTimes', options),
    errors: (queue) => readErrors(parts, queue),
    series: (options) => readSeries(parts, options),
    errorGroups: (options) => listErrorGroups(parts, options),
  }
}
