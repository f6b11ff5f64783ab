import { requireContext, swapContext } from '../context/ambient.js'
import { Cell } from './cell.js'
import type { ReactiveContext } from '../context/context.js'
import { CycleError, describe } from '../errors.js'
import type { Graph } from './graph.js'
import { COMPUTED, EVALUATED, GraphNode, MARKED, RUNNING, dropUnread, readByActive, refresh } from './graph.js'
import type { Equality } from './signal.js'
import { checkCellOptions, isEqual, refuseForeignRead } from './signal.js'

export interface ComputedOptions<T> {
  /** When a new value counts as unchanged, so that dependents do not run. Default: `Object.is`. */
  readonly equals?: Equality<T> | undefined
}

/** A cached, lazy, pure function of signals and other computeds. */
export interface Computed<T> {
  readonly addr: string
  /** The value, or throws the error of the function; inside a `computed` or `effect` it records a dependency. */
  get(): T
  /** The value, without recording a dependency. */
  peek(): T
}

/**
 * Creates a computed in the current context. It runs when it is read after something it read has changed.
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
  /** While running: the computed or effect that reads this one. It is used to describe a cycle. */
  #reader: GraphNode | undefined
  /** This evaluation is part of a cycle. */
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

  read(): T {
    this.bringUpToDate()
    return this.unwrap()
  }

  bringUpToDate(): void {
    if ((this.flags & RUNNING) !== 0) throw new CycleError(this.#cycle())
    refresh(this)
  }

  unwrap(): T {
    if (this.isFailed) throw this.error
    return this.value as T
  }

  override evaluate(): void {
    const { graph } = this
    const { active, activeRunId } = graph
    const before = swapContext(this.context)
    this.#reader = active
    graph.active = this
    graph.activeRunId = graph.drawRunId()
    graph.computing++
    this.depsTail = undefined
    this.#isInCycle = false
    this.flags |= RUNNING
    try {
      this.#store(this.#f(), undefined, false)
    } catch (error) {
      this.#store(undefined, error, true)
    }
    // The read that closed the cycle is not a dependency, so the result is not cached: the next reader evaluates again.
    this.flags = (this.flags & ~(RUNNING | MARKED | EVALUATED)) | (this.#isInCycle ? 0 : EVALUATED)
    this.validAt = graph.writes
    graph.computing--
    graph.active = active
    graph.activeRunId = activeRunId
    this.#reader = undefined
    swapContext(before)
    dropUnread(this)
  }

  #store(value: T | undefined, error: unknown, isFailed: boolean): void {
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

  /** The addresses on the cycle; marks every computed on it. */
  #cycle(): string[] {
    const path = [this.addr]
    this.#isInCycle = true
    for (let node = this.graph.active; node instanceof ComputedNode && node !== this; node = node.#reader) {
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
    node.bringUpToDate()
    // Linked after the refresh, so that the link records the stamp of the value that is returned.
    readByActive(active, node)
    return node.unwrap()
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

/** Runs `f` without the running computed or effect recording what `f` reads. */
function withoutReader<R>(graph: Graph, f: () => R): R {
  const active = graph.active
  graph.active = undefined
  try {
    return f()
  } finally {
    graph.active = active
  }
}
