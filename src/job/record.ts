import type { ErrorRecord } from '../codec/error-text.js'
import type { InstantLike, InstantText } from './duration/duration-instant.js'
import type { AnyJob, Category, Job } from './definition/define.js'
import type { State } from './rules/states.js'
import type { WorkflowRecord } from './workflow-record.js'

/** The public record of a job; typed when the call that returned it named the job by its value. */
export interface JobRecord<Payload = unknown, Result = unknown> {
  readonly id: string
  readonly job: string
  readonly title: string | undefined
  readonly queue: string
  readonly state: State
  /** Undefined when it does not decode; then `reason` says why and `raw` has the stored text. */
  readonly payload: Payload | undefined
  /** Undefined until the job is done. */
  readonly result: Result | undefined
  readonly error: ErrorRecord | undefined
  /** Why the job is in this state, when there is no error: expired, parked, replaced, not kept. */
  readonly reason: string | undefined
  /** Attempts that ended and were counted; a snooze, a release or a crash is not counted. */
  readonly attempt: number
  /** Crashes charged to the job: its process died while it ran alone in quarantine. */
  readonly crashes: number
  readonly priority: number
  readonly labels: readonly string[]
  readonly key: string | undefined
  /** Ids of its parents. */
  readonly after: readonly string[]
  readonly group: string | undefined
  readonly meta: unknown
  /** The values that `capture` read at the enqueue, by name. Empty when there were none. */
  readonly captured: Readonly<Record<string, unknown>>
  readonly progress: { readonly done: number; readonly total?: number | undefined } | undefined
  /**
   * While it runs: the last 20 lines that the attempt has logged, at most a second ago; of a workflow, those of the step that logged
   * last. Attempts that have ended have their lines in `attempts`.
   */
  readonly log?: readonly string[] | undefined
  /** While it runs: the id of its worker. */
  readonly worker?: string | undefined
  /** The tick of a schedule that enqueued the job: the schedule's id, and the instant by its rule. */
  readonly tick: { readonly schedule: string; readonly at: Date } | undefined
  /** The id of the workflow that called or enqueued it. */
  readonly calledBy?: string | undefined
  /** What a workflow has recorded and waits for. Only `mill.get` reads it. */
  readonly workflow?: WorkflowRecord | undefined
  readonly createdAt: Date
  readonly dueAt: Date
  readonly startedAt: Date | undefined
  readonly settledAt: Date | undefined
  readonly expiresAt: Date | undefined
  readonly attempts: readonly AttemptRecord[]
  /** The stored text of a payload that does not decode. */
  readonly raw?: string | Uint8Array | undefined
}

export interface AttemptRecord {
  readonly startedAt: Date
  readonly endedAt: Date
  readonly worker: string
  readonly error?: ErrorRecord | undefined
  /** How the attempt ended when the handler neither returned nor threw: 'crashed', 'snoozed', 'cancelled', or a command such as 'retried'. */
  readonly exit?: string | undefined
  readonly log?: readonly string[] | undefined
}

/** How a filter names a job. */
export type Findable = AnyJob | Category | string

/** The record type of a filter: typed for each job that the filter names by its value. */
export type FoundRecord<Wanted> = string extends Wanted
  ? JobRecord
  : Wanted extends readonly (infer One)[]
    ? FoundRecord<One>
    : Wanted extends Job<infer Payload, infer Result>
      ? JobRecord<Payload, Result>
      : JobRecord

/** Which jobs `find` returns. A job must match every field. */
export interface JobFilter<Wanted extends Findable | readonly Findable[] = Findable | readonly Findable[]> {
  /** Job values, names, or categories. */
  readonly job?: Wanted | undefined
  readonly queue?: string | readonly string[] | undefined
  readonly state?: State | readonly State[] | undefined
  readonly label?: string | undefined
  readonly key?: string | undefined
  readonly group?: string | undefined
  /** The error group of their present error: `fingerprint` of a group of `mill.stats.errorGroups()`, or of `record.error`. */
  readonly fingerprint?: string | undefined
  /** The id of a job that they were enqueued after: its children. */
  readonly after?: string | undefined
  /** Enqueued after this instant: a Date, a Temporal.Instant, or ISO text with its zone. No filter is by the end of a job. */
  readonly createdAfter?: Date | InstantLike | InstantText | undefined
  readonly createdBefore?: Date | InstantLike | InstantText | undefined
  /** All of these labels. This field and those below are tested job by job: name others too, so that fewer are read. */
  readonly labels?: readonly string[] | undefined
  /** Values by their path: `{ 'user.id': 42, 'items[0].sku': 'A1', total: { gt: 100 } }`. */
  readonly payload?: ValueFilter | undefined
  readonly result?: ValueFilter | undefined
  readonly meta?: ValueFilter | undefined
  readonly captured?: ValueFilter | undefined
  /** A part of the class, the code or the message of the last error, in any case. */
  readonly error?: string | undefined
  /** A part of the title, key, reason, labels, last error or payload, in any case. */
  readonly text?: string | undefined
  /** The worker that runs it, else that of the last attempt; or the beginning of its id. */
  readonly worker?: string | undefined
  /** Enqueued, started or ended after this instant. */
  readonly changedAfter?: Date | InstantLike | InstantText | undefined
  /** Default 'newest'. */
  readonly order?: 'newest' | 'oldest' | undefined
  /** The most records to return. Default: all. */
  readonly limit?: number | undefined
}

/** Tests of values, by their path. */
export interface ValueFilter {
  readonly [path: string]: ValueTest
}

/** Equal to this, or in this range. A text also equals a number, a boolean or a Date that is written so. */
export type ValueTest =
  | string
  | number
  | boolean
  | null
  | {
      readonly gt?: number | Date | undefined
      readonly gte?: number | Date | undefined
      readonly lt?: number | Date | undefined
      readonly lte?: number | Date | undefined
    }

type Scanned = 'labels' | 'payload' | 'result' | 'meta' | 'captured' | 'error' | 'text' | 'worker' | 'changedAfter'

/** Which jobs `count` counts: as `find`, by the fields that an index serves, without its order and its limit. */
export type CountFilter = Omit<JobFilter, 'order' | 'limit' | Scanned>

export interface JobCount {
  readonly count: number
  /** False: there are at least `count`. Counting stops at 10,000, or when too many rows would have to be read. */
  readonly exact: boolean
}
