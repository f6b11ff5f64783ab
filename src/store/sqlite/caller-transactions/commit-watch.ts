import type { World } from '../../../world/world.js'
import { transactionOf } from './handles.js'
import type { SqliteDatabase } from '../connection/driver.js'

const STEP_FIRST_MS = 1
const STEP_MAX_MS = 10

export interface CommitWatchOptions {
  /** Changes with every commit of another connection than the store's own. */
  readonly version: () => number
  /** Whether this is the store's own connection, whose commits do not change its version. */
  readonly isOwn: (handle: SqliteDatabase) => boolean
  readonly committed: () => void
}

/**
 * Detects the commit of a transaction that the caller ends. There is no event for it, so the watch checks from the turn
 * after the write until the handle is out of its transaction.
 */
export class CommitWatch {
  readonly #world: World
  readonly #options: CommitWatchOptions
  readonly #watched = new Set<SqliteDatabase>()
  #closed = false

  constructor(world: World, options: CommitWatchOptions) {
    this.#world = world
    this.#options = options
  }

  /** Jobs were written in this handle's transaction. */
  expect(handle: SqliteDatabase): void {
    if (this.#watched.has(handle)) return
    this.#watched.add(handle)
    let seen = this.#options.version()
    let stepMs = STEP_FIRST_MS
    const poll = (): void => {
      if (this.#closed) return
      const ended = transactionOf(handle) !== 'open'
      const version = this.#options.version()
      if (ended) this.#watched.delete(handle)
      // A handle may be in a transaction at every check and still have committed in between.
      if (version !== seen || (ended && this.#options.isOwn(handle))) this.#options.committed()
      seen = version
      if (!ended) this.#world.timers.after(stepMs, poll, { idle: true })
      stepMs = Math.min(STEP_MAX_MS, stepMs * 2)
    }
    this.#world.timers.soon(poll)
  }

  close(): void {
    this.#closed = true
    this.#watched.clear()
  }
}
