import { endJob, resumedState } from './ends.js'
import { isTimed, isUnfinished, jobOf, Refused } from './state.js'
import type { LinkPolicy, Model, ModelJob } from './state.js'
import { awaitedCalls } from './workflows.js'

/** A job cannot wait for the retry of a stopped job of its own key, which needs that key first. */
export function refuseOwnKey(job: ModelJob, parents: readonly ModelJob[], policy: LinkPolicy): void {
  if (job.key === null || policy !== 'wait') return
  const isStopped = (parent: ModelJob): boolean => parent.state === 'failed' || parent.state === 'cancelled'
  if (parents.some((parent) => parent.name === job.name && parent.key === job.key && isStopped(parent)))
    throw new Refused('E_CYCLE')
}

/** A job that waits gets more parents: none of them may wait for the job itself. */
export function refuseCycle(model: Model, job: ModelJob, parents: readonly ModelJob[]): void {
  const above = new Set(parents)
  for (const one of above)
    for (const number of [...one.waitsFor.keys(), ...awaitedCalls(one)]) above.add(jobOf(model, number))
  if (above.has(job)) throw new Refused('E_CYCLE')
}

/** What was said last about a parent holds. */
export function link(job: ModelJob, parents: readonly ModelJob[], policy: LinkPolicy): void {
  for (const parent of parents) {
    if (!job.after.includes(parent.number)) job.after.push(parent.number)
    // A successor runs however the job before it ends: to be retried, that one would need the key.
    const isOwnKey = job.key !== null && job.key === parent.key && job.name === parent.name && isUnfinished(parent)
    if (parent.state !== 'done') job.waitsFor.set(parent.number, isOwnKey && policy === 'wait' ? 'run' : policy)
  }
  if (job.waitsFor.size > 0 && (job.state === 'ready' || isTimed(job.state))) job.state = 'blocked'
}

/** What the end of parents means for those that wait for them; true when a job was moved. */
export function resolveLinks(model: Model): boolean {
  let moved = false
  for (const job of model.jobs) {
    if (!isUnfinished(job)) continue
    for (const [number, policy] of job.waitsFor) {
      const verdict = fateOf(jobOf(model, number), policy)
      if (verdict === 'waits') continue
      moved = true
      job.waitsFor.delete(number)
      if (verdict === 'runs') continue
      endJob(model, job, 'cancelled')
      break
    }
    const isSuspended = (job.workflow?.suspended ?? null) !== null
    if (job.state === 'blocked' && job.waitsFor.size === 0 && !isSuspended) {
      job.state = resumedState(model, job)
      moved = true
    }
  }
  return moved
}

function fateOf(parent: ModelJob, policy: LinkPolicy): 'waits' | 'runs' | 'cancelled' {
  if (parent.state === 'parked' && policy === 'run-if-parked') return 'runs'
  if (isUnfinished(parent)) return 'waits'
  if (parent.state === 'done' || parent.forgotten === 'done' || policy === 'run' || policy === 'run-if-parked')
    return 'runs'
  // A failed or cancelled parent can be retried; one that is gone cannot.
  return policy === 'wait' && parent.state !== 'gone' ? 'waits' : 'cancelled'
}
