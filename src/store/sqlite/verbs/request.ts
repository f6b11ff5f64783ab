import type { State } from '../../../job/rules/states.js'
import type { RequestedChange, RequestKind } from '../../../job/rules/request.js'
import { decideRequest, applyRequests } from '../../../job/rules/request.js'
import type { SettledJob } from '../../store.js'
import type { JobRequest, PendingRequest } from '../../requests.js'
import type { Session } from '../connection/session.js'

/** Writes down what is wanted of a running job, within the current transaction. */
export function requestChange(session: Session, asked: JobRequest, now: number): 'noted' | 'refused' | 'stale' {
  const target = session.statement(session.queries.askTarget).get(asked.id) as Target | undefined
  if (target?.state !== 'running') return 'stale'
  const decided = decideRequest(target.kind, asked.verb)
  if (decided === null) return 'refused'
  if (decided.pending === null) session.statement(session.queries.dropWishes).run(JSON.stringify([target.seq]))
  else
    session
      .statement(session.queries.putWish)
      .run(target.seq, decided.pending, asked.reason, Number.isFinite(asked.keepMs) ? asked.keepMs : null, now)
  session.noteAsked()
  return 'noted'
}

interface Target {
  readonly seq: number
  readonly state: State
  readonly kind: RequestKind | null
}

export function readRequests(session: Session): PendingRequest[] {
  const rows = session.statement(session.queries.readWishes).all() as (WishRow & { readonly fence: number })[]
  return rows.map(({ seq, fence, kind, reason }) => ({ ref: seq, fence, kind, reason }))
}

/** Settlements with their wishes honoured. */
export interface Honoured {
  readonly settled: readonly SettledJob[]
  readonly turned: readonly SettledJob[]
  /** Refs of those that had a wish, turned or not: it goes when the settlement is written. */
  readonly wished: readonly number[]
}

/** Nearly always nobody wishes anything, and then this is one look at an empty table. */
export function honourWishes(session: Session, settled: readonly SettledJob[]): Honoured {
  const wishes = wishesOf(session, settled)
  if (wishes === undefined) return { settled, turned: [], wished: [] }
  const { settlements, changed } = applyRequests(settled, wishes)
  return { settled: settlements, turned: changed, wished: [...wishes.keys()] }
}

function wishesOf(session: Session, settled: readonly SettledJob[]): Map<number, RequestedChange> | undefined {
  if (settled.length === 0 || session.statement(session.queries.anyWish).get() === undefined) return undefined
  const refs = JSON.stringify(settled.map((job) => job.ref))
  const rows = session.statement(session.queries.wishesOf).all(refs) as WishRow[]
  if (rows.length === 0) return undefined
  return new Map(
    rows.map(({ seq, kind, reason, keep_ms }) => [seq, { kind, reason, keepMs: keep_ms ?? Number.POSITIVE_INFINITY }]),
  )
}

interface WishRow {
  readonly seq: number
  readonly kind: RequestKind
  readonly reason: string
  readonly keep_ms: number | null
}

/** A wish is over with the claim it was for. Settlements that were refused are not this claim's to speak of. */
export function dropWishes(session: Session, wished: readonly number[], refused: readonly number[]): void {
  const gone = wished.filter((ref) => !refused.includes(ref))
  if (gone.length > 0) session.statement(session.queries.dropWishes).run(JSON.stringify(gone))
}
