import type { ClaimedJob } from '../store/store.js'
import { Roster } from './roster.js'
import type { Running } from './running.js'

/** What a worker has in hand: handlers running, and jobs held for the next free slot. Counts are kept, not counted. */
export class Slots {
  readonly running = new Roster<Running>()
  readonly #inQueue = new Map<string, number>()
  #held: ClaimedJob[] = []
  #next = 0

  get heldCount(): number {
    return this.#held.length - this.#next
  }
  get isIdle(): boolean {
    return this.running.size === 0 && this.heldCount === 0
  }

  hold(job: ClaimedJob): void {
    this.#held.push(job)
    this.#count(job.queue, 1)
  }

  /** The next held job, taken out of the line. */
  nextHeld(): ClaimedJob | undefined {
    const job = this.#held[this.#next]
    if (job === undefined) return undefined
    this.#next += 1
    // The line is walked by index and cut when it is empty: shifting an array of hundreds for every job is slow.
    if (this.#next === this.#held.length) this.#clear()
    this.#count(job.queue, -1)
    return job
  }

  held(): readonly ClaimedJob[] {
    return this.#held.slice(this.#next)
  }

  /** Lets go of these, if they are still held; gives those that were. */
  letGo(jobs: readonly ClaimedJob[]): readonly ClaimedJob[] {
    const lost = new Set(jobs)
    const gone = this.held().filter((job) => lost.has(job))
    if (gone.length === 0) return gone
    for (const job of gone) this.#count(job.queue, -1)
    this.#held = this.held().filter((job) => !lost.has(job))
    this.#next = 0
    return gone
  }

  /** Takes everything that is held out of hand. */
  takeHeld(): readonly ClaimedJob[] {
    const all = this.held()
    for (const job of all) this.#count(job.queue, -1)
    this.#clear()
    return all
  }

  begin(running: Running): void {
    this.running.add(running)
    this.#count(running.claimed.queue, 1)
  }

  end(running: Running): void {
    if (this.running.delete(running)) this.#count(running.claimed.queue, -1)
  }

  /** How many of a queue are in hand. */
  inQueue(queue: string): number {
    return this.#inQueue.get(queue) ?? 0
  }

  #count(queue: string, by: number): void {
    this.#inQueue.set(queue, (this.#inQueue.get(queue) ?? 0) + by)
  }

  #clear(): void {
    this.#held = []
    this.#next = 0
  }
}
