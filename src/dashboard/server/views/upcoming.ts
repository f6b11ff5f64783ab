import type { Upcoming } from '../../../schedule/upcoming.js'
import type { UpcomingFields, UpcomingLane, UpcomingRow } from '../../protocol/rows.js'
import { SPANS } from '../../protocol/topics.js'
import type { UpcomingSpan } from '../../protocol/topics.js'
import type { MakeView, Parts } from '../parts.js'
import type { Show } from '../show/redact.js'

const ROWS_MAX = 1_000
const BUCKETS = 96

/** What will run: waiting jobs, and ticks that have no job yet. */
export async function readUpcoming(parts: Parts, span: UpcomingSpan): Promise<MakeView> {
  const from = parts.world.clock.now()
  const { all, rows } = await upcomingRows(parts, span, ROWS_MAX)
  const bucketMs = SPANS[span] / BUCKETS
  const fields: UpcomingFields = {
    span,
    from,
    to: from + SPANS[span],
    bucketMs,
    lanes: lanesOf(all, from, bucketMs),
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
  const all = await parts.shared.read(`upcoming ${span} ${limit}`, 2_000, () =>
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

function lanesOf(all: readonly Upcoming[], from: number, bucketMs: number): UpcomingLane[] {
  const lanes = new Map<string, number[]>()
  for (const { queue, at } of all) {
    const counts = lanes.get(queue) ?? Array.from({ length: BUCKETS }, () => 0)
    const bucket = Math.min(BUCKETS - 1, Math.max(0, Math.floor((at.getTime() - from) / bucketMs)))
    counts[bucket] = (counts[bucket] ?? 0) + 1
    lanes.set(queue, counts)
  }
  return [...lanes].map(([queue, counts]) => ({ queue, counts })).toSorted((a, b) => (a.queue < b.queue ? -1 : 1))
}
