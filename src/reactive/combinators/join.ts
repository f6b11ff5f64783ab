import { requireContext } from '../context/ambient.js'
import { DisposedError, describe } from '../errors.js'
import { PARK, Request } from '../spins/request.js'
import { success, unwrap } from '../result.js'
import type { Run } from '../spins/run.js'
import { addWaiter, refuseCycle, removeWaiter } from '../spins/spin-wait.js'
import type { Spin, SpinNode } from '../spins/spin.js'
import { SpinCell, spin } from '../spins/spin.js'
import { abandonSpins, disposeSpin } from '../spins/cancel.js'
import { requireIn } from '../graph/cell.js'
import { DISPOSED, HOOKED, RESTS } from '../graph/graph.js'
import { MailboxCell } from '../mailboxes/mailbox.js'
import type { Waitable } from '../spins/wait.js'
import { waitFor } from '../spins/wait.js'

/**
 * Waits for several spins at once, without a log entry of its own: a re-run checks them again. `decide` returns the index
 * of the child that decides the join, or undefined. It examines all children, so it is called only when a child that can
 * decide has ended, or the last open child: otherwise many children would cost quadratic time.
 */
export class JoinRequest extends Request<number> {
  readonly #children: readonly SpinNode[]
  readonly #decide: (children: readonly SpinNode[]) => number | undefined
  #tried = 0
  /** Children that had not ended at the last check. */
  #open = new Set<SpinNode>()
  /** Children that may have ended since then. */
  #maybeEnded: SpinNode[] = []

  constructor(children: readonly SpinNode[], decide: (children: readonly SpinNode[]) => number | undefined) {
    super('waitFor')
    this.#children = children
    this.#decide = decide
  }

  override get targets(): readonly SpinNode[] {
    return this.#children
  }

  protected override perform(run: Run): unknown {
    const decided = this.#decide(this.#children)
    if (decided !== undefined) return decided
    for (const child of this.#children) refuseCycle(run.node, child)
    run.isLive = true
    for (const child of this.#children) addWaiter(this, child)
    this.#open = this.#findOpen()
    return PARK
  }

  override nextChild(): SpinNode | undefined {
    while (this.#tried < this.#children.length) {
      const child = this.#children[this.#tried++] as SpinNode
      if (!child.needsSettling) continue
      this.#maybeEnded.push(child)
      return child
    }
    return undefined
  }

  override targetCompleted(child: SpinNode): void {
    this.#maybeEnded.push(child)
  }

  override poll(): boolean {
    if (this.arrival !== undefined) return true
    if (!this.#mayBeDecided()) return false
    const decided = this.#decide(this.#children)
    if (decided === undefined) {
      this.#open = this.#findOpen() // A child that had ended is out of date again; its completion will be reported.
      return false
    }
    this.arrival = success(decided)
    this.release()
    return true
  }

  override release(): void {
    for (const child of this.#children) removeWaiter(this, child)
  }

  #mayBeDecided(): boolean {
    let isDecisive = false
    for (const child of this.#maybeEnded.splice(0)) {
      if (!hasEnded(child)) continue
      this.#open.delete(child)
      if (this.#decide === firstEnded || child.result?.ok !== true) isDecisive = true
    }
    return isDecisive || this.#open.size === 0
  }

  #findOpen(): Set<SpinNode> {
    return new Set(this.#children.filter((child) => !hasEnded(child)))
  }
}

/**
 * The child that ended first, with a value or an error. Several may have ended before the check; their stamps, drawn on
 * completion, give the order.
 */
export function firstEnded(children: readonly SpinNode[]): number | undefined {
  let first: number | undefined
  for (const [index, child] of children.entries()) {
    if (!hasEnded(child)) continue
    if (first === undefined || child.stamp < (children[first] as SpinNode).stamp) first = index
  }
  return first
}

/** The first child that failed, or the last one when all have ended. */
export function firstFailedOrAll(children: readonly SpinNode[]): number | undefined {
  let isComplete = true
  for (const [index, child] of children.entries()) {
    if (!hasEnded(child)) isComplete = false
    else if (child.result?.ok !== true) return index
  }
  return isComplete ? children.length - 1 : undefined
}

function hasEnded(child: SpinNode): boolean {
  return child.isSettled || (child.flags & DISPOSED) !== 0
}

/** Returns spins as they are, and wraps any other source in a spin that waits for it. Call it inside the waiting body. */
export function asSpins<T>(sources: readonly Waitable<T>[]): Spin<T>[] {
  return sources.map((source) => {
    if (source instanceof SpinCell) return source as unknown as Spin<T>
    return spin(function* () {
      return yield* waitFor(source)
    })
  })
}

/** The nodes of spins in the context whose body is executing. */
export function nodesOf(spins: readonly Spin<unknown>[]): SpinNode[] {
  const context = requireContext('waitFor')
  return spins.map((each) => {
    const cell = each as unknown as SpinCell
    requireIn(cell, context, 'waitFor')
    return context.nodeFor(cell.node)
  })
}

/** Makes a spin rest while nothing observes it: it has no timers, observes nothing, and runs again when it is waited for. */
export function resting<T>(spun: Spin<T>): Spin<T> {
  for (const node of nodesOf([spun])) node.flags |= HOOKED | RESTS
  return spun
}

/** Returns the value of a spin that has ended, or throws its error. */
export function resultOf(node: SpinNode): unknown {
  if (node.result === undefined) throw new DisposedError(node.addr)
  return unwrap(node.result)
}

/** Cancels the spins that no other run waits for; the next wait or call runs them again. */
export function cancelOthers(children: readonly SpinNode[], winner: SpinNode | undefined, reason: string): void {
  abandonSpins(
    children.filter((child) => child !== winner),
    reason,
  )
}

/**
 * A loser that wraps a mailbox may have taken a message before the race was decided. The message goes back to the front,
 * and to the next waiting taker.
 */
export function returnTakenMessages(
  sources: readonly unknown[],
  children: readonly SpinNode[],
  winner?: SpinNode,
): void {
  for (const [index, source] of sources.entries()) {
    const child = children[index]
    if (!(source instanceof MailboxCell) || child === undefined || child === winner) continue
    if (child.result?.ok !== true) continue // A loser that still waits returns its message when it is cancelled.
    const taken = child.log.at(0)
    const box = child.context.nodeFor(source.node)
    if (taken !== undefined) box.putBack(taken, child.result.value)
    disposeSpin(child)
    box.serve()
  }
}

export function checkSources(what: string, sources: readonly unknown[]): void {
  if (sources.length === 0)
    throw new TypeError(`${what} needs at least one spin, deferred, mailbox or promise, got none`)
  checkEach(what, sources)
}

export function checkEach(what: string, sources: readonly unknown[]): void {
  for (const [index, source] of sources.entries()) {
    if ((typeof source !== 'object' || source === null) && typeof source !== 'function') {
      throw new TypeError(
        `${what}: argument ${index} must be a spin, deferred, mailbox or promise, got ${describe(source)}`,
      )
    }
  }
}
