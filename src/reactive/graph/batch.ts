import { requireContext } from '../context/ambient.js'
import type { ReactiveContext } from '../context/context.js'
import { describe } from '../errors.js'
import type { Generation } from '../drain/events.js'
import type { SignalNode } from './signal.js'
import { refuseInComputed } from './signal.js'

/** The writes of an open batch, in the order of each signal's first write. */
export class Batch {
  #written: Map<SignalNode, { readonly value: unknown; readonly stamp: number }> | undefined

  get hasWrites(): boolean {
    return this.#written !== undefined
  }

  /** Called before each write; keeps the value that the signal had before the first one. */
  note(node: SignalNode): void {
    const written = (this.#written ??= new Map())
    if (!written.has(node)) written.set(node, { value: node.value, stamp: node.stamp })
  }

  /**
   * Announces all written signals as one change. A signal that has its old value again gets its old stamp back; one without
   * observers needs no event.
   */
  announce(context: ReactiveContext): void {
    const written = this.#written
    if (written === undefined) return
    this.#written = undefined
    let generation: Generation | undefined
    for (const [node, before] of written) {
      if (node.isSame(context, before.value, node.value)) node.stamp = before.stamp
      if (node.subs === undefined && !context.isHeardEverywhere) continue
      context.announceChange(node, (generation ??= { number: 0 }))
    }
    if (generation === undefined) context.generation++
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
function batchIn<R>(context: ReactiveContext, f: () => R): R {
  const opened = openBatch(context)
  if (opened === undefined) return f()
  try {
    return f()
  } finally {
    closeBatch(context, opened)
  }
}

/** Opens a batch; returns undefined when one is open, which the writes then join. */
export function openBatch(context: ReactiveContext): Batch | undefined {
  if (context.batch !== undefined) return undefined
  // Every run of an effect is a batch, so the last one is used again.
  const opened = context.spareBatch ?? new Batch()
  context.spareBatch = undefined
  context.batch = opened
  return opened
}

export function closeBatch(context: ReactiveContext, opened: Batch): void {
  context.batch = undefined
  if (opened.hasWrites) opened.announce(context)
  context.spareBatch = opened
  context.trigger()
}
