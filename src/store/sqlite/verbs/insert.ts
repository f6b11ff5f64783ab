import { LeaseLostError } from '../../../errors.js'
import { cannotConflict } from '../../conflicts.js'
import { hasParents } from '../../links.js'
import type { InsertResult } from '../../links.js'
import type { InsertOptions, Inserted, NewJob } from '../../store.js'
import { insertConflicting } from '../../verbs/conflicts.js'
import { entriesOfInsert, writeAudit } from '../../verbs/audit.js'
import { admitMembers, haveMembers } from '../../verbs/groups.js'
import { findParents, linkJobs } from '../../verbs/links.js'
import { runVerb } from '../../verbs/verb.js'
import { SessionAt } from '../connection/session.js'
import type { Session } from '../connection/session.js'
import { SqliteConflicts } from './conflicts.js'
import { noteClockStep } from './find-by-time.js'
import { countMoves } from './groups.js'
import { linkSuccessors, SqliteLinks } from './links.js'
import { writeJobs } from './write.js'

/** Inserts jobs within the current transaction, all of them or none. */
export function insertJobs(session: Session, jobs: readonly NewJob[], options: InsertOptions, now: number): Inserted[] {
  if (options.claim !== undefined && !holds(session, options.claim.ref, options.claim.fence))
    throw new LeaseLostError('enqueue from a handler')
  noteClockStep(session, now)
  if (haveMembers(jobs)) runVerb(admitMembers(new SessionAt(session, now), jobs, options.claim))
  const links = jobs.some(hasParents) ? new SqliteLinks(session, now) : undefined
  const parents = links === undefined ? undefined : runVerb(findParents(links, jobs))
  const inserted = writeAll(session, jobs, options, now)
  if (links !== undefined && parents !== undefined) runVerb(linkJobs(links, jobs, inserted, parents))
  linkSuccessors(session, inserted, now)
  countMoves(session)
  if (options.audit !== undefined)
    runVerb(writeAudit(new SessionAt(session, now), entriesOfInsert(options.audit, inserted)))
  return inserted
}

function writeAll(session: Session, jobs: readonly NewJob[], options: InsertOptions, now: number): InsertResult[] {
  if (jobs.every(cannotConflict)) {
    writeJobs(session, jobs, now)
    return jobs.map(asNew)
  }
  const steps = new SqliteConflicts(session, now)
  const inserted = jobs.map((job, index) =>
    cannotConflict(job) ? asNew(job) : runVerb(insertConflicting(steps, job, { ...options, now, jobs, index })),
  )
  writeJobs(session, jobs.filter(cannotConflict), now)
  return inserted
}

function asNew({ id }: NewJob): Inserted {
  return { id, isNew: true }
}

function holds(session: Session, ref: number, fence: number): boolean {
  return session.statement(session.queries.holdsClaim).get(ref, fence) !== undefined
}
