import type { JobRow, Store } from '../../store/store.js'
import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'

/** The pause between two reads of the awaited jobs. It starts short, since most waits are short, and grows. */
const POLL_FIRST_MS = 15
const POLL_MAX_MS = 500
/** Each group of this many waiters delays the next read by a millisecond. */
const WAITERS_PER_MS = 50
/** A shorter delay is no timer: the read follows in the next turn. */
const SOON_MS = 10
/** Ids in one read. */
const READ_BATCH = 500

interface Waiter {
  readonly id: string
  readonly settle: (row: JobRow | undefined) => boolean
  readonly giveUp: (error: Error) => void
}

/**
 * The callers of this process that wait for jobs to end, in any process. A hint about a settled job triggers a read at once; a
 * poll covers lost hints. One read covers all awaited ids.
 */
export class ResultWaiters {
  readonly #store: Store
  readonly #world: World
  readonly #waiting = new Set<Waiter>()
  #pollMs = POLL_FIRST_MS
  #timer: Cancel | undefined
  #stopHints: Cancel | undefined
  #isReading = false
  #closedBy: Error | undefined

  constructor(store: Store, world: World) {
    this.#store = store
    this.#world = world
  }

  /** Calls `settle` with the job (undefined when it does not exist) after every read, until it returns true. Returns a cancel function. */
  wait(id: string, settle: (row: JobRow | undefined) => boolean, giveUp: (error: Error) => void): Cancel {
    const waiter: Waiter = { id, settle, giveUp }
    if (this.#closedBy !== undefined) {
      giveUp(this.#closedBy)
      return () => undefined
    }
    this.#waiting.add(waiter)
    this.#stopHints ??= this.#store.changes.onHint((hint) => {
      if (hint.settled) this.#readSoon()
    })
    this.#pollMs = POLL_FIRST_MS
    this.#readSoon()
    return () => this.#remove(waiter)
  }

  /** The store was closed: rejects every waiter. */
  close(error: Error): void {
    this.#closedBy = error
    for (const waiter of this.#waiting) {
      this.#remove(waiter)
      waiter.giveUp(error)
    }
  }

  #remove(waiter: Waiter): void {
    this.#waiting.delete(waiter)
    if (this.#waiting.size > 0) return
    this.#timer?.()
    this.#timer = undefined
    this.#stopHints?.()
    this.#stopHints = undefined
  }

  #readSoon(): void {
    if (this.#isReading) return
    this.#isReading = true
    this.#timer?.()
    this.#timer = undefined
    // Every read covers all awaited ids. With thousands of waiters the reads must not slow the jobs they wait for.
    const pauseMs = this.#waiting.size / WAITERS_PER_MS
    if (pauseMs < SOON_MS) this.#world.timers.soon(() => void this.#read())
    else this.#world.timers.after(pauseMs, () => void this.#read())
  }

  async #read(): Promise<void> {
    const waiters = [...this.#waiting]
    try {
      for (let from = 0; from < waiters.length; from += READ_BATCH) {
        const batch = waiters.slice(from, from + READ_BATCH)
        const rows = await this.#store.jobs.readJobs(batch.map((waiter) => waiter.id))
        for (const [i, waiter] of batch.entries())
          if (this.#waiting.has(waiter) && waiter.settle(rows[i])) this.#remove(waiter)
      }
    } catch {
      // The store cannot be read now: the next read tries again, and each caller has a timeout of its own.
    }
    this.#isReading = false
    if (this.#waiting.size === 0) return
    this.#timer = this.#world.timers.after(this.#pollMs, () => this.#readSoon())
    this.#pollMs = Math.min(POLL_MAX_MS, this.#pollMs * 1.5)
  }
}
