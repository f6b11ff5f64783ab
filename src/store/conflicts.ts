import type { UniqueSlotRequest } from '../job/rules/unique.js'
import { instant } from './ordering.js'
import type { NewJob } from './store.js'

/** Conflicts of keys and unique slots, on every store alike; `job/rules/unique.ts` decides them. */

/** A window that never ends. */
const FOR_EVER = Number.MAX_SAFE_INTEGER

/** When a window that is opened now ends; null when none is asked for. */
export function windowEnd(asked: UniqueSlotRequest, now: number): number | null {
  return asked.forMs === null ? null : Math.min(FOR_EVER, now + asked.forMs)
}

/** A job that may be put off again and again is due at the end of its window at the latest. */
export function putOff(job: NewJob, until: number | null, now: number): NewJob {
  return until === null || instant(job.due, now) <= until ? job : { ...job, due: { at: until } }
}

/** Why a slot is refused: `holder` is the unfinished job that has it, if there is one. */
export function whyRefused(holder: { readonly claimed: boolean } | null): string {
  if (holder === null) return 'ran within its window'
  return holder.claimed ? 'is unfinished and a worker has it' : 'is unfinished'
}

/** What an error says of the other job. One of the same bulk is never written, so its id would lead to nothing. */
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

/** It has neither a key nor a unique slot. */
export function cannotConflict(job: NewJob): boolean {
  return job.key === null && job.unique === undefined
}

/** Inserting it needs no look at any other job: it has no key, slot, parent or group. */
export function isPlainJob(job: NewJob): boolean {
  return cannotConflict(job) && (job.after === undefined || job.after.length === 0) && job.group === undefined
}
