import type { State } from './states.js'

/** The policy of an enqueue when an unfinished job already holds its key. `move` is the policy of `schedule`. */
export type OnDuplicate = 'return' | 'reject' | 'replace' | 'move'

export type DuplicateVerdict =
  /** Nothing is written; the caller gets the holder's handle. */
  | 'return'
  /** The call is refused. */
  | 'reject'
  /** The waiting holder is cancelled and the new job takes the key. */
  | 'replace'
  /** The waiting holder gets the new time and payload and keeps its id. */
  | 'move'
  /** The new job is written under the same key, blocked until the claimed holder ends. */
  | 'follow'

/** The unfinished job that holds a key or a unique slot. */
interface Holder {
  readonly state: State
  /** A worker has claimed it: it runs, or is held in advance. */
  readonly claimed: boolean
}

/**
 * A claimed job can be neither replaced nor moved: its handler may have run in part. `replace` then refuses, since the caller
 * wanted the new payload to run instead; `move` writes a successor, so that a scheduled job is never dropped. The successor holds
 * the key from then on, and it waits: the next call moves, replaces or returns it.
 */
export function decideDuplicate(holder: Holder, policy: OnDuplicate): DuplicateVerdict {
  if (policy === 'replace') return waits(holder) ? 'replace' : 'reject'
  if (policy === 'move') return waits(holder) ? 'move' : 'follow'
  return policy
}

/*
 * Uniqueness beyond the key. All jobs of one name with one unique value share a *unique slot*. The newest job that took the slot is
 * its holder, and the enqueue that opened it may have set a window. Whether a slot is taken is decided by the next enqueue that
 * wants it, and not written when a job ends: so jobs that are not unique pay nothing when they settle.
 */

/** A unique value of at most this many characters is stored as readable text; a longer one is stored as its digest. */
export const KEY_TEXT_MAX = 200

/** How long a holder makes a later enqueue a duplicate. */
export type UniqueWhile = 'unfinished' | 'waiting'
export type UniquePolicy = 'ignore' | 'replace' | 'reject' | 'reschedule'

/** The slot that an enqueue wants, and the policy when it is taken. */
export interface UniqueSlotRequest {
  /** The unique value as text; together with the job's name it identifies the slot. */
  readonly key: string
  readonly while: UniqueWhile
  readonly onDuplicate: UniquePolicy
  /** The length of the window that the enqueue opens, in ms: Infinity for ever, null for none. */
  readonly forMs: number | null
}

export interface UniqueSlot {
  /** Null: the job that took it has ended, or was deleted. */
  readonly holder: Holder | null
  /** Its window has not ended yet. */
  readonly windowRuns: boolean
}

export type UniqueSlotVerdict =
  /** The slot is free; the new job is written and takes it. */
  | 'free'
  /** Nothing is written; the caller gets the holder's handle. */
  | 'ignore'
  /** The call is refused. */
  | 'reject'
  /** The waiting holder is cancelled and the new job takes the slot. */
  | 'replace'
  /** The waiting holder keeps its id and gets the new payload, options and time. */
  | 'reschedule'

/**
 * `replace` and `reschedule` require that the new payload runs. A claimed job cannot be changed any more, and a job that ran within
 * its window has used the window up. In both cases the enqueue is refused, rather than the new payload dropped silently. For
 * `reschedule` the window only bounds how long a job can be postponed: a finished job does not make the next one a duplicate.
 */
export function decideUniqueSlot(
  slot: UniqueSlot,
  request: { readonly while: UniqueWhile; readonly onDuplicate: UniquePolicy },
): UniqueSlotVerdict {
  const { holder } = slot
  const isWaiting = holder !== null && waits(holder)
  const isHeld = request.while === 'waiting' ? isWaiting : holder !== null
  const isTaken = isHeld || (slot.windowRuns && request.onDuplicate !== 'reschedule')
  if (!isTaken) return 'free'
  if (request.onDuplicate === 'replace' || request.onDuplicate === 'reschedule')
    return isWaiting ? request.onDuplicate : 'reject'
  return request.onDuplicate
}

function waits(holder: Holder): boolean {
  return !holder.claimed && holder.state !== 'running'
}
