import type { ErrorRecord } from '../../codec/error-text.js'
import type { Encoded, Outcome } from './outcome.js'
import { isSuspect, SUSPECT_STREAK, streakAfterCrash } from './quarantine.js'
import type { State } from './states.js'
import { isFinal } from './states.js'

/**
 * The only place that decides the next state of a job after a claim: (job, outcome, policy) → settlement. Pure, so that the
 * worker, the rescuer and the simulator cannot disagree. Stores write settlements and decide nothing. Times are delays and never
 * instants: the store adds them to its own clock, so that no worker's wall clock decides when a job is due.
 */

/** The counters of a job that the decision depends on. */
export interface JobCounters {
  /** Attempts that ended and were counted; a snooze, a release or a crash is not counted. */
  readonly attempt: number
  /** Failed attempts since the enqueue or the last `mill.retry()`; compared with the retry limit. */
  readonly retries: number
  /** Crashes charged to the job: those while it was alone in quarantine. */
  readonly crashes: number
  /** Consecutive crashes at which it was in flight. */
  readonly streak: number
}

export interface DecisionPolicy {
  /** A job is parked at this many charged crashes. */
  readonly crashBudget: number
  /** How long a finished job is kept, in ms; Infinity keeps it, 0 keeps nothing. */
  readonly keepMs: { readonly done: number; readonly failed: number; readonly cancelled: number }
}

/** One entry of a job's attempt log. */
export interface AttemptEntry {
  readonly startedAt: number
  readonly endedAt: number
  readonly worker: string
  readonly error?: ErrorRecord | undefined
  /** How it ended when the handler neither returned nor threw: 'crashed', 'released', 'snoozed', 'cancelled', 'expired'. */
  readonly exit?: string | undefined
  /** What the handler logged, bounded. */
  readonly log?: readonly string[] | undefined
}

/** What the store must write for a job at the end of its claim. */
export interface Settlement extends JobCounters {
  readonly to: State
  /** Delay until it is due again, in ms; null: its due time stays as it is, or it ended, or it is parked. */
  readonly delayMs: number | null
  readonly result: Encoded | null
  readonly error: ErrorRecord | null
  /** Why the job is in this state, when there is no error. */
  readonly reason: string | null
  /** How long the finished job is kept, in ms: Infinity for ever, 0 not at all. Only final states use it. */
  readonly keepMs: number
  /** Whether this attempt gets an entry in the attempt log; a success without log lines needs none. */
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
        result: outcome.result ?? null,
        error: outcome.error,
        reason: outcome.reason,
        isLogged: true,
        exit: 'cancelled',
      })
    case 'suspended':
      // No attempt was completed, so it does not end the streak of crashes.
      return settle(job, policy, { to: outcome.to, delayMs: 0, streak: job.streak })
    case 'restarted':
      return settle(job, policy, { ...NEXT_RUN, to: 'ready', isLogged: true, exit: 'restarted' })
    case 'drifted':
    case 'log-limit':
    case 'unreadable':
      return settle(job, policy, { to: 'parked', error: outcome.error, reason: outcome.error.message })
    case 'released':
      // The attempt was not completed, so it does not end the streak of crashes.
      return settle(job, policy, { to: 'ready', streak: job.streak, reason: whyQuarantined(job.streak) })
    case 'child-crashed':
      return afterChildCrash(job, outcome.exit, policy)
    case 'yielded':
      // Due at this instant, so that jobs that were ready before run first.
      return settle(job, policy, { to: 'ready', delayMs: 0 })
    case 'crashed':
      return afterCrash(job, outcome, policy)
    case 'expired':
      return settle(job, policy, { to: 'cancelled', reason: 'it expired before it began', exit: 'expired' })
    default:
      return outcome satisfies never
  }
}

const NEXT_RUN = { delayMs: 0, attempt: 0, retries: 0, crashes: 0, streak: 0 }

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
  const counted = crash.isIsolated === true ? 0 : streakAfterCrash(job.streak, crash.hasBegun)
  const streak = crash.isBlocking === true ? Math.max(counted, SUSPECT_STREAK) : counted
  const reason = crash.isBlocking === true ? BLOCKED : whyQuarantined(streak)
  return settle(job, policy, { to: 'ready', crashes, streak, reason, isLogged: true, exit: 'crashed' })
}

/** The crash of a thread or process that runs one job is charged to that job at once. */
function afterChildCrash(job: JobCounters, exit: string, policy: DecisionPolicy): Settlement {
  const crashes = job.crashes + 1
  if (crashes < policy.crashBudget) return settle(job, policy, { to: 'ready', crashes, isLogged: true })
  const times = crashes === 1 ? 'once' : `${crashes} times, last`
  const reason = `the thread or process of its handler ended ${times} with: ${exit}`
  return settle(job, policy, { to: 'parked', crashes, reason, isLogged: true })
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
    // Any end other than a crash ends the streak.
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
