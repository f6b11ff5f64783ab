import { ParentMissingError, StoreError } from '../../../errors.js'
import { isThereAlready, readWhenDone, writeWhenDone } from '../../groups.js'
import type { GroupSeal, WhenDone } from '../../groups.js'
import { hasParents, withoutGone } from '../../links.js'
import type { CancelledByParent } from '../../links.js'
import type { NewJob } from '../../store.js'
import { countMoves } from './groups.js'
import { insertJobs } from './insert.js'
import { findParents } from './links.js'
import { callOff } from './moves.js'
import type { Session } from '../connection/session.js'

/* The seal of a group, and what follows it. */

/** False when it was sealed before, and nothing was written. Refuses what is to come after a job that is missing. Within a transaction. */
export async function sealGroup(s: Session, { group, whenDone }: GroupSeal): Promise<boolean> {
  await s.query(s.queries.addGroups, JSON.stringify([group]))
  const written = whenDone === null ? null : writeWhenDone(whenDone)
  const sealed = await s.query(s.queries.sealGroup, group, s.nowText, written)
  if (sealed.length === 0) return false
  if (whenDone !== null && hasParents(whenDone.job)) await findParents(s, [whenDone.job])
  // A move of nobody: so that somebody looks, however long ago the last member ended.
  await s.query(s.queries.countMoves, JSON.stringify([{ group, queue: '', state: 'done', members: 0 }]))
  s.note({ dueInMs: 0 })
  return true
}

/** What is to follow a group that is complete, before it is locked: its lane must be known then. */
export async function readFollowing(s: Session, group: string): Promise<NewJob | undefined> {
  const [row] = await s.query<{ written: string | null }>(s.queries.whenDone, group)
  return typeof row?.written === 'string' ? readWhenDone(row.written).job : undefined
}

/**
 * Enqueues what follows a group and notes that it was, if it is complete and nobody is about to add to it. Gives what followed
 * and was called off at once; undefined: not now. Within a transaction.
 */
export async function completeGroup(s: Session, group: string): Promise<readonly CancelledByParent[] | undefined> {
  const [row] = await s.query<{ written: string | null }>(s.queries.lockGroup, group)
  if (row === undefined || (await s.query(s.queries.isComplete, group)).length === 0) return undefined
  const calledOff = typeof row.written === 'string' ? await follow(s, readWhenDone(row.written)) : []
  await s.query(s.queries.completeGroup, group, s.nowText)
  return calledOff
}

/** Parents that were there at the seal and are gone by now: it runs without them or is called off, as links would have it. */
async function follow(
  s: Session,
  { job, options }: WhenDone,
  reason: string | null = null,
): Promise<CancelledByParent[]> {
  try {
    const [one] = await insertJobs(s, [job], options)
    if (reason === null || one?.isNew !== true) return []
    const calledOff = await callOff(s, job, reason)
    await countMoves(s)
    return [calledOff]
  } catch (error) {
    if (error instanceof ParentMissingError) {
      const left = withoutGone(job, error.missing)
      return follow(s, { job: left.job, options }, reason ?? left.reason)
    }
    if (!isThereAlready(error)) throw error
    return []
  }
}

/** What befell the server or this mill, and not one group. */
export function isOfTheStore(error: unknown): boolean {
  return error instanceof StoreError && error.code !== 'E_STORE'
}
