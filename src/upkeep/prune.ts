import type { Store } from '../store/store.js'
import type { Cancel } from '../world/timers.js'
import type { World } from '../world/world.js'

/** Jobs, and places, forgotten in one write: a few milliseconds of the event loop. */
const BATCH = 500
/** Between two full batches, so that pruning never crowds out work. */
const NEXT_BATCH_MS = 50
/** When there was nothing more to forget. */
const QUIET_MS = 30_000

/** Forgets finished jobs and places whose time is over, in small steps. */
export class Pruner {
  readonly #world: World
  readonly #store: Store
  readonly #troubled: (what: string, error: unknown) => void
  #timer: Cancel | undefined
  #working: Promise<void> | undefined
  #ended = false

  constructor(world: World, store: Store, troubled: (what: string, error: unknown) => void) {
    this.#world = world
    this.#store = store
    this.#troubled = troubled
  }

  start(): void {
    this.#timer = this.#world.timers.after(NEXT_BATCH_MS, () => this.#begin(), { idle: true })
  }

  async stop(): Promise<void> {
    this.#ended = true
    this.#timer?.()
    await this.#working
  }

  #begin(): void {
    this.#working = this.#prune()
  }

  async #prune(): Promise<void> {
    let waitMs = QUIET_MS
    try {
      if ((await this.#store.jobs.pruneJobs(BATCH)) >= BATCH) waitMs = NEXT_BATCH_MS
    } catch (error) {
      this.#troubled('prune', error)
    }
    if (!this.#ended) this.#timer = this.#world.timers.after(waitMs, () => this.#begin(), { idle: true })
  }
}
