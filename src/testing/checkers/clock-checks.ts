import type { JobRecord } from '../../job/record.js'
import type { Census } from '../../store/census.js'
import { BrokenPromise } from './broken-promise.js'
import type { WorkerFacts } from './rescue-checks.js'
import type { SimClock } from '../simulation/sim-clock.js'
import type { SimProcess } from '../simulation/sim-process.js'

/** What a check of the schedules may take beyond the wait for it: the wait after a failure, and its own store calls. */
const CHECK_MS = 1_000
/** A stalled schedule must be seen for this long beyond its interval, and the search for it has pauses of this length. */
const STALLED_MS = 1_000

/**
 * T5: the next tick of a schedule with `every` is at most one interval away, whatever the clock was set to, once a worker
 * without trouble has had a poll's time to see the step. A process can still write a next tick that it computed from a time
 * read before the step. Such a schedule is stalled, and a worker finds it after one interval.
 */
export class EveryChecker {
  readonly #written = new Map<string, { readonly nextAt: number | null; readonly since: number }>()

  check(
    census: Census,
    clock: SimClock,
    workers: WorkerFacts,
    watching: Iterable<SimProcess>,
    { now, pollMs }: { readonly now: number; readonly pollMs: number },
  ): void {
    for (const schedule of census.schedules) this.#note(schedule, now)
    const late = census.schedules.find(
      ({ everyMs, nextAt, waitsForFrom }) =>
        everyMs !== null && nextAt !== null && waitsForFrom === 0 && nextAt - clock.now > everyMs,
    )
    if (late === undefined) return
    const writtenAt = this.#written.get(late.id)?.since ?? -Infinity
    const isStalled = writtenAt > clock.steppedAt
    const allowedMs = pollMs + CHECK_MS + (isStalled ? (late.everyMs ?? 0) + 2 * STALLED_MS : 0)
    for (const process of watching) {
      if (!process.alive) continue
      const knownForMs = now - Math.max(clock.steppedAt, writtenAt, process.healthySince, workers.heldUntil)
      if (knownForMs > allowedMs)
        throw new BrokenPromise(
          `T5: the next tick of ${late.id} is ${((late.nextAt ?? 0) - clock.now).toFixed(0)} ms away, its interval is ${late.everyMs} ms, and ${process.name} has had ${knownForMs.toFixed(0)} ms to see that the clock was set`,
        )
    }
  }

  #note({ id, nextAt }: Census['schedules'][number], now: number): void {
    if (this.#written.get(id)?.nextAt !== nextAt) this.#written.set(id, { nextAt, since: now })
  }
}

/** No record that a client is shown has a negative duration, nor has an attempt. */
export function checkDurations(record: JobRecord): void {
  const { id, createdAt, startedAt, settledAt } = record
  const check = (what: string, from: Date | undefined, to: Date | undefined): void => {
    if (from !== undefined && to !== undefined && to < from)
      throw new BrokenPromise(`clocks: job ${id} is shown ${what} ${from.getTime() - to.getTime()} ms too early`)
  }
  check('started before it was created,', createdAt, startedAt)
  check('settled before it started,', startedAt ?? createdAt, settledAt)
  for (const attempt of record.attempts)
    check('with an attempt that ends before it starts,', attempt.startedAt, attempt.endedAt)
}
