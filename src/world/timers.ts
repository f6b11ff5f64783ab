import { performance } from 'node:perf_hooks'
import { clearTimeout, setImmediate, setTimeout } from 'node:timers'

/*
 * Imported and not global: the fake timers of vitest and jest replace the globals, and a mill whose timers never fire would
 * hang in the tests of its users. They replace the members of `node:timers` too, and code that is bundled or compiled to
 * CommonJS reads those at each call: the functions are kept that were found when this module was loaded.
 */
const [systemImmediate, systemTimeout, systemClear] = [setImmediate, setTimeout, clearTimeout]

/** Cancels a timer. Cancelling it twice, or after it fired, does nothing. */
export type Cancel = () => void

export interface Timers {
  /** Calls `callback` once after `ms`, however long that is. With `idle` it does not keep the process alive. */
  after(ms: number, callback: () => void, options?: { readonly idle?: boolean }): Cancel
  /** Calls `callback` at the end of this turn of the event loop: what is gathered until then is one batch. */
  soon(callback: () => void): void
}

/**
 * `setTimeout` fires at once past 2^31 - 1 ms, so long waits are split into steps of an hour. It counts whole milliseconds and
 * can fire a fraction of one early: the remainder is waited for too.
 */
const STEP_MAX_MS = 3_600_000

export const systemTimers: Timers = {
  after(ms, callback, options) {
    const start = performance.now()
    let timer: NodeJS.Timeout | undefined
    const step = (): void => {
      const left = ms - (performance.now() - start)
      if (left <= 0 && timer !== undefined) return callback()
      timer = systemTimeout(step, Math.min(STEP_MAX_MS, Math.max(0, Math.ceil(left))))
      if (options?.idle) timer.unref()
    }
    step()
    return () => systemClear(timer)
  },
  soon: (callback) => {
    systemImmediate(callback)
  },
}

/** Calls `callback` after `ms`, or at the end of this turn when `ms` is 0; does not keep the process alive. */
export function afterIdle(timers: Timers, ms: number, callback: () => void): Cancel {
  if (ms > 0) return timers.after(ms, callback, { idle: true })
  let cancelled = false
  timers.soon(() => {
    if (!cancelled) callback()
  })
  return () => {
    cancelled = true
  }
}

/** Resolves when the promise has settled, either way, or after `ms`. */
export function settledWithin(timers: Timers, promise: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = timers.after(ms, resolve)
    const settled = (): void => {
      cancel()
      resolve()
    }
    promise.then(settled, settled)
  })
}
