import { logCommand } from '../../job/attempt/attempt-log.js'
import { resumedState, timedState } from '../../job/rules/command.js'
import type { State } from '../../job/rules/states.js'
import { isFinal, isTimed } from '../../job/rules/states.js'
import type { JobTurn } from '../../job/limits/turns.js'
import type { AddedParents } from '../links.js'
import { instant } from '../rows/ordering.js'
import type { Changed, GuardedChange, JobRow } from '../store.js'
import type { AuditEntry } from '../observing/audit.js'
import { entryOfChange } from './audit.js'
import { retakeKeyAndSlot } from './conflicts.js'
import type { RetakeSteps } from './conflicts.js'
import { awaited } from './verb.js'
import type { Answer, Verb } from './verb.js'

/** A job as a command reads it. */
export interface CommandTarget extends JobRow {
  readonly lane: number
  readonly jobTurn: JobTurn
}

/** A job and its new state. */
export interface Moved<Job> {
  readonly job: Job
  readonly state: State
}

export interface CommandSteps<Job extends CommandTarget> extends RetakeSteps {
  now(): Answer<number>
  readTarget(id: string): Answer<Job | undefined>
  /**
   * Removes the job from the state it was read in; false, and nothing is written, when another process changed the job
   * meanwhile.
   */
  removeFromState(job: Job): Answer<boolean>
  /** Inserts a removed job in its new state. `before`: the job as it was read. */
  insertInState(before: Job, moved: Moved<Job>, now: number): Answer<unknown>
  endJob(
    job: Job,
    end: { readonly to: State; readonly keepMs: number; readonly reason: string | null },
  ): Answer<unknown>
  /** Deletes a removed job. */
  deleteJob(job: Job): Answer<unknown>
  /** Whether the job still has unfinished parents. */
  isBlocked(job: Job): Answer<boolean>
  /** Returns the parents that block the job. */
  addParents(job: Job, added: AddedParents): Answer<readonly string[]>
  /** The lane of the job in a queue. */
  laneIn(job: Job, queue: string): Answer<number>
  countMoves(): Answer<unknown>
  noteRequested(): void
  writeAudit(entries: readonly AuditEntry[]): Answer<unknown>
}

/** Give up after this many lost races with other processes for the same job. */
const TRIES = 20

/** Applies a command, if the job is still in the state that the decision was made for. */
export function* changeJob<Job extends CommandTarget>(steps: CommandSteps<Job>, change: GuardedChange): Verb<Changed> {
  const now = yield* awaited(steps.now())
  for (let tries = 0; tries < TRIES; tries += 1) {
    const job = yield* awaited(steps.readTarget(change.id))
    // A held job is claimed but still `ready`. A command can take it, because its worker confirms it before it starts
    // it.
    if (job === undefined || job.state !== change.from || job.state === 'running') return 'stale'
    if (job.claimed && !mayTakeHeld(change.to)) return 'stale'
    if (!(yield* awaited(steps.removeFromState(job)))) continue
    // Take the key only after the removal: a key taken for a job that another process deleted would never be freed.
    if (isFinal(job.state) && change.to !== 'gone') yield* retakeKeyAndSlot(steps, job, now)
    const moved = yield* put(steps, job, change, now)
    yield* awaited(steps.countMoves())
    if (change.audit !== undefined) yield* awaited(steps.writeAudit(entryOfChange(change, job, moved)))
    if (!job.claimed) return 'changed'
    steps.noteRequested()
    return 'taken'
  }
  return 'stale'
}

function mayTakeHeld(to: GuardedChange['to']): boolean {
  return to === 'gone' || to === 'paused' || isFinal(to)
}

/** Returns the job in its new state; undefined when it was deleted. */
function* put<Job extends CommandTarget>(
  steps: CommandSteps<Job>,
  job: Job,
  change: GuardedChange,
  now: number,
): Verb<Moved<Job> | undefined> {
  const { to, keepMs, reason } = change
  if (to === 'gone') {
    yield* awaited(steps.deleteJob(job))
    return undefined
  }
  if (isFinal(to)) {
    yield* awaited(steps.endJob(job, { to, keepMs, reason: reason ?? null }))
    return { job, state: to }
  }
  const moved = yield* movedTo(steps, job, change, to, now)
  yield* awaited(steps.insertInState(job, moved, now))
  return moved
}

function* movedTo<Job extends CommandTarget>(
  steps: CommandSteps<Job>,
  job: Job,
  change: GuardedChange,
  to: State,
  now: number,
): Verb<Moved<Job>> {
  if (!isPausedOrRetried(job.state, to)) return yield* edited(steps, job, change, to, now)
  const isBlocked = job.state === 'paused' && (yield* awaited(steps.isBlocked(job)))
  return pausedOrRetried(job, change, to, { now, isBlocked })
}

/** A pause, a resume, or the retry of a finished job. */
export function isPausedOrRetried(from: State, to: State): boolean {
  return isFinal(from) || (to === 'paused') !== (from === 'paused')
}

export function pausedOrRetried<Job extends CommandTarget>(
  job: Job,
  change: GuardedChange,
  to: State,
  { now, isBlocked }: { readonly now: number; readonly isBlocked: boolean },
): Moved<Job> {
  const log = logCommand(job.log, change.exit, now)
  if (isFinal(job.state)) {
    const retries = change.freshRetries === true ? 0 : job.retries
    const again = { dueAt: now, expiresAt: null, retries, streak: 0, error: null, reason: null, log }
    return { state: to, job: { ...job, ...again } }
  }
  if (to === 'paused') return { state: 'paused', job: { ...job, reason: change.reason ?? null, log } }
  if (change.place !== undefined)
    return { state: change.place.state, job: { ...job, dueAt: change.place.dueAt, reason: null, log } }
  const state = resumedState({ isDue: job.dueAt <= now, hasFailed: job.error !== null, isBlocked })
  return { state, job: { ...job, reason: null, log } }
}

function* edited<Job extends CommandTarget>(
  steps: CommandSteps<Job>,
  job: Job,
  change: GuardedChange,
  to: State,
  now: number,
): Verb<Moved<Job>> {
  const { edit } = change
  const wasParked = job.state === 'parked'
  const dueAt = change.due === undefined ? job.dueAt : instant(change.due, now)
  const open = edit?.after === undefined ? [] : yield* awaited(steps.addParents(job, edit.after))
  const wanted = isTimed(job.state) || to === 'ready' ? timedState(job.state, to, dueAt <= now) : to
  const state = open.length > 0 && wanted !== 'paused' ? 'blocked' : wanted
  const queue = edit?.queue ?? job.queue
  const moved = {
    dueAt,
    retries: change.freshRetries === true ? 0 : job.retries,
    streak: 0,
    priority: edit?.priority ?? job.priority,
    queue,
    lane: queue === job.queue ? job.lane : yield* awaited(steps.laneIn(job, queue)),
    payload: edit?.payload ?? job.payload,
    jobTurn: edit?.turn ?? job.jobTurn,
    options: edit?.options === undefined ? job.options : edit.options,
    error: wasParked ? null : job.error,
    reason: wasParked ? null : job.reason,
    log: logCommand(job.log, change.exit, now),
  }
  return { state, job: { ...job, ...moved } }
}
