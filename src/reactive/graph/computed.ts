import { requireContext, swapContext } from '../context/ambient.js'
import type { Handle } from './cell.js'
import { readableContext } from './cell.js'
import type { ReactiveContext } from '../context/context.js'
import { CycleError, describe } from '../errors.js'
import type { Graph } from './graph.js'
import {
  COMPUTED,
  DerivedNode,
  EVALUATED,
  FAILED,
  IN_CYCLE,
  MARKED,
  RUNNING,
  dropUnread,
  readByActive,
  refresh,
} from './graph.js'
import { LatestValues, streamOf } from './latest-values.js'
import type { Result } from '../result.js'
import { failure, success } from '../result.js'
import type { Equality } from './signal.js'
import { checkCellOptions, isEqual, refuseForeignRead } from './signal.js'

export interface ComputedOptions<T> {
  /** When a new value counts as unchanged, so that dependents do not run. Default: `Object.is`. */
  readonly equals?: Equality<T> | undefined
}

/** A cached, lazy, pure function of signals and other computeds. `for await` reads its latest values. */
export interface Computed<T> extends AsyncIterable<T> {
  readonly addr: string
  /** The value, or throws the error of the function; inside a `computed` or `effect` it records a dependency. */
  get(): T
  /** The value, without recording a dependency. */
  peek(): T
  /** A stream of the latest values, beginning with the present one. Values that a slow reader missed are skipped. */
  stream(): ReadableStream<T>
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
export function computed<T>(f: () => T, options?: ComputedOptions<T>): Computed<T> {
  const context = requireContext('computed')
  if (typeof f !== 'function') throw new TypeError(`computed: expected a function, got ${describe(f)}`)
  if (options !== undefined) checkCellOptions('computed', options)
  return new ComputedNode(context.graph, f, options?.equals)
}

/** A computed is its own handle, as a signal is. */
export class ComputedNode<T = unknown> extends DerivedNode implements Computed<T>, Handle {
  readonly #f: () => T
  readonly #equals: Equality<T> | undefined
  /** The value, or the error that the function threw. */
  #outcome: unknown = undefined
  old: T | undefined = undefined
  /** How often the value changed. */
  version = -1

  constructor(graph: Graph, f: () => T, equals: Equality<T> | undefined) {
    super(graph, COMPUTED)
    this.#f = f
    this.#equals = equals
  }

  get home(): ReactiveContext {
    return this.graph.context
  }

  get addr(): string {
    return this.#f.name === '' ? 'computed' : `computed ${this.#f.name}`
  }

  get(): T {
    return this.graph.isForked ? readableContext(this, 'computed.get').nodeFor(this).readBy(this) : this.readBy(this)
  }

  private readBy(handle: ComputedNode<T>): T {
    const active = this.graph.active
    if (active === undefined) {
      refuseForeignRead(handle)
      this.bringUpToDate()
    } else {
      this.bringUpToDate()
      // Linked after the refresh, so that the link records the stamp of the value that is returned.
      readByActive(active, this)
    }
    return this.unwrap()
  }

  peek(): T {
    const node = readableContext(this, 'computed.peek').nodeFor(this)
    withoutReader(node.graph, () => node.bringUpToDate())
    return node.unwrap()
  }

  /** A node of a fork with the same function and the same cached value; the caller gives it its dependencies. */
  copyTo(graph: Graph): ComputedNode<T> {
    const copy = new ComputedNode(graph, this.#f, this.#equals)
    copy.#outcome = this.#outcome
    copy.old = this.old
    copy.version = this.version
    copy.stamp = this.stamp
    copy.flags |= this.flags & (EVALUATED | FAILED)
    return copy
  }

  /** The last outcome; call `bringUpToDate` first. */
  get result(): Result<T> {
    return (this.flags & FAILED) === 0 ? success(this.#outcome as T) : failure(this.#outcome)
  }

  bringUpToDate(): void {
    const { flags } = this
    // The common case first: an observed computed that no write has marked.
    if ((flags & (EVALUATED | MARKED | RUNNING)) === EVALUATED && this.subs !== undefined) return
    if ((flags & RUNNING) !== 0) throw new CycleError(this.findCycle())
    refresh(this)
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return new LatestValues(readableContext(this, 'computed values'), this)
  }

  stream(...options: unknown[]): ReadableStream<T> {
    return streamOf(this, options)
  }

  dropped(): void {}

  override evaluate(): void {
    const { graph } = this
    const { active, activeRunId, evaluating } = graph
    const before = swapContext(graph.context)
    graph.active = this
    graph.activeRunId = graph.drawRunId()
    evaluating.push(this)
    this.depsTail = undefined
    this.flags = (this.flags & ~IN_CYCLE) | RUNNING
    try {
      this.store(this.#f(), 0)
    } catch (error) {
      this.store(error, FAILED)
    }
    // The read that closed the cycle is not a dependency, so the result is not cached: the next reader evaluates again.
    const { flags } = this
    this.flags = (flags & ~(RUNNING | MARKED | EVALUATED)) | ((flags & IN_CYCLE) !== 0 ? 0 : EVALUATED)
    this.validAt = graph.writes
    evaluating.pop()
    graph.active = active
    graph.activeRunId = activeRunId
    swapContext(before)
    dropUnread(this)
  }

  private unwrap(): T {
    if ((this.flags & FAILED) !== 0) throw this.#outcome
    return this.#outcome as T
  }

  private store(outcome: unknown, failed: number): void {
    const { flags } = this
    if ((flags & EVALUATED) !== 0 && (flags & FAILED) === failed && this.isSame(outcome)) return
    this.old = (flags & FAILED) === 0 ? (this.#outcome as T) : undefined
    this.#outcome = outcome
    this.flags = (flags & ~FAILED) | failed
    this.version++
    this.stamp = this.graph.drawStamp()
  }

  private isSame(outcome: unknown): boolean {
    const equals = this.#equals
    if (equals === undefined || (this.flags & FAILED) !== 0) return Object.is(this.#outcome, outcome)
    return isEqual(this.home, equals, this.#outcome as T, outcome as T, this)
  }

  /** The addresses on the cycle; marks every computed on it. */
  private findCycle(): string[] {
    const { evaluating } = this.graph
    const onCycle = evaluating.slice(evaluating.lastIndexOf(this)) as ComputedNode[]
    for (const node of onCycle) node.flags |= IN_CYCLE
    return [...onCycle.map((node) => node.addr), this.addr]
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
