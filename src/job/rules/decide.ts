import type { ErrorRecord } from '../../codec/error-text.js'
import type { Encoded, Outcome } from './outcome.js'
import { isSuspect, SUSPECT_STREAK, streakAfterCrash } from './quarantine.js'
import type { State } from './states.js'
import { isFinal } from './states.js'

/**
 * The only place that decides what becomes of a job: (job, outcome, policy) → settlement. Pure, so that the worker, the
 * rescuer and the simulator cannot disagree. Stores write settlements and decide nothing. Times are delays and never
 * instants: the store adds its own clock's now, so that no worker's wall clock decides when a job is due.
 */

/** What deciding needs to know of a job. */
export interface JobCounters {
  /** Attempts that ended and count. */
  readonly attempt: number
  /** Failed attempts since the job was enqueued or last retried by hand: what `limit` is held against. */
  readonly retries: number
  /** Crashes it was charged with: those while it was alone in quarantine. */
  readonly crashes: number
  /** Crashes in a row that it was in flight at. */
  readonly streak: number
}

export interface DecisionPolicy {
  /** Charged crashes that park a job. */
  readonly crashBudget: number
  /** How long a finished job is kept, in ms; Infinity keeps it, 0 keeps nothing. */
  readonly keepMs: { readonly done: number; readonly failed: number; readonly cancelled: number }
}

/** One attempt as history shows it. */
export interface AttemptEntry {
  readonly startedAt: number
  readonly endedAt: number
  readonly worker: string
  readonly error?: ErrorRecord | undefined
  /** How it ended when it was not by returning or throwing: 'crashed', 'released', 'snoozed', 'cancelled', 'expired'. */
  readonly exit?: string | undefined
  /** What the handler logged, bounded. */
  readonly log?: readonly string[] | undefined
}

/** What is to be written of a job, and nothing about how. */
export interface Settlement extends JobCounters {
  readonly to: State
  /** Due again in so many ms; null: it keeps its place in the line, ended, or waits for a person. */
  readonly delayMs: number | null
  readonly result: Encoded | null
  readonly error: ErrorRecord | null
  /** Why it is where it is, when an error does not say it. */
  readonly reason: string | null
  /** For how long history keeps it, in ms: Infinity for ever, 0 not at all. Only final states use it. */
  readonly keepMs: number
  /** Whether this attempt is worth a line in the job's history; a clean run needs none. */
  readonly isLogged: boolean
  readonly exit: string | null
}

export function decide(job: JobCounters, outcome: Outcome, policy: DecisionPolicy): Settlement {
  switch (outcome.kind) {
    case 'succeeded':
      return settle(job, policy, {
        to: 'done',
        attempt: job.attempt + 1,
        result: outcome.result,
        reason: outcome.note ?? null,
      })
    case 'failed':
      return afterFailure(job, outcome, policy)
    case 'aborted':
      return settle(job, policy, { to: 'failed', attempt: job.attempt + 1, error: outcome.error, isLogged: true })
    case 'snoozed':
      return settle(job, policy, { to: 'scheduled', delayMs: outcome.delayMs, isLogged: true, exit: 'snoozed' })
    case 'cancelled':
      return settle(job, policy, {
        to: 'cancelled',
        attempt: job.attempt + 1,
        error: outcome.error,
        reason: outcome.reason,
        isLogged: true,
        exit: 'cancelled',
      })
    case 'unreadable':
      return settle(job, policy, { to: 'parked', error: outcome.error, reason: outcome.error.message })
    case 'released':
      // The attempt proved nothing, or never began: the streak goes on.
      return settle(job, policy, { to: 'ready', streak: job.streak, reason: whyQuarantined(job.streak) })
    case 'crashed':
      return afterCrash(job, outcome, policy)
    case 'expired':
      return settle(job, policy, { to: 'cancelled', reason: 'it expired before it began', exit: 'expired' })
    default:
      return outcome satisfies never
  }
}

function afterFailure(
  job: JobCounters,
  outcome: Extract<Outcome, { kind: 'failed' }>,
  policy: DecisionPolicy,
): Settlement {
  const attempt = job.attempt + 1
  if (!outcome.retryable || job.retries >= outcome.retryLimit)
    return settle(job, policy, { to: 'failed', attempt, error: outcome.error, isLogged: true })
  return settle(job, policy, {
    to: 'retrying',
    attempt,
    retries: job.retries + 1,
    delayMs: outcome.delayMs,
    error: outcome.error,
    isLogged: true,
  })
}

/** Only a crash in a quarantine of one is charged; past the budget the job is parked. See `quarantine.ts`. */
function afterCrash(
  job: JobCounters,
  crash: Extract<Outcome, { kind: 'crashed' }>,
  policy: DecisionPolicy,
): Settlement {
  const isCharged = crash.hasBegun && crash.quarantined === 1
  const crashes = job.crashes + (isCharged ? 1 : 0)
  if (isCharged && crashes >= policy.crashBudget) {
    const reason = `its process died ${crashes} times while it ran in quarantine`
    return settle(job, policy, { to: 'parked', crashes, reason, isLogged: true, exit: 'crashed' })
  }
  const counted = streakAfterCrash(job.streak, crash.hasBegun)
  const streak = crash.isBlocking === true ? Math.max(counted, SUSPECT_STREAK) : counted
  const reason = crash.isBlocking === true ? BLOCKED : whyQuarantined(streak)
  return settle(job, policy, { to: 'ready', crashes, streak, reason, isLogged: true, exit: 'crashed' })
}

const BLOCKED = 'its handler blocked the event loop past its timeout and grace: it runs in quarantine'

function whyQuarantined(streak: number): string | null {
  return isSuspect(streak) ? `it was in flight at ${streak} crashes in a row: it runs in quarantine` : null
}

function settle(job: JobCounters, policy: DecisionPolicy, change: Partial<Settlement> & { to: State }): Settlement {
  return {
    attempt: job.attempt,
    retries: job.retries,
    crashes: job.crashes,
    // An attempt that ended in any other way than by a crash ends the streak.
    streak: 0,
    delayMs: null,
    result: null,
    error: null,
    reason: null,
    isLogged: false,
    exit: null,
    keepMs: isFinal(change.to) ? policy.keepMs[change.to] : Infinity,
    ...change,
  }
}
