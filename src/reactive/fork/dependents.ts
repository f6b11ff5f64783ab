import type { ReactiveContext } from '../context/context.js'
import { ComputedNode } from '../graph/computed.js'
import { GraphNode } from '../graph/graph.js'
import { SpinNode } from '../spins/spin.js'
import type { Place } from './place.js'
import { isOf } from './place.js'

/**
 * The home nodes of the computeds and spins that a change of a place may reach, as `context` sees them, in the order in
 * which they are reached: observers, waiting runs, and what these reach in turn. Effects are left out.
 */
export function dependentsOf(home: Place, context: ReactiveContext): (ComputedNode | SpinNode)[] {
  const found = new Set(directDependents(home, context))
  for (const each of found) {
    for (const next of directDependents(each, context)) found.add(next) // A set also yields what is added meanwhile.
  }
  return [...found]
}

/** The home nodes of the computeds and spins that read or wait for a place in this context or in one it was forked from. */
export function* directDependents(home: Place, context: ReactiveContext): Generator<ComputedNode | SpinNode> {
  for (let level: ReactiveContext | undefined = context; level !== undefined; level = level.parent) {
    const node = level.existing(home)
    if (isOf(node, level)) yield* homesOf(readersOf(node, home, level), level)
    if (isOf(home, level)) return // It does not exist further up.
  }
}

function* homesOf(nodes: Iterable<unknown>, level: ReactiveContext): Generator<ComputedNode | SpinNode> {
  for (const node of nodes) if (node instanceof SpinNode || node instanceof ComputedNode) yield level.homeOf(node)
}

function* readersOf(node: Place, home: Place, level: ReactiveContext): Generator<unknown> {
  if (node instanceof GraphNode) for (let link = node.subs; link !== undefined; link = link.nextSub) yield link.sub
  if (node instanceof GraphNode && !(node instanceof SpinNode)) return
  for (const request of node.waiters ?? []) yield request.run?.node
  if (node instanceof SpinNode) return
  // A run that was handed a message or a value, and has not got it yet, does not wait any more.
  for (const run of level.runs) if (run.parked?.entry?.target === home) yield run.node
}
