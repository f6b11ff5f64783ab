import type { EnqueueArguments, Handle } from '../enqueue.js'
import type { AnyJob, Job } from '../definition/define.js'
import type { When } from '../duration/duration.js'

/**
 * The second argument of a handler.
 */
export interface Context {
  /** The job's id. */
  readonly id: string
  /** The job's name; it tells a category's fallback handler which job it runs. */
  readonly job: string
  /** Which attempt this is: 1 is the first. */
  readonly attempt: number
  /** For a job of a schedule: the schedule's id, and the instant of the tick by its rule, however late the job runs. */
  readonly tick: { readonly schedule: string; readonly at: Date } | undefined
  /**
   * For an item of a sequence: the sequence's id, which item this is, of how many, and the result of the item before it
   * (undefined for the first, and when it was not kept).
   */
  readonly sequence:
    | { readonly id: string; readonly index: number; readonly total: number; readonly previous: unknown }
    | undefined
  /** Aborted when the job is cancelled, times out, loses its claim, or the worker stops. Pass it to the calls you await. */
  readonly signal: AbortSignal
  /** The queue this job runs in. */
  readonly queue: {
    readonly name: string
    /**
     * Starts no more jobs of this queue before that time, in any process: a duration from now, or an instant. Running jobs
     * continue. A handler can lengthen a pause, and cannot shorten it.
     */
    pauseUntil(when: When): Promise<void>
  }
  /**
   * Adds a line to the job's history and to the log. As in pino, an object or an error as the first argument becomes fields of the
   * log line: `ctx.log({ orderId }, 'charged')`.
   */
  log(...parts: readonly unknown[]): void
  /** Reports the progress of the job; any process can read it while the job runs. */
  progress(done: number, total?: number): void
  /** Enqueues another job. It throws when this job's claim was lost. */
  enqueue<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    ...rest: EnqueueArguments<NoInfer<Payload>>
  ): Promise<Handle<Result, Payload>>
  /**
   * The results of the parents of this job whose job is `parent`, in the order of `after`. A parent that did not succeed, was
   * pruned or deleted, or whose result was not kept is left out.
   */
  results<Result = unknown>(parent: Job<never, Result> | Job<unknown, Result> | string): Promise<Result[]>
  /**
   * Settles this job inside your own open transaction: it is done, with this result, if and only if that commits. On SQLite the
   * call writes, and throws every refusal, synchronously; through Kysely it must be awaited.
   */
  settleIn(tx: unknown, result?: unknown): Promise<void> | void
  /**
   * Opens a transaction when the store can write, calls `work` with its handle, and settles this job with the result of `work`, all
   * in one commit. If `work` throws, everything is rolled back. On SQLite `work` must be synchronous.
   */
  transaction<T, Tx = unknown>(work: (tx: Tx) => T): Promise<T>
}

/** A context that records calls instead of acting; `job.run(payload)` uses it when no context is passed. */
export interface TestContext extends Context {
  readonly logged: readonly string[]
  readonly progressed: readonly { readonly done: number; readonly total: number | undefined }[]
  readonly pausedUntil: readonly When[]
  /** The settlements that `settleIn` and `transaction` would have written. */
  readonly settled: readonly { readonly tx: unknown; readonly result: unknown }[]
  readonly enqueued: readonly { readonly job: AnyJob | string; readonly payload: unknown; readonly options: unknown }[]
}
