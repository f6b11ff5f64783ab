import type { ChangeStore } from '../store/store.js'
import type { Cancel, Timers } from '../world/timers.js'

/** The shortest time between two reads, however many hints come. */
const PACE_MS = 100
/** The longest time between two reads: a hint of another process can be lost. */
const POLL_MS = 250

export interface ReadParts {
  readonly changes: ChangeStore
  readonly timers: Timers
  readonly monotonic: () => number
  /** The store cannot be read now; observers keep the last value, and the next poll reads again. */
  readonly failed: (error: unknown) => void
}

/** An observer: called with the value of its subject after each read. */
type Tell<Value> = (value: Value) => void

/**
 * Reads what is observed, and nothing else: one read for all subjects of a kind, however many observers each has. A hint
 * triggers a read, at most one each 100 ms; without hints the subjects are polled.
 */
export class ObservedReads<Value> {
  readonly #parts: ReadParts
  readonly #read: (subjects: readonly string[]) => Promise<readonly Value[]>
  readonly #observers = new Map<string, Set<Tell<Value>>>()
  #timer: Cancel | undefined
  #stopHints: Cancel | undefined
  #isReading = false
  /** Something may have changed since the last read began. */
  #isHinted = false
  #readAt = -Infinity

  constructor(parts: ReadParts, read: (subjects: readonly string[]) => Promise<readonly Value[]>) {
    this.#parts = parts
    this.#read = read
  }

  /** Tells the value of the subject soon, and after each read from then on. Returns a cancel function. */
  observe(subject: string, tell: Tell<Value>): Cancel {
    const tells = this.#observers.get(subject) ?? new Set()
    this.#observers.set(subject, tells.add(tell))
    this.#stopHints ??= this.#parts.changes.onHint(() => this.#hint())
    this.#hint()
    return () => {
      tells.delete(tell)
      if (tells.size === 0 && this.#observers.get(subject) === tells) this.#observers.delete(subject)
      if (this.#observers.size === 0) this.stop()
    }
  }

  stop(): void {
    this.#observers.clear()
    this.#timer?.()
    this.#timer = undefined
    this.#stopHints?.()
    this.#stopHints = undefined
  }

  #hint(): void {
    this.#isHinted = true
    if (!this.#isReading) this.#readIn(PACE_MS - (this.#parts.monotonic() - this.#readAt))
  }

  #readIn(ms: number): void {
    this.#timer?.()
    this.#timer = this.#parts.timers.after(Math.max(0, ms), () => void this.#readAll())
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    this.#isHinted = false
    this.#readAt = this.#parts.monotonic()
    const subjects = [...this.#observers.keys()]
    try {
      const values = await this.#read(subjects)
      for (const [i, subject] of subjects.entries())
        for (const tell of this.#observers.get(subject) ?? []) tell(values[i] as Value)
    } catch (error) {
      this.#parts.failed(error)
    }
    this.#isReading = false
    if (this.#observers.size > 0) this.#readIn(this.#isHinted ? PACE_MS : POLL_MS)
  }
}
