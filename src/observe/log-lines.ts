import { reviveError } from '../codec/error-text.js'
import type { ErrorRecord } from '../codec/error-text.js'
import { formatDuration } from '../job/duration/duration.js'
import type { State } from '../job/rules/states.js'
import type { RequestVerb } from '../job/rules/request.js'
import type { CurrentPause } from '../store/queues.js'
import type { TickRow } from '../store/schedules.js'
import type { NewJob } from '../store/store.js'
import type { ClockStep } from '../world/clock-step.js'
import type { Log, LogLevel } from '../world/log.js'

/** The log level of each transition: debug ready and running, info done, warn retrying, error failed, parked and slow. */
const LEVELS: { readonly [to in State]: LogLevel } = {
  scheduled: 'debug',
  ready: 'debug',
  blocked: 'debug',
  running: 'debug',
  done: 'info',
  cancelled: 'info',
  paused: 'info',
  retrying: 'warn',
  failed: 'error',
  parked: 'error',
}

/** A lost lease of a worker, or a lost claim of one job. */
export type Lost =
  | { readonly worker: string; readonly why: string }
  | { readonly id: string; readonly name: string; readonly queue: string }

export interface Transition {
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly to: State
  readonly attempt?: number | undefined
  readonly ms?: number | undefined
  readonly dueInMs?: number | null | undefined
  readonly error?: ErrorRecord | undefined
  readonly reason?: string | null | undefined
}

export function logTransition(log: Log, transition: Transition): void {
  const level = LEVELS[transition.to]
  if (level === 'debug' && !log.debugs) return
  const { id, job, queue, attempt, ms, error } = transition
  const fields = {
    id,
    job,
    queue,
    ...(attempt === undefined ? {} : { attempt }),
    ...(ms === undefined ? {} : { ms: tenths(ms) }),
    ...(error === undefined ? {} : { err: reviveError(error) }),
  }
  log.write(level, fields, `${transition.to} ${job}${remark(transition)}`)
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10

/** A job was enqueued. Only the store knows whether a job with parents is blocked: they may have ended. */
export function logEnqueued(log: Log, { id, name, queue, due, after }: NewJob): void {
  const dueInMs = 'inMs' in due ? due.inMs : undefined
  if (after === undefined || after.length === 0)
    return logTransition(log, { id, job: name, queue, to: dueInMs === 0 ? 'ready' : 'scheduled', dueInMs })
  log.write('debug', { id, job: name, queue }, `enqueued ${name} after ${count(after.length, 'job')}`)
}

/** The worker stopped before the handler ended: not an error of the job, but of interest to the operator. */
export function logReleased(log: Log, fields: object, job: string): void {
  log.write('info', fields, `gave back ${job} (the worker stopped before it ended; it runs again)`)
}

/** The handler snoozed the job: like a retry it is of interest to an operator, but it is no failure. */
export function logSnoozed(
  log: Log,
  fields: object & { readonly ms?: number | undefined },
  job: string,
  delayMs: number | null,
): void {
  const { ms, ...rest } = fields
  const shown = { ...rest, ...(ms === undefined ? {} : { ms: tenths(ms) }) }
  log.write('info', shown, `snoozed ${job} for ${formatDuration(delayMs ?? 0)}`)
}

export function logRescued(log: Log, worker: string, jobs: number, parked: number): void {
  if (jobs === 0) return log.write('info', { worker }, `worker ${worker} died; it held no jobs`)
  const fields = { worker, jobs, ...(parked === 0 ? {} : { parked }) }
  log.write(
    'warn',
    fields,
    `rescued ${count(jobs, 'job')} of worker ${worker}, which died; jobs that are not parked run again`,
  )
}

/** Jobs that another worker holds, which may have been killed. */
export interface Held {
  readonly worker: string
  readonly jobs: readonly { readonly id: string; readonly name: string }[]
  readonly leaseMs: number
  readonly until: number
}

/** How many of them are named. */
const HELD_NAMED_MAX = 5

export function logHeld(log: Log, { worker, jobs, leaseMs, until }: Held): void {
  const named = jobs.slice(0, HELD_NAMED_MAX).map(({ id, name }) => `${name} ${id}`)
  const more = jobs.length > named.length ? ` and ${jobs.length - named.length} more` : ''
  const fields = { worker, jobs: jobs.length, until: new Date(until).toISOString() }
  const text = `worker ${worker} holds ${count(jobs.length, 'job')}: ${named.join(', ')}${more}`
  log.write(
    'info',
    fields,
    `${text}. If it was killed, they run again in ${formatDuration(leaseMs)}, when its lease ends`,
  )
}

export function logLost(log: Log, what: Lost): void {
  if ('why' in what)
    return log.write(
      'warn',
      { worker: what.worker },
      `worker ${what.worker} lost its lease: ${what.why}; results of its jobs are not recorded`,
    )
  const { id, name, queue } = what
  log.write('warn', { id, job: name, queue }, `lost ${name}: its claim was lost, and this attempt is not recorded`)
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** A change of a running job was requested: its state has not changed yet, and an operator may wait for it. */
export function logRequestedChange(
  log: Log,
  job: { readonly id: string; readonly name: string; readonly queue: string },
  verb: RequestVerb,
): void {
  log.write('info', { id: job.id, job: job.name, queue: job.queue }, `${PARTICIPLES[verb]} ${job.name} (it runs)`)
}

const PARTICIPLES: { readonly [verb in RequestVerb]: string } = {
  cancel: 'cancelling',
  pause: 'pausing',
  resume: 'resuming',
}

/** A queue was paused, or runs again (undefined). */
export function logQueue(log: Log, queue: string, pause: CurrentPause | undefined): void {
  if (pause === undefined) return log.write('info', { queue }, `resumed queue ${queue}`)
  const until = pause.until === null ? '' : ` until ${new Date(pause.until).toISOString()}`
  log.write('info', { queue }, `paused queue ${queue}${until}`)
}

function remark({ to, dueInMs, reason }: Transition): string {
  if ((to === 'retrying' || to === 'scheduled') && dueInMs !== undefined && dueInMs !== null)
    return ` in ${formatDuration(dueInMs)}`
  return reason === undefined || reason === null ? '' : ` (${reason})`
}

/** Rows of a ledger. A tick that ran in time is not logged, since its job is. */
export function logTicks(log: Log, schedule: string, ticks: readonly TickRow[]): void {
  for (const { at, outcome, reason } of ticks) {
    const level = outcome === 'ran' ? 'debug' : 'info'
    if (level === 'debug' && !log.debugs) continue
    const why = reason === null ? '' : ` (${reason})`
    log.write(level, { schedule }, `tick of ${schedule} at ${new Date(at).toISOString()}: ${outcome}${why}`)
  }
}

/** Later ticks of this schedule get no job either, until an operator acts. */
export function logSkipping(log: Log, schedule: string, { at, reason, advice }: TickRow): void {
  const text = `schedule ${JSON.stringify(schedule)} skipped its tick at ${new Date(at).toISOString()}, and skips those to come: ${reason}. What to do: ${advice}`
  log.write('warn', { schedule }, text)
}

export function logScheduleRecovered(log: Log, schedule: string, aheadMs: number): void {
  const by = formatDuration(aheadMs)
  const text = `schedule ${JSON.stringify(schedule)} was stalled: a process whose clock was ${by} ahead had moved its next tick, and no longer fires it; it continues from now`
  log.write('warn', { schedule, aheadMs }, text)
}

/** Logs the consequences of a clock step. A step forward may be a suspended machine, which is no fault. */
export function logClockStep(log: Log, { databaseMs, machineMs }: ClockStep): void {
  const by = formatDuration(Math.abs(databaseMs === 0 ? machineMs : databaseMs))
  if (databaseMs < 0)
    log.write('warn', { databaseMs, machineMs }, `the database's clock was set back by ${by}: ${SET_BACK}`)
  else if (databaseMs > 0)
    log.write(
      'info',
      { databaseMs, machineMs },
      `the database's clock went forward by ${by}, or its machine was suspended: ${SET_FORWARD}`,
    )
  else
    log.write(
      'info',
      { databaseMs, machineMs },
      `this machine's clock was set ${machineMs < 0 ? 'back' : 'forward'} by ${by}, and the database's was not: jobs and schedules are not affected, since the database's clock decides`,
    )
}

const SET_BACK =
  'scheduled jobs and retries are due that much later; schedules with "every" continue, and a cron time that has fired does not fire again; finished jobs are kept that much longer'
const SET_FORWARD =
  'jobs that were scheduled up to now are due at once, missed ticks fire as "missed" says, and finished jobs are pruned that much earlier'
