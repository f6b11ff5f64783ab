import { isPlainEnd } from '../../rows/history-row.js'
import type { HistoryRow } from '../../rows/history-row.js'
import { isFinal } from '../../../job/rules/states.js'
import type { State } from '../../../job/rules/states.js'
import { callEndOf } from '../../verbs/call-ends.js'
import type { EndedJob } from '../../verbs/call-ends.js'
import type { JobRow } from '../../store.js'
import type { SqliteValue } from '../connection/driver.js'
import { dropLabels } from './labels.js'
import { ROWS_PER_INSERT } from '../queries/insert.js'
import { readForChange } from './read.js'
import type { Session } from '../connection/session.js'

/** Appends ended jobs to the history; deletes those that are kept for no time. */
export function appendHistory(session: Session, rows: readonly HistoryRow[], now: number): void {
  const plain = new Map<string, HistoryRow[]>()
  const forgotten: number[] = []
  for (const row of rows) {
    if (row.to === 'cancelled') freeSlot(session, row.ref)
    if (row.keepMs === 0) forgotten.push(row.ref)
    else if (isPlainEnd(row)) addTo(plain, row)
    else appendOne(session, row, now)
  }
  for (const batch of plain.values()) appendPlain(session, batch, now)
  if (forgotten.length === 0) return
  session.statement(session.queries.pruneJobs).run(JSON.stringify(forgotten))
  dropLabels(session, forgotten)
}

/** Groups rows of one worker with the same keep time, whose shared values are bound once. */
function addTo(groups: Map<string, HistoryRow[]>, row: HistoryRow): void {
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

/** Cancels a waiting job: because another job replaces it, or because of a parent. */
export function endWaiting(session: Session, id: string, reason: string, keepMs: number, now: number): void {
  const job = readForChange(session, id)
  if (job === undefined) throw new Error(`job ${id} is missing at ${now}, although this transaction has just read it`)
  endUnclaimed(session, job, { to: 'cancelled', keepMs, reason }, now)
}

/** Ends a job that no handler runs: it leaves its lane and releases its key and its links. */
export function endUnclaimed(session: Session, job: JobRow, how: JobEnd, now: number): void {
  session.groupMoves.leave(job, job.state)
  endTaken(session, job, how, now)
}

/** How a command or a parent ends a job. */
export type JobEnd = Pick<HistoryRow, 'to' | 'keepMs' | 'reason'> & Partial<Pick<HistoryRow, 'result'>>

/** The same for a job whose leave is counted already. */
export function endTaken(session: Session, job: JobRow, how: JobEnd, now: number): void {
  session.groupMoves.enter(job, how.to)
  session.statement(session.queries.deleteLive).run(job.ref)
  dropLinks(session, job.ref)
  noteEnds(session, [{ id: job.id, result: null, error: job.error, ...how }], now)
  appendHistory(session, [{ ...job, result: null, ...how }], now)
  if (job.key !== null) session.statement(session.queries.freeKey).run(job.name, job.key, job.ref)
  session.note({ settled: true })
}

/** A cancelled or deleted job releases its unique slot, even while its window is open. */
export function freeSlot(session: Session, seq: number): void {
  session.statement(session.queries.freeSlot).run(seq)
}

/*
 * The end of a job that has children writes a to-do in the same transaction. `promoteJobs` handles it (links.ts), a
 * bounded number of links at a time.
 */

/** For jobs that ended or were parked. Usually no job has children, and then this is one lookup in an empty table. */
export function noteEnds(session: Session, ends: readonly NotedEnd[], now: number): void {
  if (ends.length === 0 || session.statement(session.queries.anyLink).get() === undefined) return
  noteCallEnds(session, ends, now)
  noteAll(
    session,
    ends.map(({ id, to }) => [id, to]),
  )
}

type NotedEnd = EndedJob & { readonly id: string }

/** The to-do of a called job says how it ended, because its row may be deleted before the to-do is handled. */
function noteCallEnds(session: Session, ends: readonly NotedEnd[], now: number): void {
  const byId = new Map(ends.filter(({ to }) => isFinal(to)).map((end) => [end.id, end]))
  const called = session.statement(session.queries.calledAmong).all(JSON.stringify([...byId.keys()]))
  for (const { id } of called as { id: string }[]) {
    const end = byId.get(id) as NotedEnd
    const { result, error } = callEndOf(end)
    session.statement(session.queries.noteCallEnd).run(id, end.to, now, result, error)
  }
}

export function noteAll(session: Session, ends: readonly (readonly [string, State])[]): void {
  const { changes } = session.statement(session.queries.noteEnds).run(JSON.stringify(ends))
  if (Number(changes) > 0) session.note({ dueInMs: 0 })
}

/** For jobs that are about to be deleted. */
export function noteGone(session: Session, seqs: readonly number[]): void {
  if (session.statement(session.queries.anyLink).get() === undefined) return
  const { changes } = session.statement(session.queries.noteGone).run(JSON.stringify(seqs))
  if (Number(changes) > 0) session.note({ dueInMs: 0 })
}

/** Deletes the links of an ended job to its parents. */
export function dropLinks(session: Session, seq: number): void {
  session.statement(session.queries.dropLinks).run(seq)
}
