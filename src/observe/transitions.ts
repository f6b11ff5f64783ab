import type { State } from '../job/rules/states.js'
import type { NewJob, SettledJob } from '../store/store.js'
import type { EngineEvents } from './engine-events.js'

/** A transition that this process made, as `mill.events()` gives it. */
export type MillEvent = Transition | MissedEvents

export interface Transition {
  readonly kind: 'transition'
  readonly at: Date
  readonly id: string
  readonly job: string
  readonly queue: string
  /** 'gone': the job was deleted. */
  readonly state: State | 'gone'
  /** The attempt that begins or has ended; undefined where there is none. */
  readonly attempt?: number | undefined
  /** How long the attempt took. */
  readonly ms?: number | undefined
  readonly reason?: string | undefined
}

/** The reader was slower than the events: so many of the oldest were dropped. */
export interface MissedEvents {
  readonly kind: 'missed'
  readonly count: number
}

/** How handlers reach the transitions of a mill; no public name. */
export const TRANSITIONS = Symbol('millrace.transitions')

/** Events that one reader may lag behind. */
const BUFFER_MAX = 1_000

/** The transitions of this process, for those who read them. Without a reader nothing is made. */
export class Transitions {
  readonly #now: () => number
  readonly #readers = new Set<Reader>()
  readonly #listeners: ((transition: Transition) => void)[] = []
  #isClosed = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** The same events, which the readers get too. */
  around(events: EngineEvents): EngineEvents {
    return {
      ...events,
      enqueued: (jobs, by) => {
        events.enqueued(jobs, by)
        if (this.#isRead) for (const job of jobs) this.#send(this.#enqueued(job))
      },
      changed: (job, to, reason) => {
        events.changed(job, to, reason)
        if (this.#isRead) this.#send({ id: job.id, job: job.name, queue: job.queue, state: to, reason })
      },
      began: (job) => {
        events.began(job)
        const { id, name, queue } = job
        if (this.#isRead) this.#send({ id, job: name, queue, state: 'running', attempt: job.attempt + 1 })
      },
      settled: (job, ms, running) => {
        events.settled(job, ms, running)
        if (this.#isRead) this.#send(settled(job, ms, running?.attempt))
      },
    }
  }

  /** Called with each transition, until the mill is closed. */
  listen(listener: (transition: Transition) => void): void {
    this.#listeners.push(listener)
  }

  get #isRead(): boolean {
    return this.#readers.size > 0 || this.#listeners.length > 0
  }

  /** From now on, until the loop ends or the mill is closed. */
  read(): AsyncIterableIterator<MillEvent> {
    const reader = new Reader((ended) => this.#readers.delete(ended))
    if (this.#isClosed) reader.end()
    else this.#readers.add(reader)
    return reader
  }

  close(): void {
    this.#isClosed = true
    for (const reader of this.#readers) reader.end()
  }

  #enqueued({ id, name, queue, due, after }: NewJob): Omit<Transition, 'kind' | 'at'> {
    const isDue = 'inMs' in due ? due.inMs <= 0 : due.at <= this.#now()
    const state = after !== undefined && after.length > 0 ? 'blocked' : isDue ? 'ready' : 'scheduled'
    return { id, job: name, queue, state }
  }

  #send(event: Omit<Transition, 'kind' | 'at'>): void {
    const transition = { kind: 'transition' as const, at: new Date(this.#now()), ...event }
    for (const reader of this.#readers) reader.put(transition)
    for (const listener of this.#listeners) listener(transition)
  }
}

function settled(
  job: SettledJob,
  ms: number | undefined,
  attempt: number | undefined,
): Omit<Transition, 'kind' | 'at'> {
  const { id, name, queue, to, reason } = job
  return { id, job: name, queue, state: to, attempt, ms, reason: reason ?? undefined }
}

/** A buffer of the newest events, and the reader that waits for the next. */
class Reader implements AsyncIterableIterator<MillEvent> {
  readonly #ended: (reader: Reader) => void
  readonly #buffer: Transition[] = []
  #missed = 0
  #isOver = false
  #waiting: ((next: IteratorResult<MillEvent>) => void)[] = []

  constructor(ended: (reader: Reader) => void) {
    this.#ended = ended
  }

  put(event: Transition): void {
    const waiting = this.#waiting.shift()
    if (waiting !== undefined) return waiting({ done: false, value: event })
    this.#buffer.push(event)
    if (this.#buffer.length <= BUFFER_MAX) return
    this.#buffer.shift()
    this.#missed += 1
  }

  end(): void {
    this.#isOver = true
    this.#ended(this)
    for (const waiting of this.#waiting.splice(0)) waiting({ done: true, value: undefined })
  }

  next(): Promise<IteratorResult<MillEvent>> {
    if (this.#missed > 0) {
      const count = this.#missed
      this.#missed = 0
      return Promise.resolve({ done: false, value: { kind: 'missed', count } })
    }
    const event = this.#buffer.shift()
    if (event !== undefined) return Promise.resolve({ done: false, value: event })
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  return(): Promise<IteratorResult<MillEvent>> {
    this.#buffer.length = 0
    this.#missed = 0
    this.end()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
