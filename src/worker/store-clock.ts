import type { World } from '../world/world.js'

/** The store's clock, as far as the last claim told it: dates what is recorded without trusting this machine's date. */
export class StoreClock {
  readonly #world: World
  #told = { now: 0, at: 0 }

  constructor(world: World) {
    this.#world = world
  }

  /** The store said `now` at this moment of the monotonic clock. */
  tell(now: number, monotonic: number): void {
    this.#told = { now, at: monotonic }
  }

  /** What the store's clock shows at a moment of the monotonic one; without one, at this moment. */
  at(monotonic = this.#world.clock.monotonic()): number {
    return Math.round(this.#told.now + (monotonic - this.#told.at))
  }
}
