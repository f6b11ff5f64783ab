import { DuplicateJobError, DuplicateKeyError } from '../../errors.js'
import { isSequence, readOptions, withSlotOf, withTickOf } from '../../job/definition/stored-options.js'
import type { State } from '../../job/rules/states.js'
import { decideDuplicate, decideUniqueSlot } from '../../job/rules/unique.js'
import type { UniqueSlot, UniqueSlotVerdict } from '../../job/rules/unique.js'
import { describeConflict, rescheduledWithinWindow, whyRefused, windowEnd } from '../conflicts.js'
import { moveResult } from '../links.js'
import type { InsertResult } from '../links.js'
import type { InsertOptions, JobRow, NewJob } from '../store.js'
import { awaited } from './verb.js'
import type { Answer, Verb } from './verb.js'

/*
 * What happens when the key or the unique slot of a new job is taken; `job/rules/unique.ts` decides. A key has one row
 * while one unfinished job holds it, and two rows while a running job has a successor: the successor's turn is one
 * higher, and it is blocked until the running job ends. Each row is written and removed with its job. So the successor
 * holds the key when the running job ends, and the running job holds it again when the successor is removed.
 */

/** An unfinished job that holds the key or the slot. */
export interface Holder {
  readonly id: string
  readonly options: string | null
  readonly state: State
  readonly claimed: boolean
}

/** The job that took a slot last, and the end of its window. */
export interface Slot<Job extends Holder> {
  readonly id: string
  readonly until: number | null
  /** The job, while it is unfinished. */
  readonly holder: Job | undefined
}

/** How to write a job whose key and slot are free. */
export interface WritePlan<Job> {
  /** The job before it under its key. */
  readonly follows: Job | undefined
  /** The end of its slot's window; undefined when it has no slot. */
  readonly until: number | null | undefined
}

/** A step that changes a holder returns false, and writes nothing, when another process changed that job meanwhile. */
export interface ConflictSteps<Job extends Holder> {
  /** The newest unfinished job of its key; with `before`, the one before that. */
  keyHolder(job: NewJob, before?: Job): Answer<Job | undefined>
  slotOf(job: NewJob): Answer<Slot<Job> | undefined>
  /** Whether a workflow has recorded anything in its run. */
  hasBegun(holder: Job): Answer<boolean>
  /**
   * Locks the holder, so that no other process deletes it before the transaction ends. When the holder ends,
   * its successor is released.
   */
  lockHolder(holder: Job): Answer<boolean>
  cancel(holder: Job, reason: string, keepMs: number): Answer<boolean>
  /**
   * Gives the holder the new time and payload; it keeps its id and group. A paused or blocked holder stays paused or
   * blocked.
   */
  move(holder: Job, job: NewJob): Answer<boolean>
  write(job: NewJob, plan: WritePlan<Job>): Answer<unknown>
  /** Reads the holders of its key and slot again. */
  rereadHolders(job: NewJob): Answer<unknown>
  /** Rolls the transaction back and retries all of it. */
  retryTransaction(why: string): never
}

/** The options of one insert of a bulk. */
export interface Insertion extends InsertOptions {
  readonly now: number
  /** The bulk and the job's index in it, for errors. */
  readonly jobs: readonly NewJob[]
  readonly index: number
}

/** Give up after this many lost races for the same key or slot. */
const TRIES = 50

/** Inserts a job that has a key or a slot. It reads both before it changes anything. */
export function* insertConflicting<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  insertion: Insertion,
): Verb<InsertResult> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const holder = job.key === null ? undefined : yield* awaited(steps.keyHolder(job))
    const answer =
      holder === undefined
        ? yield* insertInSlot(steps, job, {}, insertion)
        : yield* answerKey(steps, job, holder, insertion)
    if (answer !== undefined) return answer
    yield* awaited(steps.rereadHolders(job))
  }
  throw new Error(
    `job ${job.id}: gave up after ${TRIES} tries: other processes kept changing the holder of its key or unique slot`,
  )
}

/** Undefined: another process changed the holder meanwhile, and nothing was written. */
function* answerKey<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  holder: Job,
  insertion: Insertion,
): Verb<InsertResult | undefined> {
  const verdict = decideDuplicate(yield* asItIs(steps, job, holder), insertion.onDuplicate)
  switch (verdict) {
    case 'return':
      return { id: holder.id, isNew: false }
    case 'reject':
      throw keyHeld(job, holder, insertion)
    case 'replace': {
      const follows = yield* awaited(steps.keyHolder(job, holder))
      return yield* insertInSlot(steps, job, { replaced: holder, follows }, insertion)
    }
    case 'follow':
      return yield* insertInSlot(steps, job, { follows: holder }, insertion)
    case 'move': {
      // A sequence has items and no payload or time that a job could replace.
      if (isSequence(holder.options)) throw keyHeld(job, holder, insertion)
      // The holder keeps the slot it was enqueued with, whatever slot the new payload would have.
      const moved = { ...job, options: withSlotOf(holder.options, job.options) }
      return (yield* awaited(steps.move(holder, moved))) ? moveResult(job, holder.id) : undefined
    }
    default:
      return verdict satisfies never
  }
}

function keyHeld(job: NewJob, holder: Holder, insertion: Insertion): DuplicateKeyError {
  const why =
    insertion.onDuplicate === 'replace'
      ? `is held by a ${job.shape === 'workflow' ? 'workflow that has begun' : 'job that is running'} and cannot be replaced`
      : 'is held by an unfinished job'
  const { existingId, where } = describeConflict(holder.id, insertion.jobs, insertion.index)
  return new DuplicateKeyError(job.name, job.key ?? '', existingId, `${why}${where}`)
}

/** The other jobs that hold the key of a new job. */
interface KeyHolders<Job> {
  /** A waiting job, which is cancelled if the new one is written. */
  readonly replaced?: Job | undefined
  /** An unfinished job; the new one is blocked until it ends. */
  readonly follows?: Job | undefined
}

/** Writes the job if its slot is free or can be freed. */
function* insertInSlot<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  { replaced, follows }: KeyHolders<Job>,
  insertion: Insertion,
): Verb<InsertResult | undefined> {
  const { unique } = job
  const slot = unique === undefined ? undefined : yield* awaited(steps.slotOf(job))
  // The job whose key is taken over releases its slot too.
  const taken = slot?.id === replaced?.id ? undefined : yield* slotAsItIs(steps, job, slot)
  const verdict = unique === undefined ? 'free' : decideUniqueSlot(slotNow(taken, insertion.now), unique)
  if (taken !== undefined && verdict !== 'free' && verdict !== 'replace')
    return yield* answerSlot(steps, job, taken, verdict, insertion)
  if (follows !== undefined && !(yield* awaited(steps.lockHolder(follows)))) return undefined
  const replacing = verdict === 'replace' ? taken : undefined
  const isReplacing = replaced !== undefined || replacing !== undefined
  if (isReplacing && !(yield* cancelBoth(steps, job, [replaced, replacing?.holder], insertion))) return undefined
  const { written, until } = withWindow(job, replacing?.until ?? null, insertion.now)
  yield* awaited(steps.write(written, { follows, until }))
  return follows === undefined ? { id: job.id, isNew: true } : { id: job.id, isNew: true, follows }
}

/**
 * A workflow that has begun counts as claimed while it waits, too: its body has run in part, and only a cancel of it runs its
 * clean-up. Its holder has the name of the new job, so other jobs are not asked.
 */
function* asItIs<Job extends Holder>(steps: ConflictSteps<Job>, job: NewJob, holder: Job): Verb<Job> {
  if (job.shape !== 'workflow' || holder.claimed) return holder
  return (yield* awaited(steps.hasBegun(holder))) ? { ...holder, claimed: true } : holder
}

function* slotAsItIs<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  slot: Slot<Job> | undefined,
): Verb<Slot<Job> | undefined> {
  if (slot?.holder === undefined) return slot
  return { ...slot, holder: yield* asItIs(steps, job, slot.holder) }
}

function* answerSlot<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  taken: Slot<Job>,
  verdict: Exclude<UniqueSlotVerdict, 'free' | 'replace'>,
  insertion: Insertion,
): Verb<InsertResult | undefined> {
  switch (verdict) {
    case 'ignore':
      return { id: taken.id, isNew: false }
    case 'reject': {
      const { existingId, where } = describeConflict(taken.id, insertion.jobs, insertion.index)
      const why = whyRefused(taken.holder ?? null, job.shape === 'workflow')
      throw new DuplicateJobError(job.name, job.unique?.key ?? '', existingId, `${why}${where}`)
    }
    case 'reschedule': {
      const holder = taken.holder as Job
      const moved = rescheduledWithinWindow(
        { ...job, options: withTickOf(holder.options, job.options) },
        taken.until,
        insertion.now,
      )
      return (yield* awaited(steps.move(holder, moved))) ? moveResult(job, holder.id) : undefined
    }
    default:
      return verdict satisfies never
  }
}

/**
 * Cancels the holders of the key and of the slot, which the job replaces; false when a worker took the first meanwhile.
 */
function* cancelBoth<Job extends Holder>(
  steps: ConflictSteps<Job>,
  job: NewJob,
  holders: readonly (Job | undefined)[],
  insertion: Insertion,
): Verb<boolean> {
  const keepMs = job.keepCancelledMs ?? insertion.keepCancelledMs
  let cancelled = 0
  for (const holder of holders) {
    if (holder === undefined) continue
    if (!(yield* awaited(steps.cancel(holder, `replaced by ${job.id}`, keepMs)))) {
      if (cancelled === 0) return false
      steps.retryTransaction('a worker took the second of two jobs to be replaced after the first was cancelled')
    }
    cancelled += 1
  }
  return true
}

/** `window`: the end of the existing window. If it is over or null, the job opens a new one. */
function withWindow(
  job: NewJob,
  window: number | null,
  now: number,
): { readonly written: NewJob; readonly until: number | null | undefined } {
  const { unique } = job
  if (unique === undefined) return { written: job, until: undefined }
  const until = window !== null && window > now ? window : windowEnd(unique, now)
  return { written: unique.onDuplicate === 'reschedule' ? rescheduledWithinWindow(job, until, now) : job, until }
}

function slotNow<Job extends Holder>(slot: Slot<Job> | undefined, now: number): UniqueSlot {
  return { holder: slot?.holder ?? null, windowRuns: hasWindow(slot, now) }
}

function hasWindow(slot: { readonly until: number | null } | undefined, now: number): boolean {
  return slot !== undefined && slot.until !== null && slot.until > now
}

export interface RetakeSteps {
  /** On PostgreSQL: locks the key and the slot, so that no other process takes them before the transaction ends. */
  lockKeyAndSlot(job: JobRow, slot: string | undefined): Answer<unknown>
  /** Takes the key, or returns the unfinished job that holds it. */
  takeKey(job: JobRow): Answer<{ readonly holder: string | undefined } | undefined>
  readSlot(name: string, key: string): Answer<Slot<Holder> | undefined>
  takeSlot(job: JobRow, key: string, until: number | null): Answer<unknown>
}

/**
 * A retried job takes its key and its slot again, or is refused when another unfinished job holds one of them. An open
 * window does not refuse it: windows limit enqueues, and a retry is a command.
 */
export function* retakeKeyAndSlot(steps: RetakeSteps, job: JobRow, now: number): Verb<void> {
  const { unique } = readOptions(job.options)
  yield* awaited(steps.lockKeyAndSlot(job, unique?.key))
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
