import type { FindQuery } from '../../find.js'
import type { Session } from '../connection/session.js'

/*
 * Finds the numbers of the jobs that were created in a span of time, without an index on times. Times rise with numbers, since
 * both are given under the write lock; only a clock that was set back breaks that. `millrace_clock_steps` has the number of the
 * first job after each such step. Between two steps a binary search by primary key finds the first number of a time:
 *
 *     number  1 ──────────────── 400 │ 401 ─────────────── 900
 *     time    9:00 ───────────► 9:40 │ 9:10 (set back) ─► 9:50
 *
 * Here `createdAfter: 9:30` gives 300 to 400 and 700 to 900.
 */

/** With more steps than this, the find does not search by time and scans all numbers. */
const STEPS_MAX = 256

/**
 * Called before the first insert of a transaction, with its now: records a step if the clock was set back since the
 * last job.
 */
export function noteClockStep(session: Session, now: number): void {
  if (session.isInOrder) return
  session.isInOrder = true
  const last = session.statement(session.queries.lastCreated).get() as Created | undefined
  if (last !== undefined && last.created_at > now) session.statement(session.queries.addClockStep).run(last.seq + 1)
}

/** Whether a step is before all jobs, where it has no effect any more. */
export function isAnyOldStep(session: Session): boolean {
  return session.statement(session.queries.anyOldClockStep).get() !== undefined
}

export function dropOldSteps(session: Session): void {
  session.statement(session.queries.dropOldClockSteps).run()
}

/** Numbers from one to another, both included. */
export interface NumberRange {
  readonly first: number
  readonly last: number
}

export const ALL: NumberRange = { first: 0, last: Number.MAX_SAFE_INTEGER - 1 }

/**
 * The ranges of numbers that contain all matching times, in order. Call it in the snapshot that also reads the jobs.
 */
export function rangesOf(session: Session, { createdAfter, createdBefore }: FindQuery): NumberRange[] {
  const steps = session.statement(session.queries.clockSteps).all(STEPS_MAX + 1) as { seq: number }[]
  if (steps.length > STEPS_MAX) return [ALL]
  return [ALL.first, ...steps.map(({ seq }) => seq)]
    .map((first, i) => ({ first, last: (steps[i]?.seq ?? ALL.last + 1) - 1 }))
    .map((range) => {
      const first = createdAfter === undefined ? range.first : firstOf(session, range, (time) => time > createdAfter)
      const behind =
        createdBefore === undefined ? range.last + 1 : firstOf(session, range, (time) => time >= createdBefore)
      return { first, last: behind - 1 }
    })
    .filter(({ first, last }) => first <= last)
}

interface Created {
  readonly seq: number
  readonly created_at: number
}

/**
 * The first number of a range without steps whose time is late enough; the number after the range when there is none.
 */
function firstOf(session: Session, { first, last }: NumberRange, isLate: (time: number) => boolean): number {
  const { firstCreated, lastCreatedWithin } = session.queries
  const end = session.statement(lastCreatedWithin).get(first, last) as Created | undefined
  if (end === undefined || !isLate(end.created_at)) return last + 1
  let [low, high] = [first, end.seq]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const job = session.statement(firstCreated).get(middle, high) as Created | undefined
    if (job === undefined || isLate(job.created_at)) high = middle
    else low = job.seq + 1
  }
  return low
}
