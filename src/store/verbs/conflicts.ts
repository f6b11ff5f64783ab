import { DuplicateJobError, DuplicateKeyError } from '../../errors.js'
import { readOptions, withSlotOf, withTickOf } from '../../job/definition/stored-options.js'
import type { State } from '../../job/rules/states.js'
import { decideDuplicate, decideUniqueSlot } from '../../job/rules/unique.js'
import type { UniqueSlot, UniqueSlotVerdict } from '../../job/rules/unique.js'
import { describeConflict, putOff, whyRefused, windowEnd } from '../conflicts.js'
import { movedFor } from '../links.js'
import type { InsertResult } from '../links.js'
import type { InsertOptions, JobRow, NewJob } from '../store.js'
import { awaited } from './verb.js'
import type { Answer, Verb } from './verb.js'

/*
 * What happens when the key or the unique slot of a new job is taken; `job/rules/unique.ts` decides. A key has one row while one
 * unfinished job holds it, and two while a job that runs has a successor: the successor's turn is one higher, and it is blocked
 * until the other ends. A row is written and removed with its own job, so the key falls to the successor when the other ends,
 * and back to the other when the successor is removed.
 */

/** An unfinished job that has the key or the slot. */
export interface Holder {
  readonly id: string
  readonly options: string | null
  readonly state: State
  readonly claimed: boolean
}

/** Which job took a slot last, and until when its window runs. */
export interface Slot<Job extends Holder> {
  readonly id: string
  readonly until: number | null
  /** The job, while it is unfinished. */
  readonly holder: Job | undefined
}

/** How a job is written whose key and slot are free by now. */
export interface Write<Job> {
  /** The job before it under its key. */
  readonly follows: Job | undefined
  /** Where the window of its slot ends; undefined: it has no slot. */
  readonly until: number | null | undefined
}

/** A step that changes a holder answers false, and writes nothing, when another process has moved that job meanwhile. */
export interface ConflictSteps<Job extends Holder> {
  /** The newest unfinished job of its key; with `before`: the one before that. */
  keyHolder(job: NewJob, before?: Job): Answer<Job | undefined>
  slotOf(job: NewJob): Answer<Slot<Job> | undefined>
  /** No other process deletes this one before the transaction ends, so that its end is seen. */
  hold(holder: Job): Answer<boolean>
  cancel(holder: Job, reason: string, keepMs: number): Answer<boolean>
  /** The holder gets the new time and payload, and keeps its id and group. One that is paused or blocked stays so. */
  move(holder: Job, job: NewJob): Answer<boolean>
  write(job: NewJob, how: Write<Job>): Answer<unknown>
  /** Reads the holders of its key and slot again. */
  lookAgain(job: NewJob): Answer<unknown>
  /** Undoes the transaction; all of it is tried again. */
  startOver(why: string): never
}

/** How one job of a bulk is inserted. */
export interface Insertion extends InsertOptions {
  readonly now: number
  /** The bulk and the job's index in it, for errors. */
  readonly jobs: readonly NewJob[]
  readonly index: number
}

/** Give up after this many lost races for the same key or slot. */
const TRIES = 50

/** Inserts a job that has a key or a slot. Nothing is changed before both were looked at. */
export function* insertConflicting<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  how: Insertion,
): Verb<InsertResult> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const holder = job.key === null ? undefined : yield* awaited(steps.keyHolder(job))
    const answer =
      holder === undefined ? yield* insertInSlot(steps, job, {}, how) : yield* answerKey(steps, job, holder, how)
    if (answer !== undefined) return answer
    yield* awaited(steps.lookAgain(job))
  }
  throw new Error(`job ${job.id}: those in its way were moved by others ${TRIES} times`)
}

/** Undefined: the holder was moved meanwhile. Nothing was written then. */
function* answerKey<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  holder: Job,
  how: Insertion,
): Verb<InsertResult | undefined> {
  const verdict = decideDuplicate(holder, how.onDuplicate)
  switch (verdict) {
    case 'return':
      return { id: holder.id, isNew: false }
    case 'reject':
      throw keyHeld(job, holder, how)
    case 'replace': {
      const follows = yield* awaited(steps.keyHolder(job, holder))
      return yield* insertInSlot(steps, job, { replaced: holder, follows }, how)
    }
    case 'follow':
      return yield* insertInSlot(steps, job, { follows: holder }, how)
    case 'move': {
      // It keeps the slot it was enqueued for, whatever the new payload would take.
      const moved = { ...job, options: withSlotOf(holder.options, job.options) }
      return (yield* awaited(steps.move(holder, moved))) ? movedFor(job, holder.id) : undefined
    }
    default:
      return verdict satisfies never
  }
}

function keyHeld(job: NewJob, holder: Holder, how: Insertion): DuplicateKeyError {
  const why =
    how.onDuplicate === 'replace'
      ? 'is held by a job that is running and cannot be replaced'
      : 'is held by an unfinished job'
  const { existingId, where } = describeConflict(holder.id, how.jobs, how.index)
  return new DuplicateKeyError(job.name, job.key ?? '', existingId, `${why}${where}`)
}

/** The other jobs of the key of a job that is written under it. */
interface Others<Job> {
  /** It waits, and is cancelled if the new one is written. */
  readonly replaced?: Job | undefined
  /** It is unfinished, and the new one is blocked until it ends. */
  readonly follows?: Job | undefined
}

/** Writes the job if its slot is free, or can be freed. */
function* insertInSlot<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  { replaced, follows }: Others<Job>,
  how: Insertion,
): Verb<InsertResult | undefined> {
  const { unique } = job
  const slot = unique === undefined ? undefined : yield* awaited(steps.slotOf(job))
  // The job whose key is taken over gives up its slot too.
  const taken = slot?.id === replaced?.id ? undefined : slot
  const verdict = unique === undefined ? 'free' : decideUniqueSlot(slotNow(taken, how.now), unique)
  if (taken !== undefined && verdict !== 'free' && verdict !== 'replace')
    return yield* answerSlot(steps, job, taken, verdict, how)
  if (follows !== undefined && !(yield* awaited(steps.hold(follows)))) return undefined
  const replacing = verdict === 'replace' ? taken : undefined
  const isReplacing = replaced !== undefined || replacing !== undefined
  if (isReplacing && !(yield* cancelBoth(steps, job, [replaced, replacing?.holder], how))) return undefined
  const { written, until } = withWindow(job, replacing?.until ?? null, how.now)
  yield* awaited(steps.write(written, { follows, until }))
  return follows === undefined ? { id: job.id, isNew: true } : { id: job.id, isNew: true, follows }
}

function* answerSlot<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  taken: Slot<Job>,
  verdict: Exclude<UniqueSlotVerdict, 'free' | 'replace'>,
  how: Insertion,
): Verb<InsertResult | undefined> {
  switch (verdict) {
    case 'ignore':
      return { id: taken.id, isNew: false }
    case 'reject': {
      const { existingId, where } = describeConflict(taken.id, how.jobs, how.index)
      const why = whyRefused(taken.holder ?? null)
      throw new DuplicateJobError(job.name, job.unique?.key ?? '', existingId, `${why}${where}`)
    }
    case 'reschedule': {
      const holder = taken.holder as Job
      const moved = putOff({ ...job, options: withTickOf(holder.options, job.options) }, taken.until, how.now)
      return (yield* awaited(steps.move(holder, moved))) ? movedFor(job, holder.id) : undefined
    }
    default:
      return verdict satisfies never
  }
}

/** Cancels the holders of the key and of the slot, which the job replaces; false when a worker took the first meanwhile. */
function* cancelBoth<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  holders: readonly (Job | undefined)[],
  how: Insertion,
): Verb<boolean> {
  const keepMs = job.keepCancelledMs ?? how.keepCancelledMs
  let cancelled = 0
  for (const holder of holders) {
    if (holder === undefined) continue
    if (!(yield* awaited(steps.cancel(holder, `replaced by ${job.id}`, keepMs)))) {
      if (cancelled === 0) return false
      steps.startOver('of two jobs to be replaced a worker took the second when the first was cancelled')
    }
    cancelled += 1
  }
  return true
}

/** `window`: where the window ends that the job comes into; one that is over, or null, makes it open its own. */
function withWindow(
  job: NewJob,
  window: number | null,
  now: number,
): { readonly written: NewJob; readonly until: number | null | undefined } {
  const { unique } = job
  if (unique === undefined) return { written: job, until: undefined }
  const until = window !== null && window > now ? window : windowEnd(unique, now)
  return { written: unique.onDuplicate === 'reschedule' ? putOff(job, until, now) : job, until }
}

function slotNow<Job extends Holder>(slot: Slot<Job> | undefined, now: number): UniqueSlot {
  return { holder: slot?.holder ?? null, windowRuns: hasWindow(slot, now) }
}

function hasWindow(slot: { readonly until: number | null } | undefined, now: number): boolean {
  return slot !== undefined && slot.until !== null && slot.until > now
}

export interface RetakeSteps {
  /** On PostgreSQL: no other process takes the key or the slot before the transaction ends. */
  lockNames(job: JobRow, slot: string | undefined): Answer<unknown>
  /** Takes the key; gives the unfinished job that holds it, when one does. */
  takeKey(job: JobRow): Answer<{ readonly holder: string | undefined } | undefined>
  readSlot(name: string, key: string): Answer<Slot<Holder> | undefined>
  takeSlot(job: JobRow, key: string, until: number | null): Answer<unknown>
}

/**
 * A finished job that is made live again takes its key and its slot again, or is refused when another unfinished job has them. A
 * window that runs does not refuse it: windows hold back enqueues, and a retry is a command of a person.
 */
export function* retakeNames(steps: RetakeSteps, job: JobRow, now: number): Verb<void> {
  const { unique } = readOptions(job.options)
  yield* awaited(steps.lockNames(job, unique?.key))
  const held = job.key === null ? undefined : yield* awaited(steps.takeKey(job))
  if (held !== undefined)
    throw new DuplicateKeyError(job.name, job.key ?? '', held.holder, 'is now held by another unfinished job')
  if (unique === undefined) return
  const slot = yield* awaited(steps.readSlot(job.name, unique.key))
  const other = slot?.id === job.id ? null : (slot?.holder ?? null)
  const verdict = decideUniqueSlot({ holder: other, windowRuns: false }, { while: unique.while, onDuplicate: 'reject' })
  if (slot !== undefined && verdict === 'reject')
    throw new DuplicateJobError(job.name, unique.key, slot.id, 'is now unfinished')
  yield* awaited(steps.takeSlot(job, unique.key, slot !== undefined && hasWindow(slot, now) ? slot.until : null))
}
