import type { State } from './states.js'

/**
 * What is wanted of a job that runs. Nobody can do it at once, so it is written down beside the job, and whatever comes next
 * honours it: the handler's end, a worker that gives up or stops, the rescue of a dead one. Pure, like `decide`.
 */
export type RequestKind = 'cancel' | 'pause'

/** What may be asked: a wish, or that a pause is wished no longer. */
export type RequestVerb = RequestKind | 'resume'

export interface RequestedChange {
  readonly kind: RequestKind
  readonly reason: string
  /** How long the job is kept if the wish ends it. */
  readonly keepMs: number
}

/** What is wished after somebody asked; null when asking this means nothing now. A cancel stands, whatever is asked after it. */
export function decideRequest(
  standing: RequestKind | null,
  ask: RequestVerb,
): { readonly wish: RequestKind | null } | null {
  switch (ask) {
    case 'cancel':
      return { wish: 'cancel' }
    case 'pause':
      return standing === 'cancel' ? null : { wish: 'pause' }
    case 'resume':
      return standing === 'pause' ? { wish: null } : null
    default:
      return ask satisfies never
  }
}

/** The part of a settlement that a wish can turn. */
export interface Changeable {
  readonly to: State
  readonly delayMs: number | null
  readonly reason: string | null
  readonly keepMs: number
}

/**
 * The settlement with the wish honoured; the same one when it changes nothing. What is done is done. A cancelled job never
 * begins again, so every other end of a claim ends it; a paused one waits wherever it would have gone on.
 */
export function applyRequest<Settled extends Changeable>(settled: Settled, wish: RequestedChange): Settled {
  if (settled.to === 'done' || settled.to === 'cancelled') return settled
  if (wish.kind === 'cancel')
    return { ...settled, to: 'cancelled', delayMs: null, reason: wish.reason, keepMs: wish.keepMs }
  return GOES_ON.has(settled.to) ? { ...settled, to: 'paused', reason: wish.reason } : settled
}

const GOES_ON: ReadonlySet<State> = new Set<State>(['ready', 'scheduled', 'retrying', 'blocked'])

/** Settlements as their wishes turn them, and those that were turned. */
export function applyRequests<Settled extends Changeable & { readonly ref: number }>(
  settled: readonly Settled[],
  wishes: ReadonlyMap<number, RequestedChange>,
): { readonly honoured: readonly Settled[]; readonly turned: readonly Settled[] } {
  const turned: Settled[] = []
  const honoured = settled.map((job) => {
    const wish = wishes.get(job.ref)
    const written = wish === undefined ? job : applyRequest(job, wish)
    if (written !== job) turned.push(written)
    return written
  })
  return { honoured, turned }
}
