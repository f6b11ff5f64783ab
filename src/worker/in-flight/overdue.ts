import { JobCancelledError, TimeoutError } from '../../errors.js'
import { formatDuration } from '../../job/duration/duration.js'
import type { Outcome } from '../../job/rules/outcome.js'
import type { InFlightParts } from './in-flight-parts.js'
import { cancelledOutcome } from '../attempt/run.js'
import type { Running } from '../attempt/running.js'
import { failureOf } from '../attempt/attempt-host.js'

/** How long an aborted handler may take to return before its attempt is settled without it. */
export const ABORT_GRACE_MS = 30_000

/** Aborts the handler of a cancelled job, and sets the end of its grace. A handler that was aborted before keeps its first reason. */
export function abortCancelled(running: Running, reason: string, now: number): void {
  if (running.abortReason !== undefined) return
  running.abort(new JobCancelledError(running.id, running.job, reason))
  running.alarmAt = now + ABORT_GRACE_MS
}

/**
 * Acts on a handler whose alarm is due: aborts it because of its timeout or, when it was aborted and its grace is over too,
 * returns the outcome to settle it with. The handler keeps its slot until it returns.
 */
export function overdue(
  running: Running,
  now: number,
  parts: Pick<InFlightParts, 'world' | 'executor' | 'runInContext'>,
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
  // The worker stops, or the claim was lost: the job is released or dropped, and no timeout is recorded.
  return undefined
}
