import type { ScheduleRow } from '../store/schedules.js'
import { readSpec } from './spec.js'
import { nextAfter, timingOf } from './ticks.js'

/** The maximum delay with which a live process fires a tick. */
const LATE_MS = 1_000

/** A cron whose ticks are farther apart is not watched for longer than this: most processes do not live for a month. */
const CRON_STALLED_MAX_MS = 3_600_000

/**
 * Finds stalled schedules. On SQLite each process has its own clock. A process whose clock is ahead moves the next tick into the
 * future of the others, and changes the revision at each firing; once it has ended, the schedule fires no more until then. A
 * schedule is stalled when its next tick is later than the rule says and its revision has not changed for one interval (of a
 * cron: at most an hour) of this process's monotonic clock. If the other process is alive after all, it moves the schedule back,
 * and the ledger prevents a doubled tick.
 */
export class StalledSchedules {
  #seen = new Map<string, { readonly revision: number; readonly since: number }>()

  /** Returns the stalled schedules. `now` is the store's time. */
  find(schedules: readonly ScheduleRow[], now: number, monotonicMs: number): ScheduleRow[] {
    const ahead = schedules.filter((row) => isAhead(row, now))
    const last = this.#seen
    this.#seen = new Map(
      ahead.map((row) => {
        const seen = last.get(row.id)
        return [row.id, seen?.revision === row.revision ? seen : { revision: row.revision, since: monotonicMs }]
      }),
    )
    return ahead.filter((row) => {
      const [stalledMs, seen] = [stalledAfterMs(row, now), this.#seen.get(row.id)]
      return stalledMs !== undefined && seen !== undefined && monotonicMs - seen.since >= stalledMs + LATE_MS
    })
  }
}

/** It was fired or created at a time that is in the future of this process's clock. */
function isAhead({ pausedAt, nextAt, lastAt, createdAt }: ScheduleRow, now: number): boolean {
  return pausedAt === null && nextAt !== null && nextAt > now && Math.max(lastAt ?? createdAt, createdAt) > now
}

/**
 * How long its revision must stay the same. Undefined if its next tick is as the rule says, and for a rule that cannot be read
 * here: `fireDue` reports that.
 */
function stalledAfterMs({ spec: text, createdAt, nextAt }: ScheduleRow, now: number): number | undefined {
  try {
    const spec = readSpec(text)
    if (typeof spec.rule !== 'string') return (nextAt ?? 0) > now + spec.rule.every ? spec.rule.every : undefined
    const timing = timingOf(spec, createdAt)
    const first = nextAfter(timing, now)
    if (first === null || (nextAt ?? 0) <= first) return undefined
    return Math.min(CRON_STALLED_MAX_MS, (nextAfter(timing, first) ?? Infinity) - first)
  } catch {
    return undefined
  }
}
