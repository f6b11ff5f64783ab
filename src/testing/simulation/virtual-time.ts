import type { Cancel } from '../../world/timers.js'
import { systemTimers } from '../../world/timers.js'

/** Something that happens at a moment, to somebody. */
interface Happening {
  readonly at: number
  readonly order: number
  readonly run: () => void
  /** Not worth waiting for: a poll, a prune, a look at beats. */
  readonly idle: boolean
  cancelled: boolean
}

/**
 * Time that passes only when told to: a line of happenings, run one after the other. After each, everything that follows from
 * it (promises, and only those) comes to rest before the next begins, so one order of happenings gives one history.
 */
export class VirtualTime {
  now: number
  readonly #heap: Happening[] = []
  #order = 0
  #waited = 0

  constructor(start: number) {
    this.now = start
  }

  at(moment: number, run: () => void, options?: { readonly idle?: boolean | undefined }): Cancel {
    const happening = {
      at: Math.max(moment, this.now),
      order: (this.#order += 1),
      run,
      idle: options?.idle === true,
      cancelled: false,
    }
    this.#push(happening)
    if (!happening.idle) this.#waited += 1
    return () => {
      if (!happening.cancelled && !happening.idle) this.#waited -= 1
      happening.cancelled = true
    }
  }

  /** Whether anything is worth waiting for. */
  get isQuiet(): boolean {
    return this.#waited === 0
  }

  /** When the next thing happens; undefined when nothing does. */
  get next(): number | undefined {
    while (this.#heap[0]?.cancelled === true) this.#pop()
    return this.#heap[0]?.at
  }

  /** Lets the next thing happen and comes to rest; false when there is none. */
  async step(): Promise<boolean> {
    if (this.next === undefined) return false
    const happening = this.#pop() as Happening
    this.now = happening.at
    happening.cancelled = true
    if (!happening.idle) this.#waited -= 1
    happening.run()
    await rest()
    return true
  }

  /** Lets everything happen up to and at a moment. */
  async advanceTo(moment: number): Promise<void> {
    await rest()
    while (this.next !== undefined && this.next <= moment) await this.step()
    this.now = Math.max(this.now, moment)
    await rest()
  }

  #push(happening: Happening): void {
    const heap = this.#heap
    let i = heap.push(happening) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!before(heap[i] as Happening, heap[parent] as Happening)) return
      this.#swap(i, parent)
      i = parent
    }
  }

  #pop(): Happening | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    heap[0] = last
    for (let i = 0; ;) {
      const [left, right] = [2 * i + 1, 2 * i + 2]
      let least = i
      if (left < heap.length && before(heap[left] as Happening, heap[least] as Happening)) least = left
      if (right < heap.length && before(heap[right] as Happening, heap[least] as Happening)) least = right
      if (least === i) return first
      this.#swap(i, least)
      i = least
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap
    const held = heap[a] as Happening
    heap[a] = heap[b] as Happening
    heap[b] = held
  }
}

function before(a: Happening, b: Happening): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** A turn of the real loop: every promise that could go on has gone on. */
export function rest(): Promise<void> {
  return new Promise((resolve) => systemTimers.soon(resolve))
}
