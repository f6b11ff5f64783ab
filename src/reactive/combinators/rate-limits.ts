import { requireContext } from '../context/ambient.js'
import { Cell } from '../graph/cell.js'
import type { ReactiveContext } from '../context/context.js'
import { describe } from '../errors.js'
import { checkDelay } from '../executors/executors.js'
import { resting } from './join.js'
import type { Op } from '../spins/request.js'
import { Request, replay } from '../spins/request.js'
import type { Run } from '../spins/run.js'
import { SignalNode } from '../graph/signal.js'
import type { Spin } from '../spins/spin.js'
import { SpinCell, spin } from '../spins/spin.js'
import { NowRequest, SleepRequest, onCancel } from '../spins/step.js'
import type { Readable, Source } from '../spins/track.js'
import { read } from '../spins/track.js'
import { waitFor } from '../spins/wait.js'

/**
 * Spins that deliver the values of a source at a lower rate. Each delivery is a new result; the spins that wait for it
 * run again. They rely on replay: a change of the source cuts the log at the read, which drops the sleep after it, and
 * the body starts a new sleep. They rest while nothing observes them: no spin waits for them, no call of `run` does, and
 * they were not spawned. Share one among many readers.
 */

/**
 * Delivers the latest value once the source has been quiet for `ms`.
 *
 * ```ts
 * import { debounce, spin, step, waitFor, type Signal } from 'millrace/reactive'
 *
 * const results = (query: Signal<string>, search: (q: string) => Promise<string[]>) => spin(function* () {
 *   const q = yield* waitFor(debounce(query, 300))
 *   return yield* step('search', () => search(q))
 * })
 * ```
 */
export function debounce<T>(source: Source<T>, ms: number): Spin<T> {
  checkDelay(ms)
  return resting(
    spin(function* () {
      const value = yield* valueOf(source)
      yield* new SleepRequest(ms)
      return value
    }),
  )
}

/** Delivers the latest value every `ms`, if it has changed since the last delivery. */
export function sample<T>(source: Source<T>, ms: number): Spin<T> {
  checkDelay(ms)
  const context = requireContext('sample')
  return resting(
    spin(function* () {
      const startedAt = yield* new NowRequest()
      const value = yield* valueOf(source)
      const passed = context.now() - startedAt
      yield* new SleepRequest(ms === 0 ? 0 : (Math.floor(passed / ms) + 1) * ms - passed)
      return value
    }),
  )
}

/**
 * Delivers at most `hz` times a second: one interval after the first value since the last delivery. `merge` folds all
 * values since then; its first accumulator is undefined.
 */
export function throttle<T, A>(source: Source<T>, hz: number, merge: (acc: A | undefined, value: T) => A): Spin<A> {
  if (!(Number.isFinite(hz) && hz > 0))
    throw new RangeError(`throttle: hz must be a number above 0, got ${describe(hz)}`)
  if (typeof merge !== 'function') throw new TypeError(`throttle: merge must be a function, got ${describe(merge)}`)
  requireContext('throttle')
  const throttled = spin(
    function* () {
      const context = requireContext('throttle')
      const fold = context.openCell('mailbox', 'fold', (addr) => new FoldCell(context, addr, source)) as FoldCell
      yield* onCancel(() => fold.dropped())
      const { openedAt } = yield* new FoldRequest(fold, yield* valueOf(source))
      yield* new SleepRequest(Math.max(0, openedAt + 1000 / hz - context.now()))
      return fold.take(merge as (acc: unknown, value: unknown) => unknown) as A
    },
    { equals: false },
  )
  return resting(throttled)
}

/** The values since the last delivery, and when the first of them came. */
interface Window {
  readonly openedAt: number
  readonly values: readonly unknown[]
}

/** Adds a value to the fold, once: the log has the window, so that a replay in a fork or restored context gets it back. */
class FoldRequest extends Request<Window> {
  readonly #fold: FoldCell
  readonly #value: unknown

  constructor(fold: FoldCell, value: unknown) {
    super('throttle')
    this.#fold = fold
    this.#value = value
  }

  protected override perform(run: Run): unknown {
    const entry = run.nextEntry('step', 'fold', undefined)
    if (entry.isAnswered) this.#fold.recover(entry.value as Window)
    else run.log.settle(entry, false, this.#fold.add(this.#value, run.context.now()))
    return replay(entry)
  }
}

/** The values since the last delivery. It watches a signal, so it gets every write, also several in one drain. */
class FoldCell extends Cell {
  #values: unknown[] = []
  #openedAt: number | undefined
  readonly #source: unknown
  readonly #unwatch: (() => void) | undefined
  #hasWatchedValue = false

  constructor(home: ReactiveContext, addr: string, source: unknown) {
    super(home, addr)
    this.#source = source
    if (source instanceof SignalNode) this.#unwatch = source.watch(this, (value) => this.#onWrite(value))
  }

  add(value: unknown, now: number): Window {
    if (!this.#hasWatchedValue) this.#values.push(value)
    this.#hasWatchedValue = false
    this.#openedAt ??= now
    return { openedAt: this.#openedAt, values: [...this.#values] }
  }

  forkTo(context: ReactiveContext): FoldCell {
    const copy = new FoldCell(context, this.addr, this.#source)
    if (this.#openedAt !== undefined) copy.recover({ openedAt: this.#openedAt, values: this.#values })
    return copy
  }

  /** Continues a window of another cell: the one of the parent, or the stored one. */
  recover({ openedAt, values }: Window): void {
    if (this.#openedAt !== undefined) return
    this.#openedAt = openedAt
    this.#values = [...values]
  }

  take(merge: (acc: unknown, value: unknown) => unknown): unknown {
    const values = this.#values
    this.#values = []
    this.#openedAt = undefined
    return values.reduce((acc, value) => merge(acc, value), undefined)
  }

  override dropped(): void {
    this.#unwatch?.()
  }

  #onWrite(value: unknown): void {
    this.#values.push(value)
    this.#hasWatchedValue = true
  }
}

function valueOf<T>(source: Source<T>): Op<T> {
  return (source as unknown) instanceof SpinCell ? waitFor(source as Spin<T>) : read(source as Readable<T>)
}
