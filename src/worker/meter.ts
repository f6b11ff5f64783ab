/**
 * How long handlers take and how large payloads are: moving averages in which the last hundred weigh most. They decide how
 * many jobs are claimed in advance.
 */
export class Meter {
  #averageMs: number | undefined
  #averageBytes = 0
  add(ms: number): void {
    this.#averageMs = this.#averageMs === undefined ? ms : this.#averageMs + (ms - this.#averageMs) * WEIGHT
  }
  addPayload(payload: string | Uint8Array): void {
    this.#averageBytes += (payload.length - this.#averageBytes) * WEIGHT
  }
  /** Undefined until a handler was measured. */
  get averageMs(): number | undefined {
    return this.#averageMs
  }
  get averageBytes(): number {
    return this.#averageBytes
  }
}

const WEIGHT = 0.02
