import { performance } from 'node:perf_hooks'

/** Two clocks, never mixed: `now` names instants, `monotonic` measures durations. */
export interface Clock {
  /** Milliseconds since 1970 by the machine's clock. It may jump. */
  now(): number
  /** Milliseconds since an arbitrary start. It never decreases. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
