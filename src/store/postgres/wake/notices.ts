import type { Cancel } from '../../../world/timers.js'
import type { StoreNotice } from '../../info.js'

/** Warnings that the store reports while it is in use. */
export class Notices {
  readonly #callbacks = new Set<(notice: StoreNotice) => void>()

  readonly on = (callback: (notice: StoreNotice) => void): Cancel => {
    this.#callbacks.add(callback)
    return () => void this.#callbacks.delete(callback)
  }

  warn(text: string): void {
    for (const callback of this.#callbacks) callback({ kind: 'warning', text })
  }
}
