import type { RequestKind } from './request.js'
import { isFinal } from './states.js'
import type { State } from './states.js'

/**
 * The rules of sequences: a long list of items that one job works off in order. Pure, like `decide`. The state of a
 * sequence is that of its job, seen by its caller; the table of verbs is `decideSequence`.
 */
export type SequenceState = 'waiting' | 'running' | 'paused' | 'done' | 'failed' | 'cancelled'

export type SequenceVerb = 'start' | 'pause' | 'resume' | 'cancel' | 'reset'

/** What a sequence waits for until a caller starts it. */
export const WAITS_FOR_START = '!start'

/** The part of a sequence that the table depends on. */
export interface SequencePlace {
  readonly state: State
  /** It waits for `start()`. */
  readonly isUnstarted: boolean
  readonly requested: RequestKind | null
}

export function sequenceState({ state, isUnstarted }: Pick<SequencePlace, 'state' | 'isUnstarted'>): SequenceState {
  if (state === 'paused') return isUnstarted ? 'waiting' : 'paused'
  if (state === 'parked') return 'failed'
  return isFinal(state) ? state : 'running'
}

export type SequenceMove =
  /** The job moves to this state at once. */
  | { readonly to: 'ready' | 'paused' | 'cancelled' }
  /** An item is in hand: the transaction that ends its claim applies the request. */
  | { readonly request: RequestKind | 'resume' }
  /** The claim ends, and everything that was recorded is forgotten. */
  | { readonly reset: true }
  /** It is requested already. */
  | { readonly already: true }

/** The move that a verb makes; null when the verb does not apply in this state. */
export function decideSequence(place: SequencePlace, verb: SequenceVerb): SequenceMove | null {
  if (verb === 'reset') return { reset: true }
  const state = sequenceState(place)
  switch (state) {
    case 'waiting':
      return verb === 'start' ? { to: 'ready' } : verb === 'cancel' ? { to: 'cancelled' } : null
    case 'running':
      return place.state === 'running' ? decideInHand(place.requested, verb) : decideBetweenItems(verb)
    case 'paused':
      return verb === 'resume' ? { to: 'ready' } : verb === 'cancel' ? { to: 'cancelled' } : null
    case 'failed':
      return verb === 'resume' ? { to: 'ready' } : null
    case 'done':
    case 'cancelled':
      return null
    default:
      return state satisfies never
  }
}

function decideBetweenItems(verb: Exclude<SequenceVerb, 'reset'>): SequenceMove | null {
  if (verb === 'pause') return { to: 'paused' }
  return verb === 'cancel' ? { to: 'cancelled' } : null
}

function decideInHand(requested: RequestKind | null, verb: Exclude<SequenceVerb, 'reset'>): SequenceMove | null {
  if (verb === 'cancel') return requested === 'cancel' ? { already: true } : { request: 'cancel' }
  if (verb === 'pause') return requested === null ? { request: 'pause' } : null
  return verb === 'resume' && requested === 'pause' ? { request: 'resume' } : null
}

/** The address of an item in the log: its index in nine digits, so that the order of texts is that of the items. */
export function itemAddress(index: number): string {
  return String(index).padStart(9, '0')
}

/** A row of the log of a sequence, as far as the position depends on it. */
export interface ItemRow {
  readonly address: string
  readonly isAnswered: boolean
  readonly attempt: number
}

/** Where a sequence continues: the first item that is not recorded, and its failed attempts. */
export function positionAfter(last: ItemRow | undefined): { readonly index: number; readonly attempt: number } {
  if (last === undefined) return { index: 0, attempt: 0 }
  const index = Number(last.address)
  return last.isAnswered ? { index: index + 1, attempt: 0 } : { index, attempt: last.attempt }
}
