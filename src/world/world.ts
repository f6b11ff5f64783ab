import type { Clock } from './clock.js'
import { systemClock } from './clock.js'
import type { Ids } from './ids.js'
import { systemIds } from './ids.js'
import type { Processes } from './processes.js'
import { systemProcesses } from './processes.js'
import type { Timers } from './timers.js'
import { systemTimers } from './timers.js'
import type { Vitals } from './vitals.js'
import { systemVitals } from './vitals.js'

/**
 * Everything that is not deterministic, passed in. Nothing outside `world/` reads a clock, sets a timer
 * or draws a random number, so that a whole fleet can be replayed from one seed.
 */
export interface World {
  readonly clock: Clock
  readonly timers: Timers
  readonly ids: Ids
  /** A number in [0, 1), for jitter and spread only; ids and fences come from `ids`. */
  readonly random: () => number
  /** Which process this is, and which others of this machine have ended. */
  readonly processes: Processes
  /** Memory and event-loop delay of this process; undefined in a simulated world. */
  readonly vitals?: Vitals | undefined
}

/** The world of the operating system. */
export function systemWorld(): World {
  return {
    clock: systemClock,
    timers: systemTimers,
    ids: systemIds(),
    random: Math.random,
    processes: systemProcesses(),
    vitals: systemVitals(),
  }
}
