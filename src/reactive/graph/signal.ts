import { ambientContext, requireContext, swapContext } from '../context/ambient.js'
import type { Handle } from './cell.js'
import { isIn, readableContext, writableContext } from './cell.js'
import type { ReactiveContext } from '../context/context.js'
import { ContextStoppedError, DisposedError, EffectTypeError, ForeignContextError, describe } from '../errors.js'
import type { Cleanup } from './effect.js'
import type { Graph } from './graph.js'
import { DISPOSED, FOLLOWING, GraphNode, HOOKED, markObservers, readByActive, removeObservers } from './graph.js'
import { LatestValues, isDeferredFunction, streamOf } from './latest-values.js'
import { formatAddress } from '../replay/address.js'

/** `false`: every write counts as a change. A function: true when the two are the same. Default: `Object.is`. */
export type Equality<T> = false | ((a: T, b: T) => boolean)

export interface SignalOptions<T> {
  /** The name of the cell in addresses and messages. Default: none, cells are numbered. */
  readonly key?: string | undefined
  /** When a written value counts as unchanged, so that the write has no effect. Default: `Object.is`. */
  readonly equals?: Equality<T> | undefined
  /**
   * Called in a drain when the signal gets its first observer: an effect, a spin, a computed that is observed itself, a
   * watcher or a reader of its values. It may return a function, which is called when the last observer has ended, or the
   * context stops. Whatever context is current, the signal it is given is that of its own context: a source that speaks
   * inside a fork does not write to the fork. Default: none.
   */
  readonly whileObserved?: ((signal: FedSignal<T>) => void | Cleanup) | undefined
}

/** A signal as its feed sees it. */
export type FedSignal<T> = Pick<
  Signal<T>,
  'addr' | 'version' | 'get' | 'peek' | 'set' | 'update' | 'compareAndSet' | 'updateAsync'
>

/** A mutable cell. `for await (const value of signal)` reads its latest values; values that a slow reader missed are skipped. */
export interface Signal<T> extends AsyncIterable<T> {
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
  /** A stream of the latest values, beginning with the present one. Values that a slow reader missed are skipped. */
  stream(): ReadableStream<T>
  /** Removes its observers and watchers, and ends readers of its values. It keeps its value and refuses writes. */
  dispose(): void
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
export function signal<T>(value: T, options?: SignalOptions<T>): Signal<T> {
  const context = requireContext('signal')
  if (options !== undefined) checkCellOptions('signal', options)
  const extras = options === undefined ? undefined : extrasOf(options)
  if (context.activeRun === undefined && options?.key === undefined && context.restored === undefined) {
    return new SignalNode<T>(context.graph, context.scope.next('signal', ''), value, extras)
  }
  const make = (addr: string): SignalNode =>
    new SignalNode<T>(context.graph, addr, value, extras) as unknown as SignalNode
  return context.openCell('signal', options?.key, make) as unknown as Signal<T>
}

/** What few signals have. */
interface SignalExtras<T> {
  readonly equals: Equality<T> | undefined
  watchers: Map<unknown, (next: T, old: T) => void> | undefined
  feed: Feed<T> | undefined
  /** What to call when the signal is disposed. */
  endings: Set<() => void> | undefined
}

/** What runs while a signal is observed. */
interface Feed<T> {
  readonly start: (signal: FedSignal<T>) => void | Cleanup
  isStarted: boolean
  stop: Cleanup | undefined
}

function extrasOf<T>({ equals, whileObserved }: SignalOptions<T>): SignalExtras<T> | undefined {
  if (equals === undefined && whileObserved === undefined) return undefined
  const feed = whileObserved && { start: whileObserved, isStarted: false, stop: undefined }
  return { equals, watchers: undefined, feed, endings: undefined }
}

/** A signal is its own handle: one object, because programs have very many of them. */
export class SignalNode<T = unknown> extends GraphNode implements Signal<T>, Handle {
  /** The address, or the number of a signal that was created without a key outside any body: most have no text. */
  readonly #name: string | number
  value: T
  /** The value before the last change. */
  old: T | undefined = undefined
  /** How many writes changed the value. */
  changes = 0
  #extras: SignalExtras<T> | undefined

  constructor(graph: Graph, name: string | number, value: T, extras?: SignalExtras<T>) {
    super(graph, 0)
    this.#name = name
    this.value = value
    this.#extras = extras
    if (extras?.feed !== undefined) this.flags |= HOOKED
  }

  get home(): ReactiveContext {
    return this.graph.context
  }

  get addr(): string {
    const name = this.#name
    return typeof name === 'string' ? name : formatAddress(this.home.scope.path, 'signal', '', name)
  }

  get version(): number {
    return readableContext(this, 'signal.version').existing(this).changes
  }

  get(): T {
    if (!this.graph.isForked) return this.readBy(this)
    const context = readableContext(this, 'signal.get')
    if (context.graph.active !== undefined) return context.nodeFor(this).readBy(this)
    refuseForeignRead(this)
    return context.existing(this).value // A read that records no dependency needs no node of the fork.
  }

  peek(): T {
    return readableContext(this, 'signal.peek').existing(this).value
  }

  set(value: T): T {
    return this.writeIn(writableContext(this, 'signal.set'), value)
  }

  update(f: (old: T) => T): T {
    const context = writableContext(this, 'signal.update')
    return this.writeIn(context, f(context.nodeFor(this).value))
  }

  compareAndSet(seen: T, next: T): boolean {
    const context = writableContext(this, 'signal.compareAndSet')
    if (!Object.is(context.nodeFor(this).value, seen)) return false
    this.writeIn(context, next)
    return true
  }

  async updateAsync(f: (old: T) => Promise<T>): Promise<T> {
    const context = writableContext(this, 'signal.updateAsync')
    for (;;) {
      const seen = context.nodeFor(this).value
      const next = await f(seen)
      if (context.state !== 'running') throw new ContextStoppedError('signal.updateAsync', context.state)
      if (Object.is(context.nodeFor(this).value, seen)) return this.writeIn(context, next)
    }
  }

  watch(key: unknown, f: (next: T, old: T) => void): () => void {
    refuseInComputed(this.home, 'signal.watch')
    if (typeof f !== 'function') throw new TypeError(`signal.watch: expected a function, got ${describe(f)}`)
    const node = this.here('watch')
    node.refuseDisposed('watch')
    const watchers = (node.openExtras().watchers ??= new Map())
    watchers.set(key, f)
    node.noteObservation()
    return () => {
      if (watchers.get(key) !== f) return
      watchers.delete(key)
      node.noteObservation()
    }
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    return new LatestValues(readableContext(this, 'signal values'), this)
  }

  stream(...options: unknown[]): ReadableStream<T> {
    return streamOf(this, options)
  }

  dispose(): void {
    this.here('dispose').dropped()
  }

  dropped(): void {
    if ((this.flags & DISPOSED) === 0) this.end()
  }

  get isDisposed(): boolean {
    return (this.flags & DISPOSED) !== 0
  }

  /** Calls `end` when the signal is disposed in this context; returns a function that cancels that, or undefined if it is disposed. */
  onDispose(context: ReactiveContext, end: () => void): (() => void) | undefined {
    const node = context.nodeFor(this)
    if (node.isDisposed) return undefined
    const endings = (node.openExtras().endings ??= new Set())
    endings.add(end)
    return () => void endings.delete(end)
  }

  /** Starts or stops what runs while the signal is observed, if that has changed. Called in a drain. */
  syncFeed(context: ReactiveContext): void {
    const feed = this.#extras?.feed
    if (feed === undefined) return
    const hasObservers = this.subs !== undefined || (this.#extras?.watchers?.size ?? 0) > 0
    const isObserved = hasObservers && !this.isDisposed
    if (isObserved === feed.isStarted) return
    if (isObserved) this.startFeed(context, feed)
    else this.stopFeed(context)
  }

  stopFeed(context: ReactiveContext): void {
    const feed = this.#extras?.feed
    if (feed?.isStarted !== true) return
    const { stop } = feed
    feed.isStarted = false
    feed.stop = undefined
    context.feeds.delete(this as unknown as SignalNode)
    if (stop !== undefined) callHook(context, stop, this.addr)
  }

  isSame(context: ReactiveContext, a: T, b: T): boolean {
    const extras = this.#extras
    return extras === undefined ? Object.is(a, b) : isEqual(context, extras.equals, a, b, this)
  }

  /** A node of a fork for the same place, with the same value. Watchers stay with the context they were added in. */
  copyTo(graph: Graph): SignalNode<T> {
    // Without `whileObserved`: a what-if does not start the feeds of the world it was forked from.
    const copy = new SignalNode<T>(graph, this.#name, this.value, extrasOf({ equals: this.#extras?.equals }))
    copy.takeOver(this)
    if (this.isDisposed) copy.dropped()
    else copy.flags |= FOLLOWING
    return copy
  }

  /** Takes over the state of another node for the same place. */
  takeOver({ value, old, changes, stamp }: Pick<SignalNode, 'value' | 'old' | 'changes' | 'stamp'>): void {
    this.value = value as T
    this.old = old as T | undefined
    this.changes = changes
    this.stamp = stamp
  }

  /** The node of this place in the current context, if it exists there. */
  private here(what: string): SignalNode<T> {
    return readableContext(this, `signal.${what}`).nodeFor(this)
  }

  private readBy(handle: SignalNode<T>): T {
    const active = this.graph.active
    if (active !== undefined) readByActive(active, this)
    else refuseForeignRead(handle)
    return this.value
  }

  private writeIn(context: ReactiveContext, value: T): T {
    const { overlay } = context
    if (overlay === undefined) return this.writeHere(context, value)
    return overlay.change(this, (node) => node.writeHere(context, value))
  }

  /**
   * Stores a value: draws a stamp, marks observers, calls watchers, and queues the event for the drain. Without observers
   * the event would do nothing but count the generation, so that is done here.
   */
  private writeHere(context: ReactiveContext, value: T): T {
    if ((this.flags & DISPOSED) !== 0) this.refuseDisposed('write')
    const old = this.value
    if (this.isSame(context, old, value)) return old
    const { batch, graph } = context
    if (batch !== undefined) batch.note(this as unknown as SignalNode)
    this.old = old
    this.value = value
    this.changes++
    this.stamp = graph.drawStamp()
    graph.writes++
    const isHeard = this.subs !== undefined || context.isHeardEverywhere
    if (isHeard) {
      graph.noteWriter(context.cause)
      markObservers(this)
    }
    if (this.#extras?.watchers !== undefined) this.announceAndCall(context, isHeard, value, old)
    else if (batch === undefined) {
      if (isHeard) context.announceWrite(this as unknown as SignalNode)
      else context.generation++
    }
    return value
  }

  /** Watchers run after the write is queued and before the drain: a write of theirs comes after this one. */
  private announceAndCall(context: ReactiveContext, isHeard: boolean, next: T, old: T): void {
    const isSingle = context.batch === undefined
    if (isSingle && isHeard) context.announceChange(this as unknown as SignalNode, undefined)
    else if (isSingle) context.generation++
    this.callWatchers(context, next, old)
    context.trigger()
  }

  private refuseDisposed(what: string): void {
    if ((this.flags & DISPOSED) !== 0) throw new DisposedError(this.addr, `signal.${what}: signal`)
  }

  private openExtras(): SignalExtras<T> {
    return (this.#extras ??= { equals: undefined, watchers: undefined, feed: undefined, endings: undefined })
  }

  private noteObservation(): void {
    if ((this.flags & HOOKED) === 0) return
    this.home.noteObservation(this)
    this.home.trigger()
  }

  private startFeed(context: ReactiveContext, feed: Feed<T>): void {
    feed.isStarted = true
    context.feeds.add(this as unknown as SignalNode)
    callHook(context, () => void (feed.stop = checkStop(feed.start(new SignalAtHome(this)))), this.addr)
    if (context.state === 'running') return
    feed.isStarted = true // Its function stopped the context, and what it returned is to be called still.
    this.stopFeed(context)
  }

  private end(): void {
    this.flags = (this.flags & ~FOLLOWING) | DISPOSED
    this.graph.nodeCount--
    if (typeof this.#name === 'string') this.home.registry?.remove(this.#name)
    const extras = this.#extras
    for (const end of Array.from(extras?.endings ?? [])) end() // Readers take the last value while they observe it still.
    removeObservers(this)
    if (extras !== undefined) {
      extras.watchers = undefined
      extras.endings = undefined
      this.noteObservation()
    }
    this.home.forks?.followDispose(this as unknown as SignalNode)
  }

  callWatchers(context: ReactiveContext, next: T, old: T): void {
    for (const watcher of Array.from(this.#extras?.watchers?.values() ?? [])) {
      try {
        watcher(next, old)
      } catch (error) {
        context.fault('watcher-fault', 'watch', error, this.addr)
      }
    }
  }
}

/** Reads and writes a signal in the context that created it, whatever context is current. */
class SignalAtHome<T> implements FedSignal<T> {
  readonly #node: SignalNode<T>

  constructor(node: SignalNode<T>) {
    this.#node = node
  }

  get addr(): string {
    return this.#node.addr
  }

  get version(): number {
    return this.#atHome((node) => node.version)
  }

  get(): T {
    return this.#atHome((node) => node.get())
  }

  peek(): T {
    return this.#atHome((node) => node.peek())
  }

  set(value: T): T {
    return this.#atHome((node) => node.set(value))
  }

  update(f: (old: T) => T): T {
    return this.#atHome((node) => node.update(f))
  }

  compareAndSet(seen: T, next: T): boolean {
    return this.#atHome((node) => node.compareAndSet(seen, next))
  }

  updateAsync(f: (old: T) => Promise<T>): Promise<T> {
    return this.#atHome((node) => node.updateAsync(f))
  }

  #atHome<R>(use: (node: SignalNode<T>) => R): R {
    const node = this.#node
    const before = swapContext(node.home)
    try {
      return use(node)
    } finally {
      swapContext(before)
    }
  }
}

/** Calls a hook of the user; its error is reported. */
function callHook(context: ReactiveContext, hook: () => void, addr: string): void {
  try {
    hook()
  } catch (error) {
    context.fault('watcher-fault', 'whileObserved', error, addr)
  }
}

function checkStop(stop: unknown): Cleanup | undefined {
  if (stop === undefined || typeof stop === 'function') return stop as Cleanup | undefined
  throw new TypeError(`whileObserved must return nothing or a function that stops the feed, got ${describe(stop)}`)
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

/** A computed or effect of another root would not run again when this cell changes, so its read is refused. */
export function refuseForeignRead(cell: Handle): void {
  if (cell.home.state === 'closed') throw new ContextStoppedError('get', 'closed')
  const context = ambientContext()
  if (context !== undefined && context.graph.active !== undefined && !isIn(cell, context)) {
    throw new ForeignContextError(`get: ${cell.addr}`)
  }
}

/** The options of each constructor that has more than `key`. */
const KNOWN_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  signal: ['key', 'equals', 'whileObserved'],
  computed: ['equals'],
  spin: ['key', 'deps', 'equals'],
}

export function checkCellOptions(
  what: string,
  options: { readonly key?: unknown; readonly equals?: unknown; readonly whileObserved?: unknown },
): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${what}: options must be an object, got ${describe(options)}`)
  }
  const known = KNOWN_OPTIONS[what] ?? ['key']
  const unknown = Object.keys(options).filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    throw new TypeError(`${what}: unknown option ${unknown.join(', ')}; known are ${known.join(', ')}`)
  }
  const { key, equals, whileObserved } = options
  if (key !== undefined && typeof key !== 'string') {
    throw new TypeError(`${what}: options.key must be a string, got ${describe(key)}`)
  }
  if (equals !== undefined && equals !== false && typeof equals !== 'function') {
    throw new TypeError(
      `${what}: options.equals must be false or a function (a, b) => boolean, got ${describe(equals)}`,
    )
  }
  checkFeed(whileObserved)
}

/** The stop function of an async one would be a promise. */
function checkFeed(start: unknown): void {
  if (start === undefined || (typeof start === 'function' && !isDeferredFunction(start))) return
  throw new TypeError(
    `signal: options.whileObserved must be a plain function that returns a function to stop with, got ${describe(start)}` +
      (typeof start === 'function' ? ', which is async or a generator' : ''),
  )
}

/** Refuses an operation inside a computed, which must be pure. */
export function refuseInComputed(context: ReactiveContext, what: string): void {
  if (context.graph.evaluating.length > 0) {
    throw new EffectTypeError(`${what}: a computed may only read; do this in an effect, a spin or plain code`)
  }
}
