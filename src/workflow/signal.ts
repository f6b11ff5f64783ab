import type { Cancel, Timers } from '../world/timers.js'

/** Lets one loop wait until something happens or a time is over. What happens before it waits is not lost. */
export class Signal {
  timers: Timers
  #isRaised = false
  #then: (() => void) | undefined
  #cancel: Cancel | undefined

  constructor(timers: Timers) {
    this.timers = timers
  }

  raise(): void {
    if (this.#then === undefined) this.#isRaised = true
    else this.#end(this.#then)
  }

  /** False when it was raised since the last wait; else `then` is called once. `ms` null: no time ends it. */
  wait(ms: number | null, then: () => void): boolean {
    const isRaised = this.#isRaised
    this.#isRaised = false
    if (isRaised) return false
    this.#then = then
    if (ms !== null) this.#cancel = this.timers.after(ms, () => this.#end(then))
    return true
  }

  #end(then: () => void): void {
    if (this.#then === undefined) return
    this.#then = undefined
    this.#cancel?.()
    this.#cancel = undefined
    then()
  }
}
