import type { CancelTimer } from '../host.js'
import type { Timers } from '../executors/timers.js'

/** The timers of a fork on the clock of its root: the time is shared, the armed timers are the fork's own. */
export class ForkTimers implements Timers {
  readonly lent = 0
  readonly #clock: Timers
  readonly #fired: () => void
  #armed: Set<CancelTimer> | undefined

  /** `fired` is called after each timer: where time is moved by hand, it drains the fork. */
  constructor(clock: Timers, fired: () => void) {
    this.#clock = clock
    this.#fired = fired
  }

  get count(): number {
    return this.#armed?.size ?? 0
  }

  now(): number {
    return this.#clock.now()
  }

  arm(ms: number, fire: () => void): CancelTimer {
    const armed = (this.#armed ??= new Set())
    let cancelOnClock: CancelTimer | undefined = undefined
    const end = (): boolean => {
      if (!armed.delete(cancel)) return false
      this.#clock.lent--
      return true
    }
    const cancel = (): void => {
      if (end()) cancelOnClock?.()
    }
    armed.add(cancel)
    this.#clock.lent++
    cancelOnClock = this.#clock.arm(ms, () => {
      if (!end()) return
      fire()
      this.#fired()
    })
    return cancel
  }

  cancelAll(): void {
    for (const cancel of Array.from(this.#armed ?? [])) cancel()
  }
}
