import type { StoreGoneError } from '../errors.js'
import type { Cancel } from '../world/timers.js'

/** A report of an open store. */
export type StoreNotice =
  /** A condition that an operator should know of, and what to do about it. */
  | { readonly kind: 'warning'; readonly text: string }
  /** The store is lost for good: every call fails from now on, and only a new mill can work again. */
  | { readonly kind: 'gone'; readonly error: StoreGoneError }

/** Something wrong with the database: since when, what it does, and what mends it. */
export interface StoreFinding {
  readonly kind: 'horizon' | 'wal' | 'setting' | 'push' | 'migrations'
  readonly text: string
  readonly since: Date | undefined
  readonly effect: string
  readonly mend: string
}

/** A store's description of itself. */
export interface StoreInfo {
  /** The name shown to people: the absolute path, or `:memory:`. */
  readonly name: string
  /** The database and its version. */
  readonly engine: string
  /** Notes to print at start: a faster mode and what it can lose, an old library. */
  readonly warnings: readonly string[]
  /** What the database says that an operator should know now: old snapshots, a large WAL. Omitted where there is nothing to ask. */
  inspect?(): Promise<readonly StoreFinding[]>
  /** Calls back with each later notice. A store that never has a notice omits it. */
  onNotice?(callback: (notice: StoreNotice) => void): Cancel
  /** Batches of jobs that a worker may hold: two where a claim is in flight while handlers run. */
  readonly batchesAhead: number
  /**
   * How long a worker may start held jobs after a confirmation without confirming again, counted from when it sent the
   * request. A command that takes a held job, or pauses its queue, resolves only after twice this time.
   */
  readonly heldUnconfirmedMs: number
}

/** How workers pace their calls. SQLite answers at once; over a network a call must be worth its round trip. */
export const CALL_PACE = {
  sqlite: { heldUnconfirmedMs: 5, batchesAhead: 1 },
  postgres: { heldUnconfirmedMs: 200, batchesAhead: 2 },
}
