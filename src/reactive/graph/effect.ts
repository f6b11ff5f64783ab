import { requireContext, swapContext } from '../context/ambient.js'
import { batchIn } from './batch.js'
import type { ReactiveContext } from '../context/context.js'
import { ContextStoppedError, CycleError, describe } from '../errors.js'
import {
  CAUSED_MAX,
  DISPOSED,
  EFFECT,
  GraphNode,
  MARKED,
  RUNNING,
  acceptDeps,
  dropAfter,
  dropUnread,
  hasChangedDeps,
} from './graph.js'
import { refuseInComputed } from './signal.js'

/** What an effect may return: a function that is called before the next run and at the end. */
export type Cleanup = () => void

/**
 * Runs `f` now and again whenever something it read has changed; returns the function that ends it. Its writes are one
 * batch. What it returns, if a function, is called before the next run and at the end. An effect made inside another
 * effect or inside a spin's body ends with the run that made it.
 *
 * ```ts
 * import { createSimulation, effect, signal } from 'millrace/reactive'
 *
 * const ctx = createSimulation()
 * ctx.enter(() => {
 *   const name = signal('ann')
 *   const stop = effect(() => console.log(name.get()))
 *   name.set('bob')
 *   stop()
 * })
 * ```
 */
export function effect(f: () => void | Cleanup): () => void {
  const context = requireContext('effect')
  refuseInComputed(context, 'effect')
  checkEffect(f)
  if (context.state !== 'running') throw new ContextStoppedError('effect', context.state)
  const node = new EffectNode(context, f, ownerOf(context))
  try {
    node.run()
  } catch (error) {
    // The caller gets no function to end it with, so it ends here.
    node.dispose()
    throw error
  }
  return () => node.dispose()
}

const UNTRACKABLE = /^\[object (Async|Generator)/

/** What an async function reads after its first await would not be heard of, and its clean-up would be a promise. */
function checkEffect(f: unknown): void {
  if (typeof f !== 'function') throw new TypeError(`effect: expected a function, got ${describe(f)}`)
  if (!UNTRACKABLE.test(Object.prototype.toString.call(f))) return
  throw new TypeError(
    `effect: expected a plain function, got ${describe(f)}, which is async or a generator; ` +
      'to wait for something use ctx.spawn(function* () { ... })',
  )
}

/** Who an effect made now belongs to: the effect that is running, or the run of a spin. */
function ownerOf(context: ReactiveContext): EffectOwner | undefined {
  return context.graph.active instanceof EffectNode ? context.graph.active : context.activeRun
}

/** Something that ends the effects made by its last run. */
export interface EffectOwner {
  owned: EffectNode[] | undefined
}

export class EffectNode extends GraphNode implements EffectOwner {
  readonly kind = EFFECT
  readonly context: ReactiveContext
  readonly #f: () => void | Cleanup
  readonly owner: EffectOwner | undefined
  owned: EffectNode[] | undefined
  /** Generations its writes have caused since the queue was last empty. */
  caused = 0
  #cleanup: Cleanup | undefined

  constructor(context: ReactiveContext, f: () => void | Cleanup, owner: EffectOwner | undefined) {
    super(context.graph)
    this.context = context
    this.#f = f
    this.owner = owner
    if (owner !== undefined) (owner.owned ??= []).push(this)
  }

  readonly addr = 'effect'

  /** Runs if something it read really changed; the effect that owns it goes first and may end it. */
  refresh(): void {
    if (this.owner instanceof EffectNode && (this.owner.flags & MARKED) !== 0) this.owner.refresh()
    if ((this.flags & MARKED) === 0 || (this.flags & (DISPOSED | RUNNING)) !== 0) return
    this.flags &= ~MARKED
    if (this.caused > CAUSED_MAX) return acceptDeps(this)
    if (!hasChangedDeps(this)) return
    try {
      this.run()
    } catch (error) {
      this.context.fault('event-error', 'effect', error)
    }
  }

  run(): void {
    const { context } = this
    const before = swapContext(context)
    const cause = context.cause
    context.cause = this
    try {
      batchIn(context, () => this.#runOnce())
    } finally {
      context.cause = cause
      swapContext(before)
    }
  }

  /** Gives up after too many runs it caused itself: until the queue is empty it does not run again. */
  giveUp(): void {
    const message = 'an effect keeps changing what it reads; let its writes settle, or read with peek()'
    this.context.fault('event-error', 'effect', new CycleError([this.addr, this.addr], message))
  }

  dispose(): void {
    if ((this.flags & DISPOSED) !== 0) return
    this.flags |= DISPOSED
    this.graph.nodeCount--
    dropAfter(this, undefined)
    disposeOwned(this)
    this.#callCleanup()
  }

  #runOnce(): void {
    disposeOwned(this)
    this.#callCleanup()
    if ((this.flags & DISPOSED) !== 0) return
    const { graph } = this
    const { active, activeRun } = graph
    graph.active = this
    graph.activeRun = graph.drawRun()
    this.depsTail = undefined
    this.flags |= RUNNING
    try {
      const cleanup = this.#f()
      if (typeof cleanup === 'function') {
        this.#cleanup = cleanup
        this.context.cleanups.add(this)
      }
    } finally {
      this.flags &= ~RUNNING
      graph.active = active
      graph.activeRun = activeRun
      this.#endRun()
    }
  }

  #endRun(): void {
    if ((this.flags & DISPOSED) === 0) return dropUnread(this)
    // It ended itself while running: drop what it read after that too.
    dropAfter(this, undefined)
    disposeOwned(this)
    this.#callCleanup()
  }

  #callCleanup(): void {
    const cleanup = this.#cleanup
    if (cleanup === undefined) return
    this.#cleanup = undefined
    this.context.cleanups.delete(this)
    const { active } = this.graph
    this.graph.active = undefined
    const before = swapContext(this.context)
    try {
      cleanup()
    } catch (error) {
      this.context.fault('event-error', 'effect cleanup', error)
    } finally {
      this.graph.active = active
      swapContext(before)
    }
  }
}

/** Ends what an owner's last run has made. */
export function disposeOwned(owner: EffectOwner): void {
  const owned = owner.owned
  if (owned === undefined) return
  owner.owned = undefined
  for (const child of owned) child.dispose()
}
