import { isPlain } from '../../history-row.js'
import type { HistoryRow } from '../../history-row.js'
import type { JobRow } from '../../store.js'
import type { SqliteValue } from '../connection/driver.js'
import { dropLinks, noteEnds } from './link-ends.js'
import { dropLabels } from './labels.js'
import { ROWS_PER_INSERT } from '../queries/queries.js'
import { readForChange } from './read.js'
import type { Session } from '../connection/session.js'
import { freePlace } from './unique.js'

/** Appends ends to history; what is kept for no time at all is forgotten whole. */
export function appendHistory(session: Session, rows: readonly HistoryRow[], now: number): void {
  const plain = new Map<string, HistoryRow[]>()
  const forgotten: number[] = []
  for (const row of rows) {
    if (row.to === 'cancelled') freePlace(session, row.ref)
    if (row.keepMs === 0) forgotten.push(row.ref)
    else if (isPlain(row)) gather(plain, row)
    else appendOne(session, row, now)
  }
  for (const batch of plain.values()) appendPlain(session, batch, now)
  if (forgotten.length === 0) return
  session.statement(session.queries.pruneJobs).run(JSON.stringify(forgotten))
  dropLabels(session, forgotten)
}

/** Rows of one worker that are kept equally long share what is bound once. */
function gather(groups: Map<string, HistoryRow[]>, row: HistoryRow): void {
  const kind = `${row.keepMs} ${row.worker}`
  const group = groups.get(kind)
  if (group === undefined) groups.set(kind, [row])
  else group.push(row)
}

function appendPlain(session: Session, rows: readonly HistoryRow[], now: number): void {
  const { keepMs, worker } = rows[0] as HistoryRow
  for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
    const end = Math.min(rows.length, from + ROWS_PER_INSERT)
    const values: SqliteValue[] = [now, keepUntil(keepMs, now), worker]
    for (let i = from; i < end; i += 1) {
      const row = rows[i] as HistoryRow
      values.push(row.ref, row.dueAt, row.startedAt, row.result)
    }
    session.statement(session.queries.appendDone(end - from)).run(...values)
  }
}

function appendOne(session: Session, row: HistoryRow, now: number): void {
  const { ref, to, dueAt, attempt, retries, crashes, startedAt, keepMs, worker, result, error, reason, log } = row
  session
    .statement(session.queries.appendHistory)
    .run(
      ref,
      to,
      dueAt,
      attempt,
      retries,
      crashes,
      startedAt,
      now,
      keepUntil(keepMs, now),
      worker,
      result,
      error,
      reason,
      log,
    )
}

export function keepUntil(keepMs: number, now: number): number | null {
  return keepMs === Infinity ? null : now + keepMs
}

/** Calls off a job that waits: because another takes its place, or because of its parent. */
export function endWaiting(session: Session, id: string, reason: string, keepMs: number, now: number): void {
  const job = readForChange(session, id)
  if (job === undefined) throw new Error(`job ${id} is not there at ${now}, though this transaction just read it`)
  endUnclaimed(session, job, { to: 'cancelled', keepMs, reason }, now)
}

/** Ends a job that no handler runs: it leaves its line, its key and its links. */
export function endUnclaimed(
  session: Session,
  job: JobRow,
  how: Pick<HistoryRow, 'to' | 'keepMs' | 'reason'>,
  now: number,
): void {
  session.tally.leave(job, job.state)
  session.tally.enter(job, how.to)
  session.statement(session.queries.deleteLive).run(job.ref)
  dropLinks(session, job.ref)
  noteEnds(session, [{ id: job.id, to: how.to }])
  appendHistory(session, [{ ...job, ...how, result: null }], now)
  if (job.key !== null) session.statement(session.queries.freeKey).run(job.name, job.key, job.ref)
  session.noteSettled()
}
