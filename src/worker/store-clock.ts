/** The store's clock, told at each claim and carried on by the monotonic one: nothing is dated by this machine's own date. */
export class StoreClock {
  #now = 0
  #at = 0
  /** The store said `now` at this moment of the monotonic clock. */
  set(now: number, monotonic: number): void {
    this.#now = now
    this.#at = monotonic
  }
  /** What the store's clock shows at a moment of the monotonic one. */
  at(monotonic: number): number {
    return Math.round(this.#now + (monotonic - this.#at))
  }
}
