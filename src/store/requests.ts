import type { RequestVerb, RequestKind } from '../job/rules/request.js'
import type { Claim, SettledJob } from './store.js'

/** A change requested of a job that runs. */
export interface JobRequest {
  readonly id: string
  readonly verb: RequestVerb
  readonly reason: string
  /** How long the job is kept if it ends by this. */
  readonly keepMs: number
}

/** What stands written beside a job that runs, and under which claim it runs now. */
export interface PendingRequest extends Claim {
  readonly kind: RequestKind
  readonly reason: string
}

/** What came of settlements. */
export interface SettleResult {
  /** Refs whose fence was not theirs any more: nothing was written of them. */
  readonly refused: readonly number[]
  /** Those that a requested change altered, as they were written. */
  readonly changed: readonly SettledJob[]
}
