import type { ScheduleRow } from '../store/schedules.js'
import { readSpec } from './spec.js'

/** A process fires a tick that much late at most, unless it is stuck or dead. */
const LATE_MS = 1_000

/**
 * Finds `every` schedules that stand still. On SQLite each process has its own clock, so a process whose clock is ahead moves the
 * next tick ahead of every other process. While it lives it fires the schedule, and each firing moves the revision. When it is
 * gone, the revision stays, and the next tick is as far away as its clock was ahead. So a schedule stands still when its next
 * tick is more than one interval away and its revision has not moved for one interval of this process's monotonic clock.
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
      const [everyMs, seen] = [intervalOf(row), this.#seen.get(row.id)]
      if (everyMs === undefined || seen === undefined || (row.nextAt ?? 0) <= now + everyMs) return false
      return monotonicMs - seen.since >= everyMs + LATE_MS
    })
  }
}

/** It has fired, or was made, at a time that is still to come by this process's clock. */
function isAhead({ pausedAt, nextAt, lastAt, createdAt }: ScheduleRow, now: number): boolean {
  return pausedAt === null && nextAt !== null && nextAt > now && Math.max(lastAt ?? createdAt, createdAt) > now
}

/** Undefined for a cron, and for one that cannot be read here: that is reported when it is fired. */
function intervalOf({ spec }: ScheduleRow): number | undefined {
  try {
    const { rule } = readSpec(spec)
    return typeof rule === 'string' ? undefined : rule.every
  } catch {
    return undefined
  }
}
