import type { ClaimedJob } from '../../store/store.js'
import type { World } from '../../world/world.js'
import { IndexedSet } from './indexed-set.js'
import type { Running } from '../attempt/running.js'

/** A worker's slots: running attempts, and jobs held for the next free slot. Counts by queue are kept up to date, not computed. */
export class Slots {
  readonly running = new IndexedSet<Running>()
  readonly #inQueue = new Map<string, number>()
  #held: ClaimedJob[] = []
  #next = 0
  /** When an attempt last began or ended. */
  #movedAt = -Infinity

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

  firstHeld(): ClaimedJob | undefined {
    return this.#held[this.#next]
  }

  /** Removes and returns the next held job. */
  nextHeld(): ClaimedJob | undefined {
    const job = this.#held[this.#next]
    if (job === undefined) return undefined
    this.#next += 1
    // The array is walked by index and cut when it is empty: shifting an array of hundreds for every job is slow.
    if (this.#next === this.#held.length) this.#clear()
    this.#count(job.queue, -1)
    return job
  }

  held(): readonly ClaimedJob[] {
    return this.#held.slice(this.#next)
  }

  /** Removes these, if they are still held; returns those that were. */
  remove(jobs: readonly ClaimedJob[]): readonly ClaimedJob[] {
    const lost = new Set(jobs)
    const gone = this.held().filter((job) => lost.has(job))
    if (gone.length === 0) return gone
    for (const job of gone) this.#count(job.queue, -1)
    this.#held = this.held().filter((job) => !lost.has(job))
    this.#next = 0
    return gone
  }

  /** Removes these, by whichever claim they are held; returns those that were. */
  removeByRef(jobs: readonly ClaimedJob[]): readonly ClaimedJob[] {
    if (this.heldCount === 0) return []
    const refs = new Set(jobs.map((job) => job.ref))
    return this.remove(this.held().filter((job) => refs.has(job.ref)))
  }

  /** Removes and returns all held jobs. */
  takeHeld(): readonly ClaimedJob[] {
    const all = this.held()
    for (const job of all) this.#count(job.queue, -1)
    this.#clear()
    return all
  }

  begin(running: Running): void {
    this.#movedAt = running.begunAt
    this.running.add(running)
    this.#count(running.claimed.queue, 1)
  }

  end(running: Running, now: number): void {
    this.#movedAt = now
    if (this.running.delete(running)) this.#count(running.claimed.queue, -1)
  }

  /** For how long so many slots have all been taken and none became free. */
  fullForMs(concurrency: number, now: number): number {
    return this.running.size < concurrency ? 0 : now - this.#movedAt
  }

  /** How many jobs of a queue are held or running. */
  inQueue(queue: string): number {
    return this.#inQueue.get(queue) ?? 0
  }

  /** How many more jobs of each bounded queue may be claimed. */
  rooms(queues: ReadonlyMap<string, number>): Map<string, number> {
    const rooms = new Map<string, number>()
    for (const [queue, most] of queues) rooms.set(queue, Math.max(0, most - this.inQueue(queue)))
    return rooms
  }

  /** Waits until nothing runs, or until so many ms have passed. */
  async untilIdle({ clock, timers }: World, ms: number): Promise<void> {
    const end = clock.monotonic() + ms
    while (this.running.size > 0 && clock.monotonic() < end)
      await new Promise<void>((next) => timers.after(Math.min(10, Math.max(1, end - clock.monotonic())), next))
  }

  #count(queue: string, by: number): void {
    this.#inQueue.set(queue, (this.#inQueue.get(queue) ?? 0) + by)
  }

  #clear(): void {
    this.#held = []
    this.#next = 0
  }
}
