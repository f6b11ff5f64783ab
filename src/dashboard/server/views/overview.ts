import type { LiveQueue } from '../../../client/commands/queues.js'
import type { WorkerRecord } from '../../../client/read/lists.js'
import type { OverviewFields, QueueRow, SlotShown, UpcomingRow } from '../../protocol/rows.js'
import { MINUTE_MS } from '../../../job/statistics/buckets.js'
import { SPANS } from '../../protocol/topics.js'
import type { Span } from '../../protocol/topics.js'
import type { MakeView, Parts } from '../parts.js'
import { failureRows } from './failures.js'
import { ABSENT, byNeed, queueRows } from './queues.js'
import { added, deploysOf, lastHourOf, queuesOf, workersOf } from './reads.js'
import { seriesOf } from './series.js'
import { upcomingRows } from './upcoming.js'
import { verdictOf } from './verdict.js'

const QUEUES_SHOWN = 8
const SHOWN = 5
/** Upcoming begins with what is due and waits; so many are read to find what comes after it. */
const NEXT_READ = 200
const PACE_MINUTES = 5

/** Numbers, charts, the busiest queues, what fails now, and what is next. */
export async function readOverview(parts: Parts, span: Span): Promise<MakeView> {
  const now = parts.world.clock.now()
  const [verdict, queues, live, { rows: workers }, series, deploys, failing, next, hour] = await Promise.all([
    verdictOf(parts),
    queueRows(parts),
    queuesOf(parts),
    workersOf(parts),
    seriesOf(parts, span),
    deploysOf(parts, now - SPANS[span]),
    failureRows(parts, now - SPANS[span], SHOWN),
    upcomingRows(parts, '24h', NEXT_READ),
    lastHourOf(parts),
  ])
  const lastDeploy = deploys.at(-1)
  const failedSince = (at: number): number =>
    series.failed.reduce(
      (sum: number, n, i) => sum + (series.at + i * series.bucketMs >= at - series.bucketMs ? (n ?? 0) : 0),
      0,
    )
  const fields: Omit<OverviewFields, 'failing' | 'next'> = {
    span,
    verdict,
    donePerMinute: donePerMinute(hour),
    failed: { n: failedSince(0), sinceDeploy: lastDeploy === undefined ? null : failedSince(lastDeploy.at) },
    waiting: added(queues.map(({ waiting }) => waiting)),
    longestWait: longestWait(live),
    slots: slotsOf(workers),
    ready: live.reduce((sum, { counts, paused }) => sum + (paused ? 0 : counts.ready), 0),
    emptyInMs: emptyInMs(queues),
    series,
    deploys,
    slotsByJob: slotsByJob(workers),
    queueCount: queues.length,
    isEmpty: queues.length === 0,
    demoJob: null,
  }
  const shown = queues.toSorted(byNeed).slice(0, QUEUES_SHOWN)
  return (show) => ({
    fields: { ...fields, failing: failing.rows(show), next: comingRows(next.rows(show), now) } satisfies OverviewFields,
    rows: shown.map((row) => [row.name, row]),
    absent: ABSENT,
  })
}

/** Over the same minutes as the pace of each queue: the last four and what has passed of this one. */
function donePerMinute({ now, rows }: Awaited<ReturnType<typeof lastHourOf>>): number {
  const from = Math.floor(now / MINUTE_MS) * MINUTE_MS - (PACE_MINUTES - 1) * MINUTE_MS
  const done = rows.reduce((sum, row) => sum + (row.at >= from ? row.done : 0), 0)
  return (done * MINUTE_MS) / (now - from)
}

/** When the last queue with ready jobs is empty; unknown when that of one of them is. */
function emptyInMs(queues: readonly QueueRow[]): number | null {
  const times = queues.flatMap(({ state, counts, emptyInMs: ms }) =>
    state === 'paused' || counts.ready?.n === 0 ? [] : [ms],
  )
  const known = times.filter((ms) => ms !== null)
  return known.length === 0 || known.length < times.length ? null : Math.max(...known)
}

function longestWait(queues: readonly LiveQueue[]): OverviewFields['longestWait'] {
  const due = queues.flatMap(({ name, oldestDueAt, paused }) =>
    oldestDueAt === undefined || paused ? [] : [{ since: oldestDueAt.getTime(), queue: name }],
  )
  return due.toSorted((a, b) => a.since - b.since)[0] ?? null
}

export function slotsOf(workers: readonly WorkerRecord[]): OverviewFields['slots'] {
  const alive = workers.filter(({ state }) => state === 'alive')
  const busy = alive.flatMap(({ running }) => running).reduce((sum, { count }) => sum + count, 0)
  const all = alive.some(({ slots }) => slots === undefined)
    ? null
    : alive.reduce((sum, { slots }) => sum + (slots ?? 0), 0)
  return { busy, all }
}

function slotsByJob(workers: readonly WorkerRecord[]): readonly SlotShown[] {
  const counts = new Map<string, number>()
  for (const { job, count } of workers.flatMap(({ running }) => running))
    counts.set(job, (counts.get(job) ?? 0) + count)
  return [...counts]
    .map(([job, count]) => ({ job, count }))
    .toSorted((a, b) => b.count - a.count || (a.job < b.job ? -1 : 1))
}

/** What comes after what is due. Behind a backlog longer than the read nothing of it is known: then what is due is shown. */
function comingRows(rows: readonly UpcomingRow[], now: number): readonly UpcomingRow[] {
  const coming = rows.filter(({ at }) => at > now)
  return (coming.length > 0 ? coming : rows).slice(0, SHOWN)
}
