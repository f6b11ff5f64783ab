import { performance } from 'node:perf_hooks'

/** Two clocks, never mixed: `now` names instants, `monotonic` measures durations. */
export interface Clock {
  /** Milliseconds since 1970, as the machine believes. It may jump. */
  now(): number
  /** Milliseconds since some start. It never goes back. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
