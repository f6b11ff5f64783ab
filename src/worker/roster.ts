/** Whoever reads a roster: who is on it, and how many. */
export interface Members<Item> extends Iterable<Item> {
  readonly size: number
}

/** Something that can be on one roster at a time and knows where. */
export interface Seated {
  seat: number
}

/**
 * A set for what comes and goes a hundred thousand times a second. A Set makes itself a new table every few removals, each
 * old one points to the next, and once one of them has grown old the garbage collector takes all that ever were in them for
 * alive. Order is nobody's business here.
 */
export class Roster<Item extends Seated> implements Members<Item> {
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  add(item: Item): void {
    item.seat = this.#items.length
    this.#items.push(item)
  }

  /** The last one takes the free seat; false when it was not here. */
  delete(item: Item): boolean {
    const { seat } = item
    if (this.#items[seat] !== item) return false
    const last = this.#items.pop() as Item
    if (last !== item) {
      this.#items[seat] = last
      last.seat = seat
    }
    item.seat = -1
    return true
  }

  /** Those who are here now: whoever walks may change who is. */
  [Symbol.iterator](): IterableIterator<Item> {
    return [...this.#items].values()
  }
}
