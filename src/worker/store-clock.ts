import type { World } from '../world/world.js'

/** The store's clock, as of the last claim: it dates what the worker records, since this machine's clock may be wrong. */
export class StoreClock {
  readonly #world: World
  #last = { now: 0, at: 0 }

  constructor(world: World) {
    this.#world = world
  }

  /** The store's time was `now` at this moment of the monotonic clock. */
  set(now: number, monotonic: number): void {
    this.#last = { now, at: monotonic }
  }

  /** The store's time at a moment of the monotonic clock; default: the present moment. */
  at(monotonic = this.#world.clock.monotonic()): number {
    return Math.round(this.#last.now + (monotonic - this.#last.at))
  }
}
