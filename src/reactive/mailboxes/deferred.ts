import { requireContext } from '../context/ambient.js'
import { Cell } from '../graph/cell.js'
import type { ReactiveContext } from '../context/context.js'
import type { Request } from '../spins/request.js'
import type { Result } from '../result.js'
import { failure, success } from '../result.js'
import { checkCellOptions, refuseInComputed } from '../graph/signal.js'

export interface CellOptions {
  /** The name of the cell in addresses and messages. Default: none, cells are numbered. */
  readonly key?: string | undefined
}

/** A value that is delivered once and read by any number of readers, before and after. */
export interface Deferred<T> {
  readonly addr: string
  /** How many runs wait for it now. */
  readonly waiters: number
  /** Delivers the value: returns true the first time, false when there is one already. */
  deliver(value: T): boolean
  /** Delivers an error instead; it is thrown in the readers. */
  fail(error: unknown): boolean
}

/**
 * Creates a deferred in the current context. Wait for it with `yield* waitFor(deferred)`.
 *
 * ```ts
 * import { createSimulation, deferred, waitFor } from 'millrace/reactive'
 *
 * const ctx = createSimulation()
 * const answer = ctx.enter(() => deferred<number>())
 * const answered = ctx.run(function* () { return (yield* waitFor(answer)) + 1 })
 * ctx.enter(() => answer.deliver(41)) // true; answered resolves 42
 * ```
 */
export function deferred<T>(options: CellOptions = {}): Deferred<T> {
  const context = requireContext('deferred')
  refuseInComputed(context, 'deferred')
  checkCellOptions('deferred', options)
  return context.openCell('deferred', options.key, (addr) => {
    return new DeferredCell(context, new DeferredNode(context, addr))
  }) as unknown as Deferred<T>
}

export class DeferredNode {
  readonly context: ReactiveContext
  readonly addr: string
  /** A value was delivered; the event that assigns it may still be queued. */
  isDelivered = false
  result: Result<unknown> | undefined
  /** In a fork that has not delivered: the parent's delivery counts here too. */
  isFollowing = false
  readonly waiters = new Set<Request<unknown>>()

  constructor(context: ReactiveContext, addr: string) {
    this.context = context
    this.addr = addr
  }

  restore(result: Result<unknown> | undefined): void {
    this.result = result
    this.isDelivered = result !== undefined
  }

  /** Assigns the value and queues one resume for every waiting reader, in waiting order. */
  settle(result: Result<unknown>): void {
    this.result = result
    for (const request of this.waiters) this.context.enqueue({ type: 'resume', request, result })
    this.context.waiterCount -= this.waiters.size
    this.waiters.clear()
    this.context.forks?.followDelivery(this, result)
  }
}

function deliver(context: ReactiveContext, node: DeferredNode, result: Result<unknown>): void {
  node.isDelivered = true
  context.enqueue({ type: 'deferred-delivery', node, result })
}

export class DeferredCell extends Cell implements Deferred<unknown> {
  readonly node: DeferredNode

  constructor(home: ReactiveContext, node: DeferredNode) {
    super(home, node.addr)
    this.node = node
  }

  get waiters(): number {
    return this.readable('deferred.waiters').existing(this.node).waiters.size
  }

  deliver(value: unknown): boolean {
    return this.#settle('deferred.deliver', success(value))
  }

  fail(error: unknown): boolean {
    return this.#settle('deferred.fail', failure(error))
  }

  #settle(what: string, result: Result<unknown>): boolean {
    const context = this.writable(what)
    if (context.nodeFor(this.node).isDelivered) return false
    const { overlay } = context
    if (overlay === undefined) deliver(context, this.node, result)
    else overlay.change(this.node, (node) => deliver(context, node, result))
    return true
  }
}
