import { attemptsDue, freeDue, isWorking } from './attempts.js'
import { endJob, forget } from './ends.js'
import { enqueue } from './enqueue.js'
import { resolveLinks } from './links.js'
import { fireDue } from './schedules.js'
import { isFinal, isTimed, isUnfinished, isWaiting, jobOf, Refused } from './state.js'
import type { Group, Model } from './state.js'
import { deliverCallEnds, nextInHand, wakeDue } from './workflows.js'

/** Time passes while no process runs upkeep, to the next act of a worker: what came due meanwhile happens afterwards. */
export function oversleep(model: Model, until: number): void {
  model.now = Math.min(until, Math.max(model.now, nextOfWorkers(model)))
  freeDue(model)
  attemptsDue(model)
}

/** When something happens next, if no caller does anything. */
export function nextMoment(model: Model): number {
  const times: (number | null)[] = [
    nextOfWorkers(model),
    ...model.paused.values(),
    ...[...model.schedules.values()].map(({ nextAt }) => nextAt),
  ]
  for (const job of model.jobs) {
    if (isTimed(job.state)) times.push(job.dueAt)
    if (isWaiting(job) && job.state !== 'parked') times.push(job.expiresAt)
    if (job.state === 'blocked') times.push(job.workflow?.suspended?.wakeAt ?? null)
  }
  return Math.min(...times.map((at) => at ?? Infinity))
}

/** When a worker acts by itself: a rescue, the end of a quarantine or of a grace. */
function nextOfWorkers(model: Model): number {
  const times: (number | null)[] = model.departures.map(({ freeAt }) => freeAt)
  for (const attempt of model.attempts)
    if (attempt.hasClaim && isWorking(model, attempt)) {
      times.push(attempt.quarantinedUntil, attempt.graceUntil)
      const job = jobOf(model, attempt.job)
      if (job.workflow !== null) times.push(nextInHand(job))
    }
  return Math.min(...times.map((at) => at ?? Infinity))
}

/** What the engine does by itself at this moment. */
export function happen(model: Model): void {
  freeDue(model)
  attemptsDue(model)
  for (const [queue, until] of model.paused) if (until !== null && until <= model.now) model.paused.delete(queue)
  settle(model)
  while (fireDue(model)) settle(model)
}

/** Due, expired, released and completed. */
function settle(model: Model): void {
  for (let moved = true; moved;) {
    for (const job of model.jobs) {
      const isExpired = isWaiting(job) && job.state !== 'parked' && job.expiresAt !== null && job.expiresAt <= model.now
      if (isExpired) endJob(model, job, 'cancelled')
      if (isTimed(job.state) && job.dueAt <= model.now) job.state = 'ready'
    }
    wakeDue(model)
    const isResolved = resolveLinks(model)
    deliverCallEnds(model)
    moved = completeGroups(model) || isResolved
  }
}

/** A sealed group without an unfinished member is complete, once, and its job is enqueued. */
function completeGroups(model: Model): boolean {
  let moved = false
  for (const [name, group] of [...model.groups].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    const isOpen = model.jobs.some((job) => job.group === name && isUnfinished(job))
    if (group.completedAt !== null || group.sealedAt === null || isOpen) continue
    if (group.whenDone !== null && !enqueueFollowing(model, group.whenDone)) continue
    group.completedAt = model.now
    moved = true
  }
  return moved
}

/** A duplicate counts as the job. False when it cannot be written now: it is tried again. */
function enqueueFollowing(model: Model, { name, given }: NonNullable<Group['whenDone']>): boolean {
  const after = (given.after ?? []).filter((number) => jobOf(model, number).state !== 'gone')
  const hasLost = after.length < (given.after?.length ?? 0)
  try {
    const { number, isNew } = enqueue(model, name, { ...given, after })
    // A parent that is gone by now counts as deleted.
    if (hasLost && isNew && given.onParentFailure !== 'run') endJob(model, jobOf(model, number), 'cancelled')
    return true
  } catch (error) {
    if (error instanceof Refused) return error.code.startsWith('E_DUPLICATE')
    throw error
  }
}

/** Finished jobs whose time is over are deleted; their groups still count them. */
export function prune(model: Model): void {
  for (const job of model.jobs)
    if (isFinal(job.state) && job.keepUntil !== null && job.keepUntil <= model.now) forget(job)
  happen(model)
}
