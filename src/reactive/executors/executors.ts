import { describe } from '../errors.js'
import { reportFault } from '../fault.js'
import * as host from '../host.js'

/** Cancels a delayed task; cancelling it twice, or after it ran, does nothing. */
export interface TimerHandle {
  cancel(): void
}

/** Runs the work of a context. */
export interface Executor {
  /** Runs a task, now or later, with the caller's context and async-local stores. */
  execute(task: () => void): void
  /** Passes a task to `execute` after `ms`. */
  executeAfter(ms: number, task: () => void, options?: { readonly keepAlive?: boolean }): TimerHandle
  /** Runs a task after pending timers and I/O. Default: `executeAfter(0, task)`. */
  executeSoon?(task: () => void): void
  /** True when `execute` runs the task before it returns. Default: false. */
  readonly isInline?: boolean
  /** Runs an exported function of a module in another thread, on plain data. */
  offload?(name: string, args: readonly unknown[]): Promise<unknown>
  close(): Promise<void>
}

/** Runs each task in a later microtask, never inline. The default. */
export function eventLoopExecutor(): Executor {
  return {
    execute: (task) => host.microtask(guarded(task)),
    executeAfter: (ms, task, options) => delayed(ms, () => host.microtask(guarded(task)), options?.keepAlive ?? true),
    executeSoon: (task) => host.macrotask(guarded(task)),
    close: () => Promise.resolve(),
  }
}

/** Runs each task at once, on the caller's stack; delays are ignored. For tests and simulations. */
export function synchronousExecutor(): Executor {
  return {
    isInline: true,
    execute: runGuarded,
    executeAfter: (ms, task) => {
      checkDelay(ms)
      runGuarded(task)
      return { cancel: () => undefined }
    },
    close: () => Promise.resolve(),
  }
}

/** Wraps a task: its error is reported and never reaches the event loop. */
export function guarded(task: () => void): () => void {
  return () => runGuarded(task)
}

/** The `execute` of the synchronous executor. */
export function runGuarded(task: () => void): void {
  try {
    task()
  } catch (error) {
    reportFault({ code: 'executor-task-fault', site: 'execute', error })
  }
}

export function delayed(ms: number, task: () => void, keepAlive: boolean): TimerHandle {
  checkDelay(ms)
  return { cancel: host.after(ms, task, keepAlive) }
}

export function checkDelay(ms: number): void {
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    throw new RangeError(`a delay must be a finite number of milliseconds of 0 or more, got ${describe(ms)}`)
  }
}
