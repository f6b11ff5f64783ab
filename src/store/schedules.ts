import type { Overlap } from '../job/rules/overlap.js'
import type { OnDuplicate } from '../job/rules/unique.js'
import type { State } from '../job/rules/states.js'
import type { NewJob } from './store.js'

/**
 * The role of schedules: what recurs. Which ticks have come, the caller works out; the store sees to it that each is written
 * once, with its job, however many processes come with it. Every write moves the schedule's revision, and is made only if the
 * schedule still has the one that was read.
 */
export interface ScheduleStore {
  /** One by its id, and the store's now. */
  readSchedule(id: string): Promise<{ readonly now: number; readonly schedule: ScheduleRow | undefined }>
  /** A page, in the order of their ids. */
  listSchedules(
    after: string,
    limit: number,
  ): Promise<{ readonly now: number; readonly schedules: readonly ScheduleRow[] }>
  /** Writes one that is new (`revision` null), or puts it in the place of the one that has this revision; false: it has another. */
  putSchedule(schedule: PutSchedule, revision: number | null): Promise<boolean>
  /** Forgets one with its ledger; false when there was none. Its jobs stay. */
  dropSchedule(id: string): Promise<boolean>
  /** Those whose next tick has come, the longest waiting first, and when to come again. */
  dueSchedules(limit: number): Promise<DueSchedules>
  /** Writes ticks and their jobs, and moves the schedule on. A tick that has its job already is passed over. */
  fireTicks(firing: Firing): Promise<Fired>
  /** The newest of the ledger, before an instant. */
  readTicks(id: string, before: number | null, limit: number): Promise<readonly TickRow[]>
  /** Jobs that wait for a time, or for a worker, and are due within so long; those due first, first. */
  upcomingJobs(withinMs: number, limit: number): Promise<UpcomingJobs>
}

export interface PutSchedule {
  readonly id: string
  /** What was asked for, as JSON text; the store does not read it. */
  readonly spec: string
  readonly createdAt: number
  /** When a person paused it; then it has no next tick. */
  readonly pausedAt: number | null
  readonly nextAt: number | null
}

export interface ScheduleRow extends PutSchedule {
  readonly revision: number
  /** The last tick in its ledger, by the rule. */
  readonly lastAt: number | null
  /** Its newest jobs that may be unfinished: see `job/rules/overlap.ts`. */
  readonly open: readonly string[]
}

export interface DueSchedules {
  readonly now: number
  readonly due: readonly ScheduleRow[]
  /** When the next one that is not due yet is; null when none waits. */
  readonly nextInMs: number | null
}

export type TickOutcome = 'ran' | 'caught up' | 'skipped' | 'run now' | 'backfilled'

export interface PlannedTick {
  readonly at: number
  /** Asked for by a person, beside the rule: it may share an instant with a tick of the rule. */
  readonly byHand: boolean
  readonly outcome: TickOutcome
  readonly reason: string | null
  /** Null when it is skipped. */
  readonly job: NewJob | null
}

export interface Firing {
  readonly id: string
  readonly revision: number
  readonly ticks: readonly PlannedTick[]
  readonly overlap: Overlap
  readonly onDuplicate: OnDuplicate
  /** How long a job that is called off for a later one is kept. */
  readonly keepCancelledMs: number
  readonly nextAt: number | null
  readonly pausedAt: number | null
}

/** 'stale': another write came first, and nothing was written. */
export type Fired = 'stale' | readonly TickRow[]

export interface TickRow {
  readonly at: number
  readonly byHand: boolean
  readonly outcome: TickOutcome
  readonly reason: string | null
  /** The id of its job; null when there is none. */
  readonly job: string | null
  readonly firedAt: number
  /** What a person must do so that later ticks get a job again, where they would be skipped too. Told by a firing, and not stored. */
  readonly advice?: string | undefined
}

export interface UpcomingJobs {
  readonly now: number
  readonly jobs: readonly {
    readonly id: string
    readonly name: string
    readonly queue: string
    readonly state: State
    readonly dueAt: number
    readonly options: string | null
  }[]
}

/** Ticks that a ledger keeps, and how many firings pass between two looks at its length. */
export const TICKS_KEPT = 10_000
export const TRIM_EVERY = 100
