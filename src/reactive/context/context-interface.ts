import type { Result } from '../result.js'
import type { Body, Spin } from '../spins/spin.js'
import type { StopOptions, StopReport } from './stop.js'
import type { TraceListener } from './trace.js'

export type ContextState = 'running' | 'stopping' | 'stopped' | 'closed'

/** One reactive world: its cells, its queue, its clock. Two contexts know nothing of each other. */
export interface Context extends AsyncDisposable {
  readonly id: string
  readonly parent: Context | undefined
  readonly depth: number
  readonly state: ContextState
  readonly bindings: Readonly<Record<string, unknown>>
  /** Makes this the current context for `f` and everything it starts. */
  enter<R>(f: () => R): R
  /** Runs a spin, or a body once, and resolves with its result; a valid cached one is given as it is. */
  run<T>(spin: Spin<T> | Body<T>): Promise<T>
  /** The same at once; needs an executor that runs inline. Throws `NotSettledError` when it cannot finish now. */
  runSync<T>(spin: Spin<T> | Body<T>): T
  /** Starts a spin or body and lets it live: it runs again whenever what it read changes. */
  spawn(spin: Spin<unknown> | Body<unknown>, options?: SpawnOptions): SpawnHandle
  /** Resolves true when nothing is queued and no body is in progress, false when the time is over first. */
  idle(options?: { readonly timeoutMs?: number | undefined }): Promise<boolean>
  isIdle(): boolean
  /** Virtual clock only: moves time forward, firing and settling all that is due; gives how many timers fired. */
  advanceBy(ms: number): number
  advanceTo(time: number): number
  now(): number
  /** Runs a task on the executor with this context current; what it throws is a fault. */
  execute(task: () => void): void
  /** Runs an exported function of the worker pool's module in a worker thread. */
  offload<T>(name: string, args: readonly unknown[]): Promise<T>
  /** Ends all activity; queued events stay queued, and nothing is cleaned up yet. Never rejects because of user code. */
  stop(options?: StopOptions): Promise<StopReport>
  /**
   * Stops, aborts the signals of steps in flight, calls `onCancel` hooks and the clean-ups of effects, closes the
   * executor and drops all state. Bodies do not run again, so their `finally` blocks do not run: cancel first for that.
   */
  close(options?: StopOptions): Promise<StopReport>
  inspect(): ContextStats
  /** Reports each event, run and ask; gives the function that ends it. */
  trace(listener: TraceListener): () => void
}

export interface SpawnOptions {
  /** Told of an error of the spin that no caller waits for. Default: it is a `continuation-fault`. */
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
  /** Signals, computeds, effects and spins made and not disposed. */
  readonly nodes: number
  /** Edges along which changes travel. */
  readonly observers: number
  /** Runs parked on a deferred, a mailbox or a spin. */
  readonly waiters: number
  /** Tasks in worker threads. */
  readonly offloaded: number
  /** How many changes the drain has gone through. */
  readonly generation: number
  /** The last stamp drawn. */
  readonly stamp: number
  /** Nothing is queued and no drain is at work. */
  readonly queueIdle: boolean
  /** And no body is in progress. */
  readonly idle: boolean
}
