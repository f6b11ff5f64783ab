import { HELD_UNASKED_MS } from '../store/queues.js'

/**
 * Whether held jobs may begin without asking the store: for a few milliseconds after it said that they are still ours, unless
 * something was asked since that may be about them. A question asked before such a doubt is not an answer to it.
 */
export class Trust {
  #confirmedAt = -Infinity
  #doubts = 0

  /** Where a question is asked from: give it back with the answer. */
  get mark(): number {
    return this.#doubts
  }

  isFresh(now: number): boolean {
    return now - this.#confirmedAt <= HELD_UNASKED_MS
  }

  confirm(mark: number, now: number): void {
    if (mark === this.#doubts) this.#confirmedAt = now
  }

  doubt(): void {
    this.#doubts += 1
    this.#confirmedAt = -Infinity
  }
}
