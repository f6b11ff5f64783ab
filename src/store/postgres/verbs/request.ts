import { decideWish } from '../../../job/rules/request.js'
import type { WishKind } from '../../../job/rules/request.js'
import type { JobAsk, StandingWish } from '../../requests.js'
import { clean } from './moves.js'
import { readById } from './read.js'
import type { Standing } from './rows.js'
import type { Session } from '../connection/session.js'
import { arrayOf, finite, textOf } from '../connection/session.js'

/** Writes down what is wanted of a running job. Within a transaction. */
export async function askJob(s: Session, asked: JobAsk): Promise<'noted' | 'refused' | 'stale'> {
  const seen = await readById(s, asked.id)
  if (seen?.state !== 'running') return 'stale'
  // Who ends the job holds the lease meanwhile: behind the lock it runs still, or it has ended.
  await s.query(s.queries.lockLease, String(seen.fence))
  const job = await readById(s, asked.id)
  if (job?.state !== 'running' || job.fence !== seen.fence) return 'stale'
  const [standing] = await s.query<{ kind: WishKind }>(s.queries.wishesOf, arrayOf([job.ref]))
  const decided = decideWish(standing?.kind ?? null, asked.ask)
  if (decided === null) return 'refused'
  if (decided.wish === null) await s.query(s.queries.dropWishes, arrayOf([job.ref]))
  else await putWish(s, job, decided.wish, asked)
  s.note({ asked: true })
  return 'noted'
}

async function putWish(s: Session, { ref, fence }: Standing, wish: WishKind, asked: JobAsk): Promise<void> {
  const keepMs = textOf(finite(asked.keepMs))
  await s.query(s.queries.putWish, String(ref), wish, clean(asked.reason), keepMs, s.nowText)
  await s.query(s.queries.markAsked, String(fence))
}

export async function readWishes(s: Session): Promise<StandingWish[]> {
  const rows = await s.query<{ ref: unknown; fence: unknown; kind: WishKind; reason: string }>(s.queries.readWishes)
  return rows.map(({ ref, fence, kind, reason }) => ({ ref: Number(ref), fence: Number(fence), kind, reason }))
}
