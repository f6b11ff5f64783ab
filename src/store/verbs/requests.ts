import { decideRequest } from '../../job/rules/request.js'
import type { RequestKind } from '../../job/rules/request.js'
import { numberOf } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import type { JobRequest, PendingRequest } from '../requests.js'
import { entryOf, writeAudit } from './audit.js'
import { awaited } from './verb.js'
import type { Answer, Verb, VerbSession } from './verb.js'

export interface RunningJob {
  readonly ref: number
  readonly fence: number
  /** Its pending request. */
  readonly requested: RequestKind | null
}

export interface RequestSteps {
  /** The job, if it is running. On PostgreSQL its lease is locked, so that no settlement ends the job meanwhile. */
  lockRunning(id: string): Answer<RunningJob | undefined>
  putRequest(job: RunningJob, kind: RequestKind, request: JobRequest): Answer<unknown>
}

/** Records the request of a running job. The transaction that ends the job's claim applies it. */
export function* requestChange(
  session: VerbSession & RequestSteps,
  request: JobRequest,
): Verb<'noted' | 'refused' | 'stale'> {
  const job = yield* awaited(session.lockRunning(request.id))
  if (job === undefined) return 'stale'
  const decided = decideRequest(job.requested, request.verb)
  if (decided === null) return 'refused'
  if (decided.pending === null) yield* awaited(session.run('dropRequests', session.list([job.ref])))
  else yield* awaited(session.putRequest(job, decided.pending, request))
  session.note({ requested: true })
  const after = decided.pending === null ? 'running, request withdrawn' : `running, ${decided.pending} requested`
  yield* writeAudit(session, entryOf(request.audit, `job ${request.id}`, 'running', after))
  return 'noted'
}

export function* readRequests(session: VerbSession): Verb<readonly PendingRequest[]> {
  const rows = yield* awaited(session.rows<StoredRequest>('readRequests'))
  return rows.map(({ ref, fence, kind, reason }) => ({ ref: numberOf(ref), fence: numberOf(fence), kind, reason }))
}

interface StoredRequest {
  readonly ref: Numeric
  readonly fence: Numeric
  readonly kind: RequestKind
  readonly reason: string
}
