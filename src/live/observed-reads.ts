import type { ChangeStore, Hint } from '../store/store.js'
import type { Cancel, Timers } from '../world/timers.js'

/** How often the subjects of one kind are read while they are observed. */
export interface Pace {
  /** Whether a hint can be about these subjects. */
  readonly isFor: (hint: Hint) => boolean
  /** The delay of a read that a hint or a new observer asks for; `sinceMs`: since the last read began. */
  readonly soonMs: (sinceMs: number, observed: number) => number
  /** The delay of a read without a hint, since hints can be lost; `reads`: since the last observer came. */
  readonly pollMs: (reads: number, observed: number) => number
}

/** For live state: a read at most every `ms` on hints, and at least every `pollMs`. */
export function evenPace(ms: number, pollMs: number): Pace {
  return { isFor: () => true, soonMs: (sinceMs) => ms - sinceMs, pollMs: () => pollMs }
}

/** Subjects in one read. */
const READ_BATCH = 1_000

export interface ReadParts {
  readonly changes: ChangeStore
  readonly timers: Timers
  readonly monotonic: () => number
  /** The store cannot be read now; observers keep the last value, and the next poll reads again. */
  readonly failed: (error: unknown) => void
}

/** Called with the value of its subject after each read. */
type Observer<Value> = (value: Value) => void

/**
 * Reads what is observed, and nothing else: one read for all subjects of a kind, however many observers each has. Hints
 * and a poll trigger reads, at the pace of the kind.
 */
export class ObservedReads<Value> {
  readonly #parts: ReadParts
  readonly #pace: Pace
  readonly #read: (subjects: readonly string[]) => Promise<readonly Value[]>
  readonly #observers = new Map<string, Set<Observer<Value>>>()
  #timer: Cancel | undefined
  #stopHints: Cancel | undefined
  #isReading = false
  /** Something may have changed since the last read began. While no read runs: the next one is planned already. */
  #isHinted = false
  #readAt = -Infinity
  #reads = 0

  constructor(parts: ReadParts, pace: Pace, read: (subjects: readonly string[]) => Promise<readonly Value[]>) {
    this.#parts = parts
    this.#pace = pace
    this.#read = read
  }

  /** Calls the observer with the value of the subject soon, and after each read from then on. Returns a cancel function. */
  observe(subject: string, observer: Observer<Value>): Cancel {
    const observers = this.#observers.get(subject) ?? new Set()
    this.#observers.set(subject, observers.add(observer))
    this.#stopHints ??= this.#parts.changes.onHint((hint) => {
      if (this.#pace.isFor(hint)) this.#hint()
    })
    this.#reads = 0
    this.#hint()
    return () => {
      observers.delete(observer)
      if (observers.size === 0 && this.#observers.get(subject) === observers) this.#observers.delete(subject)
      if (this.#observers.size === 0) this.stop()
    }
  }

  stop(): void {
    this.#observers.clear()
    this.#timer?.()
    this.#timer = undefined
    this.#stopHints?.()
    this.#stopHints = undefined
    this.#isHinted = false
  }

  #hint(): void {
    if (this.#isHinted) return
    this.#isHinted = true
    if (!this.#isReading) this.#readSoon()
  }

  #readSoon(): void {
    this.#readIn(this.#pace.soonMs(this.#parts.monotonic() - this.#readAt, this.#observers.size))
  }

  #readIn(ms: number): void {
    const { timers } = this.#parts
    this.#timer?.()
    if (ms > 0) {
      this.#timer = timers.after(ms, () => void this.#readAll())
      return
    }
    let isCancelled = false
    this.#timer = () => void (isCancelled = true)
    timers.soon(() => {
      if (!isCancelled) void this.#readAll()
    })
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    this.#isHinted = false
    this.#readAt = this.#parts.monotonic()
    const subjects = [...this.#observers.keys()]
    try {
      for (let from = 0; from < subjects.length; from += READ_BATCH)
        await this.#readBatch(subjects.slice(from, from + READ_BATCH))
    } catch (error) {
      this.#parts.failed(error)
    }
    this.#isReading = false
    if (this.#observers.size === 0) return
    this.#reads += 1
    if (this.#isHinted) this.#readSoon()
    else this.#readIn(this.#pace.pollMs(this.#reads, this.#observers.size))
  }

  async #readBatch(subjects: readonly string[]): Promise<void> {
    const values = await this.#read(subjects)
    for (const [i, subject] of subjects.entries())
      for (const observer of this.#observers.get(subject) ?? []) observer(values[i] as Value)
  }
}
