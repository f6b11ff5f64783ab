import type { ErrorRecord } from '../../codec/error-text.js'

/** A result as it is stored: text, or bytes where the job's codec writes bytes. */
export type Encoded = string | Uint8Array

/**
 * What became of a claim, whoever saw it end. A handler may throw anything; past `worker/run` it is one of these.
 */
export type Outcome =
  /** The handler returned. `note` says why a result is not kept. */
  | { readonly kind: 'succeeded'; readonly result: Encoded | null; readonly note?: string | undefined }
  /** The handler threw. `retryable` is false when the policy's `when` said no; `delayMs` is the wait before the next try. */
  | {
      readonly kind: 'failed'
      readonly error: ErrorRecord
      readonly retryable: boolean
      readonly retryLimit: number
      readonly delayMs: number
    }
  /** The handler threw `Abort`. */
  | { readonly kind: 'aborted'; readonly error: ErrorRecord }
  /** The handler threw `Snooze`. */
  | { readonly kind: 'snoozed'; readonly delayMs: number }
  /** The handler was told of a cancel and threw, or did not come back in time (no error then). */
  | { readonly kind: 'cancelled'; readonly error: ErrorRecord | null; readonly reason: string }
  /** The payload does not decode, or no longer fits its schema. */
  | { readonly kind: 'unreadable'; readonly error: ErrorRecord }
  /** The worker gave the job back: it stopped, or never began it. */
  | { readonly kind: 'released' }
  /** The worker died, or its heart stopped. `quarantined`: how many suspects its quarantine had, 0 when it was in none. */
  | {
      readonly kind: 'crashed'
      readonly hasBegun: boolean
      readonly quarantined: number
      /** Its handler is known to have blocked the event loop: it is a suspect at once. */
      readonly isBlocking?: boolean | undefined
    }
  /** `expires` passed before it began. */
  | { readonly kind: 'expired' }
