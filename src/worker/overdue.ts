import { JobCancelledError, TimeoutError } from '../errors.js'
import { formatDuration } from '../job/duration/duration.js'
import type { Outcome } from '../job/rules/outcome.js'
import type { HandParts } from './in-flight-parts.js'
import { cancelledOutcome } from './run.js'
import type { Running } from './running.js'
import { failureOf } from './attempt-host.js'

/** How long a handler that was told to stop is given to come back before its attempt is settled without it. */
export const ABORT_GRACE_MS = 30_000

/** Tells a running handler that its job was cancelled, and sets the end of its grace. A handler told to stop before is not told again. */
export function tellCancelled(running: Running, reason: string, now: number): void {
  if (running.abortReason !== undefined) return
  running.abort(new JobCancelledError(running.id, running.job, reason))
  running.alarmAt = now + ABORT_GRACE_MS
}

/**
 * Acts on a handler whose alarm went off: tells it that its time is up, or, when that or a cancel was told and the grace is
 * over too, gives the outcome to settle it with. The handler keeps its slot until it really ends.
 */
export function overdue(
  running: Running,
  now: number,
  parts: Pick<HandParts, 'world' | 'executor' | 'surround'>,
): Outcome | undefined {
  const reason = running.abortReason
  if (reason === undefined) {
    const took = formatDuration(now - running.begunAt)
    running.abort(new TimeoutError(`job ${running.job} ${running.id} ran longer than its timeout (${took})`))
    running.alarmAt = now + ABORT_GRACE_MS
    return undefined
  }
  running.alarmAt = Infinity
  if (reason instanceof TimeoutError) return failureOf(running, parts)
  if (reason instanceof JobCancelledError) return cancelledOutcome(reason, reason)
  // The worker stops, or was robbed of the claim: it is given back or let go, and no timeout is held against it.
  return undefined
}
