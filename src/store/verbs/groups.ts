import { GroupSealedError, ParentMissingError } from '../../errors.js'
import type { MemberCount } from '../../job/rules/group-progress.js'
import { numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import { isDuplicateError, withRunning, writeWhenDone } from '../groups.js'
import type { GroupRow, GroupSeal, WhenDone } from '../groups.js'
import { hasParents, withoutGone } from '../links.js'
import type { CancelledByParent } from '../links.js'
import type { InsertOptions, NewJob } from '../store.js'
import type { JobSteps } from './job-steps.js'
import { entryOf, writeAudit } from './audit.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

/** Whether any of the jobs is a member of a group; most bulks have none. */
export function haveMembers(jobs: readonly NewJob[]): boolean {
  return jobs.some((job) => typeof job.group === 'string')
}

/**
 * Admits jobs to their groups, or refuses all of them: a sealed group takes only the jobs that its own running members
 * enqueue. On PostgreSQL the groups stay locked in share mode until the transaction ends, so that no other process
 * seals, completes or deletes them.
 */
export function* admitMembers(
  session: VerbSession,
  jobs: readonly NewJob[],
  claim: InsertOptions['claim'],
): Verb<void> {
  const groups = new Set(jobs.flatMap(({ group }) => (typeof group === 'string' ? [group] : [])))
  const named = JSON.stringify([...groups])
  let rows = yield* awaited(session.rows<SharedRow>('shareGroups', named))
  if (rows.length < groups.size) {
    yield* awaited(session.run('addGroups', named))
    rows = yield* awaited(session.rows<SharedRow>('shareGroups', named))
  }
  for (const { grp, sealed_at, completed_at } of rows) {
    if (sealed_at === null) continue
    const isMember = claim !== undefined && (yield* awaited(session.rows('isMember', claim.ref, grp))).length > 0
    if (!isMember || completed_at !== null) throw new GroupSealedError(grp, completed_at !== null)
  }
  if (rows.some((row) => row.empty_since !== null)) yield* awaited(session.run('keepGroups', named))
}

interface SharedRow {
  readonly grp: string
  readonly sealed_at: Numeric | null
  readonly completed_at: Numeric | null
  readonly empty_since: Numeric | null
}

/** False, and nothing is written, when it was sealed before. Refuses a `whenDone` job whose parent is missing. */
export function* sealGroup(session: VerbSession & JobSteps, { group, whenDone, audit }: GroupSeal): Verb<boolean> {
  yield* awaited(session.run('addGroups', JSON.stringify([group])))
  const written = whenDone === null ? null : writeWhenDone(whenDone)
  const sealed = yield* awaited(session.rows('sealGroup', session.givenNow, written, group))
  if (sealed.length === 0) return false
  if (whenDone !== null && hasParents(whenDone.job)) yield* awaited(session.findParents([whenDone.job]))
  session.note({ dueInMs: 0 })
  yield* writeAudit(session, entryOf(audit, `group ${group}`, 'open', 'sealed'))
  return true
}

/** `uncounted`: member moves that are not folded into the counts yet, on PostgreSQL. */
export function* readGroup(session: VerbSession, group: string): Verb<GroupRow & { readonly uncounted: number }> {
  const [row] = yield* awaited(session.rows<ReadRow>('readGroup', group))
  const counts = JSON.parse(row?.counts ?? '[]') as MemberCount[]
  const running = JSON.parse(row?.running ?? '[]') as { queue: string; members: number }[]
  return {
    sealedAt: numberOrNull(row?.sealed),
    completedAt: numberOrNull(row?.completed),
    counts: withRunning(counts, running),
    uncounted: numberOf(row?.moves ?? 0),
  }
}

interface ReadRow {
  readonly sealed: Numeric | null
  readonly completed: Numeric | null
  readonly moves: Numeric
  readonly counts: string | null
  readonly running: string | null
}

/**
 * Enqueues the `whenDone` job of a complete group. If a parent existed at the seal and is deleted by now, the job runs
 * without it or is cancelled at once, by the rule of links.
 */
export function* enqueueWhenDone(
  session: VerbSession & JobSteps,
  { job, options }: WhenDone,
  reason: string | null = null,
): Verb<FollowedUp> {
  try {
    const [one] = yield* awaited(session.insertJobs([job], options))
    if (one?.isNew !== true) return NOT_FOLLOWED_UP
    if (reason === null) return { written: [job], cancelled: [] }
    yield* awaited(session.cancelNew(job, reason))
    return { written: [job], cancelled: [{ id: job.id, name: job.name, queue: job.queue, reason }] }
  } catch (error) {
    if (error instanceof ParentMissingError) {
      const left = withoutGone(job, error.missing)
      return yield* enqueueWhenDone(session, { job: left.job, options }, reason ?? left.reason)
    }
    if (!isDuplicateError(error)) throw error
    return NOT_FOLLOWED_UP
  }
}

/** The `whenDone` job of a group, at most one. */
export interface FollowedUp {
  readonly written: readonly NewJob[]
  /** It was cancelled at once, because a parent was deleted. */
  readonly cancelled: readonly CancelledByParent[]
}

/** The group has no `whenDone` job, or another job holds its key or slot. */
export const NOT_FOLLOWED_UP: FollowedUp = { written: [], cancelled: [] }
