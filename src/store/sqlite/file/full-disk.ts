import { StoreFullError } from '../../../errors.js'
import type { Cancel } from '../../../world/timers.js'
import type { World } from '../../../world/world.js'
import { Ballast } from './ballast.js'

/** How often a full disk is checked again. */
const PROBE_MS = 1_000

/**
 * A full disk: the store removes the ballast, so that finished jobs can be recorded, and starts no new job until there
 * is space for the ballast.
 */
export class FullDisk {
  readonly #path: string
  readonly #world: World
  readonly #ballast: Ballast
  #probe: Cancel | undefined
  #closed = false

  constructor(path: string, world: World) {
    this.#path = path
    this.#world = world
    this.#ballast = new Ballast(path)
    this.#ballast.take()
  }

  /** Why new writes are refused; undefined while there is space. */
  get refusal(): StoreFullError | undefined {
    return this.#probe === undefined ? undefined : new StoreFullError(this.#path, undefined)
  }

  /** A write failed. */
  failed(error: unknown): void {
    if (!(error instanceof StoreFullError) || this.#probe !== undefined || this.#closed) return
    this.#ballast.release()
    const probe = (): void => {
      this.#probe = this.#ballast.take() ? undefined : this.#world.timers.after(PROBE_MS, probe, { idle: true })
    }
    this.#probe = this.#world.timers.after(PROBE_MS, probe, { idle: true })
  }

  close(): void {
    this.#closed = true
    this.#probe?.()
    this.#probe = undefined
  }
}
