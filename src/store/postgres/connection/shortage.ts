import type { World } from '../../../world/world.js'
import { isFull } from './faults.js'

/**
 * The delay between two attempts grows from the first to the second value, with jitter: many processes wait for the
 * same slots.
 */
const FIRST_MS = 50
const LAST_MS = 1_000

/** A shortage has ended after this long without one; the next one is reported again. */
const OVER_MS = 60_000

/** Waits while no connection is available, and reports that once. */
export class Shortage {
  readonly #world: World
  readonly #report: (error: unknown) => void
  #lastAt = -Infinity

  constructor(world: World, report: (error: unknown) => void) {
    this.#world = world
    this.#report = report
  }

  /**
   * Calls `connect` until it succeeds, or fails for another reason than a lack of connections. `pause` waits for the
   * given time, and throws to give up.
   */
  async untilConnected<T>(connect: () => Promise<T>, pause: (ms: number, error: unknown) => Promise<void>): Promise<T> {
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
