import type { ReactiveContext } from '../context/context.js'
import { captureStores } from '../context/ambient.js'
import { LazyMap } from '../drain/lazy-collections.js'
import { ComputedNode } from '../graph/computed.js'
import type { GraphNode, ReaderNode } from '../graph/graph.js'
import {
  COMPUTED,
  DISPOSED,
  FOLLOWING,
  HOOKED,
  MARKED,
  QUEUED,
  REPLAY,
  RESTS,
  SPIN,
  STALE,
  copyDeps,
  dropAfter,
  markObservers,
  refresh,
} from '../graph/graph.js'
import { SignalNode } from '../graph/signal.js'
import { DeferredNode } from '../mailboxes/deferred.js'
import { MailboxNode } from '../mailboxes/mailbox.js'
import type { Result } from '../result.js'
import { disposeSpin } from '../spins/cancel.js'
import type { Wake } from '../spins/request.js'
import { SpinNode } from '../spins/spin.js'
import { dependentsOf } from './dependents.js'
import type { Place } from './place.js'
import { isOf } from './place.js'

/**
 * The state of a fork: what differs from its parent, and copies of what the fork has used.
 *
 * A new fork is empty. A handle names a *place*; the context that created it has the place's *home* node. When the fork
 * first uses a place, it copies the parent's node, and with it everything the copy's validity depends on: the
 * dependencies of a spin or computed with the stamps it recorded, the owner and the children of a spin. Stamps come from
 * one counter for all forks, so the copy is valid in the fork exactly when its stamps are those the fork sees.
 *
 *     root     price ──▶ tax = 20
 *     fork     price'──▶ tax'      price' follows price until the fork writes it; then tax' is out of date in the fork only
 *
 * A copy *follows* the parent until the fork writes it or runs it. A write of the parent is passed on to forks that have
 * a copy; so everything live in the fork runs again by the same rules as anywhere. The first write of the fork to a place
 * copies what depends on it in the parent, too: these spins are live in the fork from then on. Effects and watchers stay
 * in the context that created them: a what-if must not draw on the user's screen.
 *
 * A generator cannot be copied, so a run in progress is copied as its log. The copy has no generator until something in
 * the fork runs or resumes it; then the body starts from the top and the log answers, as on any re-run.
 */
export class Overlay {
  readonly #context: ReactiveContext
  readonly #parent: ReactiveContext
  /** The fork's node of each home node. */
  readonly #copies = new LazyMap<Place, Place>()
  /** The home node of each of the fork's copies. */
  readonly #homes = new LazyMap<Place, Place>()

  constructor(context: ReactiveContext, parent: ReactiveContext) {
    this.#context = context
    this.#parent = parent
  }

  /** The fork's node of a place; copies the parent's when the fork has none. */
  nodeFor<P extends Place>(home: P): P {
    if (isOf(home, this.#context)) return home
    const known = this.#copies.get(home) as P | undefined
    if (known === undefined) return this.#copy(home)
    if (known instanceof SpinNode && (known.flags & FOLLOWING) !== 0 && !known.isSettled) this.follow(known)
    return known
  }

  /** The node whose state the fork sees, without copying it. */
  existing<P extends Place>(home: P): P {
    if (isOf(home, this.#context)) return home
    return (this.#copies.get(home) as P | undefined) ?? this.#parent.existing(home)
  }

  /** The node that the handle of this place holds. */
  homeOf<P extends Place>(node: P): P {
    return (this.#homes.get(node) as P | undefined) ?? node
  }

  /** Whether the place is a child that does not exist in the fork: in the state that its owner has there, it was not created. */
  isReplaced(home: Place): boolean {
    if (isOf(home, this.#context)) return false
    if (this.#parent.overlay?.isReplaced(home) === true) return true
    const origin = this.#parent.existing(home)
    if (!(origin instanceof SpinNode) || origin.owner === undefined) return false
    const owner = this.#copies.get(this.#parent.homeOf(origin.owner))
    if (!(owner instanceof SpinNode)) return false
    const child = owner.children?.get(origin.addr)
    return child === undefined || child !== this.#copies.get(home)
  }

  /** Changes a place in the fork. From the first change on it does not follow the parent. */
  change<P extends Place, R>(home: P, act: (node: P) => R): R {
    const node = this.nodeFor(home)
    const parked = this.#takeOver(home, node)
    try {
      return act(node)
    } finally {
      for (const each of parked) this.#context.enqueue({ type: 'spin-execution', node: each, caller: undefined })
    }
  }

  /** The parent has written signals; for the fork they are one change. */
  followWrites(origins: readonly SignalNode[]): void {
    const context = this.#context
    const generation = { number: 0 }
    for (const origin of origins) {
      const copy = this.#copies.get(this.#parent.homeOf(origin))
      if (!(copy instanceof SignalNode) || (copy.flags & FOLLOWING) === 0 || copy.stamp === origin.stamp) continue
      const old = copy.value
      copy.takeOver(origin)
      context.graph.writes++
      context.graph.noteWriter(undefined)
      markObservers(copy)
      context.announceChange(copy, generation)
      copy.callWatchers(context, copy.value, old)
    }
    context.trigger()
  }

  /** The parent has disposed a signal. Where the fork has written it, it is the fork's own and stays. */
  followDispose(origin: SignalNode): void {
    const copy = this.#copies.get(this.#parent.homeOf(origin))
    if (!(copy instanceof SignalNode) || (copy.flags & FOLLOWING) === 0) return
    this.followWrites([origin]) // The last write, if it was not passed on yet.
    copy.dropped()
    this.#context.trigger()
  }

  /** The parent has delivered a deferred. */
  followDelivery(origin: DeferredNode, result: Result<unknown>): void {
    const copy = this.#copies.get(this.#parent.homeOf(origin))
    if (!(copy instanceof DeferredNode) || !copy.isFollowing || copy.result !== undefined) return
    copy.isDelivered = true
    copy.settle(result)
  }

  /**
   * Takes over what the parent's spin has now, if that is valid in the fork; first of all for the spins it depends on.
   * Returns whether the copy is settled then. A copy that is valid already keeps what it has.
   */
  follow(copy: SpinNode): boolean {
    const seen = new Set([copy])
    const stack = [copy]
    for (let node = stack.at(-1); node !== undefined; node = stack.at(-1)) {
      const next = this.#unsettledBelow(node, seen)
      if (next !== undefined) {
        seen.add(next)
        stack.push(next)
      } else {
        stack.pop()
        if (!node.isSettled) this.#adopt(node)
      }
    }
    return copy.isSettled
  }

  /** A spin that the parent's state of `copy` depends on, which follows the parent and is not valid. */
  #unsettledBelow(copy: SpinNode, seen: ReadonlySet<SpinNode>): SpinNode | undefined {
    if (copy.isSettled || (copy.flags & FOLLOWING) === 0) return undefined
    const origin = this.#parent.nodeFor(this.homeOf(copy))
    for (let link = origin.deps; link !== undefined; link = link.nextDep) {
      if (!(link.dep instanceof SpinNode)) continue
      const dep = this.nodeOf(link.dep)
      if (isOf(dep, this.#context) && !seen.has(dep) && !dep.isSettled && (dep.flags & FOLLOWING) !== 0) return dep
    }
    return undefined
  }

  #adopt(copy: SpinNode): void {
    if ((copy.flags & (FOLLOWING | DISPOSED)) !== FOLLOWING) return
    const origin = this.#parent.nodeFor(this.homeOf(copy))
    const isOpen = origin.run !== undefined || (origin.flags & REPLAY) !== 0
    if ((origin.flags & DISPOSED) !== 0 || (!isOpen && !origin.isSettled)) return
    // The closure of a child has what its owner read: another closure is a result of another state.
    if (copy.owner !== undefined && copy.body !== origin.body) return
    this.#validate(this.#copyNeeded([...neededBy(origin)].map((needed) => this.#parent.homeOf(needed))))
    for (let link = origin.deps; link !== undefined; link = link.nextDep) {
      if (!isSeen(link.stamp, this.nodeOf(link.dep))) return
    }
    const { stamp } = copy
    dropAfter(copy, undefined)
    this.#fillSpin(origin, copy)
    this.#validate([copy])
    if (copy.stamp === stamp || copy.subs === undefined) return
    markObservers(copy)
    this.#context.enqueue({ type: 'spin-completion', node: copy })
  }

  clear(): void {
    this.#copies.clear()
    this.#homes.clear()
  }

  /** Ends the following of a place; returns spins that the parent has parked and that this change may resume. */
  #takeOver(home: Place, node: Place): SpinNode[] {
    if (node instanceof SignalNode) {
      if ((node.flags & FOLLOWING) === 0) return []
      node.flags &= ~FOLLOWING
    } else if (node instanceof DeferredNode || node instanceof MailboxNode) {
      if (!node.isFollowing) return []
      node.isFollowing = false
    }
    const parked: SpinNode[] = []
    for (const dependent of dependentsOf(home, this.#parent)) {
      if (this.isReplaced(dependent)) continue
      const copy = this.nodeFor(dependent)
      if (!(copy instanceof SpinNode) || (copy.flags & REPLAY) === 0) continue
      copy.flags &= ~FOLLOWING
      parked.push(copy)
    }
    return parked
  }

  #copy<P extends Place>(home: P): P {
    this.#validate(this.#copyNeeded([home]))
    return this.#copies.get(home) as P
  }

  /** Copies places and everything they need; returns the spins and computeds that were copied. */
  #copyNeeded(homes: Place[]): Place[] {
    const made: { readonly origin: Place; readonly copy: Place }[] = []
    const todo = homes
    for (let home = todo.pop(); home !== undefined; home = todo.pop()) {
      if (isOf(home, this.#context) || this.#copies.has(home)) continue
      const origin = this.#parent.nodeFor(home)
      const copy = this.#makeCopy(origin)
      this.#copies.set(home, copy)
      this.#homes.set(copy, home)
      if (!(copy instanceof SpinNode || copy instanceof ComputedNode)) continue
      made.push({ origin, copy })
      for (const needed of neededBy(origin)) todo.push(this.#parent.homeOf(needed))
    }
    // A link to a computed attaches the computed's own links, so these are made first.
    for (const { origin, copy } of made) if (copy instanceof ComputedNode) this.#copyDeps(origin as ComputedNode, copy)
    for (const { origin, copy } of made) if (copy instanceof SpinNode) this.#fillSpin(origin as SpinNode, copy)
    return made.map(({ copy }) => copy)
  }

  #makeCopy(origin: Place): Place {
    const context = this.#context
    if (origin instanceof SignalNode || origin instanceof ComputedNode) return origin.copyTo(context.graph)
    if (origin instanceof DeferredNode) {
      const copy = new DeferredNode(context, origin.addr)
      copy.isDelivered = origin.isDelivered
      copy.result = origin.result
      copy.isFollowing = true
      return copy
    }
    if (origin instanceof MailboxNode) {
      const copy = new MailboxNode(context, origin.addr)
      copy.copyFrom(origin)
      copy.isFollowing = true
      return copy
    }
    const { addr, body, captures, equals, owner, cell, stores } = origin as SpinNode
    const owned = owner && this.#copies.get(this.#parent.homeOf(owner))
    const copy = new SpinNode(context, addr, body, { deps: captures, equals }, owned as SpinNode | undefined, cell)
    copy.stores = stores?.runInAsyncScope(captureStores, undefined, context)
    return copy
  }

  /** Gives a copied spin the state of the parent's: result, log, dependencies and children. */
  #fillSpin(origin: SpinNode, copy: SpinNode): void {
    const { flags, owner } = origin
    copy.owner ??= owner && (this.#copies.get(this.#parent.homeOf(owner)) as SpinNode | undefined)
    copy.body = origin.body
    copy.captures = origin.captures
    copy.result = origin.result
    copy.stamp = origin.stamp
    copy.spawned = origin.spawned
    copy.isSpent = origin.isSpent
    copy.cells = origin.cells && new Map(origin.cells)
    const dropped = copy.children
    copy.children = origin.children && this.#childrenOf(origin.children)
    for (const child of dropped?.values() ?? []) {
      if (copy.children?.get(child.addr) !== child) disposeSpin(child) // The parent's owner has not created it again.
    }
    const isMarked = origin.result !== undefined || (flags & MARKED) !== 0
    copy.flags =
      SPIN | (copy.flags & QUEUED) | (flags & (STALE | DISPOSED | HOOKED | RESTS)) | FOLLOWING | (isMarked ? MARKED : 0)
    if (origin.run !== undefined || (flags & REPLAY) !== 0) copy.flags |= REPLAY | MARKED
    if ((flags & DISPOSED) !== 0) return
    const links = this.#copyDeps(origin, copy)
    copy.log.copyFrom(origin.log, (link) => links.get(link))
    const wake = wakeOf(origin)
    if (wake !== undefined) this.#context.wakes.set(copy, wake)
  }

  #copyDeps(origin: ReaderNode, copy: ReaderNode): ReturnType<typeof copyDeps> {
    return copyDeps(origin, copy, (dep) => {
      const node = this.nodeOf(dep)
      // A computed that gets its first observer counts as fresh from then on, so it has to be fresh.
      if (node instanceof ComputedNode && copy instanceof SpinNode) refresh(node)
      return node
    })
  }

  /** The fork's node of a node of the parent that was copied before. */
  nodeOf<P extends Place>(node: P): P {
    const home = this.#parent.homeOf(node)
    return (this.#copies.get(home) as P | undefined) ?? home
  }

  #childrenOf(children: ReadonlyMap<string, SpinNode>): Map<string, SpinNode> {
    const copies = new Map<string, SpinNode>()
    for (const [addr, child] of children) {
      const copy = this.nodeOf(child)
      if ((copy.flags & FOLLOWING) === 0 && copy.body !== child.body) {
        copy.body = child.body // The fork has run the child, and the parent's owner has replaced its closure since.
        copy.flags |= STALE
      }
      copies.set(addr, copy)
    }
    return copies
  }

  /** Finds which copies are valid in the fork: those whose stamps are the ones that the fork sees. Nothing runs. */
  #validate(copies: readonly Place[]): void {
    for (const copy of copies) if (copy instanceof ComputedNode) refresh(copy)
    const open = new Set(copies.filter((copy) => copy instanceof SpinNode))
    for (const first of open) {
      const stack = [first]
      for (let node = stack.at(-1); node !== undefined; node = stack.at(-1)) {
        open.delete(node)
        const next = unsettledDep(node, open)
        if (next !== undefined) stack.push(next)
        else {
          stack.pop()
          if (isValid(node)) node.flags &= ~MARKED
        }
      }
    }
  }
}

/** When and in which effect a sleeping run wakes. */
function wakeOf(node: SpinNode): Wake | undefined {
  return node.run === undefined ? node.context.wakes.get(node) : node.run.parked?.wake
}

/** The nodes without which a copy would be incomplete. */
function* neededBy(node: Place): Generator<Place> {
  if (!(node instanceof SpinNode || node instanceof ComputedNode)) return
  for (let link = node.deps; link !== undefined; link = link.nextDep) yield link.dep
  if (!(node instanceof SpinNode)) return
  if (node.owner !== undefined) yield node.owner
  if (node.children !== undefined) yield* node.children.values()
}

function unsettledDep(node: SpinNode, open: ReadonlySet<SpinNode>): SpinNode | undefined {
  for (let link = node.deps; link !== undefined; link = link.nextDep) {
    if (link.dep instanceof SpinNode && open.has(link.dep)) return link.dep
  }
  return undefined
}

function isValid(node: SpinNode): boolean {
  if (node.result === undefined || (node.flags & (STALE | REPLAY)) !== 0) return false
  for (let link = node.deps; link !== undefined; link = link.nextDep) {
    if (!isSeen(link.stamp, link.dep)) return false
  }
  return true
}

/** Whether a value that was read with this stamp is still the node's value. */
function isSeen(stamp: number, node: GraphNode): boolean {
  if ((node.flags & COMPUTED) !== 0) refresh(node as ComputedNode)
  return stamp === node.stamp && (!(node instanceof SpinNode) || node.isSettled)
}
