import type { Page } from '../../../client/read/page.js'
import type { WorkerRecord } from '../../../client/read/lists.js'
import { toLiveQueue } from '../../../client/commands/queues.js'
import type { LiveQueue } from '../../../client/commands/queues.js'
import type { QueueStatistics } from '../../../client/statistics/queues.js'
import type { HealthReport } from '../../../observe/health/health.js'
import type { BucketRow } from '../../../store/observing/statistics.js'
import { InvalidOptionsError } from '../../../errors.js'
import { MINUTE_MS } from '../../../job/statistics/buckets.js'
import type { Count, CountsByState } from '../../protocol/rows.js'
import type { DeployMark } from '../../protocol/rows.js'
import { Refusal } from '../parts.js'
import type { Parts } from '../parts.js'

/** Reads that several views share, each at most once in a second or two. */

const SECOND_MS = 1_000
const WORKERS_MAX = 1_000

export function healthOf({ mill, shared }: Parts): Promise<HealthReport> {
  return shared.read('health', 2 * SECOND_MS, () => mill.health())
}

export function workersOf({ mill, shared }: Parts): Promise<Page<WorkerRecord>> {
  return shared.read('workers', SECOND_MS, () => mill.workers({ limit: WORKERS_MAX }))
}

export function queuesOf({ internals, shared }: Parts): Promise<readonly LiveQueue[]> {
  return shared.read('queues', SECOND_MS, async () => (await internals.store.observing.listQueues()).map(toLiveQueue))
}

export function paceOf({ mill, shared }: Parts): Promise<Record<string, QueueStatistics>> {
  return shared.read('pace', SECOND_MS, () => mill.stats.queues())
}

/** What ended in the last hour, by queue, job and minute. */
export function lastHourOf(
  parts: Parts,
): Promise<{ readonly from: number; readonly now: number; readonly rows: readonly BucketRow[] }> {
  return parts.shared.read('hour', 5 * SECOND_MS, async () => {
    const { rows, window, now } = await parts.internals.store.observing.readStatistics({
      window: { lastMs: 59 * MINUTE_MS },
      times: [],
    })
    return { from: window.from, now, rows }
  })
}

/** Starts of half of the fleet within five minutes, or of a new version: newest last. */
export async function deploysOf(parts: Parts, from: number): Promise<readonly DeployMark[]> {
  const { rows } = await workersOf(parts)
  const marks = new Map<string, DeployMark>()
  for (const { version, startedAt } of rows) {
    const at = startedAt.getTime()
    const found = version === undefined ? undefined : marks.get(version)
    if (version !== undefined)
      marks.set(version, { at: Math.min(found?.at ?? at, at), version, workers: (found?.workers ?? 0) + 1 })
  }
  const known = [...marks.values()]
  const restarts = known.length > 0 ? [] : restartOf(rows.map(({ startedAt }) => startedAt.getTime()))
  return [...known, ...restarts].filter(({ at }) => at >= from).toSorted((a, b) => a.at - b.at)
}

const RESTART_MS = 5 * MINUTE_MS

function restartOf(starts: readonly number[]): DeployMark[] {
  const newest = Math.max(...starts)
  const together = starts.filter((at) => newest - at <= RESTART_MS)
  if (starts.length === 0 || together.length * 2 < starts.length) return []
  return [{ at: Math.min(...together), version: null, workers: together.length }]
}

export const exactly = (n: number): Count => ({ n, exact: true })

/** Counts stop at a bound: what has reached it is a lower bound. */
const COUNTED_MAX = 10_000

export function added(counts: readonly Count[]): Count {
  return { n: counts.reduce((sum, { n }) => sum + n, 0), exact: counts.every(({ exact }) => exact) }
}

/** The counts of a queue, or of all of them; final states that have no counter are not known. */
export function countsOf(queues: readonly Pick<LiveQueue, 'counts' | 'exact'>[]): CountsByState {
  const of = (state: keyof LiveQueue['counts']): Count => {
    const n = queues.reduce((sum, { counts }) => sum + counts[state], 0)
    return { n, exact: queues.every(({ counts, exact }) => exact || counts[state] < COUNTED_MAX) }
  }
  return {
    scheduled: of('scheduled'),
    ready: of('ready'),
    running: of('running'),
    retrying: of('retrying'),
    blocked: of('blocked'),
    paused: of('paused'),
    parked: of('parked'),
    failed: of('failed'),
    done: null,
    cancelled: null,
  }
}

export const ms = (date: Date | undefined): number | null => date?.getTime() ?? null

/** A cursor of a page comes from the browser: a wrong one is an error of the request. */
export async function asPage<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof InvalidOptionsError) throw new Refusal('bad-request', 'This page does not exist any more.')
    throw error
  }
}

export const link = (page: string, name: string): string => `#/${page}/${encodeURIComponent(name)}`
