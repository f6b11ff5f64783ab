/** A first-in-first-out queue in a ring buffer: both ends are O(1), and items are copied only when it grows. */
export class Fifo<T> {
  /** Without room until the first item comes: most queues of most contexts stay empty. */
  #ring: (T | undefined)[] = []
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(item: T): void {
    if (this.#length === this.#ring.length) this.#grow()
    this.#ring[(this.#head + this.#length) & (this.#ring.length - 1)] = item
    this.#length++
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined
    const item = this.#ring[this.#head]
    this.#ring[this.#head] = undefined
    this.#head = (this.#head + 1) & (this.#ring.length - 1)
    // Release a large ring when the queue is empty.
    if (--this.#length === 0 && this.#ring.length > RING_KEPT) this.#ring = new Array<T | undefined>(RING_MIN)
    if (this.#length === 0) this.#head = 0
    return item
  }

  peek(): T | undefined {
    return this.#length === 0 ? undefined : this.#ring[this.#head]
  }

  /** Puts an item back at the front. */
  unshift(item: T): void {
    if (this.#length === this.#ring.length) this.#grow()
    this.#head = (this.#head - 1) & (this.#ring.length - 1)
    this.#ring[this.#head] = item
    this.#length++
  }

  toArray(): T[] {
    return Array.from({ length: this.#length }, (_, i) => this.#ring[(this.#head + i) & (this.#ring.length - 1)] as T)
  }

  #grow(): void {
    const items = this.toArray()
    this.#ring = new Array<T | undefined>(Math.max(RING_MIN, items.length * 2))
    for (let i = 0; i < items.length; i++) this.#ring[i] = items[i]
    this.#head = 0
  }
}

/** Sizes are powers of two, so that an index wraps by a bit mask. */
const RING_MIN = 16
const RING_KEPT = 4096
