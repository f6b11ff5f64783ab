import type { StoreGoneError } from '../errors.js'
import type { Cancel } from '../world/timers.js'

/** What a store reports while it is in use. */
export type StoreNotice =
  /** A condition that a person should know of, and what to do about it. */
  | { readonly kind: 'warning'; readonly text: string }
  /** The store is gone for good: every call fails from now on, and nothing brings it back but a new mill. */
  | { readonly kind: 'gone'; readonly error: StoreGoneError }

/** What a store says of itself. */
export interface StoreInfo {
  /** What people call it: the absolute path, or `:memory:`. */
  readonly name: string
  /** The database and its version. */
  readonly engine: string
  /** Notes that a person should see at start: a faster mode and what it can lose, an old library. */
  readonly warnings: readonly string[]
  /** Calls back with each notice from now on. A store that never has any leaves it out. */
  onNotice?(callback: (notice: StoreNotice) => void): Cancel
  /** Batches of jobs a worker may hold: two where a claim is on its way while handlers run. */
  readonly batchesAhead: number
  /**
   * How long a worker that was told that the jobs it holds are still its own begins them without asking again, counted from
   * when it asked. A command that takes a held job, or pauses its queue, resolves only after twice as long.
   */
  readonly heldUnconfirmedMs: number
}

/** How workers pace themselves. On SQLite an answer is there at once; over a network it must be worth more than the way there and back. */
export const PACE = {
  sqlite: { heldUnconfirmedMs: 5, batchesAhead: 1 },
  postgres: { heldUnconfirmedMs: 200, batchesAhead: 2 },
}
