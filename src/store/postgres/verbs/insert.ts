import { LeaseLostError } from '../../../errors.js'
import { cannotConflict } from '../../conflicts.js'
import { hasParents, isOpen, nameOf } from '../../links.js'
import type { InsertResult } from '../../links.js'
import type { InsertOptions, Inserted, NewJob } from '../../store.js'
import { entriesOfInsert, writeAudit } from '../../verbs/audit.js'
import { admitMembers, haveMembers } from '../../verbs/groups.js'
import { findParents, linkJobs } from '../../verbs/links.js'
import type { FoundParents } from '../../verbs/links.js'
import { awaitVerb } from '../../verbs/verb.js'
import type { Session } from '../connection/session.js'
import { insertAllConflicting } from './conflicts.js'
import { countMoves } from './groups.js'
import { linkSuccessors, PostgresLinks } from './links.js'
import type { StoredParent } from './links.js'
import { asNew, writeJobs } from './write.js'
import type { PlannedJob } from './write.js'

/** Inserts all jobs or none; within a transaction if that takes more than one statement. */
export async function insertJobs(
  session: Session,
  jobs: readonly NewJob[],
  options: InsertOptions,
): Promise<readonly Inserted[]> {
  const inserted = await insertAll(session, jobs, options)
  if (options.audit !== undefined) await awaitVerb(writeAudit(session, entriesOfInsert(options.audit, inserted)))
  return inserted
}

async function insertAll(
  session: Session,
  jobs: readonly NewJob[],
  options: InsertOptions,
): Promise<readonly Inserted[]> {
  if (options.claim !== undefined) {
    const { ref, fence } = options.claim
    const held = await session.query(session.queries.holdsClaim, String(ref), String(fence))
    if (held.length === 0) throw new LeaseLostError('enqueue from a handler')
  }
  if (haveMembers(jobs)) await awaitVerb(admitMembers(session, jobs, options.claim))
  if (jobs.some(hasParents) || !jobs.every(cannotConflict)) {
    const inserted = await (jobs.some(hasParents) ? insertLinked : insertSuccessors)(session, jobs, options)
    await countMoves(session)
    return inserted
  }
  await writeJobs(session, jobs)
  return jobs.map(asNew)
}

/** Inserts a bulk in which jobs have parents. */
async function insertLinked(
  session: Session,
  jobs: readonly NewJob[],
  options: InsertOptions,
): Promise<readonly Inserted[]> {
  const links = new PostgresLinks(session)
  const found = await awaitVerb(findParents(links, jobs))
  const inserted = await insertSuccessors(session, planned(jobs, found), options)
  await awaitVerb(linkJobs(links, jobs, inserted, found))
  return inserted
}

async function insertSuccessors(
  session: Session,
  jobs: readonly NewJob[],
  options: InsertOptions,
): Promise<readonly InsertResult[]> {
  const inserted = await insertAllConflicting(session, jobs, options)
  await linkSuccessors(session, inserted)
  return inserted
}

/** The columns that a row has from the start: no worker may claim a child before its links are written. */
function planned(jobs: readonly NewJob[], found: FoundParents<StoredParent>): PlannedJob[] {
  const own = new Set(jobs.map((job) => job.id))
  const parents = new Set(jobs.flatMap((job) => (job.after ?? []).map(nameOf)))
  return jobs.map((job) => {
    const names = (job.after ?? []).map(nameOf)
    const isWaiting = (name: string): boolean => {
      const parent = found.get(name)
      return own.has(name) || (parent !== undefined && isOpen(parent.state, job.onParentFailure ?? 'wait'))
    }
    const after = [...new Set(names.map((name) => found.get(name)?.id ?? name))]
    return {
      ...job,
      planned: {
        after: names.length === 0 ? undefined : JSON.stringify(after),
        blocked: names.some(isWaiting) || undefined,
        is_parent: parents.has(job.id) || undefined,
      },
    }
  })
}
