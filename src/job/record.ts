import type { ErrorRecord } from '../codec/error-text.js'
import type { InstantLike, InstantText } from './duration/duration-instant.js'
import type { AnyJob, Category, Job } from './definition/define.js'
import type { State } from './rules/states.js'

/** A job as people and programs read it; typed where the call that gave it named the job by its value. */
export interface JobRecord<Payload = unknown, Result = unknown> {
  readonly id: string
  readonly job: string
  readonly title: string | undefined
  readonly queue: string
  readonly state: State
  /** Undefined when it does not decode; `reason` then says why and `raw` holds the text. */
  readonly payload: Payload | undefined
  /** Undefined until the job is done. */
  readonly result: Result | undefined
  readonly error: ErrorRecord | undefined
  /** Why it is where it is, when an error does not say it: expired, parked, replaced, not kept. */
  readonly reason: string | undefined
  /** Attempts that ended and count. */
  readonly attempt: number
  /** Crashes it was charged with: its process died while it ran in quarantine, with nothing else beside it. */
  readonly crashes: number
  readonly priority: number
  readonly labels: readonly string[]
  readonly key: string | undefined
  /** Ids of the jobs it came after. */
  readonly after: readonly string[]
  readonly group: string | undefined
  readonly meta: unknown
  /** What `capture` took when it was enqueued, by name. Empty when there was nothing. */
  readonly captured: Readonly<Record<string, unknown>>
  readonly progress: { readonly done: number; readonly total?: number | undefined } | undefined
  /** The tick of a recurring job that enqueued it: which schedule, and the instant that its rule names. */
  readonly tick: { readonly schedule: string; readonly at: Date } | undefined
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
  /** How it ended when it was not by returning or throwing: 'crashed', 'snoozed', 'cancelled', or a command such as 'retried'. */
  readonly exit?: string | undefined
  readonly log?: readonly string[] | undefined
}

/** What a filter may name a job by. */
export type Findable = AnyJob | Category | string

/** The records that a filter of these jobs finds: typed by each job that is named by its value. */
export type FoundRecord<Wanted> = string extends Wanted
  ? JobRecord
  : Wanted extends readonly (infer One)[]
    ? FoundRecord<One>
    : Wanted extends Job<infer Payload, infer Result>
      ? JobRecord<Payload, Result>
      : JobRecord

/** Which jobs `find` gives. Every part narrows. */
export interface JobFilter<Wanted extends Findable | readonly Findable[] = Findable | readonly Findable[]> {
  /** Job values, names, or categories. */
  readonly job?: Wanted | undefined
  readonly queue?: string | readonly string[] | undefined
  readonly state?: State | readonly State[] | undefined
  readonly label?: string | undefined
  readonly key?: string | undefined
  readonly group?: string | undefined
  /** Enqueued after this instant: a Date, a Temporal.Instant, or ISO text with its zone. No filter is by the end of a job. */
  readonly createdAfter?: Date | InstantLike | InstantText | undefined
  readonly createdBefore?: Date | InstantLike | InstantText | undefined
  /** Default 'newest'. */
  readonly order?: 'newest' | 'oldest' | undefined
  /** No more than so many. Default: all. */
  readonly limit?: number | undefined
}

/** Which jobs `count` counts: as `find`, without its order and its limit. */
export type CountFilter = Omit<JobFilter, 'order' | 'limit'>

export interface JobCount {
  readonly count: number
  /** False: there are at least so many. Counting stops at 10,000, or where too many jobs would have to be looked at. */
  readonly exact: boolean
}
