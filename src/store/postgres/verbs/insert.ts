import { LeaseLostError } from '../../../errors.js'
import type { InsertOptions, Inserted, NewJob } from '../../store.js'
import { hasParents } from '../../links.js'
import { cannotConflict } from '../../conflicts.js'
import { admitMembers, countMoves } from './groups.js'
import { insertLinked } from './links.js'
import { insertAmong } from './successors.js'
import type { Session } from '../connection/session.js'
import { asNew, writeJobs } from './write.js'

/** Writes jobs, all of them or none, within a transaction where there is more than one statement to it. */
export async function insertJobs(
  s: Session,
  jobs: readonly NewJob[],
  options: InsertOptions,
): Promise<readonly Inserted[]> {
  if (options.under !== undefined) {
    const { ref, fence } = options.under
    const held = await s.query(s.queries.holdsClaim, String(ref), String(fence))
    if (held.length === 0) throw new LeaseLostError('enqueue from a handler')
  }
  await admitMembers(s, jobs, options.under)
  if (jobs.some(hasParents) || !jobs.every(cannotConflict)) {
    const inserted = await (jobs.some(hasParents) ? insertLinked : insertAmong)(s, jobs, options)
    await countMoves(s)
    return inserted
  }
  await writeJobs(s, jobs)
  return jobs.map(asNew)
}
