import type { ScheduleRow } from '../store/schedules.js'
import { readSpec } from './spec.js'
import { nextAfter, timingOf } from './ticks.js'

/** A process fires a tick that much late at most, unless it is stuck or dead. */
const LATE_MS = 1_000

/** A cron whose ticks are farther apart is not watched for longer than this: most processes do not live for a month. */
const CRON_STILL_MAX_MS = 3_600_000

/**
 * Finds schedules that stand still. On SQLite each process has its own clock, so a process whose clock is ahead moves the
 * next tick ahead of every other process. While it lives it fires the schedule, and each firing moves the revision. When it is
 * gone, the revision stays, and the next tick is as far away as its clock was ahead. So a schedule stands still when its next
 * tick is later than the rule says and its revision has not moved for one interval of this process's monotonic clock. The
 * interval of a cron is that between its next two ticks, up to an hour: should the other process still live, it moves the schedule
 * away again, and no tick is doubled, since the ledger has each.
 */
export class Stalled {
  #seen = new Map<string, { readonly revision: number; readonly since: number }>()

  /** Those of all schedules that stand still. `now` is the store's. */
  of(schedules: readonly ScheduleRow[], now: number, monotonicMs: number): ScheduleRow[] {
    const ahead = schedules.filter((row) => isAhead(row, now))
    const last = this.#seen
    this.#seen = new Map(
      ahead.map((row) => {
        const seen = last.get(row.id)
        return [row.id, seen?.revision === row.revision ? seen : { revision: row.revision, since: monotonicMs }]
      }),
    )
    return ahead.filter((row) => {
      const [stillMs, seen] = [stillFor(row, now), this.#seen.get(row.id)]
      return stillMs !== undefined && seen !== undefined && monotonicMs - seen.since >= stillMs + LATE_MS
    })
  }
}

/** It has fired, or was made, at a time that is still to come by this process's clock. */
function isAhead({ pausedAt, nextAt, lastAt, createdAt }: ScheduleRow, now: number): boolean {
  return pausedAt === null && nextAt !== null && nextAt > now && Math.max(lastAt ?? createdAt, createdAt) > now
}

/**
 * How long its revision must not have moved. Undefined where its next tick is as the rule says, and for a rule that cannot be read
 * here: that is reported when it is fired.
 */
function stillFor({ spec: text, createdAt, nextAt }: ScheduleRow, now: number): number | undefined {
  try {
    const spec = readSpec(text)
    if (typeof spec.rule !== 'string') return (nextAt ?? 0) > now + spec.rule.every ? spec.rule.every : undefined
    const timing = timingOf(spec, createdAt)
    const first = nextAfter(timing, now)
    if (first === null || (nextAt ?? 0) <= first) return undefined
    return Math.min(CRON_STILL_MAX_MS, (nextAfter(timing, first) ?? Infinity) - first)
  } catch {
    return undefined
  }
}
