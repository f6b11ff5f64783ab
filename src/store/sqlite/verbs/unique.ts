import { DuplicateJobError } from '../../../errors.js'
import { readOptions } from '../../../job/definition/stored-options.js'
import type { State } from '../../../job/rules/states.js'
import { decideUniqueSlot } from '../../../job/rules/unique.js'
import type { UniqueSlot } from '../../../job/rules/unique.js'
import type { JobRow } from '../../store.js'
import type { Session } from '../connection/session.js'

/**
 * Places looked at for each that may be forgotten. Where more than one in so many is over, the sweep goes on at once; so those
 * never become more than a part of the table, and a table of places that all count is walked in peace.
 */
const LOOKS = 4

/** Who has a place, as the table says; whether that counts, `decidePlace` says. */
export interface PlaceRow {
  readonly seq: number
  readonly id: string
  readonly until: number | null
  /** Of the job, while it is there. */
  readonly key: string | null
  readonly options: string | null
  readonly grp: string | null
  /** Null when the job has ended or is gone. */
  readonly state: State | null
  readonly fence: number | null
}

export function readPlace(session: Session, name: string, key: string): PlaceRow | undefined {
  return session.statement(session.queries.readPlace).get(name, key) as PlaceRow | undefined
}

export function placeNow(row: PlaceRow | undefined, now: number): UniqueSlot {
  return {
    holder: row === undefined || row.state === null ? null : { state: row.state, claimed: row.fence !== null },
    windowRuns: row !== undefined && row.until !== null && row.until > now,
  }
}

export function takePlace(
  session: Session,
  job: { readonly name: string; readonly id: string },
  key: string,
  seq: number,
  until: number | null,
): void {
  session.statement(session.queries.takePlace).run(job.name, key, seq, job.id, until)
}

/** A job that was called off or deleted makes way for the next one, window or not. */
export function freePlace(session: Session, seq: number): void {
  session.statement(session.queries.freePlace).run(seq)
}

/**
 * A finished job that is made live again has its place, takes it, or is refused when another unfinished one has it. A window
 * that runs does not refuse it: windows hold back enqueues, and a retry was asked for by a person.
 */
export function retakePlace(session: Session, job: JobRow, now: number): void {
  const { unique } = readOptions(job.options)
  if (unique === undefined) return
  const row = readPlace(session, job.name, unique.key)
  const { holder, windowRuns } = placeNow(row, now)
  const other = row?.id === job.id ? null : holder
  const verdict = decideUniqueSlot({ holder: other, windowRuns: false }, { while: unique.while, onDuplicate: 'reject' })
  if (row !== undefined && verdict === 'reject')
    throw new DuplicateJobError(job.name, unique.key, row.id, 'is now unfinished')
  takePlace(session, job, unique.key, job.ref, row !== undefined && windowRuns ? row.until : null)
}

/** Forgets places that no longer count: the next few of a walk round the table. Gives how many. */
export function sweepPlaces(session: Session, limit: number, now: number): number {
  const looks = limit * LOOKS
  const rows = session.statement(session.queries.nextPlaces).all(now, ...session.sweptTo, looks) as SweepRow[]
  const over = rows.filter((row) => row.over === 1).slice(0, limit)
  for (const row of over) session.statement(session.queries.sweepPlace).run(row.name, row.key, row.id)
  const last = over.length === limit ? over.at(-1) : rows.length === looks ? rows.at(-1) : undefined
  session.sweptTo = last === undefined ? ['', ''] : [last.name, last.key]
  return over.length
}

interface SweepRow {
  readonly name: string
  readonly key: string
  readonly id: string
  readonly over: number
}
