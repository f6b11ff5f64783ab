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

/**
 * A claimed job can be neither replaced nor moved: its handler may be half-way. `replace` then refuses, since the caller
 * wanted the new payload to run and it would not; `move` returns the one that is firing.
 */
export function decideDuplicate(
  holder: { readonly state: State; readonly claimed: boolean },
  asked: OnDuplicate,
): DuplicateVerdict {
  const waits = !holder.claimed && holder.state !== 'running'
  if (asked === 'replace') return waits ? 'replace' : 'reject'
  if (asked === 'move') return waits ? 'move' : 'return'
  return asked
}
