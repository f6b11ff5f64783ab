import { freeSlot, retake } from './conflicts.js'
import { resumedState } from './ends.js'
import { link, refuseCycle, refuseOwnKey } from './links.js'
import { commandSequence } from './sequences.js'
import { isTimed, isUnfinished, isWaiting, Refused } from './state.js'
import type { Model, ModelJob, ParentPolicy } from './state.js'
import { hasRun, pauseWorkflow, resumeWorkflow, retryWorkflow } from './workflows.js'

export function pause(model: Model, job: ModelJob): boolean {
  if (job.sequence !== null) return commandSequence(model, job, 'pause')
  if (job.workflow !== null) return pauseWorkflow(job)
  if (job.state === 'running') {
    if (job.request === 'cancel') return false
    job.request = 'pause'
    return true
  }
  if (!isUnfinished(job) || job.state === 'parked') return false
  job.state = 'paused'
  return true
}

export function resume(model: Model, job: ModelJob): boolean {
  if (job.sequence !== null) return commandSequence(model, job, 'resume')
  if (job.workflow !== null) return resumeWorkflow(model, job, resumedState(model, job))
  if (job.state === 'running') {
    if (job.request !== 'pause') return false
    job.request = null
    return true
  }
  if (job.state !== 'paused') return false
  job.state = resumedState(model, job)
  return true
}

/** Runs a job again now, with a full set of retries. `how`: what a workflow keeps of its log. */
export function retry(model: Model, job: ModelJob, how: 'rest' | 'fresh' = 'rest'): boolean {
  if (how === 'fresh' && job.workflow === null && job.state !== 'gone') throw new Refused('E_INVALID_OPTIONS')
  if (job.sequence !== null)
    return (job.state === 'failed' || job.state === 'parked') && commandSequence(model, job, 'resume')
  if ((job.state === 'retrying' && job.workflow === null) || job.state === 'parked') {
    if (job.workflow !== null) retryWorkflow(job, how)
    Object.assign(job, { state: 'ready', dueAt: model.now, retries: 0 })
    if (job.waitsFor.size > 0) job.state = 'blocked'
    return true
  }
  if (job.state !== 'failed' && job.state !== 'cancelled') return false
  retake(model, job)
  if (job.workflow !== null) retryWorkflow(job, how)
  Object.assign(job, { state: 'ready', dueAt: model.now, retries: 0, expiresAt: null, keepUntil: null })
  job.hasFailed = false
  return true
}

export function remove(model: Model, job: ModelJob): boolean {
  if (job.state === 'gone' || job.state === 'running') return false
  job.state = 'gone'
  job.endedAt ??= model.now
  job.keepUntil = null
  job.waitsFor.clear()
  freeSlot(model, job)
  return true
}

export interface Edit {
  readonly priority?: number
  readonly queue?: string
  readonly inMs?: number
}

/** Changes a job that waits; a parked one is due now. It is no suspect any more: what crashed may be what was changed. */
export function edit(model: Model, job: ModelJob, change: Edit): boolean {
  if (!isWaiting(job)) return false
  // It waits for its own times.
  const isFixed = job.sequence !== null || hasRun(job)
  if (isFixed && change.inMs !== undefined) throw new Refused('E_INVALID_OPTIONS')
  job.streak = 0
  if (change.priority !== undefined) job.priority = change.priority
  if (change.queue !== undefined) job.queue = change.queue
  if (change.inMs !== undefined || job.state === 'parked') job.dueAt = model.now + (change.inMs ?? 0)
  if (job.state === 'parked') {
    const resumed = resumedState(model, job)
    // It waits for the time of the edit, and not for a retry.
    job.state = resumed === 'retrying' ? 'scheduled' : resumed
  } else if (job.state === 'ready' || isTimed(job.state)) {
    const later = job.state === 'retrying' ? 'retrying' : 'scheduled'
    job.state = job.dueAt <= model.now ? 'ready' : later
  }
  return true
}

export function addParents(model: Model, job: ModelJob, parents: readonly ModelJob[], policy: ParentPolicy): boolean {
  if (!isWaiting(job)) return false
  if (job.sequence !== null || hasRun(job)) throw new Refused('E_INVALID_OPTIONS')
  if (parents.some((parent) => parent.state === 'gone')) throw new Refused('E_PARENT_MISSING')
  refuseOwnKey(job, parents, policy)
  refuseCycle(model, job, parents)
  job.streak = 0
  if (job.state === 'parked') {
    job.dueAt = model.now
    job.state = resumedState(model, job)
  }
  link(job, parents, policy)
  return true
}
