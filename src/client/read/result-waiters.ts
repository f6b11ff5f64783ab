import type { JobRow, Store } from '../../store/store.js'
import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'

/** Pause between two looks at what is awaited: short at first, since most waits are. */
const POLL_FIRST_MS = 15
const POLL_MAX_MS = 500
/** So many waiters put the next look off by a millisecond. */
const WAITERS_PER_MS = 50
/** Ids read in one look. */
const READ_BATCH = 500

interface Waiter {
  readonly id: string
  readonly settle: (row: JobRow | undefined) => boolean
  readonly giveUp: (error: Error) => void
}

/**
 * Callers who wait for jobs to end, in whatever process those run. A commit of this process is looked at at once; others'
 * are found by looking, all awaited ids in one read.
 */
export class ResultWaiters {
  readonly #store: Store
  readonly #world: World
  readonly #waiting = new Set<Waiter>()
  #lookMs = POLL_FIRST_MS
  #timer: Cancel | undefined
  #unhint: Cancel | undefined
  #looking = false
  #closedBy: Error | undefined

  constructor(store: Store, world: World) {
    this.#store = store
    this.#world = world
  }

  /** Calls `settle` with the job (undefined once it is gone) at every look, until it returns true. Gives the way out. */
  wait(id: string, settle: (row: JobRow | undefined) => boolean, giveUp: (error: Error) => void): Cancel {
    const waiter: Waiter = { id, settle, giveUp }
    if (this.#closedBy !== undefined) {
      giveUp(this.#closedBy)
      return () => undefined
    }
    this.#waiting.add(waiter)
    this.#unhint ??= this.#store.changes.onHint((hint) => {
      if (hint.settled) this.#soon()
    })
    this.#lookMs = POLL_FIRST_MS
    this.#soon()
    return () => this.#leave(waiter)
  }

  /** Nobody waits any longer: the store is closed. */
  close(error: Error): void {
    this.#closedBy = error
    for (const waiter of this.#waiting) {
      this.#leave(waiter)
      waiter.giveUp(error)
    }
  }

  #leave(waiter: Waiter): void {
    this.#waiting.delete(waiter)
    if (this.#waiting.size > 0) return
    this.#timer?.()
    this.#timer = undefined
    this.#unhint?.()
    this.#unhint = undefined
  }

  #soon(): void {
    if (this.#looking) return
    this.#looking = true
    this.#timer?.()
    this.#timer = undefined
    // Every look reads all that is awaited: thousands of waiters must not crowd out the work they wait for.
    const pauseMs = this.#waiting.size / WAITERS_PER_MS
    if (pauseMs < 10) this.#world.timers.soon(() => void this.#look())
    else this.#world.timers.after(pauseMs, () => void this.#look())
  }

  async #look(): Promise<void> {
    const waiters = [...this.#waiting]
    try {
      for (let from = 0; from < waiters.length; from += READ_BATCH) {
        const batch = waiters.slice(from, from + READ_BATCH)
        const rows = await this.#store.jobs.readJobs(batch.map((waiter) => waiter.id))
        for (const [i, waiter] of batch.entries())
          if (this.#waiting.has(waiter) && waiter.settle(rows[i])) this.#leave(waiter)
      }
    } catch {
      // The store cannot be read for now: the next look tries again, and each caller has a timeout of its own.
    }
    this.#looking = false
    if (this.#waiting.size === 0) return
    this.#timer = this.#world.timers.after(this.#lookMs, () => this.#soon())
    this.#lookMs = Math.min(POLL_MAX_MS, this.#lookMs * 1.5)
  }
}
