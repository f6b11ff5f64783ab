import { appendLog } from '../job/attempt/attempt-log.js'
import type { AttemptEntry, DecisionPolicy, Settlement } from '../job/rules/decide.js'
import { decide } from '../job/rules/decide.js'
import type { AttemptHealth } from '../job/limits/outage.js'
import { writeJobError } from '../job/statistics/failure.js'
import { attemptStatistics } from '../job/statistics/attempt-statistics.js'
import type { Outcome } from '../job/rules/outcome.js'
import type { ClaimedJob, SettledJob } from './store.js'

/** One ended attempt. */
export interface EndedAttempt<Run = undefined> {
  readonly startedAt: number
  readonly endedAt: number
  readonly worker: string
  /** The lines that the handler logged. */
  readonly lines?: readonly string[] | undefined
  /** How the thread or process of the handler ended, when that did not return or throw. */
  readonly exit?: string | undefined
  /** The job is a workflow. */
  readonly isWorkflow?: boolean | undefined
  /** What the attempt says of the outage of its lane. */
  readonly health?: AttemptHealth | undefined
  /** The caller's own record of the attempt; passed through and not read. */
  readonly running: Run
}

/**
 * Decides the settlement of a claimed job and returns the record that the store writes. The worker, a handler that
 * settles itself and the rescuer all build it here, so a new column of a settled job is filled in one place.
 */
export function settleJob<Run>(
  claimed: ClaimedJob,
  outcome: Outcome,
  policy: DecisionPolicy,
  ended: EndedAttempt<Run>,
): SettledJob & { readonly running: Run } {
  const settlement = decide(claimed, outcome, policy)
  const statistics = attemptStatistics(claimed, outcome, ended)
  return {
    ref: claimed.ref,
    fence: claimed.fence,
    id: claimed.id,
    name: claimed.name,
    queue: claimed.queue,
    key: claimed.key,
    group: claimed.group,
    to: settlement.to,
    delayMs: settlement.delayMs,
    dueAt: claimed.dueAt,
    attempt: settlement.attempt,
    retries: settlement.retries,
    crashes: settlement.crashes,
    streak: settlement.streak,
    startedAt: ended.startedAt,
    // A job that is given back without an attempt was held in advance, unless it was in flight at a crash.
    hasBegun:
      ended.running !== undefined || outcome.kind === 'yielded' || settlement.to !== 'ready' || settlement.streak > 0,
    worker: ended.worker,
    result: settlement.result,
    error: settlement.error === null ? null : writeJobError(settlement.error, statistics?.failure?.fingerprint),
    reason: settlement.reason,
    log: logAfter(claimed.log, settlement, ended),
    keepMs: settlement.keepMs,
    isParent: claimed.isParent,
    health: ended.health,
    statistics,
    // Part of the literal and not spread in: the worker builds one of these for every attempt.
    running: ended.running,
  }
}

/** A completed attempt adds no log entry, because its row has its start and end; unless the handler logged lines. */
function logAfter(log: string | null, settlement: Settlement, ended: EndedAttempt<unknown>): string | null {
  if (!settlement.isLogged && ended.lines === undefined) return log
  const exit = ended.exit ?? settlement.exit
  const entry: AttemptEntry = {
    startedAt: ended.startedAt,
    endedAt: ended.endedAt,
    worker: ended.worker,
    ...(settlement.error === null ? {} : { error: settlement.error }),
    ...(exit === null ? {} : { exit }),
    ...(ended.lines === undefined ? {} : { log: ended.lines }),
  }
  return appendLog(log, entry)
}
