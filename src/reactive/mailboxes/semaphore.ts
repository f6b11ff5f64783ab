import { ambientContext, requireContext } from '../context/ambient.js'
import { Cell, isIn } from '../graph/cell.js'
import { JoinRequest, firstEnded, nodesOf, resultOf } from '../combinators/join.js'
import type { ReactiveContext } from '../context/context.js'
import type { CellOptions } from './deferred.js'
import { describe } from '../errors.js'
import { MailboxCell, MailboxNode } from './mailbox.js'
import { checkCellOptions, refuseInComputed } from '../graph/signal.js'
import type { Spin, SpinNode } from '../spins/spin.js'
import { spin } from '../spins/spin.js'
import { waitFor } from '../spins/wait.js'

/** The right to be one of at most `max` holders. Release it once, from anywhere. */
export interface Permit {
  release(): void
}

/** Limits the number of concurrent holders; permits are granted in waiting order. */
export interface Semaphore {
  readonly addr: string
  /** Permits that are free. */
  readonly permits: number
  /** Completes with a permit when one is free; the caller releases it. */
  acquire(): Spin<Permit>
  /** Runs the spin while holding a permit, and releases it however the spin ends. Later changes do not run it again. */
  holding<T>(inner: Spin<T>): Spin<T>
}

/**
 * Creates a semaphore in the current context.
 *
 * ```ts
 * import { semaphore, spin, step } from 'millrace/reactive'
 *
 * const gate = () => semaphore(2)
 * const load = (limit: ReturnType<typeof gate>, url: string) =>
 *   limit.holding(spin(function* () { return yield* step('load', (signal) => fetch(url, { signal })) }))
 * ```
 */
export function semaphore(max: number, options: CellOptions = {}): Semaphore {
  const context = requireContext('semaphore')
  refuseInComputed(context, 'semaphore')
  if (!(Number.isInteger(max) && max > 0)) {
    throw new RangeError(`semaphore: the number of permits must be a whole number of 1 or more, got ${describe(max)}`)
  }
  checkCellOptions('semaphore', options)
  const make = (addr: string): SemaphoreCell => new SemaphoreCell(context, addr, max)
  return context.openCell('mailbox', options.key, make) as SemaphoreCell
}

/** A mailbox that initially holds `max` permits: waiting, order and returned permits are handled by the mailbox. */
class SemaphoreCell extends Cell implements Semaphore {
  readonly #box: MailboxCell

  constructor(home: ReactiveContext, addr: string, max: number) {
    super(home, addr)
    const node = new MailboxNode(home, addr)
    for (let each = 0; each < max; each++) node.receive(undefined)
    this.#box = new MailboxCell(home, node)
  }

  /** Its state is that of the mailbox. */
  get node(): MailboxNode {
    return this.#box.node
  }

  get permits(): number {
    return this.#box.size
  }

  acquire(): Spin<Permit> {
    const take = this.#take.bind(this)
    const box = this.#box
    const acquired: Spin<Permit> = spin(function* () {
      yield* waitFor(box)
      return take()
    })
    // A body that runs again gets the permit that it still holds, and never one that it has released.
    for (const node of nodesOf([acquired])) node.isSpent = isGivenBack
    return acquired
  }

  holding<T>(inner: Spin<T>): Spin<T> {
    const take = this.#take.bind(this)
    const box = this.#box
    return spin(function* () {
      yield* waitFor(box)
      const permit = take()
      try {
        const children = nodesOf([inner])
        yield* new JoinRequest(children, firstEnded)
        return resultOf(children[0] as SpinNode) as T
      } finally {
        permit.release()
      }
    })
  }

  #take(): Permit {
    return new HeldPermit(this.#box, requireContext('semaphore'))
  }
}

class HeldPermit implements Permit {
  readonly #box: MailboxCell
  readonly #context: ReactiveContext
  /** A fork inherits the permits that are held, and gives them back in its own world. */
  readonly #givenBackIn = new Set<ReactiveContext>()

  constructor(box: MailboxCell, context: ReactiveContext) {
    this.#box = box
    this.#context = context
  }

  /** Whether it is held in a context: it was not given back there, nor in one that this was forked from. */
  isHeldIn(context: ReactiveContext | undefined): boolean {
    for (let at = context; at !== undefined; at = at.parent) if (this.#givenBackIn.has(at)) return false
    return true
  }

  /** May be called from anywhere, a timer or callback included; without a current context it counts where it was taken. */
  release(): void {
    const current = ambientContext()
    const context = current !== undefined && isIn(this.#box, current) ? current : this.#context
    refuseInComputed(context, 'permit.release')
    if (!this.isHeldIn(context)) throw new Error('over-released: this permit was given back already')
    this.#givenBackIn.add(context)
    this.#box.postIn(context, undefined)
  }
}

function isGivenBack(permit: unknown): boolean {
  return permit instanceof HeldPermit && !permit.isHeldIn(ambientContext())
}
