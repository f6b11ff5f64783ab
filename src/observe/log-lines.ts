import type { ErrorRecord } from '../codec/error-text.js'
import { formatDuration } from '../job/duration.js'
import type { State } from '../job/states.js'
import type { Ask } from '../job/wish.js'
import type { StandingPause } from '../store/queues.js'
import type { TickRow } from '../store/schedules.js'
import type { ClockStep } from '../world/clock-step.js'
import type { Log, LogLevel } from '../world/log.js'

/** One readable line a transition: debug ready and running, info done, warn retrying, error failed, parked and slow. */
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

export interface Transition {
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly to: State
  readonly tries?: number | undefined
  readonly ms?: number | undefined
  readonly dueInMs?: number | null | undefined
  readonly error?: ErrorRecord | undefined
  readonly reason?: string | null | undefined
}

export function logTransition(log: Log, transition: Transition): void {
  const level = LEVELS[transition.to]
  if (level === 'debug' && !log.debugs) return
  const { id, job, queue, tries, ms, error } = transition
  const fields = {
    id,
    job,
    queue,
    ...(tries === undefined ? {} : { tries }),
    ...(ms === undefined ? {} : { ms: Math.round(ms * 10) / 10 }),
    ...(error === undefined ? {} : { error: `${error.name}: ${error.message}` }),
  }
  log.write(level, fields, `${transition.to} ${job}${remark(transition)}`)
}

/** What was asked of a job that runs: nothing has moved yet, and a person waits for it. */
export function logAsked(
  log: Log,
  job: { readonly id: string; readonly name: string; readonly queue: string },
  ask: Ask,
): void {
  log.write('info', { id: job.id, queue: job.queue }, `${ASKED[ask]} ${job.name} (it runs)`)
}

const ASKED: { readonly [ask in Ask]: string } = { cancel: 'cancelling', pause: 'pausing', resume: 'resuming' }

/** A queue was paused, or runs again (undefined). */
export function logQueue(log: Log, queue: string, pause: StandingPause | undefined): void {
  if (pause === undefined) return log.write('info', { queue }, `resumed queue ${queue}`)
  const until = pause.until === null ? '' : ` until ${new Date(pause.until).toISOString()}`
  log.write('info', { queue }, `paused queue ${queue}${until}`)
}

function remark({ to, dueInMs, reason }: Transition): string {
  if ((to === 'retrying' || to === 'scheduled') && dueInMs !== undefined && dueInMs !== null)
    return ` in ${formatDuration(dueInMs)}`
  return reason === undefined || reason === null ? '' : ` (${reason})`
}

/** What a ledger tells: what ran in time is no news, since its job tells of itself. */
export function logTicks(log: Log, schedule: string, ticks: readonly TickRow[]): void {
  for (const { at, outcome, reason } of ticks) {
    const level = outcome === 'ran' ? 'debug' : 'info'
    if (level === 'debug' && !log.debugs) continue
    const why = reason === null ? '' : ` (${reason})`
    log.write(level, { schedule }, `tick of ${schedule} at ${new Date(at).toISOString()}: ${outcome}${why}`)
  }
}

/** What a step means for what is stored. A step forward may be the sleep of a machine, which is no fault. */
export function logClockStep(log: Log, { databaseMs, machineMs }: ClockStep): void {
  const by = formatDuration(Math.abs(databaseMs === 0 ? machineMs : databaseMs))
  if (databaseMs < 0)
    log.write('warn', { databaseMs, machineMs }, `the database's clock was set back by ${by}: ${SET_BACK}`)
  else if (databaseMs > 0)
    log.write(
      'info',
      { databaseMs, machineMs },
      `the database's clock went forward by ${by}, or its machine slept: ${SET_FORWARD}`,
    )
  else
    log.write(
      'info',
      { databaseMs, machineMs },
      `this machine's clock was set ${machineMs < 0 ? 'back' : 'forward'} by ${by}, and the database's was not: jobs and schedules are not affected, since the database's clock decides`,
    )
}

const SET_BACK =
  'scheduled jobs and retries are due that much later; schedules with "every" go on, and a cron time that has fired does not fire again; finished jobs are kept that much longer'
const SET_FORWARD =
  'jobs that were scheduled up to now are due at once, missed ticks fire as "missed" says, and finished jobs are pruned that much earlier'
