import { requireContext, swapContext } from '../context/ambient.js'
import { Cell } from './cell.js'
import type { ReactiveContext } from '../context/context.js'
import { CycleError, describe } from '../errors.js'
import type { Graph } from './graph.js'
import { COMPUTED, EVALUATED, GraphNode, MARKED, RUNNING, dropUnread, readByActive, refresh } from './graph.js'
import type { Equality } from './signal.js'
import { checkCellOptions, isEqual, refuseForeignRead } from './signal.js'

export interface ComputedOptions<T> {
  /** When a new value counts as the same, so that nobody downstream runs. Default: `Object.is`. */
  readonly equals?: Equality<T> | undefined
}

/** A cached, lazy, pure function of signals and other computeds. */
export interface Computed<T> {
  readonly addr: string
  /** The value, or throws what the function threw; inside a `computed` or `effect` this records a dependency. */
  get(): T
  /** The value, never a dependency. */
  peek(): T
}

/**
 * Creates a computed in the current context. It runs when it is read and something it read has changed.
 *
 * ```ts
 * import { computed, createSimulation, signal } from 'millrace/reactive'
 *
 * const ctx = createSimulation()
 * ctx.enter(() => {
 *   const price = signal(100)
 *   const tax = computed(() => price.get() * 0.2)
 *   return tax.get() // 20
 * })
 * ```
 */
export function computed<T>(f: () => T, options: ComputedOptions<T> = {}): Computed<T> {
  const context = requireContext('computed')
  if (typeof f !== 'function') throw new TypeError(`computed: expected a function, got ${describe(f)}`)
  checkCellOptions('computed', options)
  return new ComputedCell(context, new ComputedNode(context, f, options.equals))
}

export class ComputedNode<T = unknown> extends GraphNode {
  readonly kind = COMPUTED
  readonly context: ReactiveContext
  readonly #f: () => T
  readonly #equals: Equality<T> | undefined
  value: T | undefined
  old: T | undefined
  error: unknown
  isFailed = false
  /** How often the value changed. */
  version = -1
  /** While running: who asked, so that a cycle can be named. */
  #askedBy: GraphNode | undefined
  /** This evaluation met a cycle through this computed. */
  #isInCycle = false

  constructor(context: ReactiveContext, f: () => T, equals: Equality<T> | undefined) {
    super(context.graph)
    this.context = context
    this.#f = f
    this.#equals = equals
  }

  get addr(): string {
    return this.#f.name === '' ? 'computed' : `computed ${this.#f.name}`
  }

  /** The value, up to date. */
  read(): T {
    this.bringUp()
    return this.give()
  }

  bringUp(): void {
    if ((this.flags & RUNNING) !== 0) throw new CycleError(this.#cycle())
    refresh(this)
  }

  give(): T {
    if (this.isFailed) throw this.error
    return this.value as T
  }

  override evaluate(): void {
    const { graph } = this
    const { active, activeRun } = graph
    const before = swapContext(this.context)
    this.#askedBy = active
    graph.active = this
    graph.activeRun = graph.drawRun()
    graph.computing++
    this.depsTail = undefined
    this.#isInCycle = false
    this.flags |= RUNNING
    try {
      this.#take(this.#f(), undefined, false)
    } catch (error) {
      this.#take(undefined, error, true)
    }
    // The read that closed a cycle is no dependency, so what came of it is not kept: the next reader tries again.
    this.flags = (this.flags & ~(RUNNING | MARKED | EVALUATED)) | (this.#isInCycle ? 0 : EVALUATED)
    this.validAt = graph.writes
    graph.computing--
    graph.active = active
    graph.activeRun = activeRun
    this.#askedBy = undefined
    swapContext(before)
    dropUnread(this)
  }

  #take(value: T | undefined, error: unknown, isFailed: boolean): void {
    if ((this.flags & EVALUATED) !== 0 && this.isFailed === isFailed && this.#isSame(value, error)) return
    this.old = this.value
    this.value = value
    this.error = error
    this.isFailed = isFailed
    this.version++
    this.stamp = this.graph.drawStamp()
  }

  #isSame(value: T | undefined, error: unknown): boolean {
    if (this.isFailed) return Object.is(this.error, error)
    return isEqual(this.context, this.#equals, this.value as T, value as T, this)
  }

  /** The way round, as addresses; everyone on it is told. */
  #cycle(): string[] {
    const path = [this.addr]
    this.#isInCycle = true
    for (let node = this.graph.active; node instanceof ComputedNode && node !== this; node = node.#askedBy) {
      path.unshift(node.addr)
      node.#isInCycle = true
    }
    return [this.addr, ...path]
  }
}

export class ComputedCell<T = unknown> extends Cell implements Computed<T> {
  readonly node: ComputedNode<T>

  constructor(home: ReactiveContext, node: ComputedNode<T>) {
    super(home, node.addr)
    this.node = node
  }

  get(): T {
    const node = this.node
    const active = node.graph.active
    if (active === undefined) {
      refuseForeignRead(this)
      return node.read()
    }
    node.bringUp()
    // After that, so that the link remembers the stamp of what is given.
    readByActive(active, node)
    return node.give()
  }

  peek(): T {
    this.readable('computed.peek')
    return withoutReader(this.node.graph, () => this.node.read())
  }
}

/**
 * Reads without recording dependencies.
 *
 * ```ts
 * import { type Signal, untracked } from 'millrace/reactive'
 *
 * const seen = (count: Signal<number>): number => untracked(() => count.get())
 * ```
 */
export function untracked<R>(f: () => R): R {
  if (typeof f !== 'function') throw new TypeError(`untracked: expected a function, got ${describe(f)}`)
  return withoutReader(requireContext('untracked').graph, f)
}

/** Hides the running computed or effect from what `f` reads. */
function withoutReader<R>(graph: Graph, f: () => R): R {
  const active = graph.active
  graph.active = undefined
  try {
    return f()
  } finally {
    graph.active = active
  }
}
