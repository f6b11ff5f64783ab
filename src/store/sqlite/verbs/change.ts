import { DuplicateKeyError } from '../../../errors.js'
import { logCommand } from '../../../job/attempt/attempt-log.js'
import { resumedState, timedState } from '../../../job/rules/command.js'
import type { State } from '../../../job/rules/states.js'
import { isFinal, isTimed } from '../../../job/rules/states.js'
import { instant, sortOf } from '../../ordering.js'
import type { Changed, GuardedChange, JobRow } from '../../store.js'
import { endUnclaimed } from './history.js'
import { dropLabels, replaceLabels } from './labels.js'
import { dropLinks, noteGone } from './link-ends.js'
import { addParents, isBlocked } from './links.js'
import { countMoves } from './groups.js'
import { keyHolder, takeKey } from './keys.js'
import { readForChange } from './read.js'
import type { Session } from '../connection/session.js'
import { freePlace, retakePlace } from './unique.js'

type Target = JobRow & { readonly lane: number }

/** Does a command within the current transaction, if the job is still as the decision saw it. */
export function changeJob(session: Session, change: GuardedChange, now: number): Changed {
  const job = readForChange(session, change.id)
  // A held job is claimed and yet `ready`: it can be taken from its holder, who asks before it begins one.
  if (job === undefined || job.state !== change.from || job.state === 'running') return 'stale'
  if (change.to === 'gone') forget(session, job)
  else if (isFinal(change.to))
    endUnclaimed(session, job, { to: change.to, keepMs: change.keepMs, reason: change.reason ?? null }, now)
  else if (isFinal(job.state)) revive(session, job, change, now)
  else if (change.to === 'paused' && job.state !== 'paused') pause(session, job, change, now)
  else if (change.to !== 'paused' && job.state === 'paused') resume(session, job, change, now)
  else if (job.claimed) return 'stale'
  else move(session, job, change, change.to, now)
  countMoves(session)
  if (!job.claimed) return 'changed'
  session.noteAsked()
  return 'taken'
}

function forget(session: Session, job: Target): void {
  session.tally.leave(job, job.state)
  freePlace(session, job.ref)
  noteGone(session, [job.ref])
  dropLinks(session, job.ref)
  session.statement(session.queries.deleteLive).run(job.ref)
  session.statement(session.queries.deleteHistory).run(job.ref)
  session.statement(session.queries.deleteJob).run(job.ref)
  dropLabels(session, [job.ref])
  freeKey(session, job)
  session.noteSettled()
}

/** A finished job is made live again by a recorded command; it must take its key and its place anew. */
function revive(session: Session, job: Target, change: GuardedChange, now: number): void {
  retakeKey(session, job)
  retakePlace(session, job, now)
  const log = logCommand(job.log, change.exit, now)
  const retries = change.freshRetries === true ? 0 : job.retries
  session.statement(session.queries.deleteHistory).run(job.ref)
  session
    .statement(session.queries.reviveJob)
    .run(job.ref, job.lane, change.to, sortOf(now, job.priority), now, job.attempt, retries, job.crashes, log)
  moved(session, job, change.to as State)
  session.noteReady()
}

function retakeKey(session: Session, { name, key, ref }: Target): void {
  if (key === null) return
  const holder = keyHolder(session, { name, key })
  if (holder !== undefined) throw new DuplicateKeyError(name, key, holder.id, 'is now held by another unfinished job')
  takeKey(session, { name, key }, ref)
}

/** Counts the move of a member. */
function moved(session: Session, job: Target, to: State, queue = job.queue): void {
  session.tally.leave(job, job.state)
  session.tally.enter({ group: job.group, queue }, to)
}

/** A held job is taken from its holder. Time, tries, place in the line and key stay as they are. */
function pause(session: Session, job: Target, change: GuardedChange, now: number): void {
  session.statement(session.queries.pauseJob).run(change.reason ?? null, logCommand(job.log, change.exit, now), job.ref)
  moved(session, job, 'paused')
}

function resume(session: Session, job: Target, change: GuardedChange, now: number): void {
  const state = resumedState({
    isDue: job.dueAt <= now,
    hasFailed: job.error !== null,
    isBlocked: isBlocked(session, job.ref),
  })
  session.statement(session.queries.resumeJob).run(state, logCommand(job.log, change.exit, now), job.ref)
  moved(session, job, state)
  if (state === 'ready') session.noteReady()
  else if (isTimed(state)) session.noteDue(job.dueAt - now)
}

function move(session: Session, job: Target, change: GuardedChange, to: State, now: number): void {
  const edited = applyEdit(session, job, change)
  const dueAt = change.due === undefined ? job.dueAt : instant(change.due, now)
  const state = isTimed(job.state) || to === 'ready' ? timedState(job.state, to, dueAt <= now) : to
  const retries = change.freshRetries === true ? 0 : job.retries
  const log = logCommand(job.log, change.exit, now)
  const leftParked = job.state === 'parked'
  session
    .statement(session.queries.changeLive)
    .run(
      state,
      dueAt,
      sortOf(dueAt, edited.priority),
      retries,
      edited.lane,
      leftParked ? null : job.error,
      leftParked ? null : job.reason,
      log,
      job.ref,
    )
  if (change.edit?.after !== undefined) addParents(session, job, change.edit.after)
  moved(session, job, state, change.edit?.queue)
  if (state === 'ready') session.noteReady()
  else if (isTimed(state)) session.noteDue(Math.max(0, dueAt - now))
}

function applyEdit(session: Session, job: Target, change: GuardedChange): { priority: number; lane: number } {
  const edit = change.edit
  const priority = edit?.priority ?? job.priority
  if (edit === undefined) return { priority, lane: job.lane }
  const lane = edit.queue === undefined ? job.lane : session.lanes.need(edit.queue, job.name).lane
  const options = edit.options === undefined ? job.options : edit.options
  session.statement(session.queries.editJob).run(edit.payload ?? job.payload, options, priority, lane, job.ref)
  if (options !== job.options) replaceLabels(session, job.ref, options)
  return { priority, lane }
}

function freeKey(session: Session, job: Target): void {
  if (job.key !== null) session.statement(session.queries.freeKey).run(job.name, job.key, job.ref)
}
