import type { UniqueSlotRequest } from '../job/rules/unique.js'
import { instant } from './rows/ordering.js'
import type { NewJob } from './store.js'

/** Conflicts of keys and unique slots, shared by both stores; `job/rules/unique.ts` decides them. */

/** A window that never ends. */
const FOR_EVER = Number.MAX_SAFE_INTEGER

/** The end of a window that opens now; null when the job requests no window. */
export function windowEnd(request: UniqueSlotRequest, now: number): number | null {
  return request.forMs === null ? null : Math.min(FOR_EVER, now + request.forMs)
}

/** A job that can be rescheduled repeatedly is due at the end of its window at the latest. */
export function rescheduledWithinWindow(job: NewJob, until: number | null, now: number): NewJob {
  return until === null || instant(job.due, now) <= until ? job : { ...job, due: { at: until } }
}

/** Why a slot is refused. `holder` is the unfinished job that holds it, if there is one. */
export function whyRefused(holder: { readonly claimed: boolean } | null, isWorkflow = false): string {
  if (holder === null) return 'ran within its window'
  if (!holder.claimed) return 'is unfinished'
  return isWorkflow ? 'is unfinished and has begun' : 'is unfinished and a worker has it'
}

/**
 * How an error names the other job. A job of the same bulk is never written, so the error gives its index and no id.
 */
export function describeConflict(
  id: string,
  jobs: readonly NewJob[],
  index: number,
): { readonly existingId: string | undefined; readonly where: string } {
  const first = jobs.findIndex((job) => job.id === id)
  const which = jobs.length > 1 ? ` (item ${index})` : ''
  return first === -1
    ? { existingId: id, where: which }
    : { existingId: undefined, where: `: item ${first} of the same bulk${which}` }
}

/** The job has neither a key nor a unique slot. */
export function cannotConflict(job: NewJob): boolean {
  return job.key === null && job.unique === undefined
}

/** The insert reads no other row: the job has no key, slot, parent or group. */
export function isPlainJob(job: NewJob): boolean {
  return cannotConflict(job) && hasNoParentOrGroup(job)
}

export function hasNoParentOrGroup(job: NewJob): boolean {
  return (job.after === undefined || job.after.length === 0) && job.group === undefined
}
