import { ParentMissingError } from '../../../errors.js'
import { isThereAlready, readWhenDone, writeWhenDone } from '../../groups.js'
import type { GroupSeal, GroupStore, GroupTroubles, WhenDone } from '../../groups.js'
import { withoutGone } from '../../links.js'
import type { CancelledByParent } from '../../links.js'
import type { NewJob } from '../../store.js'
import type { CommitQueue } from '../connection/commit-queue.js'
import { isOfTheFile } from '../connection/driver.js'
import { countMoves, groupRow, isAnyComplete, readGroup } from './groups.js'
import { endWaiting } from './history.js'
import { insertJobs } from './insert.js'
import { findParents } from './links.js'
import type { Session } from '../connection/session.js'

/* The seal of a group, and what follows it. */

export function groupVerbs(commits: CommitQueue, session: Session): GroupStore {
  return {
    readGroup: (group) => commits.read(() => readGroup(session, group)),
    sealGroup: (seal) => commits.write((now) => sealGroup(session, seal, now)),
  }
}

/** False when it was sealed before. Then, and when what is to follow comes after a job that is missing, nothing is written. */
export function sealGroup(session: Session, { group, whenDone }: GroupSeal, now: number): boolean {
  const row = groupRow(session, group)
  if (row !== undefined && row.sealed_at !== null) return false
  if (whenDone !== null) findParents(session, [whenDone.job])
  session.statement(session.queries.addGroup).run(group)
  const written = whenDone === null ? null : writeWhenDone(whenDone)
  session.statement(session.queries.sealGroup).run(now, written, group)
  if (isAnyComplete(session)) session.noteDue(0)
  return true
}

export interface Completed extends GroupTroubles {
  /** What followed a group and was called off at once, because its parent is gone. */
  readonly calledOff: readonly CancelledByParent[]
}

/** Enqueues what was to follow each group that is complete, and notes that it was: both, or neither. */
export function completeGroups(session: Session, limit: number, now: number): Completed {
  const rows = session.statement(session.queries.completeGroups).all(limit) as {
    grp: string
    when_done: string | null
  }[]
  const calledOff: CancelledByParent[] = []
  const troubled: { group: string; error: unknown }[] = []
  for (const { grp, when_done } of rows) {
    const done = apart(session, () => {
      const ended = when_done === null ? [] : follow(session, readWhenDone(when_done), now)
      session.statement(session.queries.completeGroup).run(now, grp)
      return ended
    })
    if ('error' in done) troubled.push({ group: grp, error: done.error })
    else calledOff.push(...done.value)
  }
  return { calledOff, troubled }
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
  session.tally.take()
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

/** Parents that were there at the seal and are gone by now: it runs without them or is called off, as links would have it. */
function follow(
  session: Session,
  { job, options }: WhenDone,
  now: number,
  reason: string | null = null,
): CancelledByParent[] {
  try {
    const [one] = insertJobs(session, [job], options, now)
    return reason === null || one?.isNew !== true ? [] : [callOff(session, job, reason, now)]
  } catch (error) {
    if (error instanceof ParentMissingError) {
      const left = withoutGone(job, error.missing)
      return follow(session, { job: left.job, options }, now, reason ?? left.reason)
    }
    if (!isThereAlready(error)) throw error
    return []
  }
}

function callOff(
  session: Session,
  { id, name, queue, keepCancelledMs }: NewJob,
  reason: string,
  now: number,
): CancelledByParent {
  endWaiting(session, id, reason, keepCancelledMs ?? Infinity, now)
  countMoves(session)
  return { id, name, queue, reason }
}
