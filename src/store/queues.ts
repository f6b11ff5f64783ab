import type { AuditNote } from '../job/command-options.js'
import type { QueueLimitsChange, QueueState } from './limits.js'
import type { Claim, Due } from './store.js'

/** The queues role: the state of a whole queue, for every process. */
export interface QueueStore {
  /**
   * Pauses a queue for every process, or resumes it when the requested pause is over already. Returns the resulting
   * pause.
   */
  pauseQueue(change: QueueChange): Promise<PausedQueue>
  /** Resumes a queue; false when it was not paused. */
  resumeQueue(queue: string, audit?: AuditNote): Promise<boolean>
  /** The pause of a queue; undefined when it is not paused. */
  readPause(queue: string): Promise<CurrentPause | undefined>
  /** Stores the limits of these queues, for every process. */
  setLimits(changes: readonly QueueLimitsChange[]): Promise<void>
  /** The limits of a queue, and the outages of its jobs. */
  readQueue(queue: string): Promise<QueueState>
}

export interface QueueChange {
  readonly queue: string
  /** Null: until a caller resumes it. */
  readonly until: Due | null
  /**
   * The claim of the handler that requests the pause. The store refuses it if the claim is lost; a handler can only
   * lengthen a pause.
   */
  readonly claim?: Claim | undefined
  readonly audit?: AuditNote | undefined
}

export interface CurrentPause {
  readonly pausedAt: number
  /** Null: until a caller resumes it. */
  readonly until: number | null
}

/** What holds the jobs of a queue. */
export interface QueueFacts extends QueueState {
  readonly pause: CurrentPause | undefined
}

/** How many jobs of a queue are in each state; those that were done or cancelled are not counted. */
export type QueueCounts = {
  readonly [
    state in 'ready' | 'running' | 'scheduled' | 'retrying' | 'blocked' | 'paused' | 'parked' | 'failed'
  ]: number
}

/** A queue with the counts of its jobs. */
export interface QueueListed extends QueueFacts {
  readonly name: string
  /** Ready jobs that a worker claimed in advance are not counted. */
  readonly counts: QueueCounts
  /** No count stopped at its bound. */
  readonly isExact: boolean
  /** When the first ready job became due. */
  readonly oldestDueAt: number | null
}

export interface PausedQueue {
  /** Undefined: the queue is not paused. */
  readonly pause: CurrentPause | undefined
  /**
   * A worker holds jobs of the queue in advance, and may start one without confirming for up to `heldUnconfirmedMs`.
   */
  readonly held: boolean
}

/** A job held in advance, for which its worker requests a confirmation to start it. */
export interface HeldJob extends Claim {
  readonly queue: string
}

export interface Confirmation {
  /** The refs of the jobs that may start. */
  readonly mine: ReadonlySet<number>
  /** The refs of the jobs that this claim still holds and must release, because their queue is paused. */
  readonly paused: ReadonlySet<number>
}
