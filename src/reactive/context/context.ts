import { Scope, countedName } from '../replay/address.js'
import type { AddressKind } from '../replay/address.js'
import type { Estate } from './abandoned.js'
import { watchContext } from './abandoned.js'
import { captureStores, enter } from './ambient.js'
import type { Batch } from '../graph/batch.js'
import { PendingCalls } from './pending-calls.js'
import type { Cleanup } from '../spins/cancel.js'
import { endRun } from '../spins/cancel.js'
import type { Handle } from '../graph/cell.js'
import type { Timers } from '../executors/timers.js'
import { RealTimers, VirtualTimers, requireVirtual } from '../executors/timers.js'
import type { Context, ContextState, ContextStats, SpawnHandle, SpawnOptions } from './context-interface.js'
import type { Budget, DrainerOptions, SessionResult } from '../drain/drainer.js'
import { Drainer, handleEach } from '../drain/drainer.js'
import { LazyMap, LazySet } from '../drain/lazy-collections.js'
import { EffectNode } from '../graph/effect.js'
import {
  AddressCollisionError,
  ContextStoppedError,
  DerefInDrainError,
  DisposedError,
  EffectTypeError,
  NotSettledError,
  describe,
} from '../errors.js'
import type { Generation, ReactiveEvent } from '../drain/events.js'
import { failEvent, processEvent, settleWrite } from '../drain/events.js'
import type { Executor } from '../executors/executors.js'
import { checkDelay, eventLoopExecutor, runGuarded } from '../executors/executors.js'
import type { FaultCode } from '../fault.js'
import { reportFault } from '../fault.js'
import type { GraphNode } from '../graph/graph.js'
import { DISPOSED, Graph } from '../graph/graph.js'
import type { Stores } from '../host.js'
import * as host from '../host.js'
import { IdleWaits } from './idle.js'
import type { Entry, LogPolicy } from '../replay/log.js'
import { SpinRunner } from '../spins/spin-runner.js'
import { Registry } from '../snapshot/registry.js'
import { Restored } from '../snapshot/restored.js'
import type { Snapshot, SnapshotOptions } from '../snapshot/snapshot.js'
import { takeSnapshot } from '../snapshot/snapshot.js'
import type { StoredContext } from '../snapshot/stored.js'
import { ForkTimers } from '../fork/fork-timers.js'
import { Forks } from '../fork/forks.js'
import type { Place } from '../fork/place.js'
import { Overlay } from '../fork/overlay.js'
import type { ContextOptions, ForkOptions } from './options.js'
import { DRAIN_EVENTS_MAX, DRAIN_MS_MAX, LOG_ENTRIES_MAX, checkForkOptions, checkRecord } from './options.js'
import type { Result } from '../result.js'
import { failure, success, unwrap } from '../result.js'
import type { Wake } from '../spins/request.js'
import type { Run } from '../spins/run.js'
import type { SignalNode } from '../graph/signal.js'
import { refuseInComputed } from '../graph/signal.js'
import type { Body, Caller, Spin, SpinNode } from '../spins/spin.js'
import { SpinCell, nodeOf } from '../spins/spin.js'
import type { StopOptions, StopReport } from './stop.js'
import { Offloads, deadlineOf } from './stop.js'
import type { TraceListener } from './trace.js'
import { Tracer } from './trace.js'

export class ReactiveContext implements Context {
  readonly id = host.randomId()
  readonly parent: ReactiveContext | undefined
  readonly depth: number
  readonly root: ReactiveContext
  readonly bindings: Readonly<Record<string, unknown>>
  readonly graph: Graph
  /** The state of a fork; undefined for a root, which has all its state in its nodes. */
  readonly overlay: Overlay | undefined
  forks: Forks | undefined
  /** The cells and spins with a key that were created outside any body. */
  registry: Registry | undefined
  /** In a restored context: the stored state whose cells and spins have not been created yet. */
  readonly restored: Restored | undefined
  readonly spinRunner: SpinRunner = new SpinRunner(this)
  readonly timers: Timers
  readonly logPolicy: LogPolicy
  /** Addresses of cells and spins created outside any body. */
  readonly scope: Scope
  state: ContextState = 'running'
  generation = 0
  /** Bodies in progress, including those that clean up after a cancel. */
  readonly runs = new LazySet<Run>()
  /** Effects that have a clean-up function to call. */
  readonly cleanups = new LazySet<EffectNode>()
  /** Signals whose feed is started. */
  readonly feeds = new LazySet<SignalNode>()
  /** What to call when the context stops: readers of values end. */
  readonly endings = new LazySet<() => void>()
  /** Clean-ups whose children have ended, while they are being begun. */
  readonly dueCleanups: Cleanup[] = []
  /** When inherited and restored runs wake that were asleep and have no generator yet. */
  readonly wakes = new LazyMap<SpinNode, Wake>()
  waiterCount = 0
  /** The open batch. */
  batch: Batch | undefined
  /** A closed batch, for the next one to use. */
  spareBatch: Batch | undefined
  /** The run whose body is executing. */
  activeRun: Run | undefined
  /** The spin or effect whose code is executing. */
  cause: EffectNode | SpinNode | undefined
  /** Spins and effects that wrote since the queue was last empty. */
  readonly recentWriters: (EffectNode | SpinNode)[] = []
  /** The async-local stores in which the current body runs. */
  activeStores: Stores | undefined
  tracer: Tracer | undefined
  /** For tests: called between the last take of a session and the release of its lock. */
  beforeRelease: (() => void) | undefined
  readonly #executor: Executor
  readonly #drainer: Drainer<ReactiveEvent>
  readonly #budget: Budget & { readonly monotonic: () => number }
  readonly #onFault: ContextOptions['onFault']
  #idleWaits: IdleWaits | undefined
  #offloads: Offloads | undefined
  #pendingCalls: PendingCalls | undefined
  #isUnbounded: boolean
  readonly #isSynchronous: boolean
  #armings = 0
  #handles: FinalizationRegistry<SpinNode> | undefined
  #estate: Estate | undefined
  #isRunInBodyReported = false
  #stopped: Promise<StopReport> | undefined
  #closed: Promise<StopReport> | undefined
  #leftDrain: (() => void) | undefined

  constructor(options: ContextOptions, parent?: ReactiveContext, stored?: StoredContext) {
    const { executor = eventLoopExecutor(), clock = 'real', bindings = {}, keepAlive = true } = options
    this.parent = parent
    this.root = parent?.root ?? this
    this.depth = parent === undefined ? 0 : parent.depth + 1
    this.graph = new Graph(this, parent?.graph.stamps ?? { last: stored?.stamp ?? 0 })
    this.scope = new Scope('', parent?.scope)
    this.overlay = parent && new Overlay(this, parent)
    this.bindings = bindings
    this.#onFault = options.onFault
    this.#executor = parent === undefined ? executor : parent.#executor
    this.#isUnbounded = this.#executor.isInline === true
    this.#isSynchronous = this.#executor.execute === runGuarded
    const { events = DRAIN_EVENTS_MAX, ms = DRAIN_MS_MAX } = options.drainBudget ?? {}
    this.#budget = parent !== undefined ? parent.#budget : { events, ms, monotonic: host.monotonic }
    this.logPolicy = parent?.logPolicy ?? reactivePolicy(this, options.logLimit ?? LOG_ENTRIES_MAX)
    this.timers = this.#makeTimers(clock, keepAlive, stored?.now)
    this.#drainer = new Drainer<ReactiveEvent>(new DrainHooks(this))
    if (parent === undefined) watchContext(this, (this.#estate = this.#makeEstate()))
    if (stored === undefined) return
    this.generation = stored.generation
    this.#armings = stored.timers.length
    this.restored = new Restored(this, stored)
  }

  #makeEstate(): Estate {
    const { timers } = this
    return {
      id: this.id,
      executor: this.#executor,
      timers: timers instanceof RealTimers ? timers.handles : new Set(),
      onFault: this.#onFault && new WeakRef(this.#onFault),
      isClosed: false,
    }
  }

  #makeTimers(clock: 'real' | 'virtual', keepAlive: boolean, now: number | undefined): Timers {
    const { timers } = this.parent?.root ?? {}
    if (timers !== undefined) {
      const drain = timers instanceof VirtualTimers ? (): void => void this.drainNow() : (): void => undefined
      return new ForkTimers(timers, drain)
    }
    return clock === 'virtual' ? new VirtualTimers(now) : new RealTimers(this.#executor, keepAlive)
  }

  get isDraining(): boolean {
    return this.#drainer.isDraining
  }

  enter<R>(f: () => R): R {
    if (this.state === 'closed') throw new ContextStoppedError('enter', this.state)
    return enter(this, () => f())
  }

  run<T>(spin: Spin<T> | Body<T>): Promise<T> {
    if (this.state !== 'running') return Promise.reject(new ContextStoppedError('run', this.state))
    refuseInComputed(this, 'run')
    this.#noteRunInBody()
    const node = this.#nodeFor(spin as Spin<unknown> | Body<unknown>, 'run')
    if ((node.flags & DISPOSED) !== 0) return Promise.reject(new DisposedError(node.addr))
    const { result } = node
    if (result !== undefined && node.isSettled) {
      return result.ok ? Promise.resolve(result.value as T) : Promise.reject(result.error)
    }
    return new Promise<T>((resolve, reject) => {
      const calls = (this.#pendingCalls ??= new PendingCalls())
      this.#start(node, calls.open(node, typeof spin === 'function', resolve as Caller['resolve'], reject))
    })
  }

  runSync<T>(spin: Spin<T> | Body<T>): T {
    this.#requireRunning('runSync')
    refuseInComputed(this, 'runSync')
    if (this.isDraining) throw new DerefInDrainError('runSync')
    if (this.#executor.isInline !== true) {
      throw new NotSettledError(
        'runSync needs an executor that runs inline; use createSimulation() or await ctx.run(...)',
      )
    }
    const node = this.#nodeFor(spin as Spin<unknown> | Body<unknown>, 'runSync')
    if ((node.flags & DISPOSED) !== 0) throw new DisposedError(node.addr)
    const outcome = node.isSettled ? node.result : this.#runNow(node, typeof spin === 'function')
    if (outcome === undefined) {
      throw new NotSettledError(
        `runSync: spin ${node.addr} waits for something that is not available yet; its run continues`,
      )
    }
    return unwrap(outcome) as T
  }

  spawn(spin: Spin<unknown> | Body<unknown>, options: SpawnOptions = {}): SpawnHandle {
    this.#requireRunning('spawn')
    refuseInComputed(this, 'spawn')
    const node = this.#nodeFor(spin, 'spawn')
    if ((node.flags & DISPOSED) !== 0) throw new DisposedError(node.addr)
    node.spawned = { onError: options.onError }
    if (!node.isSettled) this.#start(node, undefined)
    return spin instanceof SpinCell ? spin : new SpinCell(node)
  }

  idle(options: { readonly timeoutMs?: number | undefined } = {}): Promise<boolean> {
    checkRecord('idle', options)
    if (this.isDraining) throw new DerefInDrainError('idle')
    if (this.state !== 'running') return Promise.resolve(this.isIdle())
    const waited = (this.#idleWaits ??= new IdleWaits()).wait(options.timeoutMs)
    this.checkIdle()
    return waited
  }

  isIdle(): boolean {
    return !this.isDraining && this.#drainer.pending === 0 && this.runs.size === 0
  }

  advanceBy(ms: number): number {
    requireVirtual(this.root.timers, 'advanceBy', this.isDraining)
    checkDelay(ms)
    return this.advanceTo(this.timers.now() + ms)
  }

  /** The clock belongs to the root: in whichever context it is moved, the timers of all of them fire. */
  advanceTo(time: number): number {
    const timers = requireVirtual(this.root.timers, 'advanceTo', this.isDraining)
    this.#requireRunning('advanceTo')
    refuseInComputed(this, 'advanceTo')
    this.drainNow()
    if (this.parent !== undefined) return this.parent.advanceTo(time)
    return timers.advanceTo(time, () => this.drainNow())
  }

  now(): number {
    return this.timers.now()
  }

  execute(task: () => void): void {
    this.#requireRunning('execute')
    const guarded = (): void => {
      if (this.state !== 'running') return
      try {
        enter(this, () => task())
      } catch (error) {
        this.fault('executor-task-fault', 'execute', error)
      }
    }
    this.#executor.execute(guarded)
  }

  offload<T>(name: string, args: readonly unknown[]): Promise<T> {
    this.#requireRunning('offload')
    const executor = this.#executor
    if (executor.offload === undefined) {
      throw new EffectTypeError(
        'offload: this executor has no workers; create the context with workerPoolExecutor(...)',
      )
    }
    return (this.#offloads ??= new Offloads()).add(executor.offload(name, args)) as Promise<T>
  }

  stop(options: StopOptions = {}): Promise<StopReport> {
    const deadlineMs = deadlineOf(options)
    if (this.#stopped !== undefined) return this.#stopped
    this.#stopped = this.#stop(deadlineMs)
    // A feed that went on would write to a stopped context.
    for (const node of Array.from(this.feeds)) node.stopFeed(this)
    return this.#stopped
  }

  close(options: StopOptions = {}): Promise<StopReport> {
    const deadlineMs = deadlineOf(options)
    return (this.#closed ??= this.#close(deadlineMs))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close().then(() => undefined)
  }

  fork(options: ForkOptions = {}): ReactiveContext {
    checkForkOptions(options)
    this.#requireRunning('fork')
    const bindings = { ...this.bindings, ...options.bindings }
    const fork = new ReactiveContext({ bindings, onFault: this.#onFault }, this)
    for (let at = fork.parent; at !== undefined; at = at.parent) at.graph.isForked = true
    ;(this.forks ??= new Forks()).add(fork)
    return fork
  }

  inspect(): ContextStats {
    const { state, graph, generation, isDraining } = this
    const pending = this.#drainer.pending
    return {
      state,
      pending,
      running: this.runs.size,
      timers: this.timers.count,
      nodes: graph.nodeCount,
      observers: graph.linkCount,
      waiters: this.waiterCount,
      offloaded: this.#offloads?.count ?? 0,
      generation,
      stamp: graph.stamp,
      queueIdle: !isDraining && pending === 0,
      idle: this.isIdle(),
    }
  }

  trace(listener: TraceListener): () => void {
    if (typeof listener !== 'function') throw new TypeError(`trace: expected a function, got ${describe(listener)}`)
    const tracer = (this.tracer ??= new Tracer(this))
    tracer.listeners.add(listener)
    return () => {
      tracer.listeners.delete(listener)
      if (tracer.listeners.size === 0 && this.tracer === tracer) this.tracer = undefined
    }
  }

  /** Creates a cell, or returns the one that an earlier run of the active body created at the same address. */
  openCell(kind: AddressKind, key: string | undefined, make: (addr: string) => Handle): Handle {
    const run = this.activeRun
    if (run === undefined) {
      if (key !== undefined) this.refuseTaken(kind, key)
      const cell = make(this.scope.address(kind, key ?? ''))
      if (key !== undefined) this.register(cell, kind, key)
      this.restored?.claim(cell)
      return cell
    }
    const addr = run.scope.address(kind, key ?? '')
    const cells = (run.node.cells ??= new Map<string, Handle>())
    run.noteUsed(addr)
    const known = cells.get(addr)
    if (known !== undefined && (known.forkTo === undefined || known.home === this)) return known
    const cell = known?.forkTo?.(this) ?? make(addr)
    cells.set(addr, cell)
    this.restored?.claim(cell)
    return cell
  }

  /** A restored program finds a cell by its key: two of one key would get each other's state. */
  refuseTaken(kind: AddressKind, key: string): void {
    const addr = this.registry?.addressOf(countedName(kind, key))
    if (addr !== undefined) throw new AddressCollisionError(addr, `by another ${kind} with the key ${describe(key)}`)
    this.parent?.refuseTaken(kind, key)
  }

  /** Makes a cell or spin with a key known to snapshots. Its key is forgotten when it is disposed or was collected. */
  register(handle: Handle, kind: AddressKind, key: string): void {
    this.registry ??= new Registry((name) => this.scope.forget(name))
    this.registry.add(handle, countedName(kind, key))
  }

  /** Examines the spin when its handle is collected. */
  noteHandle(handle: SpinCell): void {
    this.#handles ??= new FinalizationRegistry((node) => this.enqueue({ type: 'gc-cleanup', node }))
    this.#handles.register(handle, handle.node)
  }

  /** The queued events, in order. */
  queued(): ReactiveEvent[] {
    return this.#drainer.queued()
  }

  /** Timers that are due at the same time fire in the order of this number. */
  drawArming(): number {
    return this.#armings++
  }

  snapshot(options: SnapshotOptions = {}): Snapshot {
    if (this.state === 'closed') throw new ContextStoppedError('snapshot', this.state)
    return takeSnapshot(this, options)
  }

  /** The node of a place in this context; `home` is the one that its handle holds. */
  nodeFor<P extends Place>(home: P): P {
    return this.overlay === undefined ? home : this.overlay.nodeFor(home)
  }

  /** The node whose state this context sees, without making a copy for a fork. */
  existing<P extends Place>(home: P): P {
    return this.overlay === undefined ? home : this.overlay.existing(home)
  }

  homeOf<P extends Place>(node: P): P {
    return this.overlay === undefined ? node : this.overlay.homeOf(node)
  }

  /** Each write is announced, also of signals without observers: a trace shows it, or forks follow it. */
  get isHeardEverywhere(): boolean {
    return this.tracer !== undefined || this.forks !== undefined
  }

  /** How long a run that continues an inherited sleep still has to sleep; undefined for a new sleep. */
  takeWake(node: SpinNode, entry: Entry): number | undefined {
    const wake = this.wakes.get(node)
    if (wake === undefined) return undefined
    this.wakes.delete(node)
    return wake.addr === entry.addr ? Math.max(0, wake.at - this.now()) : undefined
  }

  /** Queues the event of a write; writes of one batch share a generation. The caller calls `trigger` after its last write. */
  announceChange(node: SignalNode, generation: Generation | undefined): void {
    this.#drainer.enqueue({ type: 'signal-change', node, generation, write: this.graph.write })
    this.forks?.noteWrite(node)
  }

  /**
   * Announces a single write. With the synchronous executor, when nothing else is queued, it is processed at once: queueing
   * an event and starting a session for it costs more than a small effect.
   */
  announceWrite(node: SignalNode): void {
    if (this.#isSynchronous && !this.isHeardEverywhere && this.#drainer.lockIfIdle()) return this.#settleNow()
    this.announceChange(node, undefined)
    this.trigger()
  }

  /** Queues the check whether a node has observers. A drain is triggered where the change of its observers is complete. */
  noteObservation(node: GraphNode): void {
    if (this.state === 'running') this.#drainer.enqueue({ type: 'observation', node: node as SignalNode | SpinNode })
  }

  /** Runs `f` as an effect that belongs to no run. */
  observe(f: () => void): EffectNode {
    const node = new EffectNode(this, f, undefined)
    node.run()
    return node
  }

  /** Queues an event and triggers a drain. After the stop the event is dropped. */
  enqueue(event: ReactiveEvent): void {
    if (this.state !== 'running') return
    if (event.type === 'spin-execution' || event.type === 'spin-completion')
      event.node.causingWrite = this.graph.causingWrite
    this.#drainer.enqueue(event)
    this.trigger()
  }

  /** Triggers a drain, unless a batch is open: the end of the batch triggers it then. */
  trigger(): void {
    if (this.batch !== undefined) return
    this.#drainer.trigger()
    if (this.forks !== undefined && !this.isDraining) this.forks.passOn()
  }

  /** Drains until the queue is empty, synchronously; returns 0 when a session is running. */
  drainNow(): number {
    if (this.isDraining) return 0
    const before = this.#isUnbounded
    this.#isUnbounded = true
    let count = 0
    try {
      while (this.#drainer.pending > 0 && this.state === 'running') count += this.#drainer.drain() as number
    } finally {
      this.#isUnbounded = before
    }
    return count
  }

  checkIdle(): void {
    if (this.isIdle()) this.#idleWaits?.end(true)
  }

  fault(code: FaultCode, site: string, error: unknown, addr?: string): void {
    const fault = { code, site, error, ...(addr === undefined ? {} : { addr }) }
    try {
      ;(this.#onFault ?? reportFault)(fault)
    } catch {
      // The fault hook is the last resort: its own error cannot be reported anywhere.
    }
  }

  /** Reports an error of a spawned spin that no caller waits for. */
  reportSpawnError(node: SpinNode, error: unknown): void {
    const onError = node.spawned?.onError
    if (onError === undefined) return this.fault('continuation-fault', 'spawn', error, node.addr)
    try {
      onError(error)
    } catch (thrown) {
      this.fault('continuation-fault', 'onError', thrown, node.addr)
    }
  }

  scheduleSession(session: () => void, afterPause: boolean): void {
    const executor = this.#executor
    if (!afterPause) executor.execute(session)
    else if (executor.executeSoon !== undefined) executor.executeSoon(session)
    else executor.executeAfter(0, session)
  }

  runSession(take: () => ReactiveEvent | undefined): SessionResult {
    this.#take = take
    return this.#inSession(handleAll)
  }

  /** One drain session. Its handlers see this context as current, and no active run or reader of the code that triggered it. */
  #inSession<R>(handle: (context: ReactiveContext) => R): R {
    const { graph, activeRun, cause, activeStores } = this
    const { active } = graph
    this.activeRun = undefined
    this.cause = undefined
    this.activeStores = undefined
    graph.active = undefined
    try {
      return enter(this, handle)
    } finally {
      this.activeRun = activeRun
      this.cause = cause
      this.activeStores = activeStores
      graph.active = active
      this.#leftDrain?.()
    }
  }

  #take: () => ReactiveEvent | undefined = takeNothing

  handleAll(): SessionResult {
    return handleEach(this.#take, this, this.#isUnbounded ? undefined : this.#budget)
  }

  /** A session of one event, the write that was just made. */
  #settleNow(): void {
    try {
      this.#inSession(settleWriteIn)
    } finally {
      this.beforeRelease?.()
      this.#drainer.unlock()
    }
  }

  handle(event: ReactiveEvent): void {
    processEvent(this, event)
    this.tracer?.eventProcessed(event, this.generation)
  }

  failed(event: ReactiveEvent, error: unknown): void {
    failEvent(this, event, error)
  }

  queueEmptied(): void {
    this.forks?.passOn()
    if (this.recentWriters.length > 0) for (const causer of this.recentWriters.splice(0)) causer.caused = 0
    this.checkIdle()
  }

  #nodeFor(spin: Spin<unknown> | Body<unknown>, what: string): SpinNode {
    return enter(this, () => nodeOf(this, spin, what))
  }

  /** Runs a spin synchronously; returns undefined when it waits for something. */
  #runNow(node: SpinNode, isOnce: boolean): Result<unknown> | undefined {
    const outcomes: Result<unknown>[] = []
    const resolve = (value: unknown): void => void outcomes.push(success(value))
    const reject = (error: unknown): void => void outcomes.push(failure(error))
    this.#pendingCalls ??= new PendingCalls()
    this.#start(node, this.#pendingCalls.open(node, isOnce, resolve, reject))
    this.drainNow()
    return outcomes[0]
  }

  #start(node: SpinNode, caller: Caller | undefined): void {
    node.stores ??= captureStores(this)
    this.enqueue({ type: 'spin-execution', node, caller })
  }

  #noteRunInBody(): void {
    if (this.activeRun === undefined || this.#isRunInBodyReported) return
    this.#isRunInBodyReported = true
    const message = 'ctx.run(...) inside a body returns a promise that the body cannot replay; use yield* waitFor(spin)'
    this.fault('run-in-body', 'run', new EffectTypeError(message), this.activeRun.node.addr)
  }

  #requireRunning(what: string): void {
    if (this.state !== 'running') throw new ContextStoppedError(what, this.state)
  }

  async #stop(deadlineMs: number): Promise<StopReport> {
    const forks = this.forks?.live() ?? []
    this.state = 'stopping'
    this.timers.cancelAll()
    if (forks.length > 0) await Promise.all(forks.map((fork) => fork.stop({ deadlineMs })))
    if (this.isDraining) await new Promise<void>((resolve) => (this.#leftDrain = resolve))
    const isInTime = (await this.#offloads?.ended(deadlineMs)) ?? true
    this.state = 'stopped'
    this.#idleWaits?.end(false)
    for (const end of Array.from(this.endings)) end()
    this.#pendingCalls?.rejectAll(new ContextStoppedError('run', this.state))
    return {
      state: 'stopped',
      timedOut: !isInTime,
      pending: this.#drainer.pending,
      running: this.runs.size,
      offloaded: this.#offloads?.count ?? 0,
    }
  }

  /** Releases external resources: timers, signals of steps, hooks, clean-ups. No body runs, so `finally` blocks do not. */
  #cleanUp(): void {
    for (const run of Array.from(this.runs)) endRun(run)
    for (const effect of Array.from(this.cleanups)) effect.dispose()
  }

  async #close(deadlineMs: number): Promise<StopReport> {
    const forks = this.forks?.live() ?? []
    const report = await this.stop({ deadlineMs })
    for (const fork of forks) await fork.close({ deadlineMs })
    this.#cleanUp()
    if (this.parent === undefined) await this.#executor.close()
    this.state = 'closed'
    if (this.#estate !== undefined) this.#estate.isClosed = true
    this.#drainer.clear()
    this.overlay?.clear()
    this.tracer = undefined
    return report
  }
}

const takeNothing = (): undefined => undefined

const handleAll = (context: ReactiveContext): SessionResult => context.handleAll()

function settleWriteIn(context: ReactiveContext): void {
  try {
    settleWrite(context, context.graph.write)
  } catch (error) {
    context.fault('event-error', 'signal-change', error)
  }
}

/** Methods and not closures, which take memory in each context. */
class DrainHooks implements DrainerOptions<ReactiveEvent> {
  readonly #context: ReactiveContext

  constructor(context: ReactiveContext) {
    this.#context = context
  }

  schedule(session: () => void, afterPause: boolean): void {
    this.#context.scheduleSession(session, afterPause)
  }

  session(take: () => ReactiveEvent | undefined): SessionResult {
    return this.#context.runSession(take)
  }

  mayRun(): boolean {
    return this.#context.state === 'running'
  }

  failed(error: unknown): void {
    this.#context.fault('event-error', 'drain', error)
  }

  emptied(): void {
    this.#context.queueEmptied()
  }

  beforeRelease(): void {
    this.#context.beforeRelease?.()
  }
}

/** The log policy of spins: divergence and overflow are reported as faults. */
function reactivePolicy(context: ReactiveContext, limit: number): LogPolicy {
  const diverged = (path: string, recorded: Entry): void => {
    const message = `the body requested another effect than before at ${recorded.addr}; it started over from there`
    context.fault('divergence', 'replay', new EffectTypeError(message), path)
  }
  const overflowed = (path: string): void => {
    const message = `the log reached ${limit} entries and dropped those no re-run needs; use iterate for long loops`
    context.fault('log-overflow', 'log', new EffectTypeError(message), path)
  }
  return { limit, diverged, overflowed }
}
