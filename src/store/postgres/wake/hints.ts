import type { Cancel } from '../../../world/timers.js'
import type { Hint } from '../../store.js'
import { hintOf } from '../connection/session.js'

/** The listeners for commits, of this process and of others. */
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

  /** A notification; our own were passed on when they were committed. */
  heard(news: string): void {
    const hint = hintOf(news, this.#self)
    if (hint !== undefined) this.#pass(hint)
  }

  #pass(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint)
  }
}
