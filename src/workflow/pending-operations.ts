import type { Operation, OperationState } from './operation.js'
import { UNWOUND } from './log-row.js'

/** Operations that are not settled, in the order of their calls, and those that were rejected without an answer. */
export class PendingOperations {
  readonly #byAddress = new Map<string, Operation>()
  /** The pending operations of each name, and the turn of the last call of it. */
  readonly #names = new Map<string, { readonly count: number; readonly turn: number }>()
  readonly #rejected = new Set<string>()
  readonly #unwound = new Set<Operation>()

  get size(): number {
    return this.#byAddress.size
  }
  get byAddress(): ReadonlyMap<string, Operation> {
    return this.#byAddress
  }
  /** Rejected operations whose open rows are to be closed. */
  get unwound(): Iterable<Operation> {
    return this.#unwound
  }
  get anyRejected(): boolean {
    return this.#rejected.size > 0
  }

  [Symbol.iterator](): IterableIterator<Operation> {
    return this.#byAddress.values()
  }

  get(address: string): Operation | undefined {
    return this.#byAddress.get(address)
  }
  has(address: string): boolean {
    return this.#byAddress.has(address)
  }
  /** Whether the operation was rejected without an answer. */
  isRejected(address: string): boolean {
    return this.#rejected.has(address)
  }

  /** Returns whether an operation of that name is pending that was called in another turn. */
  add(operation: Operation, turn: number): boolean {
    const name = withoutNumber(operation.address)
    const same = this.#names.get(name)
    this.#names.set(name, { count: (same?.count ?? 0) + 1, turn })
    this.#byAddress.set(operation.address, operation)
    return same !== undefined && same.turn !== turn
  }

  settle(operation: Operation): void {
    operation.state = 'settled'
    this.#byAddress.delete(operation.address)
    const name = withoutNumber(operation.address)
    const { count, turn } = this.#names.get(name) ?? { count: 1, turn: 0 }
    if (count > 1) this.#names.set(name, { count: count - 1, turn })
    else this.#names.delete(name)
  }

  /** Settles it without an answer. */
  reject(operation: Operation, reason: Error): void {
    this.settle(operation)
    this.#rejected.add(operation.address)
    this.unwind(operation)
    operation.reject(reason)
  }

  /** Nothing waits for its open row any more. */
  unwind(operation: Operation): void {
    if (operation.openAs !== undefined && operation.openAs !== UNWOUND) this.#unwound.add(operation)
  }

  /** The rejected operations, whose rows are being written. */
  takeUnwound(): readonly Operation[] {
    if (this.#unwound.size === 0) return NONE
    const taken = [...this.#unwound]
    this.#unwound.clear()
    return taken
  }

  any(state: OperationState): boolean {
    for (const operation of this.#byAddress.values()) if (operation.state === state) return true
    return false
  }

  /** Whether an act has ended whose outcome is not written yet. */
  get anyOutcome(): boolean {
    for (const operation of this.#byAddress.values())
      if (operation.state === 'acted' && operation.outcome !== undefined) return true
    return false
  }

  count(state: OperationState): number {
    let count = 0
    for (const operation of this.#byAddress.values()) if (operation.state === state) count += 1
    return count
  }
}

const NONE: readonly Operation[] = []

function withoutNumber(address: string): string {
  return address.slice(0, address.lastIndexOf('#'))
}
