import type { ReactiveContext } from '../context/context.js'
import { Fifo } from '../drain/fifo.js'

/**
 * The dependency graph: which nodes read which, and which may be out of date. It holds no values.
 *
 * Push marks, pull validates. A write only *marks* every node that may be affected; nothing runs. A marked node is then
 * *validated*: each of its dependencies is refreshed first, and its stamp is compared with the stamp the link recorded.
 * A stamp is a number drawn when a value changes. If all stamps are equal, the node is valid and does not run. This one
 * rule gives the order (a dependency is fresh before its reader runs), at most one run for a change however many paths
 * lead to it, correct edges that are found while running, and the cut-off where a value came out equal.
 *
 *     signal ──link{stamp}──▶ computed ──link{stamp}──▶ effect or spin
 *        write: mark ───────────▶ ● ──────────────────────▶ ●  (reached, in this order)
 *                                 ◀── fresh? ── compare ────┘  (when the drain processes it)
 *
 * A link is created when a value is read; links that a finished run did not use are dropped in one step. The links of a
 * node form a list in reading order with a cursor, so a run that reads the same nodes again allocates nothing. A
 * computed without observers references its dependencies, but they do not reference it, and it costs nothing until it is
 * read. All walks use an explicit stack: a chain of ten thousand nodes needs no deep call stack.
 */
export class Graph {
  /** The context whose nodes these are. */
  readonly context: ReactiveContext
  /** The last stamp drawn. A root context and all its forks share the counter. */
  readonly stamps: { last: number }
  /** The context has been forked: in the current context a handle may name another node than itself. */
  isForked = false
  /** The number of writes so far. A computed without observers records at which one it was validated. */
  writes = 0
  /** The computed or effect that is running and records what it reads, and the number of its run. */
  active: ReaderNode | undefined
  activeRunId = 0
  /** The computeds that are being evaluated, outermost first; while there are any, writes are refused. */
  readonly evaluating: DerivedNode[] = []
  /** Effects and spins that were marked and not yet refreshed, in the order they were reached. */
  readonly reached = new Fifo<ObserverNode>()
  /** The write that made the current code run; undefined when the cause came from outside. */
  causingWrite: Write | undefined
  nodeCount = 0
  linkCount = 0
  #lastRun = 0
  #write: Write | undefined

  constructor(context: ReactiveContext, stamps: { last: number }) {
    this.context = context
    this.stamps = stamps
  }

  get stamp(): number {
    return this.stamps.last
  }

  drawStamp(): number {
    return ++this.stamps.last
  }

  drawRunId(): number {
    return ++this.#lastRun
  }

  /** Records which spin or effect is about to write; all writes of one run count as one. */
  noteWriter(writer: GraphNode | undefined): void {
    const { causingWrite } = this
    if (writer === undefined) this.#write = undefined
    else if (this.#write?.writer !== writer || this.#write.before !== causingWrite)
      this.#write = { writer, before: causingWrite }
  }

  /** The last write recorded: the one that marks nodes now. */
  get write(): Write | undefined {
    return this.#write
  }
}

/** A write of a spin or effect, and the write that made it run. In this chain a feedback loop shows as a repetition. */
export interface Write {
  readonly writer: GraphNode
  readonly before: Write | undefined
}

/** How often the last writer occurs in a chain of writes: how often its own writes made it run again. */
export function countRounds(write: Write): number {
  let count = 0
  for (let link: Write | undefined = write; link !== undefined; link = link.before) {
    if (link.writer === write.writer) count++
  }
  return count
}

/** May be out of date. Every node that depends on a marked node is marked too. */
export const MARKED = 1
/** Is in `reached`. */
export const QUEUED = 2
/** Its function is on the call stack. */
export const RUNNING = 4
export const DISPOSED = 8
/** A computed that has a value or an error. */
export const EVALUATED = 16
/** A spin whose body was replaced: it runs again even if its stamps are equal. */
export const STALE = 32
/** A computed whose function threw; its value is the error. */
export const FAILED = 64
/** A computed whose evaluation is part of a cycle. */
export const IN_CYCLE = 128
/** The kinds are flags, so that a walk reads one field of a node. A node without one is a signal. */
export const COMPUTED = 256
export const EFFECT = 512
export const SPIN = 1024
/** A node of a fork that has the parent's state: the fork has not written, run or evaluated it. */
export const FOLLOWING = 2048
/** A spin of a fork or of a restored context that has the log of a run in progress, and no generator yet. */
export const REPLAY = 4096
/** Something happens when it gets its first observer, or loses its last. */
export const HOOKED = 8192
/** A spin that rests while nothing observes it. */
export const RESTS = 16_384
/** A spin whose handle was collected: it is removed as soon as it can have no more effect. */
export const ORPHANED = 32_768
/** Effects and spins: they run in the drain, and observe always. A computed observes while it has observers. */
export const OBSERVER = EFFECT | SPIN

/** How often the writes of one spin or effect may make it run again, without a cause from outside, until it is stopped. */
export const CAUSED_MAX = 100

/** Records the present stamps of all dependencies as seen. */
export function acceptDeps(node: ReaderNode): void {
  for (let link = node.deps; link !== undefined; link = link.nextDep) link.stamp = link.dep.stamp
  node.flags &= ~(MARKED | STALE)
}

/** What every node has. Signals are made by the million, so it has nothing that only some nodes need. */
export abstract class GraphNode {
  readonly graph: Graph
  flags: number
  /** Drawn each time the value changes. */
  stamp = 0
  subs: Link | undefined = undefined
  subsTail: Link | undefined = undefined
  /** The number of the last run that read this node: a second read in the same run returns at once. */
  readInRun = 0

  constructor(graph: Graph, kind: number) {
    this.graph = graph
    this.flags = kind
    // A computed counts while it has observers: without them nothing refers to it, and it cannot be disposed.
    if (kind !== COMPUTED) graph.nodeCount++
  }
}

/** A node that reads others. */
export abstract class ReaderNode extends GraphNode {
  deps: Link | undefined = undefined
  /** The cursor: the last link used by the run in progress, or by the last run. */
  depsTail: Link | undefined = undefined
}

/** A computed, as the walks see it. */
export abstract class DerivedNode extends ReaderNode {
  /** Without observers: the write count at which it was last validated. */
  validAt = -1
  /** While a walk refreshes it on behalf of a reader: the link of that reader. */
  via: Link | undefined = undefined

  /** Runs the function again. */
  abstract evaluate(): void
}

/** An effect or spin. */
export abstract class ObserverNode extends ReaderNode {
  /** While in `reached`: the write that put it there. */
  reachedBy: Write | undefined = undefined
  /** How many generations its writes have caused since the queue was last empty; above `CAUSED_MAX` it was stopped. */
  caused = 0
}

export class Link {
  readonly dep: GraphNode
  readonly sub: ReaderNode
  /** The dependency's stamp when it was read. */
  stamp: number
  isAttached = false
  nextDep: Link | undefined
  prevSub: Link | undefined = undefined
  nextSub: Link | undefined = undefined

  constructor(dep: GraphNode, sub: ReaderNode, stamp: number, nextDep: Link | undefined) {
    this.dep = dep
    this.sub = sub
    this.stamp = stamp
    this.nextDep = nextDep
  }
}

/** Records that a computed or effect read `dep`; a second read in one run returns at once. */
export function readByActive(active: ReaderNode, dep: GraphNode): void {
  const run = dep.graph.activeRunId
  if (dep.readInRun === run) return
  dep.readInRun = run
  recordRead(active, dep)
}

/** Records that `sub` reads `dep`; reuses the link of the last run if the reading order is the same. */
export function recordRead(sub: ReaderNode, dep: GraphNode): Link {
  const tail = sub.depsTail
  const next = tail === undefined ? sub.deps : tail.nextDep
  if (next !== undefined && next.dep === dep) {
    next.stamp = dep.stamp
    sub.depsTail = next
    return next
  }
  const link = new Link(dep, sub, dep.stamp, next)
  if (tail === undefined) sub.deps = link
  else tail.nextDep = link
  sub.depsTail = link
  if (isObserving(sub)) attach(link)
  return link
}

/**
 * Gives `to` the dependencies of `from`, with the stamps that `from` recorded. `nodeFor` returns the node that takes the
 * place of a dependency. Returns the new link of each old one.
 */
export function copyDeps(from: ReaderNode, to: ReaderNode, nodeFor: (dep: GraphNode) => GraphNode): Map<Link, Link> {
  const copies = new Map<Link, Link>()
  let last: Link | undefined
  for (let link = from.deps; link !== undefined; link = link.nextDep) {
    const copy = new Link(nodeFor(link.dep), to, link.stamp, undefined)
    if (last === undefined) to.deps = copy
    else last.nextDep = copy
    last = copy
    copies.set(link, copy)
    if (isObserving(to)) attach(copy)
  }
  to.depsTail = from.depsTail && copies.get(from.depsTail)
  return copies
}

function isObserving(node: GraphNode): boolean {
  return (node.flags & OBSERVER) !== 0 || node.subs !== undefined
}

function attach(first: Link): void {
  if ((first.dep.flags & COMPUTED) === 0 || first.dep.subs !== undefined) return append(first)
  const todo = [first]
  for (let link = todo.pop(); link !== undefined; link = todo.pop()) {
    const dep = link.dep
    const wasObserved = dep.subs !== undefined
    append(link)
    if ((dep.flags & COMPUTED) === 0 || wasObserved) continue
    // It was refreshed by the read a moment ago; from now on writes mark it, and it need not compare the write count.
    dep.flags &= ~MARKED
    dep.graph.nodeCount++
    for (let inner = (dep as DerivedNode).deps; inner !== undefined; inner = inner.nextDep) todo.push(inner)
  }
}

function append(link: Link): void {
  const dep = link.dep
  link.isAttached = true
  link.prevSub = dep.subsTail
  if (dep.subsTail === undefined) {
    dep.subs = link
    if ((dep.flags & HOOKED) !== 0) dep.graph.context.noteObservation(dep)
  } else dep.subsTail.nextSub = link
  dep.subsTail = link
  dep.graph.linkCount++
}

function detach(first: Link): void {
  if (first.isAttached && (first.dep.flags & COMPUTED) === 0) return remove(first)
  const todo = [first]
  for (let link = todo.pop(); link !== undefined; link = todo.pop()) {
    if (!link.isAttached) continue
    remove(link)
    if ((link.dep.flags & COMPUTED) === 0 || link.dep.subs !== undefined) continue
    const dep = link.dep as DerivedNode
    // No observers any more: valid as of now unless it is marked, and its dependencies stop referencing it.
    if ((dep.flags & MARKED) === 0) dep.validAt = dep.graph.writes
    dep.flags &= ~MARKED
    dep.graph.nodeCount--
    for (let inner = dep.deps; inner !== undefined; inner = inner.nextDep) todo.push(inner)
  }
}

function remove(link: Link): void {
  const { dep, prevSub, nextSub } = link
  if (prevSub === undefined) dep.subs = nextSub
  else prevSub.nextSub = nextSub
  if (nextSub === undefined) dep.subsTail = prevSub
  else nextSub.prevSub = prevSub
  link.isAttached = false
  link.prevSub = undefined
  link.nextSub = undefined
  dep.graph.linkCount--
  if (dep.subs === undefined && (dep.flags & HOOKED) !== 0) dep.graph.context.noteObservation(dep)
}

/** Removes all observers of a signal. They keep what they have read, and are not marked any more. */
export function removeObservers(node: GraphNode): void {
  for (let link = node.subs; link !== undefined; link = node.subs) remove(link)
}

/** Puts the observers of a node in the order of their ranks; equal ranks keep their order. */
export function reorderSubs(node: GraphNode, rank: (sub: ReaderNode) => number): void {
  const links: Link[] = []
  for (let link = node.subs; link !== undefined; link = link.nextSub) links.push(link)
  links.sort((a, b) => rank(a.sub) - rank(b.sub))
  for (const [index, link] of links.entries()) {
    link.prevSub = links[index - 1]
    link.nextSub = links[index + 1]
  }
  node.subs = links[0]
  node.subsTail = links.at(-1)
}

/** Drops the links after the cursor: those that the run that just ended did not read. */
export function dropUnread(sub: ReaderNode): void {
  dropAfter(sub, sub.depsTail)
}

/** Drops every link after `last`, or all of them. */
export function dropAfter(sub: ReaderNode, last: Link | undefined): void {
  let link = last === undefined ? sub.deps : last.nextDep
  if (link === undefined) {
    sub.depsTail = last
    return
  }
  if (last === undefined) sub.deps = undefined
  else last.nextDep = undefined
  sub.depsTail = last
  while (link !== undefined) {
    const next: Link | undefined = link.nextDep
    link.nextDep = undefined
    detach(link)
    link = next
  }
}

/**
 * Marks every node that depends on `from`, and queues effects and spins in the order they are reached; all except
 * `except`, which need not run.
 */
export function markObservers(from: GraphNode, except?: GraphNode): void {
  let stack: Link[] | undefined
  let link = from.subs
  for (;;) {
    while (link === undefined) {
      link = stack?.pop()
      if (link === undefined) return
    }
    const sub: ReaderNode = link.sub
    const next: Link | undefined = link.nextSub
    if (sub === except) {
      link = next
      continue
    }
    const { flags } = sub
    if ((flags & OBSERVER) !== 0) reach(sub as ObserverNode)
    sub.flags |= MARKED
    if ((flags & MARKED) === 0 && sub.subs !== undefined) {
      if (next !== undefined) (stack ??= []).push(next)
      link = sub.subs
    } else {
      link = next
    }
  }
}

/** Queues an effect or spin for the drain. */
export function reach(node: ObserverNode): void {
  if ((node.flags & (QUEUED | DISPOSED)) !== 0) return
  node.flags |= QUEUED
  node.reachedBy = node.graph.write
  node.graph.reached.push(node)
}

/** True when the cached value of a computed is valid. */
export function isFresh(node: DerivedNode): boolean {
  const { flags } = node
  if ((flags & EVALUATED) === 0) return false
  return node.subs !== undefined ? (flags & MARKED) === 0 : node.validAt === node.graph.writes
}

/** Refreshes a computed: its dependencies first, and itself only if one of them has changed. */
export function refresh(target: DerivedNode): void {
  if (isFresh(target)) return
  let node = target
  let link = node.deps
  for (;;) {
    // A computed without a cached value, because it never ran or was in a cycle, is evaluated whatever it read.
    const stale: Link | undefined = (node.flags & EVALUATED) === 0 ? undefined : firstStale(link)
    if (stale !== undefined && mayDescend(stale)) {
      node = stale.dep as DerivedNode
      node.via = stale
      link = node.deps
      continue
    }
    if (stale === undefined && (node.flags & EVALUATED) !== 0) confirm(node)
    else node.evaluate()
    if (node === target) return
    const next: Link | undefined = climb(target, node)
    if (next === undefined) return
    node = next.sub as DerivedNode
    link = next.nextDep
  }
}

/**
 * Returns to the reader of a node that is fresh now. The node's stamp decides: a reader that saw another one is evaluated,
 * and its own reader is next. Returns the link after which the search continues, or undefined when the target is fresh.
 */
function climb(target: DerivedNode, from: DerivedNode): Link | undefined {
  let node = from
  while (node !== target) {
    const via = node.via as Link
    node.via = undefined
    if (via.stamp === node.stamp) return via
    node = via.sub as DerivedNode
    node.evaluate()
  }
  return undefined
}

/** Starting at `from`, the first link whose dependency is not known to be fresh, or has changed. */
function firstStale(from: Link | undefined): Link | undefined {
  let link = from
  while (link !== undefined) {
    const dep = link.dep
    if (link.stamp !== dep.stamp || ((dep.flags & COMPUTED) !== 0 && !isFresh(dep as DerivedNode))) return link
    link = link.nextDep
  }
  return undefined
}

/**
 * True when a dependency must be refreshed before its reader. A dependency that is being evaluated closes a cycle, and
 * evaluating its reader makes the reader throw `CycleError`. One that an outer walk is about to return to is refreshed by
 * the evaluation of its reader.
 */
function mayDescend({ dep, stamp }: Link): boolean {
  if ((dep.flags & (COMPUTED | RUNNING)) !== COMPUTED || (dep as DerivedNode).via !== undefined) return false
  // With the same stamp it was found because it is not fresh.
  return stamp === dep.stamp || !isFresh(dep as DerivedNode)
}

/** Records that a computed was validated. */
function confirm(node: DerivedNode): void {
  node.flags &= ~MARKED
  node.validAt = node.graph.writes
}

/** True when something an effect read has changed. */
export function hasChangedDeps(sub: ReaderNode): boolean {
  for (let link = sub.deps; link !== undefined; link = link.nextDep) {
    const { dep } = link
    if ((dep.flags & COMPUTED) !== 0) refresh(dep as DerivedNode)
    if (link.stamp !== dep.stamp) return true
  }
  return false
}

/** How many nodes observe this one. */
export function observersOf(node: GraphNode): number {
  const seen = new Set<GraphNode>()
  for (let link = node.subs; link !== undefined; link = link.nextSub) seen.add(link.sub)
  return seen.size
}
