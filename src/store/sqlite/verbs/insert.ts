import { DuplicateJobError, DuplicateKeyError, LeaseLostError } from '../../../errors.js'
import type { State } from '../../../job/rules/states.js'
import { withSlotOf, withTickOf } from '../../../job/definition/stored-options.js'
import { decideDuplicate, decideUniqueSlot } from '../../../job/rules/unique.js'
import type { UniqueSlotVerdict } from '../../../job/rules/unique.js'
import { instant, sortOf } from '../../ordering.js'
import { movedFor } from '../../links.js'
import type { Met } from '../../links.js'
import { cannotConflict, describeConflict, putOff, whyRefused, windowEnd } from '../../conflicts.js'
import type { InsertOptions, Inserted, NewJob } from '../../store.js'
import type { SqliteValue } from '../connection/driver.js'
import { noteClockStep } from './find-by-time.js'
import { endWaiting } from './history.js'
import { keyHolder, takeKey } from './keys.js'
import type { InTheWay, KeyHolder } from './keys.js'
import { findParents, linkJobs, linkSuccessors } from './links.js'
import { admitMembers, countMoves } from './groups.js'
import { addLabels, replaceLabels } from './labels.js'
import { ROWS_PER_INSERT } from '../queries/queries.js'
import { readForChange } from './read.js'
import type { Session } from '../connection/session.js'
import { placeNow, readPlace, takePlace } from './unique.js'
import type { PlaceRow } from './unique.js'

/** So many bodies are still in SQLite's cache when their live rows are written; in a larger bulk they would be read back. */
const JOBS_PER_RUN = 1_000

/** Writes jobs within the current transaction. Bodies go in in rows of twenty, then each run of equal times in one statement. */
export function insertJobs(session: Session, jobs: readonly NewJob[], options: InsertOptions, now: number): Inserted[] {
  if (options.under !== undefined && !holds(session, options.under.ref, options.under.fence))
    throw new LeaseLostError('enqueue from a handler')
  noteClockStep(session, now)
  const parents = findParents(session, jobs)
  admitMembers(session, jobs, options.under)
  const inserted = writeAll(session, jobs, options, now)
  if (parents !== undefined) linkJobs(session, jobs, inserted, parents, now)
  linkSuccessors(session, inserted)
  countMoves(session)
  return inserted
}

function writeAll(session: Session, jobs: readonly NewJob[], options: InsertOptions, now: number): Met[] {
  if (jobs.every(cannotConflict)) {
    writeJobs(session, jobs, now)
    return jobs.map(asNew)
  }
  const inserted = jobs.map((job, index) =>
    cannotConflict(job) ? asNew(job) : insertOne(session, job, { ...options, now, jobs, index }),
  )
  writeJobs(session, jobs.filter(cannotConflict), now)
  return inserted
}

function asNew({ id }: NewJob): Inserted {
  return { id, isNew: true }
}

/** How one job is written that may meet another. */
interface Insertion extends InsertOptions {
  readonly now: number
  /** The bulk and the job's place in it, for errors. */
  readonly jobs: readonly NewJob[]
  readonly index: number
}

/** What is known of the other jobs of a key when a job is written under it. */
interface Others {
  /** It waits, and is cancelled if the new one is written. */
  readonly replaced?: KeyHolder | undefined
  /** It is unfinished, and the new one is blocked until it ends. */
  readonly follows?: KeyHolder | undefined
}

/** Asks for the key and then for the place; nothing is changed before both have answered. */
function insertOne(session: Session, job: NewJob, how: Insertion): Met {
  const holder = keyHolder(session, job)
  return holder === undefined ? insertInPlace(session, job, {}, how) : answerKey(session, job, holder, how)
}

function answerKey(session: Session, job: NewJob, holder: KeyHolder, how: Insertion): Met {
  const verdict = decideDuplicate({ state: holder.state, claimed: holder.fence !== null }, how.onDuplicate)
  switch (verdict) {
    case 'return':
      return { id: holder.id, isNew: false }
    case 'reject': {
      const why =
        how.onDuplicate === 'replace'
          ? 'is held by a job that is running and cannot be replaced'
          : 'is held by an unfinished job'
      const { existingId, where } = describeConflict(holder.id, how.jobs, how.index)
      throw new DuplicateKeyError(job.name, job.key ?? '', existingId, `${why}${where}`)
    }
    case 'replace':
      return insertInPlace(session, job, { replaced: holder, follows: keyHolder(session, job, holder.turn) }, how)
    case 'follow':
      return insertInPlace(session, job, { follows: holder }, how)
    case 'move':
      // It has the place it was enqueued for, whatever the new payload would ask for.
      moveHolder(session, { ...job, options: withSlotOf(holder.options, job.options) }, holder, how.now)
      return movedFor(job, holder.id)
    default:
      return verdict satisfies never
  }
}

/** Writes the job if its place is free, or can be made free. */
function insertInPlace(session: Session, job: NewJob, { replaced, follows }: Others, how: Insertion): Met {
  const { unique } = job
  const row = unique === undefined ? undefined : readPlace(session, job.name, unique.key)
  // The one whose key is taken over gives up its place too.
  const taken = row?.id === replaced?.id ? undefined : row
  const verdict = unique === undefined ? 'free' : decideUniqueSlot(placeNow(taken, how.now), unique)
  const answer = taken === undefined ? undefined : answerPlace(session, job, taken, verdict, how)
  if (answer !== undefined) return answer
  const isReplacing = taken !== undefined && verdict === 'replace'
  if (replaced !== undefined) replaceHolder(session, job, replaced.id, how)
  if (isReplacing) replaceHolder(session, job, taken.id, how)
  takeKey(session, job, writeOne(session, job, isReplacing ? taken.until : null, how.now), follows)
  return follows === undefined ? asNew(job) : { id: job.id, isNew: true, follows }
}

/** What the one that has the place gets; undefined: it is not in the way, or waits and is to be replaced. */
function answerPlace(
  session: Session,
  job: NewJob,
  taken: PlaceRow,
  verdict: UniqueSlotVerdict,
  how: Insertion,
): Met | undefined {
  switch (verdict) {
    case 'ignore':
      return { id: taken.id, isNew: false }
    case 'reject': {
      const { existingId, where } = describeConflict(taken.id, how.jobs, how.index)
      const why = whyRefused(placeNow(taken, how.now).holder)
      throw new DuplicateJobError(job.name, job.unique?.key ?? '', existingId, `${why}${where}`)
    }
    case 'reschedule':
      moveHolder(
        session,
        putOff({ ...job, options: withTickOf(taken.options, job.options) }, taken.until, how.now),
        taken,
        how.now,
      )
      return movedFor(job, taken.id)
    case 'free':
    case 'replace':
      return undefined
    default:
      return verdict satisfies never
  }
}

/**
 * Gives its number. `window`: where the place's window ends that the job comes into; one that is over, or null, makes it open
 * its own.
 */
function writeOne(session: Session, job: NewJob, window: number | null, now: number): number {
  const { unique } = job
  if (unique === undefined) return writeJobs(session, [job], now)
  const until = window !== null && window > now ? window : windowEnd(unique, now)
  const seq = writeJobs(session, [unique.onDuplicate === 'reschedule' ? putOff(job, until, now) : job], now)
  takePlace(session, job, unique.key, seq, until)
  return seq
}

function replaceHolder(session: Session, job: NewJob, holder: string, how: Insertion): void {
  endWaiting(session, holder, `replaced by ${job.id}`, job.keepCancelledMs ?? how.keepCancelledMs, how.now)
}

/** Only a resume, or the end of a parent, lets these go: a new time is not enough. */
function isAside(state: State): boolean {
  return state === 'paused' || state === 'blocked'
}

/** The one that waits gets the new time and payload and keeps its id, and its group. */
function moveHolder(
  session: Session,
  job: NewJob,
  { seq, id, grp }: Pick<InTheWay, 'seq' | 'id' | 'grp'>,
  now: number,
): void {
  const dueAt = instant(job.due, now)
  const state = dueAt <= now ? 'ready' : 'scheduled'
  const expiresAt = job.expires === null ? null : instant(job.expires, now)
  const { lane } = session.lanes.need(job.queue, job.name)
  const before = grp === null ? undefined : readForChange(session, id)
  if (before !== undefined) {
    session.tally.leave(before, before.state)
    session.tally.enter({ group: grp, queue: job.queue }, isAside(before.state) ? before.state : state)
  }
  session.statement(session.queries.moveJob).run(state, dueAt, sortOf(dueAt, job.priority), lane, expiresAt, seq)
  session.statement(session.queries.editJob).run(job.payload, job.options, job.priority, lane, seq)
  replaceLabels(session, seq, job.options)
  noteTimes(session, dueAt, expiresAt, now)
}

/** Gives the number of the last one. */
function writeJobs(session: Session, jobs: readonly NewJob[], now: number): number {
  let from = 0
  let last = 0
  while (from < jobs.length) {
    const run = runOfEqualTimes(jobs, from, Math.min(jobs.length, from + JOBS_PER_RUN), now)
    last = writeBodies(session, jobs, from, run.end, now)
    const first = last - (run.end - from) + 1
    const state = run.dueAt <= now ? 'ready' : 'scheduled'
    session.statement(session.queries.insertLive).run(state, run.dueAt, run.dueAt, run.expiresAt, first, last)
    for (let i = from; i < run.end; i += 1) {
      const job = jobs[i] as NewJob
      session.tally.enter(job, state)
      if (job.options !== null) addLabels(session, first + i - from, job.options)
    }
    noteTimes(session, run.dueAt, run.expiresAt, now)
    from = run.end
  }
  return last
}

/** Rowids within one transaction are consecutive, so the last one tells them all. */
function writeBodies(session: Session, jobs: readonly NewJob[], from: number, to: number, now: number): number {
  let last = 0
  for (let start = from; start < to; start += ROWS_PER_INSERT) {
    const end = Math.min(to, start + ROWS_PER_INSERT)
    const { sql, values } = areAlike(jobs, start, end)
      ? alikeBodies(session, jobs, start, end, now)
      : bodies(session, jobs, start, end, now)
    last = Number(session.statement(sql).run(...values).lastInsertRowid)
  }
  return last
}

interface Bodies {
  readonly sql: string
  readonly values: readonly SqliteValue[]
}

/** Jobs of one lane, priority and group with nothing but a payload: what a bulk mostly is. */
function areAlike(jobs: readonly NewJob[], from: number, to: number): boolean {
  const { queue, name, priority, group } = jobs[from] as NewJob
  for (let i = from; i < to; i += 1) {
    const job = jobs[i] as NewJob
    if (job.options !== null || job.key !== null || job.name !== name) return false
    if (job.queue !== queue || job.priority !== priority || job.group !== group) return false
  }
  return true
}

function alikeBodies(session: Session, jobs: readonly NewJob[], from: number, to: number, now: number): Bodies {
  const { queue, name, priority, group } = jobs[from] as NewJob
  const values: SqliteValue[] = [session.lanes.need(queue, name).lane, priority, now, group ?? null]
  for (let i = from; i < to; i += 1) {
    const { id, payload } = jobs[i] as NewJob
    values.push(id, payload)
  }
  return { sql: session.queries.insertAlike(to - from), values }
}

function bodies(session: Session, jobs: readonly NewJob[], from: number, to: number, now: number): Bodies {
  const values: SqliteValue[] = []
  for (let i = from; i < to; i += 1) {
    const job = jobs[i] as NewJob
    const { lane } = session.lanes.need(job.queue, job.name)
    values.push(job.id, lane, job.priority, job.key, job.payload, job.options, now, job.group ?? null)
  }
  return { sql: session.queries.insertJobs(to - from), values }
}

interface RunOfEqualTimes {
  readonly end: number
  readonly dueAt: number
  readonly expiresAt: number | null
}

function runOfEqualTimes(jobs: readonly NewJob[], from: number, to: number, now: number): RunOfEqualTimes {
  const { due, expires } = jobs[from] as NewJob
  const dueAt = instant(due, now)
  const expiresAt = expires === null ? null : instant(expires, now)
  let end = from + 1
  for (; end < to; end += 1) {
    const job = jobs[end] as NewJob
    if (job.due !== due && instant(job.due, now) !== dueAt) break
    if (job.expires !== expires && (job.expires === null ? null : instant(job.expires, now)) !== expiresAt) break
  }
  return { end, dueAt, expiresAt }
}

/** An expiry is a time to look at too: the job must be called off by then. */
function noteTimes(session: Session, dueAt: number, expiresAt: number | null, now: number): void {
  if (dueAt <= now) session.noteReady()
  else session.noteDue(dueAt - now)
  if (expiresAt !== null) session.noteDue(Math.max(0, expiresAt - now))
}

function holds(session: Session, ref: number, fence: number): boolean {
  return session.statement(session.queries.holdsClaim).get(ref, fence) !== undefined
}
