import { LazySet } from '../drain/lazy-collections.js'
import { describe } from '../errors.js'
import * as host from '../host.js'
import { checkRecord } from './options.js'

export interface StopOptions {
  /** How long to wait for offloaded tasks that are running, in milliseconds. Default: 5,000. */
  readonly deadlineMs?: number | undefined
}

/** What was left when a context stopped. */
export interface StopReport {
  readonly state: 'stopped'
  /** The deadline came before all offloaded tasks had ended. */
  readonly timedOut: boolean
  /** Events still in the queue. */
  readonly pending: number
  /** Bodies still in progress. */
  readonly running: number
  /** Offloaded tasks still running. */
  readonly offloaded: number
}

export const STOP_DEADLINE_MS = 5000

export function deadlineOf(options: StopOptions): number {
  checkRecord('stop', options)
  const { deadlineMs = STOP_DEADLINE_MS } = options
  if (Number.isFinite(deadlineMs) && deadlineMs >= 0) return deadlineMs
  throw new RangeError(`stop: deadlineMs must be a number of 0 or more, got ${describe(deadlineMs)}`)
}

/** Tasks that run in worker threads. */
export class Offloads {
  readonly #running = new LazySet<Promise<void>>()

  get count(): number {
    return this.#running.size
  }

  add<T>(task: Promise<T>): Promise<T> {
    const forget = (): void => void this.#running.delete(ended)
    const ended: Promise<void> = task.then(forget, forget)
    this.#running.add(ended)
    return task
  }

  /** Resolves true when all tasks ended before the deadline. */
  async ended(deadlineMs: number): Promise<boolean> {
    if (this.#running.size === 0) return true
    let cancel: host.CancelTimer = () => undefined
    const late = new Promise<false>((resolve) => {
      cancel = host.after(deadlineMs, () => resolve(false), true)
    })
    const all = Promise.all(this.#running).then(() => true)
    try {
      return await Promise.race([all, late])
    } finally {
      cancel()
    }
  }
}
