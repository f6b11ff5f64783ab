import type { Caller, SpinNode } from '../spins/spin.js'

/** Those whose call of `run` has not been answered; told at the stop at the latest. */
export class Calls {
  readonly #open = new Set<Caller>()

  /** A call for the next result of `node`; `isOnce` when nobody has its handle, so that it is over with the answer. */
  open(node: SpinNode, isOnce: boolean, resolve: Caller['resolve'], reject: Caller['reject']): Caller {
    const end = (): void => {
      this.#open.delete(caller)
      if (isOnce) node.cell.dispose()
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
