import { requireContext } from '../context/ambient.js'
import { Cell } from '../graph/cell.js'
import type { ReactiveContext } from '../context/context.js'
import type { Request } from '../spins/request.js'
import type { Result } from '../result.js'
import { failure, success } from '../result.js'
import { checkCellOptions, refuseInComputed } from '../graph/signal.js'

export interface CellOptions {
  /** Names the cell in addresses and messages. Default: none, cells are numbered. */
  readonly key?: string | undefined
}

/** A value that is given once and read by any number of readers, before and after. */
export interface Deferred<T> {
  readonly addr: string
  /** How many runs wait for it now. */
  readonly waiters: number
  /** Gives the value: true the first time, false when it has one already. */
  deliver(value: T): boolean
  /** Gives an error instead; readers get it thrown. */
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
 * const asked = ctx.run(function* () { return (yield* waitFor(answer)) + 1 })
 * ctx.enter(() => answer.deliver(41)) // true; asked resolves 42
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
  /** Given, though the event that makes it known may still be queued. */
  isGiven = false
  result: Result<unknown> | undefined
  readonly waiters = new Set<Request<unknown>>()

  constructor(context: ReactiveContext, addr: string) {
    this.context = context
    this.addr = addr
  }

  /** Makes the value known: one resume for every reader that waits, in the order they came. */
  settle(result: Result<unknown>): void {
    this.result = result
    for (const request of this.waiters) this.context.enqueue({ type: 'resume', request, result })
    this.context.waiterCount -= this.waiters.size
    this.waiters.clear()
  }
}

export class DeferredCell extends Cell implements Deferred<unknown> {
  readonly node: DeferredNode

  constructor(home: ReactiveContext, node: DeferredNode) {
    super(home, node.addr)
    this.node = node
  }

  get waiters(): number {
    return this.node.waiters.size
  }

  deliver(value: unknown): boolean {
    return this.#give('deferred.deliver', success(value))
  }

  fail(error: unknown): boolean {
    return this.#give('deferred.fail', failure(error))
  }

  #give(what: string, result: Result<unknown>): boolean {
    const context = this.writable(what)
    if (this.node.isGiven) return false
    this.node.isGiven = true
    context.enqueue({ type: 'deferred-delivery', node: this.node, result })
    return true
  }
}
