import type { ErrorRecord } from '../codec/error-text.js'

/** The state of a workflow beside that of its job: `mill.get(id).workflow`. */
export interface WorkflowRecord {
  /** 0, and one more after each restart. */
  readonly run: number
  /** Answers that this run has recorded. */
  readonly answers: number
  readonly waitingFor: readonly WaitingFor[]
  readonly warnings: readonly string[]
  /** Events that were sent and are not taken. */
  readonly unread: number
  /** A cancel or a pause that its worker has not carried out yet. */
  readonly requested?: 'cancel' | 'pause' | undefined
}

/** An operation that a workflow waits for. */
export interface WaitingFor {
  readonly address: string
  readonly kind: string
  readonly name: string
  /** When a sleep, a timeout or the wait for a step's next attempt ends. */
  readonly until?: Date | undefined
  readonly event?: string | undefined
  /** The id of the called job. */
  readonly job?: string | undefined
}

/** A recorded step, or an open one: see `mill.steps`. */
export interface StepRecord {
  readonly address: string
  readonly name: string
  /** step, tx, sleep, wait, call, enqueue, results, all, each, race or cleanup; !cancel, whose name is the reason, and !deadline. */
  readonly kind: string
  readonly state: 'done' | 'failed' | 'open' | 'retrying'
  readonly attempt: number
  readonly startedAt: Date
  readonly endedAt?: Date | undefined
  readonly until?: Date | undefined
  readonly result?: unknown
  readonly error?: ErrorRecord | undefined
  readonly log?: readonly string[] | undefined
  /** The id of the job that it called or enqueued. */
  readonly child?: string | undefined
  /** It was called after something that is not of `w`. */
  readonly foreign?: boolean | undefined
  /** A cancelled step did not return: whether it acted is not known. */
  readonly unknown?: boolean | undefined
}

/** What a report says of steps that act. */
export interface ActingSteps {
  readonly run: number
  /** The answers of the run when it was reported: those that follow may be of these steps. */
  readonly answers: number
  readonly steps: readonly { readonly address: string; readonly attempt: number; readonly startedAt: number }[]
}
