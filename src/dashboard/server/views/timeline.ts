import type { JobRecord } from '../../../job/record.js'
import type { WhyReason } from '../../../job/why/why.js'
import type { TimelineSpan } from '../../protocol/jobs.js'

/** What a job did over time, from its record: nothing is shown that the record does not say. */
export function timelineOf(record: JobRecord, now: number, why?: WhyReason): readonly TimelineSpan[] {
  const { createdAt, state, startedAt } = record
  const runs = triesOf(record).map((attempt, i) => ({
    from: attempt.startedAt.getTime(),
    to: attempt.endedAt.getTime(),
    attempt: i + 1,
  }))
  const running =
    state === 'running' && startedAt !== undefined
      ? [{ from: startedAt.getTime(), to: null, attempt: runs.length + 1 }]
      : []
  const spans: TimelineSpan[] = []
  let at = createdAt.getTime()
  for (const run of [...runs, ...running]) {
    if (run.from > at) spans.push(...waited(record, at, run.from, run.attempt))
    spans.push({ kind: 'running', ...run })
    at = run.to ?? now
  }
  return [...spans, ...waitsNow(record, at, now, why)]
}

/** The attempts of a record; its history also has commands, which no worker ran. */
export function triesOf({ attempts }: JobRecord): JobRecord['attempts'] {
  return attempts.filter(({ worker }) => worker !== '')
}

/** Before the first attempt: until its due time, then ready. Later: the back-off. Which part of it was due is not recorded. */
function waited({ dueAt, attempts }: JobRecord, from: number, to: number, attempt: number): TimelineSpan[] {
  if (attempt > 1) return [{ kind: 'back-off', from, to, attempt: null }]
  // After a retry the due time is that of the retry; the first one is not recorded any more.
  const due = attempts.length > 1 ? from : Math.min(Math.max(dueAt.getTime(), from), to)
  const scheduled: TimelineSpan[] = due > from ? [{ kind: 'scheduled', from, to: due, attempt: null }] : []
  return to > due ? [...scheduled, { kind: 'ready', from: due, to, attempt: null }] : scheduled
}

function waitsNow({ state, dueAt }: JobRecord, from: number, now: number, why?: WhyReason): TimelineSpan[] {
  const due = dueAt.getTime()
  const future: TimelineSpan[] = due > now ? [{ kind: 'future', from: due, to: null, attempt: null }] : []
  const span = (kind: TimelineSpan['kind'], to: number | null): TimelineSpan => ({ kind, from, to, attempt: null })
  switch (state) {
    case 'scheduled':
      return [span('scheduled', null), ...future]
    case 'retrying':
      if (why !== 'probing' || due > now) return [span('back-off', null), ...future]
      return [
        ...(due > from ? [span('back-off', due)] : []),
        { kind: 'held', from: Math.max(from, due), to: null, attempt: null },
      ]
    case 'ready':
      return [span('ready', null)]
    case 'blocked':
    case 'paused':
      return [span(state, null)]
    case 'parked':
    case 'running':
    case 'done':
    case 'failed':
    case 'cancelled':
      return []
    default:
      return state satisfies never
  }
}
