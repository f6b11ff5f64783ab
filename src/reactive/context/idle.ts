import { LazySet } from '../drain/lazy-collections.js'
import { describe } from '../errors.js'
import * as host from '../host.js'

/** Calls of `idle()` that are not resolved yet. */
export class IdleWaits {
  readonly #waits = new LazySet<(isIdle: boolean) => void>()

  /** Resolves true at the next idle moment, false when the timeout expires first. Never rejects. */
  wait(timeoutMs: number | undefined): Promise<boolean> {
    if (timeoutMs !== undefined && !(Number.isFinite(timeoutMs) && timeoutMs >= 0)) {
      throw new RangeError(`idle: timeoutMs must be a number of 0 or more, got ${describe(timeoutMs)}`)
    }
    return new Promise((resolve) => {
      let cancel: host.CancelTimer | undefined
      const end = (isIdle: boolean): void => {
        this.#waits.delete(end)
        cancel?.()
        resolve(isIdle)
      }
      this.#waits.add(end)
      if (timeoutMs !== undefined) cancel = host.after(timeoutMs, () => end(false), true)
    })
  }

  end(isIdle: boolean): void {
    if (this.#waits.size > 0) for (const end of Array.from(this.#waits)) end(isIdle)
  }
}
