import { requireContext } from '../context/ambient.js'
import { EffectTypeError, describe } from '../errors.js'
import type { Computed } from '../graph/computed.js'
import { computed } from '../graph/computed.js'
import type { Signal } from '../graph/signal.js'
import { signal } from '../graph/signal.js'
import type { Result } from '../result.js'
import { failure, success, unwrap } from '../result.js'
import type { Spin } from '../spins/spin.js'
import { SpinCell } from '../spins/spin.js'
import { waitFor } from '../spins/wait.js'
import { resting } from './join.js'

/**
 * The last result of a spin as a computed, for effects, computeds and readers of values, which cannot wait. The spin runs
 * while this is observed, once for all observers, and rests when nothing else observes it either. Before its first result the value is `initial`; while nothing observes
 * it, the value is the last one it had. An error of the spin is thrown where it is read.
 *
 * ```ts
 * import { effect, latest, sample, type Signal } from 'millrace/reactive'
 *
 * const draw = (progress: Signal<number>, bar: (done: number) => void): (() => void) => {
 *   const paced = latest(sample(progress, 100), 0)
 *   return effect(() => bar(paced.get())) // At most ten times a second, however often `progress` is written.
 * }
 * ```
 */
export function latest<T>(source: Spin<T>): Computed<T | undefined>
export function latest<T, I>(source: Spin<T>, initial: I): Computed<T | I>
export function latest<T, I>(source: Spin<T>, initial?: I): Computed<T | I | undefined> {
  const context = requireContext('latest')
  if (!((source as unknown) instanceof SpinCell)) {
    throw new EffectTypeError(`latest takes a spin, got ${describe(source)}; a signal or computed can be read as it is`)
  }
  resting(source)
  const whileObserved = (): (() => void) => {
    let isEnded = false
    const follower = context.spawn(function* () {
      let result: Result<T>
      try {
        result = success(yield* waitFor(source))
      } catch (error) {
        if (isEnded) throw error
        result = failure(error)
      }
      last.set(result) // In a fork, to the fork: not to the signal that the feed is given.
    })
    return () => {
      isEnded = true
      follower.dispose()
    }
  }
  // Each delivery is a change: the spin decides by its own `equals` what one is.
  const last: Signal<Result<T> | undefined> = signal(undefined as Result<T> | undefined, {
    equals: false,
    whileObserved,
  })
  return computed(() => {
    const result = last.get()
    return result === undefined ? initial : unwrap(result)
  })
}
