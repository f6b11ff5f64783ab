/**
 * How much to claim: a pure plan from what the worker has in hand. Free slots are filled, and beyond them at most 50 ms of
 * work is taken in advance, so that a fast handler does not wait for a commit between two jobs and a slow one hoards nothing.
 */

/** Work taken in advance, at the measured handler time. */
export const LOOK_AHEAD_MS = 50
/** Jobs in one claim: keeps one turn's transaction to a few milliseconds. */
export const BATCH_MAX = 500
/** Payloads in one claim: held in memory until their turn, they must not become the garbage collector's main work. */
const BATCH_BYTES_MAX = 512 * 1024

export interface Hand {
  readonly concurrency: number
  /** Handlers running. */
  readonly running: number
  /** Claimed and not begun. */
  readonly held: number
  /** Ended, and not written yet: to everybody else these are still in this hand. */
  readonly unwritten: boolean
  /** Average handler time, undefined when none was measured. */
  readonly averageMs: number | undefined
  /** Average size of a payload, lately. */
  readonly averageBytes: number
  /** Batches that may be in hand: two where one can be fetched while the other is worked off. */
  readonly batchesAhead: number
  /** For how long every slot has been taken and none came free. */
  readonly fullForMs: number
  /** Of the running: settled already, because they outlived their timeout and the grace after it. They may hang for ever. */
  readonly abandoned: number
  /** Suspects run here in quarantine: nothing may begin beside them. */
  readonly isQuarantine: boolean
  /** The worker claims nothing until nothing runs, for the suspects that wait. */
  readonly isDraining: boolean
}

export type ClaimPlan =
  | { readonly claim: false }
  | {
      readonly claim: true
      readonly max: number
      readonly starting: number
      readonly suspects: 'none' | 'first' | 'last'
      /** Only of these queues; left out: of any. */
      readonly queues?: readonly string[] | undefined
    }

export function planClaim(hand: Hand): ClaimPlan {
  if (hand.isQuarantine) return NO_CLAIM
  const free = hand.concurrency - hand.running - hand.held
  if (hand.running - hand.abandoned + hand.held === 0 && !hand.unwritten && free > 0)
    return {
      claim: true,
      max: Math.min(BATCH_MAX, free + lookAhead(hand)),
      starting: free,
      suspects: hand.isDraining ? 'first' : 'last',
    }
  if (hand.isDraining) return NO_CLAIM
  const max = Math.min(BATCH_MAX, free + lookAhead(hand))
  if (max <= 0) return NO_CLAIM
  // A claim for a few when many are in hand costs a commit and gains nothing.
  if (free <= 0 && hand.held > lookAhead(hand) / 2) return NO_CLAIM
  return { claim: true, max, starting: Math.max(0, free), suspects: 'none' }
}

const NO_CLAIM: ClaimPlan = { claim: false }

/** Jobs that fit into LOOK_AHEAD_MS at the measured time, and into memory; none while nothing was measured. */
export function lookAhead(
  hand: Pick<Hand, 'averageMs' | 'averageBytes' | 'concurrency' | 'fullForMs' | 'batchesAhead'>,
): number {
  // Slow ones have come after the fast ones that were measured: what is taken in advance now would wait for them.
  if (hand.averageMs === undefined || hand.fullForMs > LOOK_AHEAD_MS) return 0
  const perSlot = LOOK_AHEAD_MS / Math.max(hand.averageMs, 0.001)
  const aBatch = Math.min(BATCH_MAX, Math.floor(BATCH_BYTES_MAX / Math.max(hand.averageBytes, 1)))
  return Math.min(aBatch * hand.batchesAhead, Math.floor(perSlot * hand.concurrency))
}
