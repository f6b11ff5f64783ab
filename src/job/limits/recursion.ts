/**
 * Jobs that enqueue themselves: each carries how deep it is, and when the chain began. A chain that takes longer than a minute
 * begins again, so that a job which enqueues its next page now and then is never reported.
 */
export interface EnqueueChain {
  readonly depth: number
  readonly since: number
}

/** A chain past this depth within this time is reported. */
export const RECURSION_DEPTH = 1_000
export const RECURSION_WITHIN_MS = 60_000

/** The chain of a job that a job of the same name enqueues. */
export function nextChain(before: EnqueueChain | undefined, now: number): EnqueueChain {
  if (before === undefined || now - before.since > RECURSION_WITHIN_MS) return { depth: 1, since: now }
  return { depth: before.depth + 1, since: before.since }
}

export function isRunaway({ depth }: EnqueueChain): boolean {
  return depth > RECURSION_DEPTH
}
