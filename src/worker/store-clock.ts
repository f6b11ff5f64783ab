import type { World } from '../world/world.js'

/** The store's clock, as far as the last claim told it: dates what is recorded without trusting this machine's date. */
export class StoreClock {
  readonly #world: World
  #told = { now: 0, at: 0 }

  constructor(world: World) {
    this.#world = world
  }

  tell(now: number): void {
    this.#told = { now, at: this.#world.clock.monotonic() }
  }

  now(): number {
    return Math.round(this.#told.now + (this.#world.clock.monotonic() - this.#told.at))
  }
}
