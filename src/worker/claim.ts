/**
 * How much to claim: a pure plan from the worker's load. Free slots are filled, and beyond them at most 50 ms of work is
 * claimed in advance, so that a fast handler does not wait for a commit between two jobs and a slow one hoards no jobs.
 */

/** Work taken in advance, at the measured handler time. */
export const LOOK_AHEAD_MS = 50
/** Jobs in one claim: keeps its transaction to a few milliseconds. */
export const BATCH_MAX = 500
/** Bytes of payloads in one claim: they are in memory until their jobs begin, and must not become the garbage collector's main work. */
const BATCH_BYTES_MAX = 512 * 1024

export interface WorkerLoad {
  readonly concurrency: number
  /** Handlers running. */
  readonly running: number
  /** Claimed and not begun. */
  readonly held: number
  /** Jobs have ended and their settlements are not written: to every other process these jobs still run here. */
  readonly unwritten: boolean
  /** Average handler time, undefined when none was measured. */
  readonly averageMs: number | undefined
  /** Moving average of the size of a payload. */
  readonly averageBytes: number
  /** Batches that may be claimed in advance: two where one can be fetched while the other is worked off. */
  readonly batchesAhead: number
  /** For how long every slot has been taken and none became free. */
  readonly fullForMs: number
  /** Of the running: already settled, because they outlived their timeout and the grace after it. They may never return. */
  readonly abandoned: number
  /** Suspects run here in quarantine: nothing may begin beside them. */
  readonly isQuarantine: boolean
  /** The worker claims nothing until nothing runs, because suspects wait. */
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

export function planClaim(load: WorkerLoad): ClaimPlan {
  if (load.isQuarantine) return NO_CLAIM
  const free = load.concurrency - load.running - load.held
  if (load.running - load.abandoned + load.held === 0 && !load.unwritten && free > 0)
    return {
      claim: true,
      max: Math.min(BATCH_MAX, free + lookAhead(load)),
      starting: free,
      suspects: load.isDraining ? 'first' : 'last',
    }
  if (load.isDraining) return NO_CLAIM
  const max = Math.min(BATCH_MAX, free + lookAhead(load))
  if (max <= 0) return NO_CLAIM
  // A claim for a few jobs while many are held costs a commit and gains nothing.
  if (free <= 0 && load.held > lookAhead(load) / 2) return NO_CLAIM
  return { claim: true, max, starting: Math.max(0, free), suspects: 'none' }
}

const NO_CLAIM: ClaimPlan = { claim: false }

/** Jobs that fit into LOOK_AHEAD_MS at the measured time, and into memory; none while nothing was measured. */
export function lookAhead(
  load: Pick<WorkerLoad, 'averageMs' | 'averageBytes' | 'concurrency' | 'fullForMs' | 'batchesAhead'>,
): number {
  // Slow jobs follow the fast ones that were measured: jobs claimed in advance now would wait for them.
  if (load.averageMs === undefined || load.fullForMs > LOOK_AHEAD_MS) return 0
  const perSlot = LOOK_AHEAD_MS / Math.max(load.averageMs, 0.001)
  const aBatch = Math.min(BATCH_MAX, Math.floor(BATCH_BYTES_MAX / Math.max(load.averageBytes, 1)))
  return Math.min(aBatch * load.batchesAhead, Math.floor(perSlot * load.concurrency))
}
