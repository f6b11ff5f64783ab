import { Fifo } from '../drain/fifo.js'

/**
 * The dependency graph: who reads whom, and what may be out of date. It knows nothing of values.
 *
 * Push marks, pull validates. A write only *marks* everything that could be affected; nothing runs. A marked node is
 * then *validated*: each of its dependencies is brought up to date first, and its stamp is compared with the stamp the
 * link remembers. A stamp is a number drawn when a value really changes, so equal stamps all along mean that the node
 * is as good as new and does not run. From this one rule follow the order (a dependency is always fresh before its
 * reader runs), at most one run for a change however many paths lead to it, correct edges that are found while
 * running, and the cut where a value came out equal.
 *
 *     signal ──link{stamp}──▶ computed ──link{stamp}──▶ effect or spin
 *        write: mark ───────────▶ ● ──────────────────────▶ ●  (reached, in this order)
 *                                 ◀── fresh? ── compare ────┘  (when the drain comes to it)
 *
 * Links are made the moment a value is read, and those a finished run no longer used are dropped in one step. Each
 * node's links form a list in reading order with a cursor, so a run that reads the same things again allocates nothing.
 * A computed that nobody observes holds its dependencies but is not held by them, and costs nothing until it is read.
 * All walks here use their own stack: a chain of ten thousand nodes is no deeper than one.
 */
export class Graph {
  /** The last stamp drawn. Shared by a root context and all that will be forked from it. */
  stamp = 0
  /** How many writes there were: a computed nobody observes was checked at one of these. */
  writes = 0
  /** The computed or effect that is running now and collects what it reads, and the number of its run. */
  active: GraphNode | undefined
  activeRun = 0
  /** How many computeds are being evaluated; while it is not 0 nothing may be written. */
  computing = 0
  /** Effects and spins that were marked and wait to be looked at, in the order they were reached. */
  readonly reached = new Fifo<GraphNode>()
  /** The write that made the code run that is running now; undefined when something outside did. */
  trigger: Write | undefined
  nodeCount = 0
  linkCount = 0
  #lastRun = 0
  #write: Write | undefined

  drawStamp(): number {
    return ++this.stamp
  }

  drawRun(): number {
    return ++this.#lastRun
  }

  /** Notes whose code is about to write; all writes of one run are one. */
  noteWriter(writer: GraphNode | undefined): void {
    const { trigger } = this
    if (writer === undefined) this.#write = undefined
    else if (this.#write?.writer !== writer || this.#write.before !== trigger) this.#write = { writer, before: trigger }
  }

  /** The last write noted: what reaches a node now. */
  get write(): Write | undefined {
    return this.#write
  }
}

/** That a spin or effect wrote, and the write that had made it run: a chain in which a feedback shows as a repetition. */
export interface Write {
  readonly writer: GraphNode
  readonly before: Write | undefined
}

/** How often its last writer stands in a chain of writes: how often its own writes have brought it back. */
export function countRounds(write: Write): number {
  let count = 0
  for (let link: Write | undefined = write; link !== undefined; link = link.before) {
    if (link.writer === write.writer) count++
  }
  return count
}

export const SIGNAL = 0
export const COMPUTED = 1
export const EFFECT = 2
export const SPIN = 3
export type NodeKind = typeof SIGNAL | typeof COMPUTED | typeof EFFECT | typeof SPIN

/** May be out of date. Whoever depends on a marked node is marked too. */
export const MARKED = 1
/** Stands in `reached`. */
export const QUEUED = 2
/** Its function is on the call stack. */
export const RUNNING = 4
export const DISPOSED = 8
/** A computed that has a value or an error. */
export const EVALUATED = 16
/** A spin whose code was replaced: it runs again whatever its stamps say. */
export const STALE = 32

/** So often may the writes of one spin or effect bring it back, before something outside happens, until it is stopped. */
export const CAUSED_MAX = 100

/** Takes the present values of everything a node read as seen. */
export function acceptDeps(node: GraphNode): void {
  for (let link = node.deps; link !== undefined; link = link.nextDep) link.stamp = link.dep.stamp
  node.flags &= ~(MARKED | STALE)
}

export abstract class GraphNode {
  abstract readonly kind: NodeKind
  readonly graph: Graph
  flags = 0
  /** Drawn each time the value changed. */
  stamp = 0
  deps: Link | undefined
  /** The cursor: the last link used by the run in progress, or by the last one. */
  depsTail: Link | undefined
  subs: Link | undefined
  subsTail: Link | undefined
  /** The last run that read this node, so that a second read in the same run costs nothing. */
  readInRun = 0
  /** While in `reached`: the write that put it there. */
  reachedBy: Write | undefined
  /** For an unobserved computed: the write count at which it was last known to be valid. */
  validAt = -1

  constructor(graph: Graph) {
    this.graph = graph
    graph.nodeCount++
  }

  /** Computeds only: run the function again. */
  evaluate(): void {}
}

export class Link {
  readonly dep: GraphNode
  readonly sub: GraphNode
  /** The dependency's stamp when it was read. */
  stamp: number
  isAttached = false
  nextDep: Link | undefined
  prevSub: Link | undefined
  nextSub: Link | undefined

  constructor(dep: GraphNode, sub: GraphNode, stamp: number, nextDep: Link | undefined) {
    this.dep = dep
    this.sub = sub
    this.stamp = stamp
    this.nextDep = nextDep
  }
}

/** A computed or effect read `dep`; a second read in one run is free. */
export function readByActive(active: GraphNode, dep: GraphNode): void {
  const run = dep.graph.activeRun
  if (dep.readInRun === run) return
  dep.readInRun = run
  recordRead(active, dep)
}

/** Records that `sub` reads `dep` now, reusing the link of the last run when the order is the same. */
export function recordRead(sub: GraphNode, dep: GraphNode): Link {
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

/** Effects and spins observe from the start; a computed does while somebody observes it. */
function isObserving(node: GraphNode): boolean {
  return node.kind >= EFFECT || node.subs !== undefined
}

function attach(first: Link): void {
  if (first.dep.kind !== COMPUTED || first.dep.subs !== undefined) return append(first)
  const todo = [first]
  for (let link = todo.pop(); link !== undefined; link = todo.pop()) {
    const dep = link.dep
    const wasObserved = dep.subs !== undefined
    append(link)
    if (dep.kind !== COMPUTED || wasObserved) continue
    // It was fresh when it was read a moment ago; from now on it is told of changes instead of asking.
    dep.flags &= ~MARKED
    for (let inner = dep.deps; inner !== undefined; inner = inner.nextDep) todo.push(inner)
  }
}

function append(link: Link): void {
  const dep = link.dep
  link.isAttached = true
  link.prevSub = dep.subsTail
  if (dep.subsTail === undefined) dep.subs = link
  else dep.subsTail.nextSub = link
  dep.subsTail = link
  dep.graph.linkCount++
}

function detach(first: Link): void {
  if (first.isAttached && first.dep.kind !== COMPUTED) return remove(first)
  const todo = [first]
  for (let link = todo.pop(); link !== undefined; link = todo.pop()) {
    if (!link.isAttached) continue
    remove(link)
    const dep = link.dep
    if (dep.kind !== COMPUTED || dep.subs !== undefined) continue
    // Unobserved again: valid as of now unless a mark says otherwise, and no longer held by what it reads.
    if ((dep.flags & MARKED) === 0) dep.validAt = dep.graph.writes
    dep.flags &= ~MARKED
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
}

/** Drops the links after the cursor: what the run that ended just now did not read. */
export function dropUnread(sub: GraphNode): void {
  dropAfter(sub, sub.depsTail)
}

/** Drops every link after `last`, or all of them. */
export function dropAfter(sub: GraphNode, last: Link | undefined): void {
  let link = last === undefined ? sub.deps : last.nextDep
  if (last === undefined) sub.deps = undefined
  else last.nextDep = undefined
  sub.depsTail = last
  while (link !== undefined) {
    const next = link.nextDep
    link.nextDep = undefined
    detach(link)
    link = next
  }
}

/**
 * Marks everything that depends on `from`, and notes effects and spins in the order they are reached; all but `except`,
 * which knows already.
 */
export function markObservers(from: GraphNode, except?: GraphNode): void {
  const stack: Link[] = []
  let link = from.subs
  for (;;) {
    while (link === undefined) {
      link = stack.pop()
      if (link === undefined) return
    }
    const sub: GraphNode = link.sub
    const next: Link | undefined = link.nextSub
    if (sub === except) {
      link = next
      continue
    }
    if (sub.kind >= EFFECT) reach(sub)
    if ((sub.flags & MARKED) === 0 && sub.subs !== undefined) {
      sub.flags |= MARKED
      if (next !== undefined) stack.push(next)
      link = sub.subs
    } else {
      sub.flags |= MARKED
      link = next
    }
  }
}

/** Notes an effect or spin as one to look at. */
export function reach(node: GraphNode): void {
  if ((node.flags & (QUEUED | DISPOSED)) !== 0) return
  node.flags |= QUEUED
  node.reachedBy = node.graph.write
  node.graph.reached.push(node)
}

/** True when a computed's value can be used as it is. */
export function isFresh(node: GraphNode): boolean {
  if ((node.flags & EVALUATED) === 0) return false
  return node.subs !== undefined ? (node.flags & MARKED) === 0 : node.validAt === node.graph.writes
}

/** Brings a computed up to date: its dependencies first, itself only if one of them really changed. */
export function refresh(target: GraphNode): void {
  if (isFresh(target)) return
  if ((target.flags & EVALUATED) === 0) return target.evaluate()
  let above: Climb | undefined
  let node = target
  let link = target.deps
  for (;;) {
    // One that keeps no value, because it was in a cycle, is asked again whatever it read.
    const isKept = (node.flags & EVALUATED) !== 0
    const stale = isKept ? firstStale(link) : undefined
    if (stale !== undefined && mustDescend(stale.dep)) {
      above = { node, link: stale, above }
      node = stale.dep
      link = node.deps
      continue
    }
    if (isKept && stale === undefined) confirm(node)
    else node.evaluate()
    // Climb: the dependency is fresh now, so its stamp decides whether the search goes on after it.
    while (above !== undefined && above.link.stamp !== above.link.dep.stamp) {
      above.node.evaluate()
      above = above.above
    }
    if (above === undefined) return
    node = above.node
    link = above.link.nextDep
    above = above.above
  }
}

interface Climb {
  readonly node: GraphNode
  readonly link: Link
  readonly above: Climb | undefined
}

/** From `link` on, the first dependency that changed or that is itself not known to be fresh. */
function firstStale(from: Link | undefined): Link | undefined {
  let link = from
  while (link !== undefined) {
    const dep = link.dep
    if (link.stamp !== dep.stamp || (dep.kind === COMPUTED && !isFresh(dep))) return link
    link = link.nextDep
  }
  return undefined
}

/** A dependency that is being evaluated right now closes a cycle: evaluating its reader makes that one say so. */
function mustDescend(dep: GraphNode): boolean {
  return dep.kind === COMPUTED && (dep.flags & RUNNING) === 0 && !isFresh(dep)
}

/** Notes that a computed was checked and is valid. */
export function confirm(node: GraphNode): void {
  node.flags &= ~MARKED
  node.validAt = node.graph.writes
}

/** True when something an effect read has really changed. */
export function hasChangedDeps(sub: GraphNode): boolean {
  for (let link = sub.deps; link !== undefined; link = link.nextDep) {
    if (link.dep.kind === COMPUTED) refresh(link.dep)
    if (link.stamp !== link.dep.stamp) return true
  }
  return false
}

/** How many nodes observe this one. */
export function observersOf(node: GraphNode): number {
  const seen = new Set<GraphNode>()
  for (let link = node.subs; link !== undefined; link = link.nextSub) seen.add(link.sub)
  return seen.size
}
