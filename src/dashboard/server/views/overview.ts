import type { LiveQueue } from '../../../client/commands/queues.js'
import type { WorkerRecord } from '../../../client/read/lists.js'
import type { OverviewFields, SlotShown } from '../../protocol/rows.js'
import { SPANS } from '../../protocol/topics.js'
import type { Span } from '../../protocol/topics.js'
import type { MakeView, Parts } from '../parts.js'
import { failureRows } from './failures.js'
import { ABSENT, byNeed, queueRows } from './queues.js'
import { added, deploysOf, queuesOf, workersOf } from './reads.js'
import { seriesOf } from './series.js'
import { upcomingRows } from './upcoming.js'
import { verdictOf } from './verdict.js'

const QUEUES_SHOWN = 8
const SHOWN = 5
const PACE_MINUTES = 5

/** Numbers, charts, the busiest queues, what fails now, and what is next. */
export async function readOverview(parts: Parts, span: Span): Promise<MakeView> {
  const now = parts.world.clock.now()
  const [verdict, queues, live, { rows: workers }, series, deploys, failing, next] = await Promise.all([
    verdictOf(parts),
    queueRows(parts),
    queuesOf(parts),
    workersOf(parts),
    seriesOf(parts, span),
    deploysOf(parts, now - SPANS[span]),
    failureRows(parts, now - SPANS[span], SHOWN),
    upcomingRows(parts, '24h', SHOWN),
  ])
  const running = queues.reduce((sum, queue) => sum + queue.running, 0)
  const perMinute = queues.reduce((sum, queue) => sum + queue.perMinute, 0)
  const ready = live.reduce((sum, { counts }) => sum + counts.ready, 0)
  const isExact = live.every(({ exact }) => exact)
  const lastDeploy = deploys.at(-1)
  const failedSince = (at: number): number =>
    series.failed.reduce(
      (sum: number, n, i) => sum + (series.at + i * series.bucketMs >= at - series.bucketMs ? (n ?? 0) : 0),
      0,
    )
  const fields: Omit<OverviewFields, 'failing' | 'next'> = {
    span,
    verdict,
    donePerMinute: lastMean(series.done),
    failed: { n: failedSince(0), sinceDeploy: lastDeploy === undefined ? null : failedSince(lastDeploy.at) },
    waiting: added(queues.map(({ waiting }) => waiting)),
    longestWait: longestWait(live),
    slots: slotsOf(workers),
    emptyInMs:
      ready + running === 0
        ? 0
        : perMinute === 0 || !isExact
          ? null
          : Math.round(((ready + running) / perMinute) * 60_000),
    series,
    deploys,
    slotsByJob: slotsByJob(workers),
    queueCount: queues.length,
    isEmpty: queues.length === 0,
    demoJob: null,
  }
  const shown = queues.toSorted(byNeed).slice(0, QUEUES_SHOWN)
  return (show) => ({
    fields: { ...fields, failing: failing.rows(show), next: next.rows(show) } satisfies OverviewFields,
    rows: shown.map((row) => [row.name, row]),
    absent: ABSENT,
  })
}

/** The mean of the whole minutes of the last five; the newest one is not over. */
function lastMean(done: readonly (number | null)[]): number {
  const last = done.slice(-PACE_MINUTES - 1, -1)
  return last.length === 0 ? 0 : last.reduce((sum: number, n) => sum + (n ?? 0), 0) / last.length
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
