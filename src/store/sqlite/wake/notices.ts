import type { Cancel } from '../../../world/timers.js'
import type { StoreNotice } from '../../info.js'

/** The listeners for the store's notices. */
export class Notices {
  readonly #listeners = new Set<(notice: StoreNotice) => void>()

  on(callback: (notice: StoreNotice) => void): Cancel {
    this.#listeners.add(callback)
    return () => void this.#listeners.delete(callback)
  }

  send(notice: StoreNotice): void {
    for (const listener of this.#listeners) listener(notice)
  }
}
