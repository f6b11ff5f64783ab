import { readLog } from '../attempt/attempt-log.js'
import type { Outcome } from '../rules/outcome.js'
import { failureOf } from './failure.js'
import type { Failure } from './failure.js'

/** What the end of an attempt adds to the statistics. */
export interface AttemptStatistics {
  /** From the due time to the first start of the job; null: it had started before, or never started. */
  readonly waitMs: number | null
  /** How long the handler ran; null: it did not come to its end. It counts if this attempt ends the job. */
  readonly runMs: number | null
  readonly failure: Failure | null
}

/** A claimed job, as far as it says whether this was its first start. */
export interface StartedJob {
  readonly name: string
  readonly dueAt: number
  readonly attempt: number
  readonly log: string | null
  readonly sequence?: { readonly index: number } | undefined
}

export interface AttemptTimes {
  readonly startedAt: number
  readonly endedAt: number
  /** It may have been suspended before: its start is not its first. */
  readonly isWorkflow?: boolean | undefined
}

/** Undefined: no attempt ended, only a claim; the job continues where it was. */
export function attemptStatistics(
  job: StartedJob,
  outcome: Outcome,
  times: AttemptTimes,
): AttemptStatistics | undefined {
  switch (outcome.kind) {
    case 'succeeded':
      return { waitMs: waitOf(job, times), runMs: times.endedAt - times.startedAt, failure: null }
    case 'failed':
    case 'aborted':
      return {
        waitMs: waitOf(job, times),
        runMs: times.endedAt - times.startedAt,
        failure: failureOf(job.name, outcome.error),
      }
    case 'unreadable':
    case 'drifted':
    case 'log-limit':
      return { waitMs: null, runMs: null, failure: failureOf(job.name, outcome.error) }
    case 'snoozed':
    case 'cancelled':
    case 'child-crashed':
      return startOnly(waitOf(job, times))
    case 'crashed':
      return startOnly(outcome.hasBegun ? waitOf(job, times) : null)
    case 'released':
    case 'yielded':
    case 'suspended':
    case 'restarted':
    case 'expired':
      return undefined
    default:
      return outcome satisfies never
  }
}

function startOnly(waitMs: number | null): AttemptStatistics | undefined {
  return waitMs === null ? undefined : { waitMs, runMs: null, failure: null }
}

function waitOf(job: StartedJob, { startedAt, isWorkflow }: AttemptTimes): number | null {
  return isWorkflow !== true && isFirstStart(job) ? startedAt - job.dueAt : null
}

/** Snoozes and crashes are not counted as attempts, but each leaves an entry in the log; a command has one too, without a worker. */
function isFirstStart({ attempt, log, sequence }: StartedJob): boolean {
  if (attempt > 0 || (sequence !== undefined && sequence.index > 0)) return false
  return log === null || readLog(log).every((entry) => entry.worker === '')
}
