import { checkDelay } from '../executors/executors.js'
import type { Op } from '../spins/request.js'
import type { Spin } from '../spins/spin.js'
import { spin } from '../spins/spin.js'
import { SleepRequest } from '../spins/step.js'

/**
 * Completes after `ms` milliseconds of the context's time, with `value` if given.
 *
 * ```ts
 * import { sleep, spin, waitFor } from 'millrace/reactive'
 *
 * const later = () => spin(function* () {
 *   yield* waitFor(sleep(1000))
 *   return 'done'
 * })
 * ```
 */
export function sleep(ms: number): Spin<void>
export function sleep<T>(ms: number, value: T): Spin<T>
export function sleep<T>(ms: number, value?: T): Spin<T | undefined> {
  checkDelay(ms)
  // One generator function for all: V8 remembers each one that is created until the next collection.
  return spin(() => sleeping(ms, value))
}

function* sleeping<T>(ms: number, value: T): Op<T> {
  yield* new SleepRequest(ms)
  return value
}
