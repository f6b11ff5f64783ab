import type { Upcoming } from '../../../schedule/upcoming.js'
import type { UpcomingFields, UpcomingLane, UpcomingRow } from '../../protocol/rows.js'
import { SPANS } from '../../protocol/topics.js'
import type { UpcomingSpan } from '../../protocol/topics.js'
import type { MakeView, Parts } from '../parts.js'
import type { Show } from '../show/redact.js'

const ROWS_MAX = 1_000
const BUCKETS = 96
const MAX_AGE_MS = 2_000

/** What will run: waiting jobs, and ticks that have no job yet. */
export async function readUpcoming(parts: Parts, span: UpcomingSpan): Promise<MakeView> {
  const [{ all, rows }, binned] = await Promise.all([upcomingRows(parts, span, ROWS_MAX), lanesOf(parts, span)])
  const fields: UpcomingFields = {
    span,
    ...binned,
    to: binned.from + SPANS[span],
    isMore: all.length > ROWS_MAX,
    total: Math.min(all.length, ROWS_MAX),
  }
  return (show) => ({
    fields,
    rows: rows(show).map((row) => [row.id ?? `${row.schedule}@${row.at}`, row]),
    absent: { usuallyTakesMs: 'How long a job usually takes is not in this version.' },
  })
}

export async function upcomingRows(
  parts: Parts,
  span: UpcomingSpan,
  limit: number,
): Promise<{ readonly all: readonly Upcoming[]; readonly rows: (show: Show) => readonly UpcomingRow[] }> {
  // One more than is shown says that there are more.
  const all = await parts.shared.read(`upcoming ${span} ${limit}`, MAX_AGE_MS, () =>
    parts.mill.upcoming(span, { limit: limit + 1 }),
  )
  return { all, rows: (show) => all.slice(0, limit).map((each) => upcomingRow(each, show)) }
}

function upcomingRow({ at, job, queue, title, id, state, schedule }: Upcoming, show: Show): UpcomingRow {
  const from =
    schedule !== undefined ? 'schedule' : state === 'retrying' ? 'retry' : state === 'ready' ? 'ready' : 'timer'
  return {
    at: at.getTime(),
    job,
    queue,
    title: show.text(title),
    id: id ?? null,
    state: state ?? null,
    schedule: schedule ?? null,
    from,
    usuallyTakesMs: null,
  }
}

/** Scheduled jobs, retries and ticks by queue. */
async function lanesOf(
  { mill, shared }: Parts,
  span: UpcomingSpan,
): Promise<Pick<UpcomingFields, 'from' | 'bucketMs' | 'lanes'>> {
  const { from, binMs, queues } = await shared.read(`bins ${span}`, MAX_AGE_MS, () =>
    mill.upcomingBins(span, { bins: BUCKETS }),
  )
  const lanes = queues.map(({ queue, jobs, ticks }): UpcomingLane => {
    return { queue, counts: jobs.map((count, i) => count + (ticks[i] ?? 0)) }
  })
  return { from: from.getTime(), bucketMs: binMs, lanes }
}
