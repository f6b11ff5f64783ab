import type { Cancel } from './timers.js'

/** Decides about one uncaught error. It is called in the async context in which the error was thrown. */
export interface UncaughtOwner {
  /** Returns how to handle an error that belongs to this owner; undefined for one that does not. */
  claim(error: unknown): (() => void) | undefined
  /** The error belongs to no owner. `isShared`: the app has its own listener, which decides. */
  unclaimed(error: unknown, isShared: boolean): void
}

/** The uncaught errors of a process; an unhandled rejection is one too. */
export interface UncaughtHost {
  on(listener: (error: unknown) => void): void
  off(listener: (error: unknown) => void): void
  listenerCount(): number
  /** Calls this after all listeners of the present error. */
  later(callback: () => void): void
  /** Throws the error again where no code catches it. */
  rethrow(error: unknown): void
}

/**
 * Finds the owner of an uncaught error. The app's own listeners come first. An error without an owner follows Node's rule: where the
 * app has no listener, the process ends as if this class did not listen.
 */
export class UncaughtErrors {
  readonly #host: UncaughtHost
  readonly #owners = new Set<UncaughtOwner>()

  constructor(host: UncaughtHost) {
    this.#host = host
  }

  add(owner: UncaughtOwner): Cancel {
    if (this.#owners.size === 0) this.#host.on(this.#received)
    this.#owners.add(owner)
    return () => {
      if (this.#owners.delete(owner) && this.#owners.size === 0) this.#host.off(this.#received)
    }
  }

  readonly #received = (error: unknown): void => {
    const isShared = this.#host.listenerCount() > 1
    for (const owner of this.#owners) {
      const handle = owner.claim(error)
      if (handle === undefined) continue
      return isShared ? this.#host.later(handle) : handle()
    }
    const [first] = this.#owners
    first?.unclaimed(error, isShared)
    if (isShared) return
    this.#owners.clear()
    this.#host.off(this.#received)
    this.#host.rethrow(error)
  }
}

/** Uncaught errors belong to the process, so all mills of a process share this. */
export const systemUncaught = new UncaughtErrors({
  on: (listener) => void process.on('uncaughtException', listener),
  off: (listener) => void process.off('uncaughtException', listener),
  listenerCount: () => process.listenerCount('uncaughtException'),
  later: (callback) => process.nextTick(callback),
  rethrow: (error) =>
    process.nextTick(() => {
      throw error
    }),
})
