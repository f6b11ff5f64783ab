import type { Cancel, Timers } from '../world/timers.js'

/** Lets one loop wait until something happens or a time is over. What happens before it waits is not lost. */
export class Signal {
  timers: Timers
  #isRaised = false
  #wake: (() => void) | undefined

  constructor(timers: Timers) {
    this.timers = timers
  }

  raise(): void {
    this.#isRaised = true
    this.#wake?.()
  }

  /** Resolves at once when it was raised since the last wait. `ms` null: no time ends it. */
  async wait(ms: number | null): Promise<void> {
    if (!this.#isRaised)
      await new Promise<void>((resolve) => {
        let cancel: Cancel | undefined
        this.#wake = () => {
          this.#wake = undefined
          cancel?.()
          resolve()
        }
        if (ms !== null) cancel = this.timers.after(ms, () => this.#wake?.())
      })
    this.#isRaised = false
  }
}
