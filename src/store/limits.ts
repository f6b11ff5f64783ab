import type { JobLimits, QueueLimits } from '../job/limits/limits.js'
import type { Claimed, ClaimRequest, GuardedChange } from './store.js'

/** Part of the leases role: claims under limits and rates. */
export interface LimitStore {
  /**
   * Claims ready jobs that are under a limit or a rate, or have a key, under one new fence. A job is taken only while
   * all its limits have a free slot and all its rates room in the window that ends now, by the store's clock and for
   * the whole fleet. The keys of a lane take turns.
   */
  claimLimited(request: LimitedClaimRequest): Promise<LimitedClaimed>
}

export interface LimitedClaimRequest extends ClaimRequest {
  /** The limits of the jobs that this worker can run, by name. */
  readonly limits: ReadonlyMap<string, JobLimits>
  /** Only this job, which is retried in the same transaction. `limits` has its name. Throws RetryNotStarted when it cannot start now. */
  readonly only?: RetriedJob | undefined
}

/** A job that is retried and claimed by one worker, so that no other claims it first. */
export interface RetriedJob {
  readonly ref: number
  readonly name: string
  readonly queue: string
  readonly change: GuardedChange
}

/** 'stale': it has left its state. 'held': its queue is paused, or a limit or rate has no room. Nothing was written. */
export class RetryNotStarted extends Error {
  readonly why: 'stale' | 'held'

  constructor(why: 'stale' | 'held') {
    super(`the job was not retried: ${why}`)
    this.why = why
  }
}

export interface LimitedClaimed extends Claimed {
  /** How many of the jobs start at once; the others are held. */
  readonly starting: number
  /** A ready job waits for a slot: a settlement, also of another process, may free it. */
  readonly waitsForSlot: boolean
}

/** The limits of one queue, to be stored; null removes them. */
export interface QueueLimitsChange {
  readonly queue: string
  readonly limits: QueueLimits | null
}

/** What is stored of a queue beside its pause. */
export interface QueueState {
  readonly limits: QueueLimits
  readonly outages: readonly QueueOutage[]
}

/** A job of the queue whose retries are held, or were until a moment ago. */
export interface QueueOutage {
  readonly name: string
  readonly state: 'closed' | 'opening'
  readonly since: number
  /** The retries that are due and held. */
  readonly waiting: number
}
