import type { Duration } from '../job/duration/duration.js'
import type { InstantLike, InstantText } from '../job/duration/duration-instant.js'
import type { EnqueueOptions } from '../job/enqueue.js'
import type { Missed } from '../job/rules/missed.js'
import type { Encoded } from '../job/rules/outcome.js'
import type { Overlap } from '../job/rules/overlap.js'
import { readOptions, fromStoredValue } from '../job/definition/stored-options.js'
import type { ScheduleRow, TickOutcome, TickRow } from '../store/schedules.js'
import type { RuleInput } from './calendar.js'
import { readSpec } from './spec.js'

/** An instant in the options of a schedule. */
export type Instant = Date | InstantLike | InstantText

/** Options of `mill.recurring`: of the ticks, and of each job as for an enqueue. */
export interface RecurringOptions extends Omit<EnqueueOptions, 'in' | 'at' | 'tx' | 'expires'> {
  /** The time zone of a cron text, such as 'Europe/Oslo'. Default 'UTC'. */
  readonly timezone?: string | undefined
  /**
   * What happens to ticks that are fired more than a minute late, or together with a later one: 'skip' them, run the last one
   * 'once' for all of them (default), or run 'all' of them, at most 1,000. The last one is not missed within a minute of its time.
   */
  readonly missed?: Missed | undefined
  /** When a job of an earlier tick is unfinished: 'allow' both (default), 'skip' this tick, 'wait' for it, or 'cancel' it. */
  readonly overlap?: Overlap | undefined
  /** Delays each job by up to this much after its tick; the same tick always has the same delay. Default 0. */
  readonly jitter?: Duration | number | undefined
  /** No tick before this instant; `every` counts from it. Default: from now on. */
  readonly from?: Instant | undefined
  /** No tick after this instant. Default: no end. */
  readonly until?: Instant | undefined
  /** Cancels each job if it has not begun this long after it was due. */
  readonly expires?: Duration | number | undefined
}

/** A recurring job, for people and programs. */
export interface ScheduleRecord {
  readonly id: string
  readonly job: string
  readonly payload: unknown
  readonly rule: RuleInput
  readonly timezone: string
  readonly missed: Missed
  readonly overlap: Overlap
  readonly jitterMs: number
  readonly from: Date | undefined
  readonly until: Date | undefined
  readonly queue: string
  readonly priority: number
  readonly key: string | undefined
  /** The group of its jobs. */
  readonly group: string | undefined
  readonly title: string | undefined
  readonly labels: readonly string[]
  readonly createdAt: Date
  readonly paused: boolean
  readonly pausedAt: Date | undefined
  /** The next tick; undefined while it is paused, and after the last one. */
  readonly nextAt: Date | undefined
  /** The newest tick in the ledger. */
  readonly lastAt: Date | undefined
}

/** One row of a schedule's ledger. */
export interface TickRecord {
  /** The instant of the tick, by the rule. */
  readonly at: Date
  /** 'ran' in time, 'caught up' after it was missed, 'skipped', 'run now' by a call, or 'backfilled'. */
  readonly outcome: TickOutcome
  /** The reason, if there is one. */
  readonly reason: string | undefined
  /** The id of its job; undefined when it was skipped. */
  readonly job: string | undefined
  readonly firedAt: Date
}

export function toScheduleRecord(
  row: ScheduleRow,
  decode: (name: string, payload: Encoded, version: number) => unknown,
): ScheduleRecord {
  const { job, rule, timezone, missed, overlap, jitterMs, fromAt, untilAt } = readSpec(row.spec)
  const { title, labels } = readOptions(job.options)
  return {
    id: row.id,
    job: job.name,
    payload: decode(job.name, fromStoredValue(job.payload), readOptions(job.options).version ?? 0),
    rule,
    timezone,
    missed,
    overlap,
    jitterMs,
    from: date(fromAt),
    until: date(untilAt),
    queue: job.queue,
    priority: job.priority,
    key: job.key ?? undefined,
    group: job.group,
    title,
    labels: labels ?? [],
    createdAt: new Date(row.createdAt),
    paused: row.pausedAt !== null,
    pausedAt: date(row.pausedAt),
    nextAt: date(row.nextAt),
    lastAt: date(row.lastAt),
  }
}

export function toTickRecord({ at, outcome, reason, job, firedAt }: TickRow): TickRecord {
  return { at: new Date(at), outcome, reason: reason ?? undefined, job: job ?? undefined, firedAt: new Date(firedAt) }
}

function date(ms: number | null): Date | undefined {
  return ms === null ? undefined : new Date(ms)
}
