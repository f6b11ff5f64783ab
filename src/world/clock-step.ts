import type { Clock } from './clock.js'

/** By how many ms a wall clock was set between two readings; negative: back; 0: it was not set. */
export interface ClockStep {
  /** The database's clock, which decides when jobs are due. */
  readonly databaseMs: number
  /** This machine's clock. */
  readonly machineMs: number
}

/** A smaller difference is a correction, or a slow reading. */
const STEP_MIN_MS = 2_000

/**
 * Detects that a wall clock was set, by comparing it with the monotonic clock. A reading lies between two moments of that
 * clock, and only a difference outside of both is a step. Suspending the machine may look like a step forward: on some
 * systems the monotonic clock does not count the suspended time.
 */
export class StepWatch {
  #last: { readonly wall: number; readonly before: number; readonly after: number } | undefined

  /** `wall` was read after the moment `before`, and before the moment `after`. */
  read(wall: number, before: number, after: number): number {
    const last = this.#last
    this.#last = { wall, before, after }
    if (last === undefined) return 0
    const passed = wall - last.wall
    const [least, most] = [before - last.after, after - last.before]
    const stepMs = passed < least ? passed - least : passed > most ? passed - most : 0
    return Math.abs(stepMs) < STEP_MIN_MS ? 0 : Math.round(stepMs)
  }
}

/** Watches both clocks of a process; returns a step when one of them was set since the last reading. */
export class ClockWatch {
  readonly #clock: Clock
  readonly #database = new StepWatch()
  readonly #machine = new StepWatch()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `databaseNow` was read after the moment `before` of the monotonic clock. */
  read(databaseNow: number, before: number): ClockStep | undefined {
    const after = this.#clock.monotonic()
    const databaseMs = this.#database.read(databaseNow, before, after)
    const machineMs = this.#machine.read(this.#clock.now(), after, this.#clock.monotonic())
    return databaseMs === 0 && machineMs === 0 ? undefined : { databaseMs, machineMs }
  }
}
