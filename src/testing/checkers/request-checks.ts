import type { Census, CensusJob } from '../../store/census.js'
import { isFinal } from '../../job/rules/states.js'
import { BrokenPromise } from './broken-promise.js'

/**
 * Requested changes (X7, X14): a request exists only beside a running job. When it is removed, the change was applied: after a
 * cancel the job is cancelled or done; after a pause it is paused, or in a state in which it would not have run anyway. The
 * reset of a sequence drops the request.
 */
export function checkRequests(
  before: Census | undefined,
  census: Census,
  count: (what: string) => void,
  resets: ReadonlySet<string> = new Set(),
): void {
  if (census.requests.length === 0 && (before?.requests.length ?? 0) === 0) return
  const jobs = new Map(census.jobs.map((job) => [job.seq, job]))
  const pending = new Map(census.requests.map((request) => [request.seq, request]))
  for (const { seq, kind } of census.requests)
    if (jobs.get(seq)?.state !== 'running')
      throw new BrokenPromise(`${idOf(kind)}: a request to ${kind} exists beside a job that ${describe(jobs.get(seq))}`)
  for (const request of before?.requests ?? []) {
    const job = jobs.get(request.seq)
    const now = pending.get(request.seq)
    // A reset ends the claim and forgets what was requested of it.
    if (job !== undefined && resets.has(job.id)) continue
    if (request.kind === 'cancel' && now === undefined) checkCancelled(job, before, census, count)
    if (request.kind === 'pause' && now === undefined) checkPaused(job, count)
    if (request.kind === 'cancel' && now?.kind === 'pause')
      throw new BrokenPromise(`X7: job ${job?.id} was cancelled, and then a pause took the place of that`)
  }
}

function checkCancelled(
  job: CensusJob | undefined,
  before: Census | undefined,
  census: Census,
  count: (what: string) => void,
): void {
  // One that ended and is kept for no time, or was deleted in the same moment, is out of sight.
  if (job === undefined) return
  if (job.state !== 'cancelled' && job.state !== 'done')
    throw new BrokenPromise(`X7: job ${job.id} was cancelled while it ran, and now ${describe(job)}`)
  if (job.state === 'done') return count('done in spite of a cancel')
  const fence = before?.jobs.find((each) => each.seq === job.seq)?.fence
  const lease = before?.leases.find((each) => each.fence === fence)
  const isDead = !census.workers.some(({ worker }) => worker === lease?.worker)
  count(isDead ? 'cancelled at a rescue' : 'cancelled while it ran')
}

function checkPaused(job: CensusJob | undefined, count: (what: string) => void): void {
  if (job === undefined || job.state === 'running' || job.state === 'parked') return
  if (job.state === null || isFinal(job.state)) return
  if (job.state !== 'paused')
    throw new BrokenPromise(`X14: job ${job.id} was to be paused after its attempt, and now ${describe(job)}`)
  count('paused after an attempt')
}

function idOf(kind: 'cancel' | 'pause'): string {
  return kind === 'cancel' ? 'X7' : 'X14'
}

function describe(job: CensusJob | undefined): string {
  return job === undefined ? 'is gone' : `is ${job.state}`
}
