import type { RequestVerb, RequestKind } from '../job/rules/request.js'
import type { AuditNote } from '../job/command-options.js'
import type { Claim, SettledJob } from './store.js'

/** A change requested of a running job. */
export interface JobRequest {
  readonly id: string
  readonly verb: RequestVerb
  readonly reason: string
  /** How long the job is kept if this request ends it. */
  readonly keepMs: number
  readonly audit?: AuditNote | undefined
}

/** A pending request of a running job, and the claim that the job runs under now. */
export interface PendingRequest extends Claim {
  readonly kind: RequestKind
  readonly reason: string
}

/** The result of settlements. */
export interface SettleResult {
  /** Refs whose claim was lost: nothing was written for them. */
  readonly refused: readonly number[]
  /** Settlements that a request altered, as they were written. */
  readonly changed: readonly SettledJob[]
}
