/**
 * The one door of the reactive engine to timers, clocks, randomness and `node:` modules. Nothing here is imported
 * statically from Node: what a browser tab does not have is looked up at run time and left out when it is missing, so
 * the whole folder bundles for a tab.
 */
import type * as asyncHooks from 'node:async_hooks'
import type * as workerThreads from 'node:worker_threads'

/** Cancels a timer. Cancelling it twice, or after it fired, does nothing. */
export type CancelTimer = () => void

export const microtask: (f: () => void) => void = queueMicrotask

/** Runs `f` after pending timers and I/O. */
export function macrotask(f: () => void): void {
  if (typeof setImmediate === 'function') setImmediate(f)
  else setTimeout(f, 0)
}

/** `setTimeout` fires at once for a longer delay, so `after` chains timers of at most this length. */
export const TIMER_MAX_MS = 2 ** 31 - 1

/** Runs `f` once after `ms`, however long that is. Without `keepAlive` the timer does not keep the process alive. */
export function after(ms: number, f: () => void, keepAlive: boolean): CancelTimer {
  let left = ms
  let timer: ReturnType<typeof setTimeout>
  const arm = (): void => {
    const step = Math.min(left, TIMER_MAX_MS)
    left -= step
    timer = setTimeout(() => (left > 0 ? arm() : f()), step)
    if (!keepAlive && typeof timer === 'object') timer.unref()
  }
  arm()
  return () => clearTimeout(timer)
}

/** Milliseconds since 1970. */
export const wallClock = (): number => Date.now()

/** Milliseconds since an arbitrary start; never decreases. */
export const monotonic = (): number => performance.now()

/** Sixteen hex characters that distinguish contexts in messages. */
export function randomId(): string {
  const words = crypto.getRandomValues(new Uint32Array(2))
  return [...words].map((word) => word.toString(16).padStart(8, '0')).join('')
}

/** Writes one line to stderr, or to the console in a browser tab. */
export function writeLine(text: string): void {
  const stderr = globalThis.process?.stderr
  if (stderr === undefined) console.error(text)
  else stderr.write(`${text}\n`)
}

function builtin<T>(name: string): T | undefined {
  return globalThis.process?.getBuiltinModule?.(name) as T | undefined
}

/** AsyncLocalStorage of this host; undefined in a tab, where the current context lasts for one turn only. */
export const AsyncStores = builtin<typeof asyncHooks>('node:async_hooks')?.AsyncLocalStorage

/** The values of all async-local stores at one moment. */
export type Stores = asyncHooks.AsyncResource

const Resource = builtin<typeof asyncHooks>('node:async_hooks')?.AsyncResource

/**
 * Captures the caller's async-local stores. `AsyncLocalStorage.snapshot` does the same but costs ten times as much on
 * Node 20, where it creates a bound function with deprecated properties each time.
 */
export function snapshotStores(): Stores | undefined {
  return Resource === undefined ? undefined : new Resource('millrace.run', { requireManualDestroy: true })
}

/** Starts a worker thread from source text: a bundler cannot lose a file that does not exist. */
export function startWorker(source: string, workerData: unknown): workerThreads.Worker {
  const threads = builtin<typeof workerThreads>('node:worker_threads')
  if (threads === undefined) throw new Error('worker threads are not available here; use another executor')
  return new threads.Worker(source, { eval: true, workerData })
}

/** A stream whose values come from `next` when its reader asks for one. */
export function makeStream<T>(next: () => Promise<IteratorResult<T>>, cancel: () => void): ReadableStream<T> {
  const pull = async (controller: { enqueue(value: T): void; close(): void }): Promise<void> => {
    const result = await next()
    if (result.done === true) controller.close()
    else controller.enqueue(result.value)
  }
  return new ReadableStream<T>({ pull, cancel }, { highWaterMark: 0 })
}
