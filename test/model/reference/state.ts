/**
 * Millrace as one small program: the rules of a fleet of mills on one store that a user can observe, with maps and a clock, and
 * without SQL, batches or speed. It is written from the guides and not from the engine, so it uses nothing of src/. Random programs
 * run against it and against both stores, and after every step the whole store must be as the model says (test/model.test.ts).
 *
 * A verb is a function of this folder that changes a `Model` and gives what the public verb gives; a refused verb throws `Refused`
 * with the public code and changes nothing. Time moves by `advance` (time.ts) alone.
 */

import type { Body } from './course.js'
import { copyOfWorkflow } from './workflows.js'
import type { Workflow } from './workflows.js'

export type State =
  | 'scheduled'
  | 'ready'
  | 'running'
  | 'retrying'
  | 'blocked'
  | 'paused'
  | 'parked'
  | 'done'
  | 'failed'
  | 'cancelled'

export type FinalState = 'done' | 'failed' | 'cancelled'

export type ParentPolicy = 'wait' | 'cancel' | 'run'
/** 'run-if-parked': of a tick that waits for the tick before it, which may also be parked. */
export type LinkPolicy = ParentPolicy | 'run-if-parked'

export interface Unique {
  readonly value: string
  readonly forMs?: number
  readonly while?: 'unfinished' | 'waiting'
  readonly onDuplicate?: 'ignore' | 'reject' | 'replace' | 'reschedule'
}

export interface Enqueue {
  readonly queue?: string
  readonly priority?: number
  readonly inMs?: number
  readonly expiresMs?: number
  readonly key?: string
  readonly onDuplicate?: 'return' | 'reject' | 'replace'
  readonly unique?: Unique
  readonly group?: string
  /** Numbers of jobs, in the order in which they were made. */
  readonly after?: readonly number[]
  readonly onParentFailure?: ParentPolicy
  /** The code of a workflow, which is its input. */
  readonly body?: Body
}

export interface ModelJob {
  /** Its number: jobs are numbered in the order in which they were asked for. */
  readonly number: number
  /** Jobs of one call are written together: which of them is first is not promised. */
  readonly call: number
  readonly name: string
  readonly key: string | null
  readonly group: string | null
  readonly tick: { readonly schedule: string; readonly at: number } | null
  unique: Unique | null
  queue: string
  priority: number
  state: State | 'gone'
  dueAt: number
  expiresAt: number | null
  attempt: number
  /** Failed attempts since it was enqueued or retried by hand. */
  retries: number
  /** Crashes that are charged to it, and crashes in a row at which it was in flight. */
  crashes: number
  streak: number
  hasFailed: boolean
  /** How it ended, where it is kept for no time, or was pruned, and so is gone; null when it was deleted. */
  forgotten: FinalState | null
  /** Until when a finished job is kept; null: it is unfinished. */
  keepUntil: number | null
  /** What it was asked while it ran; applied when the attempt ends. */
  request: 'cancel' | 'pause' | null
  /** All it ever came after, and those it still waits for with what their failure means. */
  after: number[]
  waitsFor: Map<number, LinkPolicy>
  /** A sequence: how many of its items are recorded, the failed attempts of the next one, and whether it was started. */
  sequence: { readonly total: number; done: number; attempts: number; isStarted: boolean } | null
  readonly workflow: Workflow | null
  /** When it ended or was deleted. */
  endedAt: number | null
}

/** A handler that runs. Its claim may be over: then nothing that it does is recorded. */
export interface Attempt {
  readonly number: number
  readonly job: number
  readonly mill: number
  hasClaim: boolean
  /** It was settled without its handler. */
  isOver: boolean
  /** Its mill has left; another may be in its place. */
  hasLeft: boolean
  /** Nothing else begins in its mill until then; null: it is in no quarantine. */
  quarantinedUntil: number | null
  /** Its cancel was requested: at this time the job is cancelled without the handler. */
  graceUntil: number | null
}

/** How a mill leaves: killed, with or without proof that its process is gone; frozen, and taken for dead; stopped in order. */
export type Leaving = 'killed' | 'proven' | 'frozen' | 'stopped'

/** A mill that has left, and the handlers whose jobs are free at a later time. */
export interface Departure {
  readonly mill: number
  readonly how: Leaving
  readonly freeAt: number
  readonly attempts: readonly number[]
}

export interface Slot {
  holder: number
  until: number | null
}

export interface Group {
  sealedAt: number | null
  completedAt: number | null
  /** The job that follows the group. */
  whenDone: { readonly name: string; readonly given: Enqueue } | null
}

export interface Recurring {
  readonly name: string
  readonly given: Enqueue
  readonly everyMs: number
  /** A cron text counts from midnight, `every` from `from` or from the first call. */
  readonly isCron: boolean
  readonly fromAt: number | null
  readonly untilAt: number | null
  readonly missed: 'skip' | 'once' | 'all'
  readonly overlap: 'allow' | 'skip' | 'wait' | 'cancel'
}

export interface Tick {
  readonly at: number
  readonly byHand: boolean
  readonly outcome: 'ran' | 'caught up' | 'skipped' | 'run now' | 'backfilled'
  readonly job: number | null
}

export interface Schedule {
  spec: Recurring
  readonly createdAt: number
  pausedAt: number | null
  nextAt: number | null
  /** Jobs of its ticks that the next tick must regard, while they are unfinished. */
  open: number[]
  ledger: Tick[]
}

export interface Model {
  now: number
  calls: number
  jobs: ModelJob[]
  attempts: Attempt[]
  begun: number
  /** What each mill does; a frozen one is up again when it was taken for dead. */
  mills: ('up' | 'frozen' | 'gone')[]
  departures: Departure[]
  slots: Map<string, Slot>
  groups: Map<string, Group>
  /** Paused queues, with the time at which they resume; null: until a caller resumes them. */
  paused: Map<string, number | null>
  schedules: Map<string, Schedule>
  /** When jobs under a rate began. */
  starts: readonly { readonly name: string; readonly at: number }[]
  /** How long finished jobs of a name are kept; 0: not at all. */
  readonly keepMs: { readonly [name: string]: number }
  /** Ended attempts, by queue, name and how they ended: `mail send done`. */
  readonly ended: Map<string, number>
}

export class Refused extends Error {
  readonly code: string
  constructor(code: string) {
    super(code)
    this.code = code
  }
}

export const RETRY_LIMIT = 2
export const BACKOFF_MS = 10_000
export const LEASE_MS = 15_000
/** A stop that waits for no handler gives it this time to return, once it is aborted. */
export const STOP_MS = 250
export const CRASH_BUDGET = 3
/** The name of the jobs that are workflows. */
export const WORKFLOW = 'work'
export const KEEP_MS = { short: 7_200_000, default: 7 * 86_400_000, failed: 30 * 86_400_000 }

export function emptyModel(now: number, mills: number, keepMs: Model['keepMs'] = {}): Model {
  return {
    now,
    calls: 0,
    jobs: [],
    attempts: [],
    begun: 0,
    ended: new Map(),
    mills: Array.from({ length: mills }, () => 'up' as const),
    departures: [],
    slots: new Map(),
    groups: new Map(),
    paused: new Map(),
    schedules: new Map(),
    starts: [],
    keepMs,
  }
}

/** All of a verb happens, or nothing of it: it is tried on a copy first. */
export function wholly<T>(model: Model, verb: (model: Model) => T): T {
  verb(copyOf(model))
  return verb(model)
}

/** A copy that later verbs do not change. */
export function copyOf(model: Model): Model {
  const each = <K, V extends object>(map: Map<K, V>): Map<K, V> =>
    new Map([...map].map(([key, value]) => [key, { ...value }]))
  return {
    ...model,
    jobs: model.jobs.map((job) => ({
      ...job,
      after: [...job.after],
      waitsFor: new Map(job.waitsFor),
      sequence: job.sequence === null ? null : { ...job.sequence },
      workflow: job.workflow === null ? null : copyOfWorkflow(job.workflow),
    })),
    attempts: model.attempts.map((attempt) => ({ ...attempt })),
    mills: [...model.mills],
    departures: [...model.departures],
    slots: each(model.slots),
    groups: each(model.groups),
    paused: new Map(model.paused),
    // The lists in a schedule are replaced and never changed.
    schedules: each(model.schedules),
  }
}

export const jobOf = (model: Model, number: number): ModelJob => model.jobs[number] as ModelJob
export const isFinal = (state: ModelJob['state']): state is FinalState =>
  state === 'done' || state === 'failed' || state === 'cancelled'
export const isUnfinished = (job: ModelJob): boolean => job.state !== 'gone' && !isFinal(job.state)
export const isWaiting = (job: ModelJob): boolean => isUnfinished(job) && job.state !== 'running'
export const isTimed = (state: ModelJob['state']): boolean => state === 'scheduled' || state === 'retrying'
/** A job in flight at two crashes in a row runs in quarantine. */
export const isSuspect = (job: ModelJob): boolean => job.streak >= 2
