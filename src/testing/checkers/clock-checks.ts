import type { JobRecord } from '../../job/record.js'
import type { Census } from '../../store/census.js'
import { BrokenPromise } from './broken-promise.js'
import type { WorkerFacts } from './rescue-checks.js'
import type { SimClock } from '../simulation/sim-clock.js'
import type { SimProcess } from '../simulation/sim-process.js'

/** What a check of the schedules may take beyond the wait for it: the wait after a failure, and its own store calls. */
const CHECK_MS = 1_000

/**
 * T5: the next tick of a schedule with `every` is at most one interval away, whatever the clock was set to, once a worker
 * without trouble has had a poll's time to see the step.
 */
export function checkEvery(
  census: Census,
  clock: SimClock,
  workers: WorkerFacts,
  watching: Iterable<SimProcess>,
  { now, pollMs }: { readonly now: number; readonly pollMs: number },
): void {
  const late = census.schedules.find(
    ({ everyMs, nextAt, waitsForFrom }) =>
      everyMs !== null && nextAt !== null && waitsForFrom === 0 && nextAt - clock.now > everyMs,
  )
  if (late === undefined) return
  for (const process of watching) {
    if (!process.alive) continue
    const knownForMs = now - Math.max(clock.steppedAt, process.healthySince, workers.heldUntil)
    if (knownForMs > pollMs + CHECK_MS)
      throw new BrokenPromise(
        `T5: the next tick of ${late.id} is ${((late.nextAt ?? 0) - clock.now).toFixed(0)} ms away, its interval is ${late.everyMs} ms, and ${process.name} has had ${knownForMs.toFixed(0)} ms to see that the clock was set`,
      )
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
