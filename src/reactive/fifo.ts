/** A first-in-first-out queue whose `shift` is O(1) amortised: a head index, and now and then a copy. */
export class Fifo<T> {
  #items: (T | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head++] = undefined
    if (this.#head === this.#items.length) this.clear()
    else if (this.#head >= COMPACT_AT && this.#head * 2 > this.#items.length) this.#compact()
    return item
  }

  peek(): T | undefined {
    return this.#items[this.#head]
  }

  /** Puts an item back in front of all others. */
  unshift(item: T): void {
    if (this.#head > 0) this.#items[--this.#head] = item
    else this.#items.unshift(item)
  }

  clear(): void {
    this.#items.length = 0
    this.#head = 0
  }

  toArray(): T[] {
    return this.#items.slice(this.#head) as T[]
  }

  #compact(): void {
    this.#items = this.#items.slice(this.#head)
    this.#head = 0
  }
}

/** Below this many spent slots a copy costs more than the slots do. */
const COMPACT_AT = 1024
