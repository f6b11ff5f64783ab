import type { Cancel } from '../../../world/timers.js'
import type { Hint } from '../../store.js'
import { hintOf } from '../connection/session.js'

/** Callbacks that are called after a commit, of this process or of another one. */
export class Hints {
  readonly #listeners = new Set<(hint: Hint) => void>()
  readonly #self: string

  constructor(self: string) {
    this.#self = self
  }

  on(callback: (hint: Hint) => void): Cancel {
    this.#listeners.add(callback)
    return () => this.#listeners.delete(callback)
  }

  /** A commit of this process. */
  committed(hint: Hint): void {
    this.#pass(hint)
  }

  /** A notification of the server. Those of this process are ignored: `committed` has passed them on. */
  notified(payload: string): void {
    const hint = hintOf(payload, this.#self)
    if (hint !== undefined) this.#pass(hint)
  }

  #pass(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint)
  }
}
