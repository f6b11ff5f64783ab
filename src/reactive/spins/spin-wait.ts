import { requireIn } from '../graph/cell.js'
import { CycleError, DisposedError } from '../errors.js'
import type { Link } from '../graph/graph.js'
import { DISPOSED, HOOKED, STALE, recordRead } from '../graph/graph.js'
import type { Entry } from '../replay/log.js'
import { UnboundEntry } from '../replay/log.js'
import { relink } from '../snapshot/relink.js'
import { PARK, Request, replay } from './request.js'
import type { Result } from '../result.js'
import { failure, unwrap } from '../result.js'
import type { Run } from './run.js'
import type { SpinCell, SpinNode } from './spin.js'

/** Waits for a spin's valid result and records it as a dependency. */
export class SpinWait<T> extends Request<T> {
  readonly #cell: SpinCell
  #node: SpinNode
  #targets: readonly SpinNode[] | undefined
  #isTried = false
  #link: Link | undefined

  constructor(cell: SpinCell) {
    super('waitFor')
    this.#cell = cell
    this.#node = cell.node
  }

  override get targets(): readonly SpinNode[] {
    return (this.#targets ??= [this.#node])
  }

  protected override perform(run: Run): unknown {
    if (this.#cell.home !== run.context) requireIn(this.#cell, run.context, 'waitFor')
    const node = (this.#node = run.context.nodeFor(this.#cell.node))
    const known = run.log.recall(node)
    if (known !== undefined) return replay(known)
    const entry = run.nextEntry('wait', '', this.#cell.node)
    if (entry.isAnswered) {
      if (entry instanceof UnboundEntry) relink(run, entry, node)
      return replay(entry)
    }
    if ((node.flags & DISPOSED) !== 0) throw new DisposedError(node.addr)
    this.entry = entry
    this.#link = recordRead(run.node, node)
    const cycle = findWait(node, run.node)
    if (cycle !== undefined) {
      // Recorded like any error, with its dependency: a change that breaks the cycle runs the body again.
      this.#settle(run, entry, failure(new CycleError([...cycle, node.addr])))
      return replay(entry)
    }
    if (node.isSettled) {
      this.#settle(run, entry, node.result as Result<unknown>)
      return replay(entry)
    }
    addWaiter(this, node)
    return PARK
  }

  override nextChild(): SpinNode | undefined {
    if (this.#isTried || !this.#node.needsSettling) return undefined
    this.#isTried = true
    return this.#node
  }

  override poll(): boolean {
    return this.#node.isSettled || (this.#node.flags & DISPOSED) !== 0
  }

  override take(): Result<unknown> {
    const node = this.#node
    removeWaiter(this, node)
    if (node.result === undefined) return failure(new DisposedError(node.addr))
    this.#settle(this.run as Run, this.entry as Entry, node.result)
    return node.result
  }

  override release(): void {
    removeWaiter(this, this.#node)
  }

  #settle(run: Run, entry: Entry, result: Result<unknown>): void {
    const link = this.#link as Link
    link.stamp = this.#node.stamp
    run.log.settle(entry, !result.ok, result.ok ? result.value : result.error, link)
  }
}

/**
 * Waits for a spin whose result can be used up. Like a join it has no log entry: a re-run checks the result again, gets
 * it while it is usable, and otherwise runs the spin again.
 */
export class FreshWait<T> extends Request<T> {
  readonly #cell: SpinCell
  #node: SpinNode
  #targets: readonly SpinNode[] | undefined
  #isTried = false

  constructor(cell: SpinCell) {
    super('waitFor')
    this.#cell = cell
    this.#node = cell.node
  }

  override get targets(): readonly SpinNode[] {
    return (this.#targets ??= [this.#node])
  }

  protected override perform(run: Run): unknown {
    if (this.#cell.home !== run.context) requireIn(this.#cell, run.context, 'waitFor')
    const node = (this.#node = run.context.nodeFor(this.#cell.node))
    if ((node.flags & DISPOSED) !== 0) throw new DisposedError(node.addr)
    const { result } = node
    if (result !== undefined && node.isSettled) {
      if (!result.ok || node.isSpent?.(result.value) !== true) return unwrap(result)
      node.flags |= STALE
    }
    refuseCycle(run.node, node)
    run.isLive = true
    addWaiter(this, node)
    return PARK
  }

  override nextChild(): SpinNode | undefined {
    if (this.#isTried || !this.#node.needsSettling) return undefined
    this.#isTried = true
    return this.#node
  }

  override poll(): boolean {
    return this.#node.isSettled || (this.#node.flags & DISPOSED) !== 0
  }

  override take(): Result<unknown> {
    removeWaiter(this, this.#node)
    return this.#node.result ?? failure(new DisposedError(this.#node.addr))
  }

  override release(): void {
    removeWaiter(this, this.#node)
  }
}

export function addWaiter(request: Request<unknown>, node: SpinNode): void {
  ;(node.waiters ??= new Set()).add(request)
  node.context.waiterCount++
}

export function removeWaiter(request: Request<unknown>, node: SpinNode): void {
  if (node.waiters?.delete(request) !== true) return
  node.context.waiterCount--
  if (node.waiters.size > 0) return
  node.waiters = undefined
  if ((node.flags & HOOKED) !== 0) node.context.noteObservation(node)
}

/** Throws when `target` waits for `waiter`, directly or through other spins: the wait would never end. */
export function refuseCycle(waiter: SpinNode, target: SpinNode): void {
  const path = findWait(target, waiter)
  if (path !== undefined) throw new CycleError([...path, target.addr])
}

/** The addresses from `from` to `goal` along "waits for" edges; undefined when there is no such path. */
export function findWait(from: SpinNode, goal: SpinNode): string[] | undefined {
  if (from !== goal && neededBy(from).length === 0) return undefined
  const cameFrom = new Map<SpinNode, SpinNode | undefined>([[from, undefined]])
  const todo = [from]
  for (let node = todo.pop(); node !== undefined; node = todo.pop()) {
    if (node === goal) return pathTo(node, cameFrom)
    for (const next of neededBy(node)) {
      if (cameFrom.has(next)) continue
      cameFrom.set(next, node)
      todo.push(next)
    }
  }
  return undefined
}

function neededBy(node: SpinNode): readonly SpinNode[] {
  if (node.blockedOn !== undefined) return [node.blockedOn]
  return node.run?.parked?.targets ?? NONE
}

const NONE: readonly SpinNode[] = []

function pathTo(node: SpinNode, cameFrom: Map<SpinNode, SpinNode | undefined>): string[] {
  const path: string[] = []
  for (let at: SpinNode | undefined = node; at !== undefined; at = cameFrom.get(at)) path.push(at.addr)
  return path.reverse()
}
