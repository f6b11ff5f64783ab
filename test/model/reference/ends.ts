import { freeSlot } from './conflicts.js'
import { isUnfinished, KEEP_MS } from './state.js'
import type { FinalState, Model, ModelJob, State } from './state.js'
import { cancelWorkflow } from './workflows.js'

/** The end of a job frees its key; a cancelled one gives up its unique slot too. */
export function endJob(model: Model, job: ModelJob, to: FinalState): void {
  job.state = to
  job.endedAt = model.now
  job.streak = 0
  job.request = null
  // A job that ended waits for nothing: a retry runs it, whatever its parents did.
  job.waitsFor.clear()
  if (to === 'cancelled') freeSlot(model, job)
  const keepMs = model.keepMs[job.name] ?? (to === 'failed' ? KEEP_MS.failed : KEEP_MS.default)
  job.keepUntil = model.now + keepMs
  if (keepMs === 0) forget(job)
}

/** It is kept for no time, or was pruned: its group still counts it as it ended. */
export function forget(job: ModelJob): void {
  job.forgotten = job.state as FinalState
  job.state = 'gone'
  job.keepUntil = null
}

/** The statistics count what became of a claim; they keep the count when the job is gone. */
export function countEnd(model: Model, job: ModelJob): void {
  const to = job.state === 'gone' ? job.forgotten : job.state
  const name = `${job.queue} ${job.name} ${to}`
  if (to === 'done' || to === 'failed' || to === 'retrying') model.ended.set(name, (model.ended.get(name) ?? 0) + 1)
}

/** Where a job goes that is no longer paused or blocked. */
export function resumedState(model: Model, job: ModelJob): State {
  if (job.waitsFor.size > 0) return 'blocked'
  if (job.dueAt <= model.now) return 'ready'
  return job.hasFailed ? 'retrying' : 'scheduled'
}

/** How long the handler of a cancelled job has to return. */
const GRACE_MS = 30_000

/** A job and a sequence alike: at once while it waits, by a request while it runs. */
export function cancel(model: Model, job: ModelJob): boolean {
  if (job.workflow !== null) return cancelWorkflow(model, job)
  if (job.state === 'running') {
    job.request = 'cancel'
    for (const attempt of model.attempts)
      if (attempt.job === job.number && attempt.hasClaim) attempt.graceUntil ??= model.now + GRACE_MS
    return true
  }
  if (!isUnfinished(job) || job.state === 'parked') return false
  endJob(model, job, 'cancelled')
  return true
}
