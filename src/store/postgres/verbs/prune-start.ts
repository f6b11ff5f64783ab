import type { World } from '../../../world/world.js'

/** After so long a step begins at the oldest row again: for rows that were locked, or committed later than they were dated. */
const RESTART_MS = 5_000

/**
 * Where the next step of pruning begins: at the `keep_until` where the last one ended. Index entries of deleted rows stay until
 * they are vacuumed, and would be walked over again by every step.
 */
export class PruneStart {
  readonly #world: Pick<World, 'clock'>
  #from = 0
  #since = 0

  constructor(world: Pick<World, 'clock'>) {
    this.#world = world
  }

  take(): number {
    const now = this.#world.clock.monotonic()
    if (now - this.#since < RESTART_MS) return this.#from
    this.#since = now
    return (this.#from = 0)
  }

  get from(): number {
    return this.#from
  }

  pruned(lastKeepUntil: number): void {
    this.#from = Math.max(this.#from, lastKeepUntil)
  }

  forget(): void {
    this.#from = 0
  }
}
