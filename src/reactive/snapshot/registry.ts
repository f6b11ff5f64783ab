import type { Handle } from '../graph/cell.js'

/** The cells and spins that a snapshot must find by itself: those with a key, and spawned spins. It keeps none of them alive. */
export class Registry {
  readonly #entries = new Map<string, { readonly ref: WeakRef<Handle>; readonly name: string }>()
  /** The address of each kind and key. */
  readonly #addresses = new Map<string, string>()
  readonly #forget: (name: string) => void
  #sweepAt = SWEEP_MIN

  /** `forget` is called with a kind and key that no entry has any more: a program may use very many keys, one after another. */
  constructor(forget: (name: string) => void) {
    this.#forget = forget
  }

  add(handle: Handle, name: string): void {
    this.#entries.set(handle.addr, { ref: new WeakRef(handle), name })
    this.#addresses.set(name, handle.addr)
    if (this.#entries.size < this.#sweepAt) return
    this.#sweepAt = Math.max(SWEEP_MIN, 2 * this.handles().length)
  }

  remove(addr: string): void {
    const entry = this.#entries.get(addr)
    if (entry === undefined) return
    this.#entries.delete(addr)
    this.#addresses.delete(entry.name)
    this.#forget(entry.name)
  }

  /** The address of what has this kind and key and is still in use. */
  addressOf(name: string): string | undefined {
    const addr = this.#addresses.get(name)
    if (addr === undefined || this.#entries.get(addr)?.ref.deref() !== undefined) return addr
    this.remove(addr)
    return undefined
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
