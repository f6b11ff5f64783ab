import { checkDelay } from '../executors/executors.js'
import type { Result } from '../result.js'
import { failure, success } from '../result.js'
import type { Spin, SpinNode } from '../spins/spin.js'
import { spin } from '../spins/spin.js'
import type { Waitable } from '../spins/wait.js'
import { waitFor } from '../spins/wait.js'
import {
  JoinRequest,
  asSpins,
  cancelOthers,
  checkEach,
  checkSources,
  firstEnded,
  firstFailedOrAll,
  giveBackTaken,
  nodesOf,
  resultOf,
} from './join.js'
import { sleep } from './sleep.js'

/**
 * Runs all and gives their values in order; fails with the first error and cancels the rest. It stays reactive: when
 * one of them has a new value, so has this. Of nothing it gives an empty list.
 *
 * ```ts
 * import { parallel, spin, waitFor, type Spin } from 'millrace/reactive'
 *
 * const sum = (a: Spin<number>, b: Spin<number>) => spin(function* () {
 *   const [x, y] = yield* waitFor(parallel<[number, number]>(a, b))
 *   return x + y
 * })
 * ```
 */
export function parallel<T extends readonly unknown[]>(...sources: { [K in keyof T]: Waitable<T[K]> }): Spin<T> {
  checkEach('parallel', sources)
  return spin(function* () {
    if (sources.length === 0) return [] as unknown as T
    const spins = asSpins(sources)
    const children = nodesOf(spins)
    const decided = yield* new JoinRequest(children, firstFailedOrAll)
    if (children[decided]?.result?.ok !== true) {
      cancelOthers(children, children[decided], 'another one of the parallel failed')
      yield* waitFor(spins[decided] as Spin<unknown>)
    }
    const values: unknown[] = []
    for (const each of spins) values.push(yield* waitFor(each))
    return values as unknown as T
  })
}

/**
 * Gives the first that ends, value or error, and cancels the others. It is decided once: later changes of the winner
 * do not reopen it.
 */
export function race<T>(...sources: Waitable<T>[]): Spin<T> {
  checkSources('race', sources)
  return spin(function* () {
    const children = nodesOf(asSpins(sources))
    let winner: SpinNode | undefined
    try {
      // No dependency is recorded, so nothing can make this run again.
      winner = children[yield* new JoinRequest(children, firstEnded)] as SpinNode
    } finally {
      giveBackTaken(sources, children, winner)
    }
    cancelOthers(children, winner, 'another one won the race')
    return resultOf(winner) as T
  })
}

/** Gives what the source gives, or `fallback` when `ms` have passed first; the loser is cancelled. */
export function timeout<T, F>(source: Waitable<T>, ms: number, fallback: F): Spin<T | F> {
  checkSources('timeout', [source])
  checkDelay(ms)
  return spin(function* () {
    const [spun] = asSpins([source]) as [Spin<T>]
    const children = nodesOf([spun, sleep(ms)])
    let first: number | undefined
    try {
      first = yield* new JoinRequest(children, firstEnded)
    } finally {
      if (first !== 0) giveBackTaken([source], children)
    }
    cancelOthers(children, children[first], 'the timeout was decided')
    return first === 0 ? yield* waitFor(spun) : fallback
  })
}

/** Always succeeds, with how the spin ended. */
export function attempt<T>(source: Spin<T>): Spin<Result<T>> {
  checkSources('attempt', [source])
  return spin(function* () {
    try {
      return success(yield* waitFor(source)) as Result<T>
    } catch (error) {
      return failure(error)
    }
  })
}
