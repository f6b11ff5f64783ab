import type { Cancel } from '../../world/timers.js'
import { systemTimers } from '../../world/timers.js'

/** A callback at a moment of virtual time. */
interface TimedEvent {
  readonly at: number
  readonly order: number
  readonly run: () => void
  /** Not worth waiting for: a poll, a prune, a read of heartbeats. */
  readonly idle: boolean
  cancelled: boolean
}

/**
 * Time that passes only when a test moves it: a queue of timed events, run one after the other. After each, all promises that
 * follow from it settle before the next begins, so that one order of events gives one history.
 */
export class VirtualTime {
  now: number
  /** Waits until what an event has set off is done: turns of the real event loop, and the answers of a real server. */
  rest: () => Promise<void> = rest
  readonly #heap: TimedEvent[] = []
  #order = 0
  #waited = 0

  constructor(start: number) {
    this.now = start
  }

  at(moment: number, run: () => void, options?: { readonly idle?: boolean | undefined }): Cancel {
    const event = {
      at: Math.max(moment, this.now),
      order: (this.#order += 1),
      run,
      idle: options?.idle === true,
      cancelled: false,
    }
    this.#push(event)
    if (!event.idle) this.#waited += 1
    return () => {
      if (!event.cancelled && !event.idle) this.#waited -= 1
      event.cancelled = true
    }
  }

  /** Whether anything is worth waiting for. */
  get isQuiet(): boolean {
    return this.#waited === 0
  }

  /** When the next event is; undefined when there is none. */
  get next(): number | undefined {
    while (this.#heap[0]?.cancelled === true) this.#pop()
    return this.#heap[0]?.at
  }

  /** Runs the next event and waits until its promises have settled; false when there is none. */
  async step(): Promise<boolean> {
    if (this.next === undefined) return false
    const event = this.#pop() as TimedEvent
    this.now = event.at
    event.cancelled = true
    if (!event.idle) this.#waited -= 1
    event.run()
    await this.rest()
    return true
  }

  /** Runs all events up to and at a moment. */
  async advanceTo(moment: number): Promise<void> {
    await this.rest()
    while (this.next !== undefined && this.next <= moment) await this.step()
    this.now = Math.max(this.now, moment)
    await this.rest()
  }

  #push(event: TimedEvent): void {
    const heap = this.#heap
    let i = heap.push(event) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!before(heap[i] as TimedEvent, heap[parent] as TimedEvent)) return
      this.#swap(i, parent)
      i = parent
    }
  }

  #pop(): TimedEvent | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    heap[0] = last
    for (let i = 0; ;) {
      const [left, right] = [2 * i + 1, 2 * i + 2]
      let least = i
      if (left < heap.length && before(heap[left] as TimedEvent, heap[least] as TimedEvent)) least = left
      if (right < heap.length && before(heap[right] as TimedEvent, heap[least] as TimedEvent)) least = right
      if (least === i) return first
      this.#swap(i, least)
      i = least
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap
    const held = heap[a] as TimedEvent
    heap[a] = heap[b] as TimedEvent
    heap[b] = held
  }
}

function before(a: TimedEvent, b: TimedEvent): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** One turn of the real event loop: every promise that could settle has settled. */
export function rest(): Promise<void> {
  return new Promise((resolve) => systemTimers.soon(resolve))
}
