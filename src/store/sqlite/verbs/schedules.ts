import { decideCommand } from '../../../job/rules/command.js'
import { decideOverlap, isOverlapping, openAfter } from '../../../job/rules/overlap.js'
import type { State } from '../../../job/rules/states.js'
import { calledOffFor, heldUp, keyHeld, lastAtOf, nextOnes, waitsFor, whyNotWritten } from '../../firing.js'
import type { NotWritten } from '../../firing.js'
import { TICKS_KEPT, TRIM_EVERY } from '../../schedules.js'
import type {
  DueSchedules,
  Fired,
  Firing,
  PlannedTick,
  PutSchedule,
  ScheduleRow,
  ScheduleStore,
  TickRow,
  UpcomingJobs,
} from '../../schedules.js'
import type { NewJob } from '../../store.js'
import { changeJob } from './change.js'
import type { CommitQueue } from '../connection/commit-queue.js'
import { insertJobs } from './insert.js'
import { readJobs } from './read.js'
import type { Session } from '../connection/session.js'
import { requestChange } from './request.js'

/** The role of schedules on a SQLite file. */
export class SqliteSchedules implements ScheduleStore {
  readonly #commits: CommitQueue
  readonly #session: Session
  readonly #noteTaking: () => void

  constructor(commits: CommitQueue, session: Session, noteTaking: () => void) {
    this.#commits = commits
    this.#session = session
    this.#noteTaking = noteTaking
  }

  readSchedule(id: string): Promise<{ now: number; schedule: ScheduleRow | undefined }> {
    return this.#commits.read((now) => ({ now, schedule: readSchedule(this.#session, id) }))
  }

  listSchedules(after: string, limit: number): Promise<{ now: number; schedules: readonly ScheduleRow[] }> {
    const { listSchedules } = this.#session.queries
    return this.#commits.read((now) => ({
      now,
      schedules: (this.#session.statement(listSchedules).all(after, limit) as StoredSchedule[]).map(toSchedule),
    }))
  }

  putSchedule(schedule: PutSchedule, revision: number | null): Promise<boolean> {
    return this.#commits.write((now) => putSchedule(this.#session, schedule, revision, now))
  }

  dropSchedule(id: string): Promise<boolean> {
    const { dropSchedule, dropTicks } = this.#session.queries
    return this.#commits.write(() => {
      this.#session.statement(dropTicks).run(id)
      return Number(this.#session.statement(dropSchedule).run(id).changes) > 0
    })
  }

  dueSchedules(limit: number): Promise<DueSchedules> {
    return this.#commits.read((now) => dueSchedules(this.#session, limit, now))
  }

  fireTicks(firing: Firing): Promise<Fired> {
    return this.#commits.write((now) => {
      if (firing.overlap === 'cancel') this.#noteTaking()
      return fireTicks(this.#session, firing, now)
    })
  }

  readTicks(id: string, before: number | null, limit: number): Promise<readonly TickRow[]> {
    const { readTicks } = this.#session.queries
    return this.#commits.read(() => {
      const rows = this.#session.statement(readTicks).all(id, before ?? Number.MAX_SAFE_INTEGER, limit) as StoredTick[]
      return rows.map(toTick)
    })
  }

  upcomingJobs(withinMs: number, limit: number): Promise<UpcomingJobs> {
    return this.#commits.read((now) => upcomingJobs(this.#session, withinMs, limit, now))
  }
}

function readSchedule(session: Session, id: string): (ScheduleRow & StoredCount) | undefined {
  const row = session.statement(session.queries.readSchedule).get(id) as StoredSchedule | undefined
  return row === undefined ? undefined : toSchedule(row)
}

function putSchedule(session: Session, schedule: PutSchedule, revision: number | null, now: number): boolean {
  const { id, spec, createdAt, pausedAt, nextAt } = schedule
  const { addSchedule, putSchedule: replace } = session.queries
  const { changes } =
    revision === null
      ? session.statement(addSchedule).run(id, spec, createdAt, pausedAt, nextAt)
      : session.statement(replace).run(spec, createdAt, pausedAt, nextAt, id, revision)
  if (Number(changes) === 0) return false
  if (nextAt !== null) session.noteDue(Math.max(0, nextAt - now))
  return true
}

function dueSchedules(session: Session, limit: number, now: number): DueSchedules {
  const due = session.statement(session.queries.dueSchedules).all(now, limit) as StoredSchedule[]
  const { next } = session.statement(session.queries.nextSchedule).get(now) as { next: number | null }
  return { now, due: due.map(toSchedule), nextInMs: next === null ? null : next - now }
}

/** Within the current transaction. Whoever read another revision comes second, and writes nothing. */
function fireTicks(session: Session, firing: Firing, now: number): Fired {
  const row = readSchedule(session, firing.id)
  if (row === undefined || row.revision !== firing.revision) return 'stale'
  const fresh = firing.ticks.filter((tick) => !isFired(session, firing.id, tick))
  const fired: TickRow[] = []
  let open = firing.overlap === 'allow' ? row.open : stillOpen(session, row.open)
  for (const tick of nextOnes(firing.overlap, fresh)) {
    const one = fireTick(session, tick, open, firing, now)
    open = one.open
    fired.push(one.tick)
    const { at, byHand, outcome, reason, job } = one.tick
    session.statement(session.queries.putTick).run(firing.id, at, byHand ? 1 : 0, outcome, reason, job, now)
  }
  move(session, row, firing, fired, open)
  if (firing.nextAt !== null) session.noteDue(Math.max(0, firing.nextAt - now))
  return fired
}

function isFired(session: Session, id: string, { at, byHand }: PlannedTick): boolean {
  return session.statement(session.queries.firedTick).get(id, at, byHand ? 1 : 0) !== undefined
}

function stillOpen(session: Session, open: readonly string[]): string[] {
  const rows = readJobs(session, open)
  return open.filter((_, i) => isOverlapping(rows[i]?.state))
}

interface FiredTick {
  readonly tick: TickRow
  readonly open: readonly string[]
}

function fireTick(
  session: Session,
  planned: PlannedTick,
  open: readonly string[],
  firing: Firing,
  now: number,
): FiredTick {
  const { job, ...tick } = planned
  const skipped = (reason: string | null, advice?: string): FiredTick => ({
    tick: { ...tick, outcome: 'skipped', reason, advice, job: null, firedAt: now },
    open,
  })
  if (job === null) return skipped(tick.reason)
  const verdict = decideOverlap(firing.overlap, open.length)
  if (verdict === 'skip') return skipped(heldUp(open))
  if (verdict === 'cancel') for (const id of open) callOff(session, id, firing, now)
  const not = insertTick(session, verdict === 'wait' ? waitsFor(job, open) : job, firing, now)
  if (not !== null) return skipped(not.reason, not.advice)
  return { tick: { ...tick, job: job.id, firedAt: now }, open: openAfter(verdict, open, job.id) }
}

/** Null when it is there; else why it is not: its key or its place is another's, a parent is missing, or its group is sealed. */
function insertTick(session: Session, job: NewJob, firing: Firing, now: number): NotWritten | null {
  const { onDuplicate, keepCancelledMs } = firing
  try {
    const [inserted] = insertJobs(session, [job], { onDuplicate, keepCancelledMs }, now)
    return inserted?.isNew === true ? null : keyHeld(inserted?.id)
  } catch (error) {
    // Thrown before anything was written. The schedule goes on all the same.
    return whyNotWritten(error)
  }
}

function callOff(session: Session, id: string, firing: Firing, now: number): void {
  const [row] = readJobs(session, [id])
  const move = row === undefined ? null : decideCommand(row.state, 'cancel')
  if (row === undefined || move === null) return
  const [reason, keepMs] = [calledOffFor(firing.id), firing.keepCancelledMs]
  if (move.request !== undefined) requestChange(session, { id, verb: move.request, reason, keepMs }, now)
  else changeJob(session, { id, from: row.state, to: move.to, reason, keepMs }, now)
}

function move(
  session: Session,
  row: StoredCount,
  firing: Firing,
  fired: readonly TickRow[],
  open: readonly string[],
): void {
  const lastAt = lastAtOf(fired)
  const { moveSchedule, trimTicks } = session.queries
  session.statement(moveSchedule).run(firing.pausedAt, firing.nextAt, lastAt, lastAt, JSON.stringify(open), firing.id)
  if (row.fired % TRIM_EVERY === TRIM_EVERY - 1) session.statement(trimTicks).run(firing.id, TICKS_KEPT)
}

function upcomingJobs(session: Session, withinMs: number, limit: number, now: number): UpcomingJobs {
  const waiting = session.statement(session.queries.waitingDue).all(now + withinMs, limit) as StoredUpcoming[]
  const ready = session.statement(session.queries.readyDue).all(limit) as StoredUpcoming[]
  const jobs = [...ready, ...waiting].map(({ due_at, ...job }) => ({ ...job, dueAt: due_at }))
  return { now, jobs: jobs.sort((a, b) => a.dueAt - b.dueAt).slice(0, limit) }
}

interface StoredUpcoming {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly state: State
  readonly due_at: number
  readonly options: string | null
}

interface StoredCount {
  readonly fired: number
}

interface StoredSchedule extends StoredCount {
  readonly id: string
  readonly revision: number
  readonly spec: string
  readonly created_at: number
  readonly paused_at: number | null
  readonly next_at: number | null
  readonly last_at: number | null
  readonly open: string
}

function toSchedule(row: StoredSchedule): ScheduleRow & StoredCount {
  return {
    id: row.id,
    revision: row.revision,
    spec: row.spec,
    createdAt: row.created_at,
    pausedAt: row.paused_at,
    nextAt: row.next_at,
    lastAt: row.last_at,
    open: JSON.parse(row.open) as string[],
    fired: row.fired,
  }
}

interface StoredTick {
  readonly at: number
  readonly by_hand: number
  readonly outcome: TickRow['outcome']
  readonly reason: string | null
  readonly job: string | null
  readonly fired_at: number
}

function toTick({ at, by_hand, outcome, reason, job, fired_at }: StoredTick): TickRow {
  return { at, byHand: by_hand === 1, outcome, reason, job, firedAt: fired_at }
}
