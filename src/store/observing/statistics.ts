import type { BucketRange, Window } from '../../job/statistics/buckets.js'

/** A window until an instant (undefined: the store's now), by the longest buckets; `lastMs` Infinity: everything. */
export interface LastWindow {
  readonly lastMs: number
  readonly at?: number | undefined
}

export interface LaneFilter {
  readonly queue?: string | undefined
  readonly name?: string | undefined
}

/** Which buckets to read: those that cover a window of the store's time, or those of one length. */
export interface StatisticsQuery extends LaneFilter {
  readonly window: LastWindow | BucketRange
  /** The distributions that are needed: they are most of what is read. Default: both. */
  readonly times?: readonly ('wait' | 'run')[] | undefined
}

export interface FailuresQuery extends LaneFilter {
  /** Only this group. */
  readonly fingerprint?: string | undefined
  readonly window: LastWindow
}

/** What was counted in one bucket of one lane; a lane may have several rows of one bucket. */
export interface BucketRow {
  readonly queue: string
  readonly name: string
  readonly at: number
  readonly done: number
  readonly failed: number
  readonly retried: number
  /** Sketches as they are written. */
  readonly wait: string | null
  readonly run: string | null
}

export interface Statistics {
  readonly now: number
  readonly window: Window
  readonly rows: readonly BucketRow[]
}

/** Failures of one error group: same job, error class and place. */
export interface FailureGroup {
  readonly fingerprint: string
  readonly name: string
  readonly error: string
  readonly place: string
  readonly count: number
  /** The first that is known, also before the window. */
  readonly firstSeen: number
  readonly lastSeen: number
  /** The last failed jobs, newest last. */
  readonly samples: readonly { readonly id: string; readonly at: number; readonly message: string | null }[]
}

/** Jobs of one queue in one state. */
export interface QueueCount {
  readonly queue: string
  readonly state: 'ready' | 'running' | 'scheduled' | 'retrying' | 'blocked' | 'paused' | 'parked' | 'failed'
  readonly count: number
  /** There may be more: counting stopped at QUEUE_COUNT_MAX jobs, of a lane if they are ready, else of the state. */
  readonly isMore: boolean
  /** When the ready job that is next was due; null for other states. */
  readonly dueAt: number | null
}

/** Counting stops at this number: "10,000 or more" is precise enough to read. */
export const QUEUE_COUNT_MAX = 10_000

/** The most moves that one fold adds up. */
export const STATS_FOLD_MAX = 5_000
/** Moves of the current minute are folded only when there are more than these: each fold rewrites the same rows. */
export const STATS_MOVES_MAX = 2_000
/** Error groups of one lane and day; further ones are counted as one. */
export const FAILURE_GROUPS_MAX = 100
/** Days that error groups are kept. */
export const FAILURES_KEPT_DAYS = 400
