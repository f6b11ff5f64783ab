import type { Encoded } from '../../job/outcome.js'
import type { SqliteValue } from './driver.js'
import { ROWS_PER_INSERT } from './queries.js'
import { readForChange } from './read.js'
import type { Session } from './session.js'

/** A job's end as history keeps it. */
export interface HistoryRow {
  readonly seq: number
  readonly state: string
  readonly dueAt: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly startedAt: number | null
  readonly keepMs: number
  readonly worker: string | null
  readonly result: Encoded | null
  readonly error: string | null
  readonly reason: string | null
  readonly log: string | null
}

/** Appends ends to history; what is kept for no time at all is forgotten whole. */
export function appendHistory(session: Session, rows: readonly HistoryRow[], now: number): void {
  const kept = rows.some((row) => row.keepMs === 0) ? rows.filter((row) => row.keepMs !== 0) : rows
  for (let from = 0; from < kept.length; from += ROWS_PER_INSERT) {
    const end = Math.min(kept.length, from + ROWS_PER_INSERT)
    const values: SqliteValue[] = []
    for (let i = from; i < end; i += 1) {
      const row = kept[i] as HistoryRow
      const keepUntil = row.keepMs === Infinity ? null : now + row.keepMs
      values.push(row.seq, row.state, row.dueAt, row.attempt, row.retries, row.crashes, row.startedAt, now, keepUntil)
      values.push(row.worker, row.result, row.error, row.reason, row.log)
    }
    session.statement(session.queries.appendHistory(end - from)).run(...values)
  }
  if (kept === rows) return
  const forgotten = rows.filter((row) => row.keepMs === 0).map((row) => row.seq)
  session.statement(session.queries.pruneJobs).run(JSON.stringify(forgotten))
}

/** The end of a job that was called off while it waited. */
export function cancelledRow(session: Session, id: string, reason: string, keepMs: number, now: number): HistoryRow {
  const job = readForChange(session, id)
  if (job === undefined) throw new Error(`job ${id} is not there at ${now}, though this transaction just read it`)
  return { ...job, seq: job.ref, state: 'cancelled', keepMs, reason, result: null }
}
