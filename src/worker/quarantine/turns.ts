import { otherWorkFirstMs } from '../../job/rules/quarantine.js'

/**
 * Whether other work or the waiting suspects run next in one process. Pure.
 *
 *   other work ──(it had its time)──► drain ──(nothing runs any more)──► quarantine
 *       ▲                               │                                    │
 *       └──(a job still ran: same time)─┴───────────(over: same time)────────┘
 *
 * A quarantine needs a process in which nothing else runs, and no job is aborted for it. So the worker drains: it claims nothing
 * until the running jobs have ended. A drain that was too short is followed by as much other work, and the next drain lasts twice
 * as long; one that is longer than the longest job succeeds. So other work has at least half of the time, and suspects run after
 * about four times the length of the longest job.
 */
export interface Turns {
  /** Since when other work has had its turn, by the monotonic clock. */
  readonly othersSince: number
  /** How long it is owed; null in a worker that has just started: then the suspect's streak says. */
  readonly owedMs: number | null
  /** Since when the worker drains; null when it does not. */
  readonly drainSince: number | null
  readonly drainMs: number
}

export type Turn =
  /** `leftMs`: how long it lasts; null when no suspect waits. */
  { readonly of: 'others'; readonly leftMs: number | null } | { readonly of: 'drain'; readonly leftMs: number }

/** The first drain, and the longest: of a first quarantine's length. The longest is past the default timeout of a job. */
const DRAIN_SHARE_MIN = 1 / 32
const DRAIN_SHARE_MAX = 32

export function firstTurns(now: number, firstMs: number): Turns {
  return { othersSince: now, owedMs: null, drainSince: null, drainMs: firstMs * DRAIN_SHARE_MIN }
}

/** `streak`: the shortest of the suspects that wait; null when none does. */
export function nextTurn(turns: Turns, streak: number | null, now: number, firstMs: number): [Turns, Turn] {
  if (streak === null)
    return [
      { ...turns, drainSince: null, drainMs: firstMs * DRAIN_SHARE_MIN },
      { of: 'others', leftMs: null },
    ]
  const { drainSince, drainMs } = turns
  if (drainSince !== null && now < drainSince + drainMs)
    return [turns, { of: 'drain', leftMs: drainSince + drainMs - now }]
  const owing =
    drainSince === null ? turns : { ...afterHoldingBack(turns, drainSince, now), drainMs: longer(drainMs, firstMs) }
  const leftMs = owing.othersSince + (owing.owedMs ?? otherWorkFirstMs(streak, firstMs)) - now
  if (leftMs > 0) return [owing, { of: 'others', leftMs }]
  return [
    { ...owing, drainSince: now },
    { of: 'drain', leftMs: owing.drainMs },
  ]
}

/** Nothing of other work has begun since then, for a quarantine or a drain: it is owed as long. */
export function afterHoldingBack(turns: Turns, since: number, now: number): Turns {
  return { ...turns, othersSince: now, owedMs: now - since, drainSince: null }
}

function longer(drainMs: number, firstMs: number): number {
  return Math.min(drainMs * 2, firstMs * DRAIN_SHARE_MAX)
}
