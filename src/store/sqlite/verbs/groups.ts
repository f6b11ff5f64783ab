import type { State } from '../../../job/rules/states.js'
import { unfinishedOf } from '../../group-moves.js'
import { GROUP_KEEP_MS, readWhenDone } from '../../groups.js'
import type { GroupTroubles } from '../../groups.js'
import type { CancelledByParent } from '../../links.js'
import { enqueueFollowing } from '../../verbs/groups.js'
import { runVerb } from '../../verbs/verb.js'
import { isOfTheFile } from '../connection/driver.js'
import type { Session } from '../connection/session.js'
import type { JobSession } from './job-session.js'

/*
 * Groups on SQLite. There is one writer at a time, so counts are kept exact in the transaction that moves the member, and a
 * complete group is one whose row says so: the transaction that ends the last member wakes `promoteJobs`, which looks there.
 */

/** Writes down which members have moved in this transaction. Called at the end of every verb that moves jobs. */
export function countMoves(session: Session): void {
  if (session.groupMoves.isEmpty) return
  const moves = session.groupMoves.take()
  const count = session.statement(session.queries.countMembers)
  for (const { group, queue, state, members } of moves) count.run(group, queue, state, members)
  const unfinished = session.statement(session.queries.countUnfinished)
  for (const [group, change] of unfinishedOf(moves)) if (change !== 0) unfinished.run(change, group)
  if (isAnyComplete(session)) session.note({ dueInMs: 0 })
}

/** One look at an index that is nearly always empty. */
export function isAnyComplete(session: Session): boolean {
  return session.statement(session.queries.completeGroups).all(1).length > 0
}

/** Makes due jobs ready where members may be among them, and gives how many. */
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

export interface Completed extends GroupTroubles {
  /** What followed a group and was called off at once, because its parent is gone. */
  readonly cancelled: readonly CancelledByParent[]
}

/** Enqueues what was to follow each group that is complete, and notes that it was: both, or neither. */
export function completeGroups(at: JobSession, limit: number): Completed {
  const { session } = at
  const rows = session.statement(session.queries.completeGroups).all(limit) as {
    grp: string
    when_done: string | null
  }[]
  const cancelled: CancelledByParent[] = []
  const troubled: { group: string; error: unknown }[] = []
  for (const { grp, when_done } of rows) {
    const done = apart(session, () => {
      const ended = when_done === null ? [] : runVerb(enqueueFollowing(at, readWhenDone(when_done)))
      session.statement(session.queries.completeGroup).run(at.givenNow, grp)
      return ended
    })
    if ('error' in done) troubled.push({ group: grp, error: done.error })
    else cancelled.push(...done.value)
  }
  return { cancelled, troubled }
}

/** One group that cannot be completed holds up neither the others nor the jobs that are due: what it wrote is undone alone. */
function apart<T>(session: Session, work: () => T): { readonly value: T } | { readonly error: unknown } {
  session.statement(session.queries.savepoint).run()
  try {
    const value = work()
    session.statement(session.queries.release).run()
    return { value }
  } catch (error) {
    if (isOfTheFile(error)) throw error
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
    // SQLite has ended the whole transaction: then that is what went wrong.
    throw error
  }
}

export function isAnyGroup(session: Session): boolean {
  return session.statement(session.queries.anyGroup).all().length > 0
}

/** Forgets groups whose members were all forgotten long ago: the next few of a walk round the table. Gives how many. */
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
