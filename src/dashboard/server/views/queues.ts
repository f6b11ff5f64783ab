import type { LiveQueue } from '../../../client/commands/queues.js'
import { MINUTE_MS } from '../../../job/statistics/buckets.js'
import type { QueueRow, QueuesFields } from '../../protocol/rows.js'
import type { MakeView, Parts } from '../parts.js'
import { added, countsOf, exactly, lastHourOf, ms, paceOf, queuesOf } from './reads.js'
import { verdictOf } from './verdict.js'

const SPARK_MINUTES = 60
const HOUR_DAYS = 1 / 24

/** Every queue: its state, its counts, its pace. */
export async function readQueues(parts: Parts): Promise<MakeView> {
  const [rows, verdict] = await Promise.all([queueRows(parts), verdictOf(parts)])
  const sorted = rows.toSorted(byNeed)
  const fields: QueuesFields = {
    verdict,
    totals: {
      waiting: added(sorted.map(({ waiting }) => waiting)),
      running: sorted.reduce((sum, { running }) => sum + running, 0),
      perMinute: sorted.reduce((sum, { perMinute }) => sum + perMinute, 0),
    },
  }
  return () => ({ fields, rows: sorted.map((row) => [row.name, row]), absent: ABSENT })
}

export const ABSENT = { growsPerMinute: 'How fast a queue grows is not in this version.' }

/** What needs attention first, then the busiest, then by name. */
export function byNeed(a: QueueRow, b: QueueRow): number {
  return need(b) - need(a) || b.perMinute - a.perMinute || (a.name < b.name ? -1 : 1)
}

function need({ state, failed }: QueueRow): number {
  if (state === 'probing' || state === 'opening') return 3
  return state === 'paused' ? 2 : failed.n > 0 ? 1 : 0
}

export async function queueRows(parts: Parts): Promise<readonly QueueRow[]> {
  const [queues, pace, hour, retries, waits] = await Promise.all([
    queuesOf(parts),
    paceOf(parts),
    lastHourOf(parts),
    parts.shared.read('retries', 5_000, () => parts.mill.stats.retries({ days: HOUR_DAYS })),
    parts.shared.read('waits', 5_000, () => parts.mill.stats.waitTimes({ days: HOUR_DAYS })),
  ])
  const sparks = new Map<string, number[]>()
  for (const { queue, at, done, failed } of hour.rows) {
    const minutes = sparks.get(queue) ?? Array.from({ length: SPARK_MINUTES }, () => 0)
    const minute = Math.floor((at - hour.from) / MINUTE_MS)
    if (minute >= 0 && minute < SPARK_MINUTES) minutes[minute] = (minutes[minute] ?? 0) + done + failed
    sparks.set(queue, minutes)
  }
  return queues.map((queue) => {
    const { name } = queue
    const [statistics, tried, waited] = [own(pace, name), own(retries, name), own(waits, name)]
    return {
      ...stateOf(queue),
      spark: sparks.get(name) ?? Array.from({ length: SPARK_MINUTES }, () => 0),
      // The workers share their slots between queues: only a limit is of one queue.
      slots: queue.limit?.max ?? null,
      perMinute: statistics?.perMinute ?? 0,
      emptyInMs: emptyInMs(queue, statistics?.perMinute ?? 0),
      growsPerMinute: null,
      retryPercent: tried === undefined || tried.ok === 0 ? null : tried.percentage,
      waitP95Ms: waited === undefined || waited.count === 0 ? null : waited.p95,
    }
  })
}

/** How long its ready jobs take at the pace of the last minutes. Unknown where none is ready: what is blocked, scheduled or held has no pace. */
function emptyInMs({ paused, counts: { ready }, exact }: LiveQueue, perMinute: number): number | null {
  const isKnown = ready > 0 && exact && !paused && perMinute > 0
  return isKnown ? Math.round((ready / perMinute) * MINUTE_MS) : null
}

function own<T>(of: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(of, name) ? of[name] : undefined
}

type Stated = Omit<
  QueueRow,
  'spark' | 'slots' | 'perMinute' | 'emptyInMs' | 'growsPerMinute' | 'retryPercent' | 'waitP95Ms'
>

function stateOf(queue: LiveQueue): Stated {
  const { name, paused, pausedAt, pausedUntil, outages, limit, rate, oldestDueAt } = queue
  const counts = countsOf([queue])
  const [ready, retrying, blocked] = [counts.ready, counts.retrying, counts.blocked].map((count) => count ?? exactly(0))
  return {
    name,
    state: paused ? 'paused' : (outages[0]?.state ?? 'open'),
    pausedAt: ms(pausedAt),
    pausedUntil: ms(pausedUntil),
    outages: outages.map((outage) => ({ ...outage, since: outage.since.getTime() })),
    counts,
    waiting: added([ready, retrying, blocked].filter((count) => count !== undefined)),
    oldestDueAt: ms(oldestDueAt),
    running: counts.running?.n ?? 0,
    limit: limit?.max ?? null,
    rate: rate ?? null,
    failed: counts.failed ?? exactly(0),
  }
}
