/**
 * Outages: what the attempts of one lane (a queue and a job) say about the service that they call. After some failures in
 * a row the lane is closed: its due retries are held, and one of them at a time, picked at random, is released as a probe.
 * The first success, of a probe or of a job that never ran, opens the lane: each further success releases more of the
 * held retries, so that their number doubles. While any is held, one failure closes the lane again.
 *
 * ```
 *              after failures             a success
 *  (no row) ─► counting ─► closed ◄─────────────► opening ─► (no row, when no retry is held)
 *                 │                a failure
 *                 └─ a success ─► (no row)
 * ```
 */
export interface Outage {
  readonly state: 'counting' | 'closed' | 'opening'
  /** Failures since the last success. */
  readonly failures: number
  /** When it was closed; null while it counts. */
  readonly since: number | null
  /** The earliest time of the next probe; null while it counts. */
  readonly probeAt: number | null
}

/** What an attempt says; `after`: the failures in a row that close the lane. */
export type AttemptHealth = { readonly kind: 'failed'; readonly after: number } | { readonly kind: 'succeeded' }

/** The default of `outage.after`. */
export const OUTAGE_AFTER = 5
/** How many held retries a success releases: two, so that they drain in rounds that double. */
export const RELEASED_PER_SUCCESS = 2
/** The time between two probes when the caller gives none: one default poll. */
const PROBE_EVERY_MS = 5_000

export function afterFailures(before: Outage | undefined, failures: number, after: number, now: number): Outage {
  const all = (before?.failures ?? 0) + failures
  const isClosed = before?.state === 'closed' || before?.state === 'opening' || all >= after
  if (!isClosed) return { state: 'counting', failures: all, since: null, probeAt: null }
  return { state: 'closed', failures: all, since: before?.since ?? now, probeAt: before?.probeAt ?? now }
}

/** Undefined: the row is no longer needed. */
export function afterSuccess(before: Outage, isAnyHeld: boolean): Outage | undefined {
  return before.state === 'counting' || !isAnyHeld ? undefined : { ...before, state: 'opening', failures: 0 }
}

/** When and how a closed lane is probed. */
export interface Probe {
  /** The time between two probes of a lane in the whole fleet. */
  readonly everyMs: number
  /** A number in [0, 1): which of the held retries is the probe. */
  readonly pick: number
}

/** The oldest of the held retries, at the default pace. */
export const NO_PICK: Probe = { everyMs: PROBE_EVERY_MS, pick: 0 }

/** The number from which the probe is searched, between the lowest and the highest of the held retries. */
export function probeFrom(first: number, last: number, pick: number): number {
  return first + Math.floor((last - first + 1) * pick)
}
