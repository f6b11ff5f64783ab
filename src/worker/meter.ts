/** How long handlers take, lately: an average in which the last hundred weigh most. Decides how far the claim looks ahead. */
export class Meter {
  #averageMs: number | undefined
  add(ms: number): void {
    this.#averageMs = this.#averageMs === undefined ? ms : this.#averageMs + (ms - this.#averageMs) * WEIGHT
  }
  /** Undefined until something was measured. */
  get averageMs(): number | undefined {
    return this.#averageMs
  }
}

const WEIGHT = 0.02
