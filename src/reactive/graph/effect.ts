import { requireContext, swapContext } from '../context/ambient.js'
import { closeBatch, openBatch } from './batch.js'
import type { ReactiveContext } from '../context/context.js'
import { ContextStoppedError, CycleError, describe } from '../errors.js'
import {
  CAUSED_MAX,
  DISPOSED,
  EFFECT,
  MARKED,
  ObserverNode,
  RUNNING,
  acceptDeps,
  dropAfter,
  dropUnread,
  hasChangedDeps,
} from './graph.js'
import { isDeferredFunction } from './latest-values.js'
import { refuseInComputed } from './signal.js'

/** What an effect may return: a function that is called before the next run and on dispose. */
export type Cleanup = () => void

/**
 * Runs `f` now, and again whenever something it read has changed; returns a function that disposes it. Its writes are
 * one batch. If `f` returns a function, that is called before the next run and on dispose. An effect created inside
 * another effect or inside a spin's body is disposed when the run that created it ends.
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
    // The caller gets no function to dispose the effect with.
    node.dispose()
    throw error
  }
  return () => node.dispose()
}

/** Reads after the first await of an async function are not tracked, and its clean-up would be a promise. */
function checkEffect(f: unknown): void {
  if (typeof f !== 'function') throw new TypeError(`effect: expected a function, got ${describe(f)}`)
  if (!isDeferredFunction(f)) return
  throw new TypeError(
    `effect: expected a plain function, got ${describe(f)}, which is async or a generator; ` +
      'to wait for something use ctx.spawn(function* () { ... })',
  )
}

/** The owner of an effect that is created now: the running effect, or the run of a spin. */
function ownerOf(context: ReactiveContext): EffectOwner | undefined {
  return context.graph.active instanceof EffectNode ? context.graph.active : context.activeRun
}

/** Disposes the effects that its last run created. */
export interface EffectOwner {
  owned: EffectNode[] | undefined
}

export class EffectNode extends ObserverNode implements EffectOwner {
  readonly #f: () => void | Cleanup
  readonly owner: EffectOwner | undefined
  owned: EffectNode[] | undefined = undefined
  #cleanup: Cleanup | undefined = undefined

  constructor(context: ReactiveContext, f: () => void | Cleanup, owner: EffectOwner | undefined) {
    super(context.graph, EFFECT)
    this.#f = f
    this.owner = owner
    if (owner !== undefined) (owner.owned ??= []).push(this)
  }

  get context(): ReactiveContext {
    return this.graph.context
  }

  get addr(): string {
    return 'effect'
  }

  /** Runs if something it read has changed. The owning effect is refreshed first, because it may dispose this one. */
  refresh(): void {
    const { owner } = this
    if (owner !== undefined && owner instanceof EffectNode && (owner.flags & MARKED) !== 0) owner.refresh()
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
    const { cause } = context
    context.cause = this
    const opened = openBatch(context)
    try {
      if (this.owned !== undefined) disposeOwned(this)
      if (this.#cleanup !== undefined) this.callCleanup()
      if ((this.flags & DISPOSED) === 0) this.call()
    } finally {
      if (opened !== undefined) closeBatch(context, opened)
      context.cause = cause
      swapContext(before)
    }
  }

  /** Reports that its own writes keep making it run; it does not run again until the queue is empty. */
  stopRunaway(): void {
    const message = 'an effect keeps changing what it reads; let its writes settle, or read with peek()'
    this.context.fault('event-error', 'effect', new CycleError([this.addr, this.addr], message))
  }

  dispose(): void {
    if ((this.flags & DISPOSED) !== 0) return
    this.flags |= DISPOSED
    this.graph.nodeCount--
    dropAfter(this, undefined)
    disposeOwned(this)
    this.callCleanup()
    this.context.trigger() // What it observed may have lost its last observer.
  }

  private call(): void {
    const { graph } = this
    const { active, activeRunId } = graph
    graph.active = this
    graph.activeRunId = graph.drawRunId()
    this.depsTail = undefined
    this.flags |= RUNNING
    try {
      const cleanup = this.#f()
      if (typeof cleanup === 'function') this.keepCleanup(cleanup)
    } finally {
      this.flags &= ~RUNNING
      graph.active = active
      graph.activeRunId = activeRunId
      this.endRun()
    }
  }

  private keepCleanup(cleanup: Cleanup): void {
    this.#cleanup = cleanup
    this.context.cleanups.add(this)
  }

  private endRun(): void {
    if ((this.flags & DISPOSED) === 0) return dropUnread(this)
    // It disposed itself while running: drop what it read after that, too.
    dropAfter(this, undefined)
    disposeOwned(this)
    this.callCleanup()
  }

  private callCleanup(): void {
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

/** Disposes the effects that the owner's last run created. */
export function disposeOwned(owner: EffectOwner): void {
  const owned = owner.owned
  if (owned === undefined) return
  owner.owned = undefined
  for (const child of owned) child.dispose()
}
