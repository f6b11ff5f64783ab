import { LazySet } from '../drain/lazy-collections.js'
import { disposeSpin } from '../spins/cancel.js'
import type { Caller, SpinNode } from '../spins/spin.js'

/** Calls of `run` that are not answered yet. Stopping the context rejects them. */
export class PendingCalls {
  readonly #open = new LazySet<Caller>()

  /** Adds a call for the next result of `node`. With `isOnce` no other handle of the spin exists, so the answer disposes it. */
  open(node: SpinNode, isOnce: boolean, resolve: Caller['resolve'], reject: Caller['reject']): Caller {
    const end = (): void => {
      this.#open.delete(caller)
      if (isOnce) disposeSpin(node)
    }
    const caller: Caller = {
      resolve: (value) => {
        resolve(value)
        end()
      },
      reject: (error) => {
        reject(error)
        end()
      },
    }
    this.#open.add(caller)
    return caller
  }

  rejectAll(error: unknown): void {
    for (const caller of Array.from(this.#open)) caller.reject(error)
  }
}
