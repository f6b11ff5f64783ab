import type { ErrorRecord } from '../codec/error-text.js'
import { reviveError } from '../codec/error-text.js'
import { reason } from '../codec/show.js'
import { formatDuration } from '../job/duration/duration.js'
import type { Logged } from '../job/attempt/log-text.js'
import type { State } from '../job/rules/states.js'
import type { RequestVerb } from '../job/rules/request.js'
import type { StandingPause } from '../store/queues.js'
import type { TickRow } from '../store/schedules.js'
import type { ClaimedJob, LeasedJob, NewJob, SettledJob } from '../store/store.js'
import type { ClockStep } from '../world/clock-step.js'
import type { Log } from '../world/log.js'
import {
  logArrival,
  logAsked,
  logBroughtBack,
  logClockStep,
  logGivenBack,
  logLost,
  logQueue,
  logRescued,
  logSkipping,
  logSnoozed,
  logTicks,
  logTransition,
} from './log-lines.js'
import type { Lost } from './log-lines.js'

/** What a running job shows of itself. */
export interface Shown {
  readonly id: string
  readonly job: string
  readonly attempt: number
  readonly claimed: { readonly queue: string }
  readonly lastWord: string | undefined
  /** Calls with what the job captured in place. */
  readonly within: (<T>(call: () => T) => T) | undefined
}

/** What the engine's parts tell, turned into log lines. */
export interface EngineEvents {
  enqueued(jobs: readonly NewJob[]): void
  /** A command, or the end of its time, moved a job that no worker holds. */
  changed(
    job: { readonly id: string; readonly name: string; readonly queue: string },
    to: State | 'gone',
    reason: string | undefined,
  ): void
  /** Ticks of a recurring job were written to its ledger. */
  ticked(schedule: string, ticks: readonly TickRow[]): void
  /** Something was asked of a job that runs. */
  requested(job: { readonly id: string; readonly name: string; readonly queue: string }, ask: RequestVerb): void
  /** A queue was paused, or runs again (undefined). */
  queuePaused(queue: string, pause: StandingPause | undefined): void
  began(job: ClaimedJob): void
  /** `running` is the attempt that ended, where there was one. */
  settled(job: SettledJob, tookMs: number | undefined, running?: Shown): void
  rescued(worker: string, jobs: readonly LeasedJob[], parked: number): void
  lost(what: Lost): void
  /** A job that has settled itself threw afterwards: it stays done. */
  threwAfterwards(running: Shown, error: ErrorRecord): void
  troubled(what: string, error: unknown): void
  /** The clock of the database or of this machine was set. */
  clockStepped(step: ClockStep): void
  /** A schedule stood still, moved away by a process whose clock was ahead by so much; it goes on. */
  broughtBack(schedule: string, aheadMs: number): void
  slow(running: Shown, forMs: number): void
  logLine(running: Shown, logged: Logged): void
  /** A hook did wrong where nothing waits for it. An enqueue has no id yet. */
  hookFailed(which: string, job: { readonly id?: string; readonly name: string }, error: unknown): void
}

/** A fault repeats many times a second; it is said when it is new, and again after this many. */
const REPEAT_EVERY = 100

/** Schedules that skip their ticks, remembered so that each is warned of once. */
const SKIPPING_MAX = 1_000

/** `isGone`: the store is gone for good, which was logged; what fails because of that is not tried again. */
export function engineEvents(log: Log, isGone: () => boolean = () => false): EngineEvents {
  const isNews = newsOf()
  return {
    enqueued(jobs) {
      if (!log.debugs) return
      for (const job of jobs) logArrival(log, job)
    },
    changed({ id, name, queue }, to, reason) {
      if (to === 'gone') log.write('info', { id, job: name, queue }, `deleted ${name}`)
      else logTransition(log, { id, job: name, queue, to, reason })
    },
    ticked: tickTeller(log),
    requested: (job, ask) => logAsked(log, job, ask),
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
    troubled(what, error) {
      if (!isGone() && isNews(what + reason(error)))
        log.write('error', { err: error }, `cannot ${what} for now; it is tried again`)
    },
    clockStepped: (step) => logClockStep(log, step),
    broughtBack: (schedule, aheadMs) => logBroughtBack(log, schedule, aheadMs),
    slow(running, forMs) {
      const last = running.lastWord === undefined ? '' : ` (last ${running.lastWord})`
      const fields = { ...fieldsOf(running), ms: Math.round(forMs) }
      log.write('error', fields, `slow ${running.job}: running for ${formatDuration(forMs)}${last}`)
    },
    logLine: (running, { fields, message }) =>
      log.write('info', besideOwn(fields, fieldsOf(running)), `${running.job}: ${message}`),
    hookFailed(which, { id, name }, thrown) {
      if (!isNews(`hook ${which} ${reason(thrown)}`)) return
      const fields = { ...(id === undefined ? {} : { id }), job: name, err: thrown }
      log.write('error', fields, `hooks.${which} failed; nothing depends on it, and work goes on`)
    },
  }
}

/** How an attempt ended, or a job that no attempt held. */
function logSettled(log: Log, job: SettledJob, ms: number | undefined, running: Shown | undefined): void {
  if (job.to === 'ready' && running !== undefined) return logGivenBack(log, fieldsOf(running), job.name)
  if (job.to === 'scheduled' && running !== undefined)
    return logSnoozed(log, { ...fieldsOf(running), ms }, job.name, job.delayMs)
  logTransition(log, {
    id: job.id,
    job: job.name,
    queue: job.queue,
    to: job.to,
    // A snoozed attempt is not counted; one that never began has no number.
    attempt: running?.attempt ?? (job.attempt === 0 ? undefined : job.attempt),
    ms,
    dueInMs: job.delayMs,
    error: job.error === null ? undefined : (JSON.parse(job.error) as ErrorRecord),
    reason: job.reason,
  })
}

/** Logs what the ledger of a schedule records, and warns once of a schedule that skips its ticks until a person does something. */
function tickTeller(log: Log): EngineEvents['ticked'] {
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

function fieldsOf({ id, job, claimed, attempt }: Shown): object {
  return { id, job, queue: claimed.queue, attempt }
}

/** A handler's fields beside the job's own; one of the same name is logged as `log.id`. */
function besideOwn(given: object, own: object): object {
  const entries = Object.entries(given).map(([name, value]) => [name in own ? `log.${name}` : name, value] as const)
  return { ...own, ...Object.fromEntries(entries) }
}

/** Whether something is worth saying: the first time, and then at times. Bounded, since texts may differ without end. */
function newsOf(): (what: string) => boolean {
  const times = new Map<string, number>()
  return (what) => {
    const before = times.get(what) ?? 0
    times.set(what, before + 1)
    if (times.size > 100) times.clear()
    return before % REPEAT_EVERY === 0
  }
}
