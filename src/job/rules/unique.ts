import type { State } from './states.js'

/** What an enqueue asks for when an unfinished job already holds its key. `move` is what `schedule` asks for. */
export type OnDuplicate = 'return' | 'reject' | 'replace' | 'move'

export type DuplicateVerdict =
  /** Nothing is written; the caller gets the first one's handle. */
  | 'return'
  /** The call is refused. */
  | 'reject'
  /** The waiting one is cancelled and the new one takes the key. */
  | 'replace'
  /** The waiting one gets the new time and payload and keeps its id. */
  | 'move'
  /** The new one is written under the same key, blocked until the claimed one ends. */
  | 'follow'

/** An unfinished job as a duplicate meets it. */
interface Holder {
  readonly state: State
  /** A worker has it: it runs, or is about to. */
  readonly claimed: boolean
}

/**
 * A claimed job can be neither replaced nor moved: its handler may be half-way. `replace` then refuses, since the caller
 * wanted the new payload to run instead; `move` writes a successor, so that what was scheduled is never dropped. The
 * successor is the key's holder from then on, and it waits: the next call moves, replaces or returns it.
 */
export function decideDuplicate(holder: Holder, asked: OnDuplicate): DuplicateVerdict {
  if (asked === 'replace') return waits(holder) ? 'replace' : 'reject'
  if (asked === 'move') return waits(holder) ? 'move' : 'follow'
  return asked
}

/*
 * Uniqueness beyond the key. All jobs of one name with one unique value share a *place*. The newest that took it is its
 * holder, and the enqueue that opened it may have given it a window. Whether a place counts as taken is asked when the
 * next job wants it, and never written when a job ends: that keeps uniqueness out of the way of everybody who runs jobs.
 */

/** Until when a job counts as a duplicate's first one. */
export type UniqueWhile = 'unfinished' | 'waiting'
export type UniquePolicy = 'ignore' | 'replace' | 'reject' | 'reschedule'

/** The place a job wants, and what is to be done when it is taken. */
export interface UniqueSlotRequest {
  /** The unique value as text; together with the job's name it names the place. */
  readonly key: string
  readonly while: UniqueWhile
  readonly onDuplicate: UniquePolicy
  /** How long the window is that it opens, in ms: Infinity for ever, null for none. */
  readonly forMs: number | null
}

export interface UniqueSlot {
  /** Null: the one that took it has ended, or is gone. */
  readonly holder: Holder | null
  /** Its window is not over yet. */
  readonly windowRuns: boolean
}

export type UniqueSlotVerdict =
  /** Nobody is in the way; the new one is written and takes the place. */
  | 'free'
  /** Nothing is written; the caller gets the first one's handle. */
  | 'ignore'
  /** The call is refused. */
  | 'reject'
  /** The waiting one is cancelled and the new one takes the place. */
  | 'replace'
  /** The waiting one keeps its id and gets the new payload, options and time. */
  | 'reschedule'

/**
 * `replace` and `reschedule` mean that the new payload must run. What a worker has taken cannot be changed any more, and what
 * ran within its window used it up, so both refuse rather than drop the new payload in silence. For `reschedule` the window
 * only bounds how long a job can be put off: one that ended does not stand in the way of the next.
 */
export function decideUniqueSlot(
  place: UniqueSlot,
  asked: { readonly while: UniqueWhile; readonly onDuplicate: UniquePolicy },
): UniqueSlotVerdict {
  const { holder } = place
  const isWaiting = holder !== null && waits(holder)
  const isWanted = asked.while === 'waiting' ? isWaiting : holder !== null
  const isTaken = isWanted || (place.windowRuns && asked.onDuplicate !== 'reschedule')
  if (!isTaken) return 'free'
  if (asked.onDuplicate === 'replace' || asked.onDuplicate === 'reschedule')
    return isWaiting ? asked.onDuplicate : 'reject'
  return asked.onDuplicate
}

function waits(holder: Holder): boolean {
  return !holder.claimed && holder.state !== 'running'
}
