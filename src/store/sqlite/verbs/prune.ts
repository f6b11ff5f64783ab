import type { Pruned, PruneStore, Swept } from '../../prune.js'
import { dropOldSteps, isAnyOldStep } from './find-by-time.js'
import type { CommitQueue } from '../connection/commit-queue.js'
import { releasePages, hasSpace } from '../file/shrink.js'
import { isAnyGroup, sweepGroups } from './groups.js'
import { dropLabels, isAnyLabel } from './labels.js'
import { noteGone } from './moves.js'
import type { Session } from '../connection/session.js'
import { rowRunsOf } from './row-runs.js'
import { sweepSlots } from './conflicts.js'
import { isAnyLeftover, sweepLeftovers } from './sequences.js'
import { foldStatistics, isFoldDue, trimStatistics } from '../../verbs/statistics.js'
import { HOUR_MS } from '../../../job/statistics/buckets.js'
import { runVerb } from '../../verbs/verb.js'
import { SessionAt } from '../connection/session.js'

/** Not flushed: what a power cut undoes is pruned again. When there is nothing to delete, no write lock is taken. */
export function pruneVerbs(commits: CommitQueue, session: Session): PruneStore {
  return {
    pruneJobs: (limit) =>
      commits.write((now) => pruneJobs(session, limit, now), {
        durable: false,
        readFirst: (now) => nothingToPrune(session, now),
      }),
    sweepRows: (limit) =>
      commits.write((now) => sweepRows(session, limit, now), {
        durable: false,
        readFirst: (now) => nothingToSweep(session, now),
      }),
  }
}

/** The result when nothing is overdue, by reading alone; undefined when something is. */
function nothingToPrune(session: Session, now: number): Pruned | undefined {
  const nextInMs = nextPruneInMs(session, now)
  return nextInMs === 0 ? undefined : { pruned: 0, nextInMs }
}

function nextPruneInMs(session: Session, now: number): number | null {
  const next = (session.statement(session.queries.nextPrune).get() as { due: number | null }).due
  return next === null ? null : Math.max(0, next - now)
}

/**
 * Deletes finished jobs whose keep time is over, and writes to-dos for their children, within the current transaction.
 */
function pruneJobs(session: Session, limit: number, now: number): Pruned {
  const rows = session.statement(session.queries.oldJobs).all(now, limit) as { seq: number }[]
  if (rows.length > 0)
    deleteJobs(
      session,
      rows.map((row) => row.seq),
    )
  return { pruned: rows.length, nextInMs: nextPruneInMs(session, now) }
}

/** Jobs that ended together were usually enqueued together: deleting a range costs less than deleting a list. */
function deleteJobs(session: Session, seqs: number[]): void {
  noteGone(session, seqs)
  const { runs, rest } = rowRunsOf(
    seqs.sort((a, b) => a - b),
    (seq) => seq,
    () => true,
  )
  const { pruneHistory, pruneHistoryRun, pruneJobs: pruneList, pruneJobsRun, deleteLabelsRun } = session.queries
  const labels = isAnyLabel(session)
  for (const run of runs)
    for (const sql of [pruneHistoryRun, pruneJobsRun, ...(labels ? [deleteLabelsRun] : [])])
      session.statement(sql).run(run[0] as number, run.at(-1) as number)
  if (rest.length === 0) return
  for (const sql of [pruneHistory, pruneList]) session.statement(sql).run(JSON.stringify(rest))
  dropLabels(session, rest)
}

/** The result when there is no unique slot, group, old clock step, leftover, row to fold, or space to release. Only reads. */
function nothingToSweep(session: Session, now: number): Swept | undefined {
  const isEmpty =
    session.statement(session.queries.anySlot).get() === undefined &&
    !isAnyGroup(session) &&
    !isAnyOldStep(session) &&
    !isAnyLeftover(session, now) &&
    !runVerb(isFoldDue(new SessionAt(session, now), now)) &&
    !hasSpace(session)
  return isEmpty ? { swept: 0, more: false } : undefined
}

/** One step of the scans through the unique slots, the groups and the leftovers; a fold of statistics; the release of some space. */
function sweepRows(session: Session, limit: number, now: number): Swept {
  const [slots, groups] = [sweepSlots(session, limit, now), sweepGroups(session, limit, now)]
  const leftovers = sweepLeftovers(session, limit, now)
  dropOldSteps(session)
  const isUnfolded = foldAndTrim(session, now)
  const isSpacious = releasePages(session)
  const more = slots >= limit || groups >= limit || leftovers > 0 || isUnfolded || isSpacious
  return { swept: slots + groups + leftovers, more }
}

/** Returns whether there is more to fold. */
function foldAndTrim(session: Session, now: number): boolean {
  const at = new SessionAt(session, now)
  if (!runVerb(isFoldDue(at, now))) return false
  const isMore = runVerb(foldStatistics(at))
  if (now - session.statsTrimmedAt >= HOUR_MS) {
    session.statsTrimmedAt = now
    runVerb(trimStatistics(at, now))
  }
  return isMore
}
