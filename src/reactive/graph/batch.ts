import { requireContext } from '../context/ambient.js'
import type { ReactiveContext } from '../context/context.js'
import { describe } from '../errors.js'
import type { SignalNode } from './signal.js'
import { isEqual, refuseInComputed } from './signal.js'

/** The writes of an open batch, in the order of each signal's first write. */
export class Batch {
  #written: Map<SignalNode, { readonly value: unknown; readonly stamp: number }> | undefined

  /** Called before each write; keeps the value that the signal had before the first one. */
  note(node: SignalNode): void {
    const written = (this.#written ??= new Map())
    if (!written.has(node)) written.set(node, { value: node.value, stamp: node.stamp })
  }

  /** Announces all written signals as one change. A signal that has its old value again gets its old stamp back. */
  announce(context: ReactiveContext): void {
    if (this.#written === undefined) return
    const generation = context.openGeneration()
    for (const [node, before] of this.#written) {
      if (isEqual(context, node.equals, before.value, node.value, node)) node.stamp = before.stamp
      context.announceChange(node, generation)
    }
  }
}

/**
 * Makes several writes one change: dependents run at most once and never see a part of it.
 *
 * ```ts
 * import { batch, type Signal } from 'millrace/reactive'
 *
 * const resize = (w: Signal<number>, h: Signal<number>): void =>
 *   batch(() => {
 *     w.set(4)
 *     h.set(5)
 *   })
 * ```
 */
export function batch<R>(f: () => R): R {
  const context = requireContext('batch')
  if (typeof f !== 'function') throw new TypeError(`batch: expected a function, got ${describe(f)}`)
  refuseInComputed(context, 'batch')
  const result = batchIn(context, f)
  if (result instanceof Promise) {
    result.catch(() => undefined) // The call throws, so no caller can handle a rejection of this promise.
    throw new TypeError('batch is synchronous: f returned a promise; await first, then write in one batch')
  }
  return result
}

/** Runs `f` in a batch, or in the open one if there is one. Writes are announced even when `f` throws. */
export function batchIn<R>(context: ReactiveContext, f: () => R): R {
  if (context.batch !== undefined) return f()
  const opened = new Batch()
  context.batch = opened
  try {
    return f()
  } finally {
    context.batch = undefined
    opened.announce(context)
    context.trigger()
  }
}
