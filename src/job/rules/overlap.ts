import type { State } from './states.js'
import { isFinal } from './states.js'

/** What happens to a tick while a job of an earlier tick is unfinished: run beside it, skip, wait for it, or cancel it. */
export type Overlap = 'allow' | 'skip' | 'wait' | 'cancel'

/** 'run' at once; 'skip' the tick; 'wait' for the earlier jobs; 'cancel' the earlier jobs and run. */
export type OverlapVerdict = 'run' | 'skip' | 'wait' | 'cancel'

/** The most unfinished jobs that a schedule remembers, the newest. Only the policy 'allow' can have more. */
export const OPEN_MAX = 100

export function decideOverlap(overlap: Overlap, unfinished: number): OverlapVerdict {
  return unfinished === 0 || overlap === 'allow' ? 'run' : overlap
}

/** Whether the next tick must regard this job. A parked job is not regarded: it may stay parked for ever. */
export function isOverlapping(state: State | undefined): boolean {
  return state !== undefined && state !== 'parked' && !isFinal(state)
}

/** The jobs that the next tick must regard, after this tick's job was inserted. A job that waits for the earlier ones replaces them. */
export function openAfter(verdict: OverlapVerdict, open: readonly string[], job: string): readonly string[] {
  return verdict === 'run' ? [...open, job].slice(-OPEN_MAX) : [job]
}
