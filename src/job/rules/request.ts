import type { State } from './states.js'

/**
 * A change requested of a running job. No other process can end a running handler, so the request is stored with the job and
 * applied by the transaction that ends the claim: a settlement, a release by a stopping worker, or the rescue of a dead worker's
 * job. Pure, like `decide`.
 */
export type RequestKind = 'cancel' | 'pause'

/** A request, or the withdrawal of a requested pause. */
export type RequestVerb = RequestKind | 'resume'

export interface RequestedChange {
  readonly kind: RequestKind
  readonly reason: string
  /** How long the job is kept if the request ends it. */
  readonly keepMs: number
}

/** The pending request after a verb; null when the verb does not apply. A requested cancel cannot be withdrawn. */
export function decideRequest(
  pending: RequestKind | null,
  verb: RequestVerb,
): { readonly pending: RequestKind | null } | null {
  switch (verb) {
    case 'cancel':
      return { pending: 'cancel' }
    case 'pause':
      return pending === 'cancel' ? null : { pending: 'pause' }
    case 'resume':
      return pending === 'pause' ? { pending: null } : null
    default:
      return verb satisfies never
  }
}

/** The fields of a settlement that a request can change. */
export interface Changeable {
  readonly to: State
  readonly delayMs: number | null
  readonly reason: string | null
  readonly keepMs: number
  /** The row of an item, if the job is a sequence: that row is its result, and the sequence itself can still be cancelled. */
  readonly step?: object | undefined
}

/**
 * The settlement with the request applied; the same object when it changes nothing. A done job stays done, but for a
 * sequence that is cancelled during its last item. A cancel replaces every other end of the claim, since a cancelled job never
 * begins again. A pause replaces every state from which the job would run
 * again.
 */
export function applyRequest<Settled extends Changeable>(settled: Settled, request: RequestedChange): Settled {
  if (settled.to === 'cancelled') return settled
  if (settled.to === 'done' && (settled.step === undefined || request.kind === 'pause')) return settled
  if (request.kind === 'cancel')
    return { ...settled, to: 'cancelled', delayMs: null, reason: request.reason, keepMs: request.keepMs }
  return RUNS_AGAIN.has(settled.to) ? { ...settled, to: 'paused', reason: request.reason } : settled
}

const RUNS_AGAIN: ReadonlySet<State> = new Set<State>(['ready', 'scheduled', 'retrying', 'blocked'])

/** All settlements with their requests applied, and those that a request changed. */
export function applyRequests<Settled extends Changeable & { readonly ref: number }>(
  settled: readonly Settled[],
  requests: ReadonlyMap<number, RequestedChange>,
): { readonly settlements: readonly Settled[]; readonly changed: readonly Settled[] } {
  const changed: Settled[] = []
  const settlements = settled.map((job) => {
    const request = requests.get(job.ref)
    const settlement = request === undefined ? job : applyRequest(job, request)
    if (settlement !== job) changed.push(settlement)
    return settlement
  })
  return { settlements, changed }
}
