import type { Claim, Due } from './store.js'

/** The role of queues: what is true of a whole queue, for every process. */
export interface QueueStore {
  /** Pauses a queue everywhere, or resumes it when the pause asked for is over already. Gives how it stands now. */
  pauseQueue(change: QueueChange): Promise<PausedQueue>
  /** Lets a queue run again; false when it was not paused. */
  resumeQueue(queue: string): Promise<boolean>
  /** How a queue is paused; undefined when it runs. */
  readPause(queue: string): Promise<StandingPause | undefined>
}

export interface QueueChange {
  readonly queue: string
  /** Null: until a person resumes it. */
  readonly until: Due | null
  /** The claim of the handler that asks: it is refused once that is lost, and a handler only ever lengthens a pause. */
  readonly under?: Claim | undefined
}

export interface StandingPause {
  readonly pausedAt: number
  /** Null: until a person resumes it. */
  readonly until: number | null
}

export interface PausedQueue {
  /** Undefined: the queue runs. */
  readonly pause: StandingPause | undefined
  /** Some worker holds jobs in advance, and may begin one without asking for `heldUnconfirmedMs` yet. */
  readonly held: boolean
}

/** A job held in advance, as its holder asks whether it may begin. */
export interface HeldJob extends Claim {
  readonly queue: string
}

export interface Confirmation {
  /** The refs of those that may begin. */
  readonly mine: ReadonlySet<number>
  /** The refs of those that are still this claim's and must go back: their queue is paused. */
  readonly paused: ReadonlySet<number>
}
