import type { ReactiveContext } from '../context/context.js'
import { describe } from '../errors.js'
import type { CancelTimer } from '../host.js'
import type { Op, Wake } from './request.js'
import { PARK, Request, replay } from './request.js'
import { failure, success } from '../result.js'
import type { Run } from './run.js'
import { isPromise, settled } from './wait.js'

/**
 * Performs an external action once: its outcome is recorded, and a re-run that keeps this entry gets the recorded outcome
 * without calling `f` again. The signal is aborted when the run is superseded or cancelled.
 *
 * ```ts
 * import { read, spin, step, type Signal } from 'millrace/reactive'
 *
 * const page = (url: Signal<string>) => spin(function* () {
 *   const address = yield* read(url)
 *   return yield* step('fetch', async (signal) => (await fetch(address, { signal })).text())
 * })
 * ```
 */
export function step<T>(key: string, f: (signal: AbortSignal) => T | PromiseLike<T>): Op<T> {
  if (typeof key !== 'string') throw new TypeError(`step: key must be a string, got ${describe(key)}`)
  if (typeof f !== 'function')
    throw new TypeError(`step ${JSON.stringify(key)}: expected a function, got ${describe(f)}`)
  return new StepRequest<T>(key, f)
}

class StepRequest<T> extends Request<T> {
  readonly #key: string
  readonly #f: (signal: AbortSignal) => unknown
  #abort: AbortController | undefined

  constructor(key: string, f: (signal: AbortSignal) => unknown) {
    super('step')
    this.#key = key
    this.#f = f
  }

  protected override perform(run: Run): unknown {
    const entry = run.nextEntry('step', this.#key, undefined)
    if (entry.isAnswered) return replay(entry)
    this.#abort = new AbortController()
    let outcome: unknown
    try {
      outcome = this.#f(this.#abort.signal)
    } catch (error) {
      run.log.settle(entry, true, error)
      throw error
    }
    if (!isPromise(outcome)) {
      run.log.settle(entry, false, outcome)
      return outcome
    }
    this.entry = entry
    settled(outcome).then(
      (value) => this.arrive(success(value)),
      (error: unknown) => this.arrive(failure(error)),
    )
    return PARK
  }

  override release(): void {
    this.#abort?.abort()
  }
}

/** Parks for `ms`; the timer is cancelled when the run ends earlier. */
export class SleepRequest extends Request<void> {
  readonly #ms: number
  #cancel: CancelTimer | undefined
  #at = 0
  #order = 0

  constructor(ms: number) {
    super('sleep')
    this.#ms = ms
  }

  override get wake(): Wake | undefined {
    return this.entry && { addr: this.entry.addr, at: this.#at, order: this.#order }
  }

  override rearm(): void {
    const context = this.run?.context
    if (context === undefined || this.arrival !== undefined) return
    this.#cancel?.()
    this.#arm(context, Math.max(0, this.#at - context.now()))
  }

  protected override perform(run: Run): unknown {
    const entry = run.nextEntry('sleep', '', undefined)
    if (entry.isAnswered) return replay(entry)
    this.entry = entry
    this.#arm(run.context, run.context.takeWake(run.node, entry) ?? this.#ms)
    return PARK
  }

  #arm(context: ReactiveContext, ms: number): void {
    this.#at = context.now() + ms
    this.#order = context.drawArming()
    this.#cancel = context.timers.arm(ms, () => this.arrive(success(undefined)))
  }

  override release(): void {
    this.#cancel?.()
  }
}

/** The context's time, recorded: a re-run that keeps this entry gets the same time. */
export class NowRequest extends Request<number> {
  constructor() {
    super('now')
  }

  protected override perform(run: Run): unknown {
    const entry = run.nextEntry('now', '', undefined)
    if (!entry.isAnswered) run.log.settle(entry, false, run.context.now())
    return replay(entry)
  }
}

/**
 * Registers `f` to be called when this run is cancelled or its spin disposed.
 *
 * ```ts
 * import { onCancel, spin, waitFor, type Deferred } from 'millrace/reactive'
 *
 * const guarded = (go: Deferred<void>) => spin(function* () {
 *   yield* onCancel(() => console.log('never mind'))
 *   yield* waitFor(go)
 * })
 * ```
 */
export function onCancel(f: () => void): Op<void> {
  if (typeof f !== 'function') throw new TypeError(`onCancel: expected a function, got ${describe(f)}`)
  return new CancelHook(f)
}

class CancelHook extends Request<void> {
  readonly #f: () => void

  constructor(f: () => void) {
    super('onCancel')
    this.#f = f
  }

  protected override perform(run: Run): void {
    ;(run.cancelHooks ??= []).push(this.#f)
  }
}
