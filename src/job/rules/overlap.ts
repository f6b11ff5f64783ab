import type { State } from './states.js'
import { isFinal } from './states.js'

/** What becomes of a tick while a job of an earlier one is unfinished: it runs beside it, not at all, after it, or instead. */
export type Overlap = 'allow' | 'skip' | 'wait' | 'cancel'

/** 'run' as if there were nobody; 'skip' the tick; 'wait' for those before it; 'cancel' them and run. */
export type OverlapVerdict = 'run' | 'skip' | 'wait' | 'cancel'

/** Unfinished jobs of one schedule that are remembered, the newest of them: more overlap only where that is allowed. */
export const OPEN_MAX = 100

export function decideOverlap(overlap: Overlap, unfinished: number): OverlapVerdict {
  return unfinished === 0 || overlap === 'allow' ? 'run' : overlap
}

/** A job that is gone or has ended is in nobody's way; nor is a parked one, which waits for a person and may wait for ever. */
export function isOverlapping(state: State | undefined): boolean {
  return state !== undefined && state !== 'parked' && !isFinal(state)
}

/** Which jobs a later tick must look at, once this one's job is there. One that waits for the others stands for them. */
export function openAfter(verdict: OverlapVerdict, open: readonly string[], job: string): readonly string[] {
  return verdict === 'run' ? [...open, job].slice(-OPEN_MAX) : [job]
}
