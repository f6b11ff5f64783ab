import type { ErrorRecord } from '../codec/error-text.js'
import { reviveError } from '../codec/error-text.js'
import { reason } from '../codec/show.js'
import { formatDuration } from '../job/duration/duration.js'
import type { Logged } from '../job/attempt/log-text.js'
import type { State } from '../job/rules/states.js'
import type { RequestVerb } from '../job/rules/request.js'
import type { CurrentPause } from '../store/queues.js'
import type { TickRow } from '../store/schedules.js'
import type { ClaimedJob, LeasedJob, NewJob, SettledJob } from '../store/store.js'
import type { ClockStep } from '../world/clock-step.js'
import type { Log } from '../world/log.js'
import {
  logEnqueued,
  logRequestedChange,
  logScheduleRecovered,
  logClockStep,
  logReleased,
  logLost,
  logQueue,
  logRescued,
  logSkipping,
  logSnoozed,
  logTicks,
  logTransition,
} from './log-lines.js'
import type { Lost } from './log-lines.js'

/** The fields of a running job that events show. */
export interface ShownAttempt {
  readonly id: string
  readonly job: string
  readonly attempt: number
  readonly claimed: { readonly queue: string }
  readonly lastActivity: string | undefined
  /** Calls a function with the captured context of the job in place. */
  readonly within: (<T>(call: () => T) => T) | undefined
}

/** What of the engine enqueued a job without a call of the app. */
export type EnqueuedBy =
  | { readonly verb: 'tick'; readonly schedule: string }
  | { readonly verb: 'whenDone'; readonly group: string }

/** The events of the engine's parts, turned into log lines. */
export interface EngineEvents {
  /** `by`: what of the engine enqueued them; undefined for a call. */
  enqueued(jobs: readonly NewJob[], by?: EnqueuedBy): void
  /** A command, or the expiry of its time, moved a job that no worker holds. */
  changed(
    job: { readonly id: string; readonly name: string; readonly queue: string },
    to: State | 'gone',
    reason: string | undefined,
  ): void
  /** Ticks of a recurring job were written to its ledger. */
  ticked(schedule: string, ticks: readonly TickRow[]): void
  /** A change of a running job was requested. */
  requested(job: { readonly id: string; readonly name: string; readonly queue: string }, verb: RequestVerb): void
  /** A queue was paused, or runs again (undefined). */
  queuePaused(queue: string, pause: CurrentPause | undefined): void
  began(job: ClaimedJob): void
  /** `running` is the attempt that ended, where there was one. */
  settled(job: SettledJob, tookMs: number | undefined, running?: ShownAttempt): void
  rescued(worker: string, jobs: readonly LeasedJob[], parked: number): void
  lost(what: Lost): void
  /** A job threw after it had settled itself: it stays done. */
  threwAfterwards(running: ShownAttempt, error: ErrorRecord): void
  /** Code of an attempt that has ended threw where no code catches it. */
  errorAfterEnd(running: ShownAttempt, error: unknown): void
  /** An uncaught error belongs to no attempt. `isShared`: the app has its own listener for it. */
  uncaught(error: unknown, isShared: boolean): void
  /** An attempt that has ended left an error behind in the thread or process where this attempt runs. */
  strayError(running: ShownAttempt, error: unknown): void
  storeFailed(what: string, error: unknown): void
  /** The clock of the database or of this machine was set. */
  clockStepped(step: ClockStep): void
  /** A stalled schedule was recovered; a process whose clock was ahead by `aheadMs` had moved it. */
  scheduleRecovered(schedule: string, aheadMs: number): void
  slow(running: ShownAttempt, forMs: number): void
  /** The body of a workflow did something that replays badly. */
  workflowWarned(running: ShownAttempt, kind: string, address: string): void
  logLine(running: ShownAttempt, logged: Logged): void
  /** A hook failed where no caller waits for it. An enqueue has no id yet. */
  hookFailed(which: string, job: { readonly id?: string; readonly name: string }, error: unknown): void
}

/** A fault may repeat many times a second: it is logged when it is new, and again after this many times. */
const REPEAT_EVERY = 100
/** How many different faults are counted; at one more all counts begin again. */
const FAULTS_MAX = 100

/** How many schedules that skip their ticks are remembered, so that each is warned of once. */
const SKIPPING_MAX = 1_000

/** `isGone`: the store is gone for good, which was logged; failures because of that are not logged and not retried. */
export function engineEvents(log: Log, isGone: () => boolean = () => false): EngineEvents {
  const isDue = repeatFilter()
  return {
    enqueued(jobs) {
      if (!log.debugs) return
      for (const job of jobs) logEnqueued(log, job)
    },
    changed({ id, name, queue }, to, reason) {
      if (to === 'gone') log.write('info', { id, job: name, queue }, `deleted ${name}`)
      else logTransition(log, { id, job: name, queue, to, reason })
    },
    ticked: tickLogger(log),
    requested: (job, verb) => logRequestedChange(log, job, verb),
    queuePaused: (queue, pause) => logQueue(log, queue, pause),
    began(job) {
      if (log.debugs)
        logTransition(log, { id: job.id, job: job.name, queue: job.queue, to: 'running', attempt: job.attempt + 1 })
    },
    settled: (job, ms, running) => logSettled(log, job, ms, running),
    rescued: (worker, jobs, parked) => logRescued(log, worker, jobs.length, parked),
    lost: (what) => logLost(log, what),
    threwAfterwards(running, error) {
      const fields = { ...fieldsOf(running), err: reviveError(error) }
      log.write('error', fields, `${running.job} threw after it had settled itself; it stays done`)
    },
    errorAfterEnd(running, error) {
      const text = `${running.job} left an error behind that was thrown after its attempt had ended; no job is charged`
      log.write('error', { ...fieldsOf(running), err: error }, text)
    },
    uncaught(error, isShared) {
      const what = isShared ? 'the listener of the application decides' : 'it ends this process'
      log.write('error', { err: error }, `an uncaught error belongs to no job; ${what}`)
    },
    strayError(running, error) {
      const text = `an earlier attempt of ${running.job} left an error behind; the attempt that runs now is not charged`
      log.write('error', { ...fieldsOf(running), err: error }, text)
    },
    storeFailed(what, error) {
      if (!isGone() && isDue(what + reason(error)))
        log.write('error', { err: error }, `cannot ${what} for now; it is tried again`)
    },
    clockStepped: (step) => logClockStep(log, step),
    scheduleRecovered: (schedule, aheadMs) => logScheduleRecovered(log, schedule, aheadMs),
    slow(running, forMs) {
      const last = running.lastActivity === undefined ? '' : ` (last ${running.lastActivity})`
      const fields = { ...fieldsOf(running), ms: Math.round(forMs) }
      log.write('error', fields, `slow ${running.job}: running for ${formatDuration(forMs)}${last}`)
    },
    workflowWarned: (running, kind, address) => warnOfWorkflow(log, running, kind, address),
    logLine: (running, { fields, message }) =>
      log.write('info', mergeFields(fields, fieldsOf(running)), `${running.job}: ${message}`),
    hookFailed(which, { id, name }, thrown) {
      if (!isDue(`hook ${which} ${reason(thrown)}`)) return
      const fields = { ...(id === undefined ? {} : { id }), job: name, err: thrown }
      log.write('error', fields, `hooks.${which} failed; no job is affected`)
    },
  }
}

const WORKFLOW_WARNINGS: { readonly [kind: string]: string } = {
  'foreign-await': 'the body awaits something that is not of w: after a crash it would do that again; use w.step',
  'same-name': 'an operation is called while one of its name is pending: give it a key, or use w.each',
  reordered: 'the code calls what is recorded in another order',
  'left-behind': 'the body ended while this was pending: its answer is not recorded; await it',
  'log-half-full': 'the log of this run is half full: return w.restart(input) now and then',
}

function warnOfWorkflow(log: Log, running: ShownAttempt, kind: string, address: string): void {
  const text = `${running.job}: ${WORKFLOW_WARNINGS[kind] ?? kind} (${address})`
  log.write('warn', { ...fieldsOf(running), warning: kind, address }, text)
}

/** Logs the end of an attempt, or of a job without one. */
function logSettled(log: Log, job: SettledJob, ms: number | undefined, running: ShownAttempt | undefined): void {
  // A workflow that waits for something, or begins its next run, has ended no attempt.
  if (job.workflow?.suspended !== undefined || job.workflow?.restarted !== undefined) return
  if (job.to === 'ready' && running !== undefined) return logReleased(log, fieldsOf(running), job.name)
  if (job.to === 'scheduled' && running !== undefined)
    return logSnoozed(log, { ...fieldsOf(running), ms }, job.name, job.delayMs)
  logTransition(log, {
    id: job.id,
    job: job.name,
    queue: job.queue,
    to: job.to,
    // A snoozed attempt is not counted; a job that never began has no attempt number.
    attempt: running?.attempt ?? (job.attempt === 0 ? undefined : job.attempt),
    ms,
    dueInMs: job.delayMs,
    error: job.error === null ? undefined : (JSON.parse(job.error) as ErrorRecord),
    reason: job.reason,
  })
}

/** Logs the ledger of a schedule, and warns once of a schedule that skips its ticks until an operator acts. */
function tickLogger(log: Log): EngineEvents['ticked'] {
  const skipping = new Set<string>()
  return (schedule, ticks) => {
    logTicks(log, schedule, ticks)
    if (ticks.some(({ job }) => job !== null)) skipping.delete(schedule)
    const last = ticks.at(-1)
    if (last?.advice === undefined || skipping.has(schedule)) return
    if (skipping.size >= SKIPPING_MAX) skipping.clear()
    skipping.add(schedule)
    logSkipping(log, schedule, last)
  }
}

function fieldsOf({ id, job, claimed, attempt }: ShownAttempt): object {
  return { id, job, queue: claimed.queue, attempt }
}

/** The fields of the job and of the handler's line; a field of the line with a name of the job's is logged as `log.id`. */
function mergeFields(given: object, own: object): object {
  const entries = Object.entries(given).map(([name, value]) => [name in own ? `log.${name}` : name, value] as const)
  return { ...own, ...Object.fromEntries(entries) }
}

/** Whether a text is logged: the first time, and then every `REPEAT_EVERY` times. Bounded, since texts may differ without end. */
function repeatFilter(): (what: string) => boolean {
  const times = new Map<string, number>()
  return (what) => {
    const before = times.get(what) ?? 0
    times.set(what, before + 1)
    if (times.size > FAULTS_MAX) times.clear()
    return before % REPEAT_EVERY === 0
  }
}
