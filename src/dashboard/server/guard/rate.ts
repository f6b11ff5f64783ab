import type { Clock } from '../../../world/clock.js'

/** Addresses whose tries are remembered at once. */
const KEYS_MAX = 10_000

/** Counts uses by a key in a window that begins with the first of them. */
export class RateLimit {
  readonly #clock: Clock
  readonly #max: number
  readonly #windowMs: number
  readonly #used = new Map<string, { since: number; count: number }>()

  constructor(clock: Clock, max: number, windowMs: number) {
    this.#clock = clock
    this.#max = max
    this.#windowMs = windowMs
  }

  /** Counts a use. 0: it is allowed; else the ms until the next one is. */
  use(key: string): number {
    const now = this.#clock.monotonic()
    const found = this.#used.get(key)
    if (found === undefined || now - found.since >= this.#windowMs) {
      this.#used.delete(key)
      this.#dropOldest()
      this.#used.set(key, { since: now, count: 1 })
      return 0
    }
    found.count += 1
    return found.count <= this.#max ? 0 : Math.ceil(found.since + this.#windowMs - now)
  }

  #dropOldest(): void {
    if (this.#used.size < KEYS_MAX) return
    const [oldest] = this.#used.keys()
    if (oldest !== undefined) this.#used.delete(oldest)
  }
}
