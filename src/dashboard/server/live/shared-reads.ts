import type { Clock } from '../../../world/clock.js'

/** Values that are kept at once. */
const KEPT_MAX = 200

/** Reads that several views need: made at most once in a while, and only when a view asks. */
export class SharedReads {
  readonly #clock: Clock
  readonly #kept = new Map<string, { readonly at: number; readonly value: Promise<unknown> }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The value of an earlier read that is younger than `maxAgeMs`, else of a new one. A failed read is not kept. */
  read<T>(name: string, maxAgeMs: number, make: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic()
    const found = this.#kept.get(name)
    if (found !== undefined && now - found.at < maxAgeMs) return found.value as Promise<T>
    const value = make()
    this.#kept.delete(name)
    this.#kept.set(name, { at: now, value })
    value.catch(() => {
      if (this.#kept.get(name)?.value === value) this.#kept.delete(name)
    })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest)
    return value
  }
}
