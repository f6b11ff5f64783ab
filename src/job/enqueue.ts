import type { CommandOptions } from './command-options.js'
import type { AnyJob } from './definition/define.js'
import type { OnParentFailure } from './rules/links.js'
import type { Duration, When } from './duration/duration.js'
import type { LiveState } from './live-state.js'
import type { JobRecord } from './record.js'
import type { RetryOptions } from './rules/retry.js'
import type { UniqueOptions } from './definition/unique-options.js'

/** The job argument of an enqueue: the job's value, or its registered name. */
export type Enqueueable = AnyJob | string

/** A parent: its handle (or a node of the same flow), its id, or [job, key] for the newest job that has or had that key. */
export type After = { readonly id: string } | string | readonly [job: Enqueueable, key: string]

/** The options of one enqueue. An unknown name is a type error and a run-time error. */
export interface EnqueueOptions {
  /** A title to show; `{field}` placeholders are filled from the payload. */
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
  /** Overrides the job's own `unique`, part by part; false: this job is not unique. */
  readonly unique?: UniqueOptions | false | undefined
  /** Due after this delay. */
  readonly in?: Duration | number | undefined
  /** Due at this time. */
  readonly at?: When | undefined
  /** `limit`, `backoff` and `jitter` as data; functions belong to the job's definition. */
  readonly retry?: Omit<RetryOptions, 'when'> | undefined
  /** How long one attempt may take. Default: the job's own, else 30 min. */
  readonly timeout?: Duration | number | undefined
  /** Cancelled if it has not begun by this time: a duration from now, or an instant. */
  readonly expires?: When | undefined
  /** Any value that the codec can write, stored and shown with the job. */
  readonly meta?: unknown
  /** The group it belongs to: 1 to 200 characters. See `mill.group(id)`. */
  readonly group?: string | undefined
  /** The parents: the job is blocked until all of them are done. Default: the job's own, else none. */
  readonly after?: readonly After[] | undefined
  /** When a parent fails for good or is cancelled: 'wait' (default) until it is retried, 'cancel' this job, or 'run' it. */
  readonly onParentFailure?: OnParentFailure | undefined
  /**
   * The handle of your own open transaction on the store's database: the job exists if and only if that commits. The call writes
   * the job, and throws every refusal, synchronously.
   */
  readonly tx?: unknown
}

/** The payload may be omitted when the job takes none. */
export type EnqueueArguments<Payload> = undefined extends Payload
  ? [payload?: Payload, options?: EnqueueOptions]
  : [payload: Payload, options?: EnqueueOptions]

/** A reference to an enqueued job, by id, from any process. */
export interface Handle<Result, Payload = unknown> {
  /** A time-ordered UUIDv7. */
  readonly id: string
  /** False when no job was inserted, and this is the handle of the job that has the key or the unique value. */
  readonly isNew: boolean
  /** The job's record; undefined when it was pruned or deleted. */
  get(): Promise<JobRecord<Payload, Result> | undefined>
  /** True when the job was waiting and is cancelled, or when it runs and its cancel was requested: see `mill.cancel`. */
  cancel(options?: CommandOptions & { readonly unwind?: boolean | undefined }): Promise<boolean>
  /**
   * Waits for the job to end, in any process, and resolves with its result.
   * Rejects with JobFailedError, JobCancelledError, JobGoneError or TimeoutError.
   */
  result(options?: { readonly timeout?: Duration | number | undefined }): Promise<Result>
  /** The job's record as live state, which is read while it is observed; undefined when there is no such job. */
  watch(): LiveState<JobRecord<Payload, Result> | undefined>
}
