import type { Handle } from '../graph/cell.js'

/** The cells and spins that a snapshot must find by itself: those with a key, and spawned spins. It keeps none of them alive. */
export class Registry {
  readonly #refs = new Map<string, WeakRef<Handle>>()
  #sweepAt = SWEEP_MIN

  add(handle: Handle): void {
    this.#refs.set(handle.addr, new WeakRef(handle))
    if (this.#refs.size < this.#sweepAt) return
    this.#sweepAt = Math.max(SWEEP_MIN, 2 * this.handles().length)
  }

  /** What is still in use. Entries of handles that were collected are dropped on the way. */
  handles(): Handle[] {
    const found: Handle[] = []
    for (const [addr, ref] of this.#refs) {
      const handle = ref.deref()
      if (handle === undefined) this.#refs.delete(addr)
      else found.push(handle)
    }
    return found
  }
}

/** Below this many entries, a sweep costs more than it saves. */
const SWEEP_MIN = 64
