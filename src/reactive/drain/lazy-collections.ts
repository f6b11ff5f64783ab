/**
 * A set that takes memory only once it has had an item. A context has many sets, most of them always empty, and a program
 * may have very many contexts: each fork is one.
 */
export class LazySet<T> {
  #items: Set<T> | undefined = undefined

  get size(): number {
    return this.#items === undefined ? 0 : this.#items.size
  }

  add(item: T): void {
    ;(this.#items ??= new Set()).add(item)
  }

  /** Returns whether it was there. */
  delete(item: T): boolean {
    return this.#items !== undefined && this.#items.delete(item)
  }

  clear(): void {
    this.#items = undefined
  }

  [Symbol.iterator](): Iterator<T> {
    return (this.#items ?? NONE)[Symbol.iterator]() as Iterator<T>
  }
}

const NONE: readonly never[] = []

/** A map that takes memory only once it has had an entry. */
export class LazyMap<K, V> {
  #entries: Map<K, V> | undefined = undefined

  get(key: K): V | undefined {
    return this.#entries?.get(key)
  }

  has(key: K): boolean {
    return this.#entries !== undefined && this.#entries.has(key)
  }

  set(key: K, value: V): void {
    ;(this.#entries ??= new Map()).set(key, value)
  }

  delete(key: K): void {
    this.#entries?.delete(key)
  }

  clear(): void {
    this.#entries = undefined
  }
}
