import type { World } from '../../../world/world.js'
import { isFull } from './faults.js'

/** The wait between two tries grows from the first to the second, with jitter: many processes wait for the same slots. */
const FIRST_MS = 50
const LAST_MS = 1_000

/** A shortage is over when there was none for so long; the next one is reported again. */
const OVER_MS = 60_000

/** Waits while there is no connection to be had, and reports it once. */
export class Shortage {
  readonly #world: World
  readonly #report: (error: unknown) => void
  #lastAt = -Infinity

  constructor(world: World, report: (error: unknown) => void) {
    this.#world = world
    this.#report = report
  }

  /**
   * Calls `connect` until it succeeds, or fails for another reason than that there is no room. `pause` is given how long to
   * wait, and throws to give up.
   */
  async past<T>(connect: () => Promise<T>, pause: (ms: number, error: unknown) => Promise<void>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await connect()
      } catch (error) {
        if (!isFull(error)) throw error
        const now = this.#world.clock.monotonic()
        if (now - this.#lastAt > OVER_MS) this.#report(error)
        this.#lastAt = now
        await pause((0.5 + this.#world.random() / 2) * Math.min(LAST_MS, FIRST_MS * 2 ** tries), error)
      }
    }
  }
}
