import { ComputedNode } from '../graph/computed.js'
import type { Cell } from '../graph/cell.js'
import { requireIn } from '../graph/cell.js'
import type { Deferred, DeferredNode } from '../mailboxes/deferred.js'
import { DeferredCell } from '../mailboxes/deferred.js'
import { EffectTypeError, describe } from '../errors.js'
import type { Mailbox, MailboxNode } from '../mailboxes/mailbox.js'
import { MailboxCell } from '../mailboxes/mailbox.js'
import type { Op } from './request.js'
import { PARK, Request, replay } from './request.js'
import type { Result } from '../result.js'
import { failure, success } from '../result.js'
import type { Run } from './run.js'
import { SignalNode } from '../graph/signal.js'
import { SpinCell } from './spin.js'
import type { Spin } from './spin.js'
import { FreshWait, SpinWait } from './spin-wait.js'

/** What a body can wait for. */
export type Waitable<T> = Spin<T> | Deferred<T> | Mailbox<T> | PromiseLike<T>

/**
 * Waits in a body: for a spin's result, which is then a dependency; for a deferred's value; for the next message of a
 * mailbox; or for a promise.
 *
 * ```ts
 * import { spin, waitFor, type Spin } from 'millrace/reactive'
 *
 * const both = (a: Spin<number>, b: Spin<number>) => spin(function* () {
 *   return (yield* waitFor(a)) + (yield* waitFor(b))
 * })
 * ```
 */
export function waitFor<T>(target: Waitable<T>): Op<T> {
  if (target instanceof SpinCell) {
    return target.node.isSpent === undefined ? new SpinWait<T>(target) : new FreshWait<T>(target)
  }
  if (target instanceof DeferredCell) return new DeferredWait<T>(target)
  if (target instanceof MailboxCell) return new MessageWait<T>(target)
  if (isPromise(target)) return new PromiseWait<T>(target)
  return new InvalidWait<T>(target)
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return false
  return typeof (value as { then?: unknown }).then === 'function'
}

/** Returns a promise as it is, and wraps another thenable, which may settle twice, synchronously, or throw. */
export function settled(thenable: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(thenable)
}

export function refuseForeign(run: Run, cell: Cell): void {
  if (cell.home !== run.context) requireIn(cell, run.context, 'waitFor')
}

/** A value that cannot be waited for: throws at the yield, where the body can catch the error. */
class InvalidWait<T> extends Request<T> {
  readonly #target: unknown

  constructor(target: unknown) {
    super('waitFor')
    this.#target = target
  }

  protected override perform(): never {
    const target = this.#target
    if (target instanceof SignalNode || target instanceof ComputedNode) {
      throw new EffectTypeError('waitFor takes a spin, deferred, mailbox or promise; use track for signals')
    }
    throw new EffectTypeError(`waitFor takes a spin, deferred, mailbox or promise, got ${describe(target)}`)
  }
}

class DeferredWait<T> extends Request<T> {
  readonly #cell: DeferredCell
  #node: DeferredNode

  constructor(cell: DeferredCell) {
    super('waitFor')
    this.#cell = cell
    this.#node = cell.node
  }

  protected override perform(run: Run): unknown {
    refuseForeign(run, this.#cell)
    const entry = run.nextEntry('wait', '', this.#cell.node)
    if (entry.isAnswered) return replay(entry)
    const node = (this.#node = run.context.nodeFor(this.#cell.node))
    const { result } = node
    if (result !== undefined) {
      run.log.settle(entry, !result.ok, result.ok ? result.value : result.error)
      return replay(entry)
    }
    this.entry = entry
    node.waiters.add(this)
    run.context.waiterCount++
    return PARK
  }

  override release(): void {
    if (this.#node.waiters.delete(this)) this.#node.context.waiterCount--
  }
}

class MessageWait<T> extends Request<T> {
  readonly #cell: MailboxCell
  #node: MailboxNode

  constructor(cell: MailboxCell) {
    super('waitFor')
    this.#cell = cell
    this.#node = cell.node
  }

  protected override perform(run: Run): unknown {
    refuseForeign(run, this.#cell)
    const entry = run.nextEntry('take', '', this.#cell.node)
    if (entry.isAnswered) return replay(entry)
    const node = (this.#node = run.context.nodeFor(this.#cell.node))
    if (node.hasMessage) {
      const message = node.take(entry)
      run.log.settle(entry, false, message)
      return message
    }
    this.entry = entry
    node.waiters.add(this)
    run.context.waiterCount++
    return PARK
  }

  override release(): void {
    if (this.#node.waiters.delete(this)) this.#node.context.waiterCount--
    if (this.arrival !== undefined) this.undelivered(this.arrival)
  }

  /** The run of the taker has ended: the message goes back, and to the next waiting taker. */
  override undelivered(result: Result<unknown>): void {
    if (!result.ok || this.entry === undefined) return
    this.#node.putBack(this.entry, result.value)
    this.#node.serve()
  }
}

class PromiseWait<T> extends Request<T> {
  readonly #promise: PromiseLike<unknown>

  constructor(promise: PromiseLike<unknown>) {
    super('waitFor')
    this.#promise = promise
    // A replay takes the answer from the log, so a rejection of this new promise has no other handler. Another thenable is
    // left alone until its answer is needed: a query builder runs its query when `then` is called.
    if (promise instanceof Promise) promise.catch(() => undefined)
  }

  protected override perform(run: Run): unknown {
    // Each run creates a new promise, so the promise cannot identify the entry.
    const entry = run.nextEntry('wait', 'promise', undefined)
    if (entry.isAnswered) return replay(entry)
    this.entry = entry
    settled(this.#promise).then(
      (value) => this.arrive(success(value)),
      (error: unknown) => this.arrive(failure(error)),
    )
    return PARK
  }
}
