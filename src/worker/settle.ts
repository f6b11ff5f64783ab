import { appendLog } from '../job/attempt/attempt-log.js'
import type { AttemptEntry, DecisionPolicy, Settlement } from '../job/rules/decide.js'
import { decide } from '../job/rules/decide.js'
import { KEEP_ALL } from '../job/definition/keep.js'
import type { Outcome } from '../job/rules/outcome.js'
import type { ClaimedJob, SettledJob } from '../store/store.js'
import type { Running } from './running.js'

/** One attempt as it ended. */
export interface Ended {
  readonly startedAt: number
  readonly endedAt: number
  readonly worker: string
  readonly lines: readonly string[] | undefined
  readonly running?: Running | undefined
}

/** A settlement with the attempt that it ends; none for a job that is given back before it began. */
export interface SettledRun extends SettledJob {
  readonly running: Running | undefined
}

/** By which a job's end is decided; one that is only given back is kept by no policy. */
export function policyOf(crashBudget: number, keepMs: DecisionPolicy['keepMs'] = KEEP_ALL): DecisionPolicy {
  return { crashBudget, keepMs }
}

/** Decides what becomes of a claimed job and says it as the store writes it. */
export function settlementOf(claimed: ClaimedJob, outcome: Outcome, policy: DecisionPolicy, ended: Ended): SettledRun {
  const settlement = decide(claimed, outcome, policy)
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
    worker: ended.worker,
    result: settlement.result,
    error: settlement.error === null ? null : JSON.stringify(settlement.error),
    reason: settlement.reason,
    log: logAfter(claimed.log, settlement, ended),
    keepMs: settlement.keepMs,
    isParent: claimed.isParent,
    running: ended.running,
  }
}

/** A clean run writes no line: its row says when it began and ended. What the handler logged is worth one. */
function logAfter(log: string | null, settlement: Settlement, ended: Ended): string | null {
  if (!settlement.isLogged && ended.lines === undefined) return log
  const entry: AttemptEntry = {
    startedAt: ended.startedAt,
    endedAt: ended.endedAt,
    worker: ended.worker,
    ...(settlement.error === null ? {} : { error: settlement.error }),
    ...(settlement.exit === null ? {} : { exit: settlement.exit }),
    ...(ended.lines === undefined ? {} : { log: ended.lines }),
  }
  return appendLog(log, entry)
}
