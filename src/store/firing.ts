import { DuplicateJobError, DuplicateKeyError, GroupSealedError, ParentMissingError } from '../errors.js'
import type { Overlap } from '../job/rules/overlap.js'
import type { PlannedTick, TickRow } from './schedules.js'
import type { NewJob } from './store.js'

/** What is said and done when ticks are fired, on every store alike; what overlaps, `job/rules/overlap.ts` decides. */

/**
 * Of several ticks of one firing, where a later one would cancel the earlier, only the last gets a job: the others would be
 * called off before anybody saw them.
 */
export function nextOnes(overlap: Overlap, ticks: readonly PlannedTick[]): readonly PlannedTick[] {
  if (overlap !== 'cancel') return ticks
  const last = ticks.findLast((tick) => tick.job !== null)
  return ticks.map((tick) =>
    tick.job === null || tick === last
      ? tick
      : { ...tick, outcome: 'skipped', reason: 'a later tick ran instead', job: null },
  )
}

/** The job that begins when those before it have ended, however they do, or wait for a person. */
export function waitsFor(job: NewJob, before: readonly string[]): NewJob {
  return { ...job, after: before.map((id) => ({ id })), onParentFailure: 'past' }
}

/** Why a tick has no job, and what to do where the next tick would have none either. */
export interface NotWritten {
  readonly reason: string
  readonly advice?: string | undefined
}

/** A job that cannot be written now, for a reason of its own, is no reason to stop what recurs. */
export function whyNotWritten(error: unknown): NotWritten {
  if (error instanceof ParentMissingError) return { reason: error.message, advice: KEEP_PARENTS }
  if (error instanceof GroupSealedError) return { reason: error.message, advice: OTHER_GROUP }
  const isOwn = error instanceof DuplicateKeyError || error instanceof DuplicateJobError
  if (!isOwn) throw error
  return { reason: error.message }
}

const KEEP_PARENTS =
  'a finished job is pruned when its keep time is over: give the jobs that "after" names a longer keep (keep: Infinity), or call recurring() again with other jobs'
const OTHER_GROUP = 'call recurring() again with another group, or without one'

export function heldUp(open: readonly string[]): string {
  return `job ${open.at(-1)} of an earlier tick is unfinished`
}

export function keyHeld(holder: string | undefined): NotWritten {
  return { reason: `job ${holder ?? ''} has its key or its place` }
}

export function calledOffFor(schedule: string): string {
  return `the next tick of schedule ${JSON.stringify(schedule)} came`
}

/** The last tick of the rule among these. */
export function lastAtOf(ticks: readonly TickRow[]): number | null {
  const times = ticks.filter((tick) => !tick.byHand).map((tick) => tick.at)
  return times.length === 0 ? null : Math.max(...times)
}
