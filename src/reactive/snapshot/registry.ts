import type { Handle } from '../graph/cell.js'

/** The cells and spins that a snapshot must find by itself: those with a key, and spawned spins. It keeps none of them alive. */
export class Registry {
  readonly #entries = new Map<string, { readonly ref: WeakRef<Handle>; readonly name: string }>()
  /** How many entries have each kind and key. */
  readonly #uses = new Map<string, number>()
  readonly #forget: (name: string) => void
  #sweepAt = SWEEP_MIN

  /** `forget` is called with a kind and key that no entry has any more: a program may use very many keys, one after another. */
  constructor(forget: (name: string) => void) {
    this.#forget = forget
  }

  add(handle: Handle, name: string): void {
    this.#entries.set(handle.addr, { ref: new WeakRef(handle), name })
    this.#uses.set(name, (this.#uses.get(name) ?? 0) + 1)
    if (this.#entries.size < this.#sweepAt) return
    this.#sweepAt = Math.max(SWEEP_MIN, 2 * this.handles().length)
  }

  remove(addr: string): void {
    const entry = this.#entries.get(addr)
    if (entry === undefined) return
    this.#entries.delete(addr)
    const left = (this.#uses.get(entry.name) ?? 0) - 1
    if (left > 0) this.#uses.set(entry.name, left)
    else {
      this.#uses.delete(entry.name)
      this.#forget(entry.name)
    }
  }

  /** What is still in use. Entries of handles that were collected are dropped on the way. */
  handles(): Handle[] {
    const found: Handle[] = []
    for (const [addr, { ref }] of this.#entries) {
      const handle = ref.deref()
      if (handle === undefined) this.remove(addr)
      else found.push(handle)
    }
    return found
  }
}

/** Below this many entries, a sweep costs more than it saves. */
const SWEEP_MIN = 64
