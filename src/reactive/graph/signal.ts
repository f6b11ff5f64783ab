import { ambientContext, requireContext } from '../context/ambient.js'
import { Cell } from './cell.js'
import type { ReactiveContext } from '../context/context.js'
import { ContextStoppedError, EffectTypeError, ForeignContextError, describe } from '../errors.js'
import type { Graph } from './graph.js'
import { GraphNode, SIGNAL, markObservers, readByActive } from './graph.js'

/** `false`: every write counts as a change. A function: true when the two are the same. Default: `Object.is`. */
export type Equality<T> = false | ((a: T, b: T) => boolean)

export interface SignalOptions<T> {
  /** The name of the cell in addresses and messages. Default: none, cells are numbered. */
  readonly key?: string | undefined
  /** When a written value counts as unchanged, so that the write has no effect. Default: `Object.is`. */
  readonly equals?: Equality<T> | undefined
}

/** A mutable cell. */
export interface Signal<T> {
  readonly addr: string
  /** How many writes changed the value. */
  readonly version: number
  /** The value; inside a `computed` or `effect` this also records a dependency. */
  get(): T
  /** The value, without recording a dependency. */
  peek(): T
  /** Stores a value and returns it. Reads see it at once; effects and spins run in the next drain. */
  set(value: T): T
  /** Stores `f(value)`. When `f` throws, the signal is unchanged. */
  update(f: (old: T) => T): T
  /** Stores `next` only if the value is still `seen`. */
  compareAndSet(seen: T, next: T): boolean
  /** Stores what `f` resolves to; starts over from the fresh value when the signal was written meanwhile. */
  updateAsync(f: (old: T) => Promise<T>): Promise<T>
  /** Calls `f(next, old)` after each write that changes the value, also inside a batch. The same key replaces a watcher. */
  watch(key: unknown, f: (next: T, old: T) => void): () => void
}

/**
 * Creates a signal in the current context.
 *
 * ```ts
 * import { createSimulation, signal } from 'millrace/reactive'
 *
 * const ctx = createSimulation()
 * const price = ctx.enter(() => signal(100))
 * ctx.enter(() => price.update((p) => p + 1)) // 101
 * ```
 */
export function signal<T>(value: T, options: SignalOptions<T> = {}): Signal<T> {
  const context = requireContext('signal')
  checkCellOptions('signal', options)
  return context.openCell('signal', options.key, (addr) => {
    const node = new SignalNode<unknown>(context.graph, addr, value, options.equals as Equality<unknown> | undefined)
    return new SignalCell(context, node)
  }) as unknown as Signal<T>
}

export class SignalNode<T = unknown> extends GraphNode {
  readonly kind = SIGNAL
  readonly addr: string
  value: T
  /** The value before the last change. */
  old: T | undefined
  version = 0
  readonly equals: Equality<T> | undefined
  watchers: Map<unknown, (next: T, old: T) => void> | undefined

  constructor(graph: Graph, addr: string, value: T, equals: Equality<T> | undefined) {
    super(graph)
    this.addr = addr
    this.value = value
    this.equals = equals
  }
}

export class SignalCell<T = unknown> extends Cell implements Signal<T> {
  readonly node: SignalNode<T>

  constructor(home: ReactiveContext, node: SignalNode<T>) {
    super(home, node.addr)
    this.node = node
  }

  get version(): number {
    return this.node.version
  }

  get(): T {
    const node = this.node
    const active = node.graph.active
    if (active !== undefined) readByActive(active, node)
    else refuseForeignRead(this)
    return node.value
  }

  peek(): T {
    this.readable('signal.peek')
    return this.node.value
  }

  set(value: T): T {
    return write(this.writable('signal.set'), this.node, value)
  }

  update(f: (old: T) => T): T {
    const context = this.writable('signal.update')
    return write(context, this.node, f(this.node.value))
  }

  compareAndSet(seen: T, next: T): boolean {
    const context = this.writable('signal.compareAndSet')
    if (!Object.is(this.node.value, seen)) return false
    write(context, this.node, next)
    return true
  }

  async updateAsync(f: (old: T) => Promise<T>): Promise<T> {
    const context = this.writable('signal.updateAsync')
    for (;;) {
      const seen = this.node.value
      const next = await f(seen)
      if (context.state !== 'running') throw new ContextStoppedError('signal.updateAsync', context.state)
      if (Object.is(this.node.value, seen)) return write(context, this.node, next)
    }
  }

  watch(key: unknown, f: (next: T, old: T) => void): () => void {
    refuseInComputed(this.home, 'signal.watch')
    if (typeof f !== 'function') throw new TypeError(`signal.watch: expected a function, got ${describe(f)}`)
    const watchers = (this.node.watchers ??= new Map())
    watchers.set(key, f)
    return () => {
      if (watchers.get(key) === f) watchers.delete(key)
    }
  }
}

/** Stores a value: draws a stamp, marks observers, calls watchers, and queues the event for the drain. */
function write<T>(context: ReactiveContext, node: SignalNode<T>, value: T): T {
  const old = node.value
  if (isEqual(context, node.equals, old, value, node)) return old
  context.batch?.note(node as SignalNode)
  node.old = old
  node.value = value
  node.version++
  node.stamp = context.graph.drawStamp()
  context.graph.writes++
  context.graph.noteWriter(context.cause)
  markObservers(node)
  if (context.batch === undefined) context.announceChange(node as SignalNode)
  if (node.watchers !== undefined) callWatchers(context, node, value, old)
  if (context.batch === undefined) context.trigger()
  return value
}

/** Compares by the given rule. A comparator that throws counts as "changed" and is reported. */
export function isEqual<T>(
  context: ReactiveContext,
  equals: Equality<T> | undefined,
  a: T,
  b: T,
  subject: { readonly addr: string },
): boolean {
  if (equals === undefined) return Object.is(a, b)
  if (equals === false) return false
  try {
    return equals(a, b)
  } catch (error) {
    context.fault('event-error', 'equals', error, subject.addr)
    return false
  }
}

function callWatchers<T>(context: ReactiveContext, node: SignalNode<T>, next: T, old: T): void {
  for (const watcher of Array.from(node.watchers?.values() ?? [])) {
    try {
      watcher(next, old)
    } catch (error) {
      context.fault('watcher-fault', 'watch', error, node.addr)
    }
  }
}

/** A computed or effect of another root would not run again when this cell changes, so its read is refused. */
export function refuseForeignRead(cell: Cell): void {
  if (cell.home.state === 'closed') throw new ContextStoppedError('get', 'closed')
  const context = ambientContext()
  if (context !== undefined && context.root !== cell.home.root && context.graph.active !== undefined) {
    throw new ForeignContextError(`get: ${cell.addr}`)
  }
}

/** The options of each constructor that has more than `key`. */
const KNOWN_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  signal: ['key', 'equals'],
  computed: ['equals'],
  spin: ['key', 'deps', 'equals'],
}

export function checkCellOptions(what: string, options: { readonly key?: unknown; readonly equals?: unknown }): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${what}: options must be an object, got ${describe(options)}`)
  }
  const known = KNOWN_OPTIONS[what] ?? ['key']
  const unknown = Object.keys(options).filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    throw new TypeError(`${what}: unknown option ${unknown.join(', ')}; known are ${known.join(', ')}`)
  }
  const { key, equals } = options
  if (key !== undefined && typeof key !== 'string') {
    throw new TypeError(`${what}: options.key must be a string, got ${describe(key)}`)
  }
  if (equals !== undefined && equals !== false && typeof equals !== 'function') {
    throw new TypeError(
      `${what}: options.equals must be false or a function (a, b) => boolean, got ${describe(equals)}`,
    )
  }
}

/** Refuses an operation inside a computed, which must be pure. */
export function refuseInComputed(context: ReactiveContext, what: string): void {
  if (context.graph.computing > 0) {
    throw new EffectTypeError(`${what}: a computed may only read; do this in an effect, a spin or plain code`)
  }
}
