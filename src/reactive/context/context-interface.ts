import type { Result } from '../result.js'
import type { Snapshot, SnapshotOptions } from '../snapshot/snapshot.js'
import type { Body, Spin } from '../spins/spin.js'
import type { ForkOptions } from './options.js'
import type { StopOptions, StopReport } from './stop.js'
import type { TraceListener } from './trace.js'

export type ContextState = 'running' | 'stopping' | 'stopped' | 'closed'

/** One reactive world: its cells, its queue, its clock. Contexts share nothing with each other, except forks. */
export interface Context extends AsyncDisposable {
  readonly id: string
  /** The context that this one was forked from. */
  readonly parent: Context | undefined
  /** How many forks it is away from its root: 0 for a context that was not forked. */
  readonly depth: number
  readonly state: ContextState
  readonly bindings: Readonly<Record<string, unknown>>
  /** Makes this the current context for `f` and everything it starts. */
  enter<R>(f: () => R): R
  /** Runs a spin, or a body once, and resolves with its result. A valid cached result is returned as it is. */
  run<T>(spin: Spin<T> | Body<T>): Promise<T>
  /** Like `run`, synchronously; needs an inline executor. Throws `NotSettledError` when the spin cannot finish now. */
  runSync<T>(spin: Spin<T> | Body<T>): T
  /** Starts a spin or body and keeps it live: it runs again whenever something it read changes. */
  spawn(spin: Spin<unknown> | Body<unknown>, options?: SpawnOptions): SpawnHandle
  /** Resolves true when no event is queued and no body is in progress, false when the timeout expires first. */
  idle(options?: { readonly timeoutMs?: number | undefined }): Promise<boolean>
  isIdle(): boolean
  /** Virtual clock only: moves time forward, fires every due timer and drains; returns the number of timers fired. */
  advanceBy(ms: number): number
  advanceTo(time: number): number
  now(): number
  /** Runs a task on the executor with this context current. An error it throws is reported as a fault. */
  execute(task: () => void): void
  /** Runs an exported function of the worker pool's module in a worker thread. */
  offload<T>(name: string, args: readonly unknown[]): Promise<T>
  /** Ends all activity. Queued events stay queued, and no clean-up runs yet. User code cannot make it reject. */
  stop(options?: StopOptions): Promise<StopReport>
  /**
   * Stops, aborts the signals of steps in flight, calls `onCancel` hooks and the clean-ups of effects, closes the
   * executor and drops all state. Bodies are not resumed, so their `finally` blocks do not run; cancel the spins first
   * if they should.
   */
  close(options?: StopOptions): Promise<StopReport>
  /**
   * Makes a what-if copy at once, however much state there is. It sees this context's cells and results until it writes
   * them; what it writes and runs is not seen here. It shares the executor, the clock and the fault hook. Outside effects
   * are not copied or undone: what a step of the fork does, it does. Stopping this context stops its forks.
   *
   * ```ts
   * import { type Context, read, type Signal, spin } from 'millrace/reactive'
   *
   * const whatIf = async (ctx: Context, price: Signal<number>): Promise<number> => {
   *   const total = ctx.enter(() => spin(function* () { return (yield* read(price)) * 1.2 }))
   *   await using fork = ctx.fork()
   *   fork.enter(() => price.set(200))
   *   return fork.run(total) // 240; in ctx the price is what it was
   * }
   * ```
   */
  fork(options?: ForkOptions): Context
  /**
   * Takes a copy of the state: cells, results, logs, queued events and timers. It has the cells and spins with a key, what
   * is connected to them, and every run in progress; give a key to a cell that must come back. Values that are data are
   * copied; an instance of a class is kept as it is.
   */
  snapshot(options?: SnapshotOptions): Snapshot
  inspect(): ContextStats
  /** Reports each event, run and effect to `listener`; returns a function that ends the trace. */
  trace(listener: TraceListener): () => void
}

export interface SpawnOptions {
  /** Gets an error of the spin that no caller waits for. Default: the error is a `continuation-fault`. */
  readonly onError?: ((error: unknown) => void) | undefined
}

export interface SpawnHandle {
  readonly addr: string
  result(): Result<unknown> | undefined
  cancel(reason?: unknown): void
  dispose(): void
}

export interface ContextStats {
  readonly state: ContextState
  /** Events in the queue. */
  readonly pending: number
  /** Bodies in progress, parked ones included. */
  readonly running: number
  /** Armed timers. */
  readonly timers: number
  /** Signals, computeds, effects and spins that exist and are not disposed. */
  readonly nodes: number
  /** Edges of the dependency graph along which changes propagate. */
  readonly observers: number
  /** Runs parked on a deferred, a mailbox or a spin. */
  readonly waiters: number
  /** Tasks in worker threads. */
  readonly offloaded: number
  /** How many changes the drain has processed. */
  readonly generation: number
  /** The last stamp drawn. */
  readonly stamp: number
  /** No event is queued and no drain session runs. */
  readonly queueIdle: boolean
  /** `queueIdle`, and no body is in progress. */
  readonly idle: boolean
}
