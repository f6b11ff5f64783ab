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
  returnTakenMessages,
  nodesOf,
  resultOf,
} from './join.js'
import { sleep } from './sleep.js'

/**
 * Runs all sources and completes with their values in order. When one fails, it fails with that error and cancels the
 * rest. It stays reactive: a new value of a source gives a new result. Without sources the result is an empty list.
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
      cancelOthers(children, children[decided], 'another source of parallel failed')
      yield* waitFor(spins[decided] as Spin<unknown>)
    }
    const values: unknown[] = []
    for (const each of spins) values.push(yield* waitFor(each))
    return values as unknown as T
  })
}

/**
 * Completes with the first source that ends, value or error, and cancels the others. It is decided once: later changes
 * of the winner do not run it again.
 */
export function race<T>(...sources: Waitable<T>[]): Spin<T> {
  checkSources('race', sources)
  return spin(function* () {
    const children = nodesOf(asSpins(sources))
    let winner: SpinNode | undefined
    try {
      // The join records no dependency, so no change can run this body again.
      winner = children[yield* new JoinRequest(children, firstEnded)] as SpinNode
    } finally {
      returnTakenMessages(sources, children, winner)
    }
    cancelOthers(children, winner, 'another source won the race')
    return resultOf(winner) as T
  })
}

/** Completes with the source, or with `fallback` when `ms` pass first; cancels the loser. */
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
      if (first !== 0) returnTakenMessages([source], children)
    }
    cancelOthers(children, children[first], 'timeout: the other side ended first')
    return first === 0 ? yield* waitFor(spun) : fallback
  })
}

/** Always completes with a value: the outcome of the spin. */
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
