import type { Clock } from '../../../world/clock.js'

const KEPT_MS = 600_000
const KEPT_MAX = 10_000

/** The answers of the last ten minutes: a request that is sent twice acts once. */
export class Nonces<Answer> {
  readonly #clock: Clock
  readonly #kept = new Map<
    string,
    { readonly at: number; readonly request: string; readonly answer: Promise<Answer> }
  >()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The answer of the first request of this nonce. Undefined: the nonce was used for another request. A failed one may be repeated. */
  once(nonce: string, request: string, make: () => Promise<Answer>): Promise<Answer> | undefined {
    const now = this.#clock.monotonic()
    for (const [old, { at }] of this.#kept) {
      if (now - at < KEPT_MS && this.#kept.size < KEPT_MAX) break
      this.#kept.delete(old)
    }
    const found = this.#kept.get(nonce)
    if (found !== undefined) return found.request === request ? found.answer : undefined
    const answer = make()
    this.#kept.set(nonce, { at: now, request, answer })
    answer.catch(() => this.#kept.delete(nonce))
    return answer
  }
}
