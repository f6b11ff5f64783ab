import type { Overlap } from '../job/rules/overlap.js'
import type { OnDuplicate } from '../job/rules/unique.js'
import type { State } from '../job/rules/states.js'
import type { AuditNote } from '../job/command-options.js'
import type { NewJob } from './store.js'

/**
 * The schedules role. The caller computes which ticks are due; the store writes each tick once, with its job, however
 * many processes submit it. Every write increments the schedule's revision, and applies only if the schedule still has
 * the revision that the caller read.
 */
export interface ScheduleStore {
  /** One schedule by id, and the store's now. */
  readSchedule(id: string): Promise<{ readonly now: number; readonly schedule: ScheduleRow | undefined }>
  /** A page, ordered by id. */
  listSchedules(
    after: string,
    limit: number,
  ): Promise<{ readonly now: number; readonly schedules: readonly ScheduleRow[] }>
  /**
   * Inserts a new schedule (`revision` null), or replaces the one that has this revision; false when it has another
   * revision.
   */
  putSchedule(schedule: PutSchedule, revision: number | null): Promise<boolean>
  /** Deletes a schedule and its ledger; false when there was none. Its jobs stay. */
  dropSchedule(id: string, audit?: AuditNote): Promise<boolean>
  /** Schedules whose next tick is due, the longest overdue first, and when to call again. */
  dueSchedules(limit: number): Promise<DueSchedules>
  /** Writes ticks and their jobs, and sets the schedule's next tick. A tick that has its job already is skipped. */
  fireTicks(firing: Firing): Promise<Fired>
  /** The newest ticks of the ledger, before an instant. */
  readTicks(id: string, before: number | null, limit: number): Promise<readonly TickRow[]>
  /** Waiting and ready jobs that are due within `withinMs`, the earliest first. */
  upcomingJobs(withinMs: number, limit: number): Promise<UpcomingJobs>
  /** How many scheduled and retrying jobs are due, by queue and part of the span: the first BINNED_MAX, and one more if there are more. */
  upcomingCounts(span: { readonly withinMs: number; readonly binMs: number }): Promise<UpcomingCounts>
}

export interface PutSchedule {
  readonly id: string
  /** The definition, as JSON text; the store does not read it. */
  readonly spec: string
  readonly createdAt: number
  /** When a caller paused it. A paused schedule has no next tick. */
  readonly pausedAt: number | null
  readonly nextAt: number | null
  readonly audit?: AuditNote | undefined
}

export interface ScheduleRow extends PutSchedule {
  readonly revision: number
  /** The latest tick of the rule in its ledger. */
  readonly lastAt: number | null
  /** Its newest jobs that may be unfinished; see `job/rules/overlap.ts`. */
  readonly open: readonly string[]
}

export interface DueSchedules {
  readonly now: number
  readonly due: readonly ScheduleRow[]
  /** Time until the next schedule that is not due yet; null when there is none. */
  readonly nextInMs: number | null
}

export type TickOutcome = 'ran' | 'caught up' | 'skipped' | 'run now' | 'backfilled'

export interface PlannedTick {
  readonly at: number
  /** Requested by a caller, in addition to the rule: it may share an instant with a tick of the rule. */
  readonly byHand: boolean
  readonly outcome: TickOutcome
  readonly reason: string | null
  /** Null when the tick is skipped. */
  readonly job: NewJob | null
}

export interface Firing {
  readonly id: string
  readonly revision: number
  readonly ticks: readonly PlannedTick[]
  readonly overlap: Overlap
  readonly onDuplicate: OnDuplicate
  /** How long a cancelled job with the name of the ticks' jobs is kept. */
  readonly keepCancelledMs: number
  /** The same for a job of any name: an earlier tick may have enqueued another job. Default: `keepCancelledMs`. */
  readonly keepCancelledMsOf?: ((name: string) => number) | undefined
  readonly nextAt: number | null
  readonly pausedAt: number | null
  readonly audit?: AuditNote | undefined
}

/** 'stale': another write came first, and nothing was written. */
export type Fired = 'stale' | readonly TickRow[]

export interface TickRow {
  readonly at: number
  readonly byHand: boolean
  readonly outcome: TickOutcome
  readonly reason: string | null
  /** The id of its job; null when it has none. */
  readonly job: string | null
  readonly firedAt: number
  /**
   * What a person must do so that later ticks get a job again, when they would be skipped too. A firing returns it; it
   * is not stored.
   */
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

export interface UpcomingCounts {
  readonly now: number
  /** `bin` is below 0 when the jobs are overdue. */
  readonly counts: readonly { readonly queue: string; readonly bin: number; readonly count: number }[]
}

/** The most waiting jobs that one read counts. */
export const BINNED_MAX = 50_000

/** Ticks that a ledger keeps, and the number of firings between two checks of its length. */
export const TICKS_KEPT = 10_000
export const TRIM_EVERY = 100
