import type { AnyJob } from './definition/define.js'
import type { OnParentFailure } from './rules/links.js'
import type { Duration, When } from './duration/duration.js'
import type { JobRecord } from './record.js'
import type { RetryOptions } from './rules/retry.js'
import type { UniqueOptions } from './definition/unique-options.js'

/** What may be enqueued: the job's value, or its registered name. */
export type Enqueueable = AnyJob | string

/** A job to come after: its handle (or a node of the same flow), its id, or a job with a key: the newest that has or had it. */
export type After = { readonly id: string } | string | readonly [job: Enqueueable, key: string]

/** What a single enqueue may say. A typo is a type error and a run-time error. */
export interface EnqueueOptions {
  /** A title for people; `{field}` places are filled from the payload. */
  readonly title?: string | undefined
  /** At most 16 of at most 100 characters. */
  readonly labels?: readonly string[] | undefined
  /** Default: the job's own, else 'default'. */
  readonly queue?: string | undefined
  /** A whole number, higher first. Default: the job's own, else 0. */
  readonly priority?: number | undefined
  /** At most one unfinished job per (job, key), plus one successor that `schedule` writes while it runs. */
  readonly key?: string | undefined
  /** What to do when the key is held: 'return' its handle (default), 'reject', or 'replace' the one that waits. */
  readonly onDuplicate?: 'return' | 'reject' | 'replace' | undefined
  /** As the job's own `unique`, laid over it part by part; false: this one whatever others there are. */
  readonly unique?: UniqueOptions | false | undefined
  /** Runs no earlier than so long from now. */
  readonly in?: Duration | number | undefined
  /** Runs no earlier than then. */
  readonly at?: When | undefined
  /** `limit`, `backoff` and `jitter` as data; functions belong to the job's definition. */
  readonly retry?: Omit<RetryOptions, 'when'> | undefined
  /** How long one attempt may take. Default: the job's own, else 30 min. */
  readonly timeout?: Duration | number | undefined
  /** Cancelled if it has not begun by then: a duration from now, or an instant. */
  readonly expires?: When | undefined
  /** Anything of yours that the codec can write, shown with the job. */
  readonly meta?: unknown
  /** The group it belongs to: 1 to 200 characters. See `mill.group(id)`. */
  readonly group?: string | undefined
  /** Blocked until all of these are done. Default: the job's own, else none. */
  readonly after?: readonly After[] | undefined
  /** When one of them fails for good or is cancelled: 'wait' (default) for a retry of it, 'cancel' this job, or 'run' it. */
  readonly onParentFailure?: OnParentFailure | undefined
  /**
   * The handle of your own open transaction on the store's file: the job exists if and only if that commits. It is written,
   * and every refusal thrown, within the call.
   */
  readonly tx?: unknown
}

/** The payload may be left out where the job takes none. */
export type EnqueueArguments<Payload> = undefined extends Payload
  ? [payload?: Payload, options?: EnqueueOptions]
  : [payload: Payload, options?: EnqueueOptions]

/** A job that was enqueued: by id, from any process. */
export interface Handle<Result, Payload = unknown> {
  /** A time-ordered UUIDv7. */
  readonly id: string
  /** False when nothing new was written and this is the handle of the job that has the key, or is the same. */
  readonly isNew: boolean
  /** The job's record, or undefined once it is gone. */
  get(): Promise<JobRecord<Payload, Result> | undefined>
  /** True when it was waiting and now never runs, or when it runs and was told to stop: see `mill.cancel`. */
  cancel(): Promise<boolean>
  /**
   * Waits for the job to end, from any process, and gives its result.
   * Rejects with JobFailedError, JobCancelledError, JobGoneError or TimeoutError.
   */
  result(options?: { readonly timeout?: Duration | number | undefined }): Promise<Result>
}
