import { InvalidOptionsError } from '../../errors.js'
import { checkName } from '../../job/definition/check-options.js'
import { MINUTE_MS } from '../../job/statistics/buckets.js'
import type { QueueCount } from '../../store/observing/statistics.js'
import type { StatisticsParts } from './statistics.js'

/** A queue now. A count of jobs stops at 10,000; then `exact` is false. */
export interface QueueStatistics {
  readonly ready: number
  readonly running: number
  readonly scheduled: number
  readonly retrying: number
  readonly blocked: number
  readonly paused: number
  readonly parked: number
  /** Failed jobs that are kept. */
  readonly failed: number
  /** False: a state has at least as many jobs as is said here. */
  readonly exact: boolean
  /** Since when the job that is next has been due; undefined when none is ready. */
  readonly waitingSince: Date | undefined
  /** Jobs that ended well or failed for good, a minute, over the last 5 minutes. */
  readonly perMinute: number
  /**
   * Time until the queue is empty at the pace of the last 5 minutes, if nothing more is enqueued: 0 when nothing is ready,
   * undefined when nothing ended or when there are more jobs than are counted.
   */
  readonly emptyInMs: number | undefined
}

/** Jobs of a queue that need attention. */
export interface QueueErrors {
  readonly retrying: number
  readonly parked: number
  readonly failed: number
  /** False: there are at least as many. */
  readonly exact: boolean
}

/** The minutes whose pace says when a queue will be empty. */
const PACE_MINUTES = 5

/** Every queue that has had a job, by name. */
export async function readQueues({ store }: StatisticsParts): Promise<Record<string, QueueStatistics>> {
  const [counts, recent] = await Promise.all([
    store.observing.countQueues(),
    store.observing.readStatistics({ window: { lastMs: (PACE_MINUTES - 1) * MINUTE_MS }, times: [] }),
  ])
  const ended = new Map<string, number>()
  for (const { queue, done, failed } of recent.rows) ended.set(queue, (ended.get(queue) ?? 0) + done + failed)
  const minutes = (recent.now - recent.window.from) / MINUTE_MS
  const queues = Object.create(null) as Record<string, QueueStatistics>
  for (const name of [...new Set(counts.map(({ queue }) => queue))].toSorted())
    queues[name] = queueOf(
      counts.filter(({ queue }) => queue === name),
      (ended.get(name) ?? 0) / minutes,
    )
  return queues
}

function queueOf(counts: readonly QueueCount[], perMinute: number): QueueStatistics {
  const byState = countsByState(counts)
  const due = counts.find(({ state }) => state === 'ready')?.dueAt ?? null
  const { ready, running } = byState
  const isReadyExact = !counts.some(({ state, isMore }) => state === 'ready' && isMore)
  return {
    ...byState,
    exact: counts.every(({ isMore }) => !isMore),
    waitingSince: due === null ? undefined : new Date(due),
    perMinute,
    emptyInMs: emptyInMs(isReadyExact ? ready + running : Infinity, perMinute),
  }
}

function emptyInMs(left: number, perMinute: number): number | undefined {
  if (left === 0) return 0
  return perMinute === 0 || left === Infinity ? undefined : Math.round((left / perMinute) * MINUTE_MS)
}

function countsByState(counts: readonly QueueCount[]): Record<QueueCount['state'], number> {
  const none = { ready: 0, running: 0, scheduled: 0, retrying: 0, blocked: 0, paused: 0, parked: 0, failed: 0 }
  for (const { state, count } of counts) none[state] += count
  return none
}

/** Zeros for a queue that has had no job. */
export async function readErrors({ store }: StatisticsParts, queue: unknown): Promise<QueueErrors> {
  const problems = checkName('queue', queue)
  if (problems.length > 0) throw new InvalidOptionsError('stats.errors()', problems)
  const counts = (await store.observing.countQueues()).filter((count) => count.queue === queue)
  const { retrying, parked, failed } = countsByState(counts)
  const wrong = counts.filter(({ state }) => state === 'retrying' || state === 'parked' || state === 'failed')
  return { retrying, parked, failed, exact: wrong.every(({ isMore }) => !isMore) }
}
