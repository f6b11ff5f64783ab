import { decideRequest } from '../../../job/rules/request.js'
import type { RequestKind } from '../../../job/rules/request.js'
import type { JobRequest, PendingRequest } from '../../requests.js'
import { clean } from './moves.js'
import { readById } from './read.js'
import type { Standing } from './rows.js'
import type { Session } from '../connection/session.js'
import { arrayOf, finite, textOf } from '../connection/session.js'

/** Writes down what is wanted of a running job. Within a transaction. */
export async function requestChange(s: Session, asked: JobRequest): Promise<'noted' | 'refused' | 'stale'> {
  const seen = await readById(s, asked.id)
  if (seen?.state !== 'running') return 'stale'
  // Who ends the job holds the lease meanwhile: behind the lock it runs still, or it has ended.
  await s.query(s.queries.lockLease, String(seen.fence))
  const job = await readById(s, asked.id)
  if (job?.state !== 'running' || job.fence !== seen.fence) return 'stale'
  const [standing] = await s.query<{ kind: RequestKind }>(s.queries.wishesOf, arrayOf([job.ref]))
  const decided = decideRequest(standing?.kind ?? null, asked.verb)
  if (decided === null) return 'refused'
  if (decided.pending === null) await s.query(s.queries.dropWishes, arrayOf([job.ref]))
  else await putWish(s, job, decided.pending, asked)
  s.note({ requested: true })
  return 'noted'
}

async function putWish(s: Session, { ref, fence }: Standing, wish: RequestKind, asked: JobRequest): Promise<void> {
  const keepMs = textOf(finite(asked.keepMs))
  await s.query(s.queries.putWish, String(ref), wish, clean(asked.reason), keepMs, s.nowText)
  await s.query(s.queries.markAsked, String(fence))
}

export async function readRequests(s: Session): Promise<PendingRequest[]> {
  const rows = await s.query<{ ref: unknown; fence: unknown; kind: RequestKind; reason: string }>(s.queries.readWishes)
  return rows.map(({ ref, fence, kind, reason }) => ({ ref: Number(ref), fence: Number(fence), kind, reason }))
}
