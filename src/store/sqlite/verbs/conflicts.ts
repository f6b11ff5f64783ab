import type { State } from '../../../job/rules/states.js'
import { laneOfTurn } from '../../../job/limits/turns.js'
import { instant, sortOf } from '../../rows/ordering.js'
import type { NewJob } from '../../store.js'
import type { ConflictSteps, Holder, Slot, WritePlan } from '../../verbs/conflicts.js'
import type { Session } from '../connection/session.js'
import { replaceLabels } from './labels.js'
import { endWaiting } from './moves.js'
import { readForChange } from './read.js'
import { noteTimes, turnColumns, writeJobs } from './write.js'

/** An unfinished job that holds a key or a slot. */
interface StoredHolder extends Holder {
  readonly seq: number
  readonly grp: string | null
  /** Its turn under its key; 0 for the holder of a slot. */
  readonly turn: number
}

/** The steps of `store/verbs/conflicts.ts`. SQLite has one writer at a time, so no step loses a race. */
export class SqliteConflicts implements ConflictSteps<StoredHolder> {
  readonly #session: Session
  readonly #now: number

  constructor(session: Session, now: number) {
    this.#session = session
    this.#now = now
  }

  keyHolder(job: NewJob, before?: StoredHolder): StoredHolder | undefined {
    return keyHolder(this.#session, job.name, job.key ?? '', before?.turn)
  }

  slotOf({ name, unique }: NewJob): Slot<StoredHolder> | undefined {
    return unique === undefined ? undefined : readSlot(this.#session, name, unique.key)
  }

  hasBegun({ id }: StoredHolder): boolean {
    const row = this.#session.statement(this.#session.queries.readWorkflow).get(id) as { begun: number } | undefined
    return row?.begun === 1
  }

  lockHolder(): boolean {
    return true
  }

  cancel({ id }: StoredHolder, reason: string, keepMs: number): boolean {
    endWaiting(this.#session, id, reason, keepMs, this.#now)
    return true
  }

  move(holder: StoredHolder, job: NewJob): boolean {
    moveHolder(this.#session, job, holder, this.#now)
    return true
  }

  write(job: NewJob, { follows, until }: WritePlan<StoredHolder>): void {
    const seq = writeJobs(this.#session, [job], this.#now)
    if (job.unique !== undefined) takeSlot(this.#session, job, job.unique.key, seq, until ?? null)
    if (job.key !== null) takeKey(this.#session, job.name, job.key, seq, follows === undefined ? 0 : follows.turn + 1)
  }

  rereadHolders(): void {}

  retryTransaction(why: string): never {
    throw new Error(why)
  }
}

/** The newest unfinished job of a key below a turn. */
export function keyHolder(
  session: Session,
  name: string,
  key: string,
  below = Number.MAX_SAFE_INTEGER,
): StoredHolder | undefined {
  const row = session.statement(session.queries.keyHolder).get(name, key, below) as
    | (StoredHolder & { readonly fence: number | null })
    | undefined
  // Assigned to the row itself: a copy would cost a duplicate enqueue a twentieth of its time.
  return row === undefined ? undefined : Object.assign(row, { claimed: row.fence !== null })
}

export function takeKey(session: Session, name: string, key: string, seq: number, turn: number): void {
  session.statement(session.queries.takeKey).run(name, key, turn, seq)
}

export function readSlot(session: Session, name: string, key: string): Slot<StoredHolder> | undefined {
  const row = session.statement(session.queries.readSlot).get(name, key) as SlotRow | undefined
  if (row === undefined) return undefined
  const { seq, id, until, options, grp, state, fence } = row
  const holder = state === null ? undefined : { seq, id, options, grp, state, claimed: fence !== null, turn: 0 }
  return { id, until, holder }
}

interface SlotRow {
  readonly seq: number
  readonly id: string
  readonly until: number | null
  /** The job's options, while the job exists. */
  readonly options: string | null
  readonly grp: string | null
  /** Null when the job has ended or was deleted. */
  readonly state: State | null
  readonly fence: number | null
}

export function takeSlot(
  session: Session,
  job: { readonly name: string; readonly id: string },
  key: string,
  seq: number,
  until: number | null,
): void {
  session.statement(session.queries.takeSlot).run(job.name, key, seq, job.id, until)
}

/** Only a resume, or the end of a parent, changes these states: a new due time does not. */
function isPausedOrBlocked(state: State): boolean {
  return state === 'paused' || state === 'blocked'
}

/** The waiting job gets the new time and payload, and keeps its id and group. */
function moveHolder(session: Session, job: NewJob, { seq, id, grp }: StoredHolder, now: number): void {
  const dueAt = instant(job.due, now)
  const state = dueAt <= now ? 'ready' : 'scheduled'
  const expiresAt = job.expires === null ? null : instant(job.expires, now)
  const { lane } = session.lanes.need(job.queue, job.name)
  const before = grp === null ? undefined : readForChange(session, id)
  if (before !== undefined) {
    session.groupMoves.leave(before, before.state)
    session.groupMoves.enter({ group: grp, queue: job.queue }, isPausedOrBlocked(before.state) ? before.state : state)
  }
  const place = laneOfTurn(lane, job.turn?.limit ?? null)
  session.statement(session.queries.moveJob).run(state, dueAt, sortOf(dueAt, job.priority), place, expiresAt, seq)
  session.statement(session.queries.editJob).run(job.payload, job.options, job.priority, lane, seq)
  session.statement(session.queries.turnJob).run(...turnColumns(job), seq)
  replaceLabels(session, seq, job.options)
  noteTimes(session, dueAt, expiresAt, now)
}

/**
 * Slots read for each that may be deleted. If more than one in this many is over, the sweep continues at once; so
 * expired slots never become more than a part of the table, and a table without expired slots is scanned slowly.
 */
const SCANS_PER_LIMIT = 4

/** Deletes expired slots among the next few of a cyclic scan of the table. Returns their number. */
export function sweepSlots(session: Session, limit: number, now: number): number {
  const scans = limit * SCANS_PER_LIMIT
  const rows = session.statement(session.queries.nextSlots).all(now, ...session.sweptTo, scans) as SweepRow[]
  const over = rows.filter((row) => row.over === 1).slice(0, limit)
  for (const row of over) session.statement(session.queries.sweepSlot).run(row.name, row.key, row.id)
  const last = over.length === limit ? over.at(-1) : rows.length === scans ? rows.at(-1) : undefined
  session.sweptTo = last === undefined ? ['', ''] : [last.name, last.key]
  return over.length
}

interface SweepRow {
  readonly name: string
  readonly key: string
  readonly id: string
  readonly over: number
}
