import type { State } from '../../../job/rules/states.js'
import { unfinishedOf } from '../../rows/group-moves.js'
import { GROUP_KEEP_MS, readWhenDone } from '../../groups.js'
import type { FailedGroups, FollowUp } from '../../groups.js'
import type { CancelledByParent } from '../../links.js'
import { enqueueWhenDone, NOT_FOLLOWED_UP } from '../../verbs/groups.js'
import { runVerb } from '../../verbs/verb.js'
import { isFileError } from '../connection/driver.js'
import type { Session } from '../connection/session.js'
import type { JobSession } from './job-session.js'

/*
 * Groups on SQLite. There is one writer at a time, so the transaction that moves a member keeps the counts exact, and
 * the row of a group says whether it is complete. The transaction that ends the last member gives a hint, and
 * `promoteJobs` then reads the complete groups.
 */

/** Writes the member moves of this transaction to the counts. Called at the end of every verb that moves jobs. */
export function countMoves(session: Session): void {
  if (session.groupMoves.isEmpty) return
  const moves = session.groupMoves.take()
  const count = session.statement(session.queries.countMembers)
  for (const { group, queue, state, members } of moves) count.run(group, queue, state, members)
  const unfinished = session.statement(session.queries.countUnfinished)
  for (const [group, change] of unfinishedOf(moves)) if (change !== 0) unfinished.run(change, group)
  if (isAnyComplete(session)) session.note({ dueInMs: 0 })
}

/** One lookup in an index that is nearly always empty. */
export function isAnyComplete(session: Session): boolean {
  return session.statement(session.queries.completeGroups).all(1).length > 0
}

/** Makes due jobs ready when group members may be among them, and returns their number. */
export function promoteMembers(session: Session, limit: number, now: number): number {
  const due = session.statement(session.queries.dueMembers).all(now, limit) as DueRow[]
  if (due.length === 0) return 0
  for (const { grp, queue, state } of due) {
    session.groupMoves.leave({ group: grp, queue }, state)
    session.groupMoves.enter({ group: grp, queue }, 'ready')
  }
  session.statement(session.queries.promoteThese).run(JSON.stringify(due.map((row) => row.seq)))
  return due.length
}

interface DueRow {
  readonly seq: number
  readonly state: State
  readonly grp: string | null
  readonly queue: string
}

export interface Completed extends FailedGroups {
  /** As many groups as were asked for: there may be more. */
  readonly isFull: boolean
  /** `whenDone` jobs that were cancelled at once, because a parent was deleted. */
  readonly cancelled: readonly CancelledByParent[]
  readonly followUps: readonly FollowUp[]
}

/** Enqueues the `whenDone` job of each complete group and marks the group as completed: both, or neither. */
export function completeGroups(at: JobSession, limit: number): Completed {
  const { session } = at
  const rows = session.statement(session.queries.completeGroups).all(limit) as {
    grp: string
    when_done: string | null
  }[]
  const cancelled: CancelledByParent[] = []
  const followUps: FollowUp[] = []
  const failedGroups: { group: string; error: unknown }[] = []
  for (const { grp, when_done } of rows) {
    const done = apart(session, () => {
      const ended = when_done === null ? NOT_FOLLOWED_UP : runVerb(enqueueWhenDone(at, readWhenDone(when_done)))
      session.statement(session.queries.completeGroup).run(at.givenNow, grp)
      return ended
    })
    if ('error' in done) {
      failedGroups.push({ group: grp, error: done.error })
      continue
    }
    cancelled.push(...done.value.cancelled)
    followUps.push(...done.value.written.map((job) => ({ group: grp, job })))
  }
  // When none of them could be completed, the next call would find the same ones.
  return { cancelled, followUps, failedGroups, isFull: rows.length === limit && failedGroups.length < limit }
}

/** A group or a tick that cannot be written must not hold up others, or due jobs: only its own writes are undone. */
export function apart<T>(session: Session, work: () => T): { readonly value: T } | { readonly error: unknown } {
  session.statement(session.queries.savepoint).run()
  try {
    const value = work()
    session.statement(session.queries.release).run()
    return { value }
  } catch (error) {
    if (isFileError(error)) throw error
    undo(session, error)
    return { error }
  }
}

function undo(session: Session, error: unknown): void {
  session.groupMoves.take()
  session.lanes.forget()
  session.isInOrder = false
  try {
    session.statement(session.queries.rollbackTo).run()
    session.statement(session.queries.release).run()
  } catch {
    // SQLite has ended the whole transaction: throw the original error.
    throw error
  }
}

export function isAnyGroup(session: Session): boolean {
  return session.statement(session.queries.anyGroup).all().length > 0
}

/**
 * Deletes groups whose members were all deleted long ago, among the next few of a cyclic scan. Returns their number.
 */
export function sweepGroups(session: Session, limit: number, now: number): number {
  const rows = session.statement(session.queries.nextGroups).all(session.groupsSweptTo, limit) as SweepRow[]
  let forgotten = 0
  for (const { grp, empty_since, lives } of rows) {
    const isEmpty = lives === 0
    if (isEmpty && empty_since !== null && empty_since <= now - GROUP_KEEP_MS) forgotten += forget(session, grp)
    else if (isEmpty !== (empty_since !== null))
      session.statement(session.queries.markEmpty).run(isEmpty ? now : null, grp)
  }
  session.groupsSweptTo = rows.length === limit ? (rows.at(-1)?.grp ?? '') : ''
  return forgotten
}

function forget(session: Session, group: string): number {
  const { changes } = session.statement(session.queries.forgetGroup).run(group)
  session.statement(session.queries.forgetCounts).run(group)
  return Number(changes)
}

interface SweepRow {
  readonly grp: string
  readonly empty_since: number | null
  readonly lives: number
}
