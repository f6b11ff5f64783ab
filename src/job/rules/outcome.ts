import type { ErrorRecord } from '../../codec/error-text.js'

/** A result as it is stored: text, or bytes where the job's codec writes bytes. */
export type Encoded = string | Uint8Array

/**
 * How a claim ended, as the worker or the rescuer saw it. A handler may throw anything; `worker/attempt/run.ts` turns it into one of these.
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
  /** A cancel aborted the handler's signal, and it threw or did not return in time (then without an error). */
  | {
      readonly kind: 'cancelled'
      readonly error: ErrorRecord | null
      readonly reason: string
      /** What the body of a workflow returned after its cancel. */
      readonly result?: Encoded | null | undefined
    }
  /** The payload does not decode, or no longer fits its schema. */
  | { readonly kind: 'unreadable'; readonly error: ErrorRecord }
  /** The worker released the job: it stopped, or never began it. */
  | { readonly kind: 'released' }
  /** A sequence stopped between two items: to let other jobs run, or because it may not begin another item now. */
  | { readonly kind: 'yielded' }
  /** A workflow waits without a claim, or returns to `ready` between two steps. */
  | { readonly kind: 'suspended'; readonly to: 'blocked' | 'retrying' | 'scheduled' | 'ready' }
  /** The code of a workflow no longer fits its log, or its log is full. */
  | { readonly kind: 'drifted' | 'log-limit'; readonly error: ErrorRecord }
  /** The body returned `w.restart(input)`: the next run begins with an empty log. */
  | { readonly kind: 'restarted' }
  /** The worker died, or its heartbeat stopped. `quarantined`: how many suspects its quarantine had, 0 when it was in none. */
  | {
      readonly kind: 'crashed'
      readonly hasBegun: boolean
      readonly quarantined: number
      /** Its handler is known to have blocked the event loop: it is a suspect at once. */
      readonly isBlocking?: boolean | undefined
      /** Its handler ran in a process of its own, which cannot have ended the worker's. */
      readonly isIsolated?: boolean | undefined
    }
  /** The thread or process of its handler ended before the handler did; the worker lives. */
  | { readonly kind: 'child-crashed'; readonly exit: string }
  /** `expires` passed before it began. */
  | { readonly kind: 'expired' }
