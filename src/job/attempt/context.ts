import type { EnqueueArguments, Handle } from '../enqueue.js'
import type { AnyJob, Job } from '../definition/define.js'
import type { When } from '../duration/duration.js'

/**
 * What a handler is given beside its payload.
 */
export interface Context {
  /** The job's id. */
  readonly id: string
  /** The job's name; a category's fallback handler learns here which job it runs. */
  readonly job: string
  /** Which attempt this is: 1 is the first. */
  readonly attempt: number
  /** Of a recurring job: its schedule, and the instant that its rule names, however late it runs. */
  readonly tick: { readonly schedule: string; readonly at: Date } | undefined
  /** Aborted when the job is cancelled, times out, loses its claim, or the worker stops. Pass it on to what you await. */
  readonly signal: AbortSignal
  /** The queue this job runs in. */
  readonly queue: {
    readonly name: string
    /**
     * Begins nothing more of this queue before then, in any process: a duration from now, or an instant. What runs goes on.
     * From a handler a pause is only ever lengthened.
     */
    pauseUntil(when: When): Promise<void>
  }
  /**
   * Adds a line to the job's history and to the log. An object or an error that comes first is fields for the logger, as in
   * pino: `ctx.log({ orderId }, 'charged')`.
   */
  log(...parts: readonly unknown[]): void
  /** Tells how far the job has come; readable from any process while it runs. */
  progress(done: number, total?: number): void
  /** Enqueues another job; refused once this claim is lost. */
  enqueue<Payload = unknown, Result = unknown>(
    job: Job<Payload, Result> | string,
    ...rest: EnqueueArguments<NoInfer<Payload>>
  ): Promise<Handle<Result, Payload>>
  /**
   * The results of those jobs this one came after that are of `parent`, in the order of `after`. One that did not succeed,
   * that is gone, or whose result was not kept is left out.
   */
  results<Result = unknown>(parent: Job<never, Result> | Job<unknown, Result> | string): Promise<Result[]>
  /**
   * Settles this job inside your own open transaction: it is done, with this result, if and only if that commits. On SQLite
   * it is written, and every refusal thrown, within the call; through Kysely it must be awaited.
   */
  settleIn(tx: unknown, result?: unknown): Promise<void> | void
  /**
   * Waits for its turn to write, opens a transaction, calls `work` with its handle and settles this job with what that
   * returns, all in one commit. A throw rolls all of it back. On SQLite `work` must be synchronous.
   */
  transaction<T, Tx = unknown>(work: (tx: Tx) => T): Promise<T>
}

/** A context that records instead of acting: what `job.run(payload)` passes when it is given none. */
export interface TestContext extends Context {
  readonly logged: readonly string[]
  readonly progressed: readonly { readonly done: number; readonly total: number | undefined }[]
  readonly pausedUntil: readonly When[]
  /** What `settleIn` and `transaction` would have settled the job with. */
  readonly settled: readonly { readonly tx: unknown; readonly result: unknown }[]
  readonly enqueued: readonly { readonly job: AnyJob | string; readonly payload: unknown; readonly options: unknown }[]
}
