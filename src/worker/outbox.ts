import type { LeaseStore, SettledJob } from '../store/store.js'
import type { World } from '../world/world.js'
import type { SettledRun } from './settle.js'

/** The wait before a failed write is tried again, doubled up to the longest. */
const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000

export interface OutboxEvents {
  /** Settlements that were written, and which of them were refused because the claim was lost. */
  written(settled: readonly SettledRun[], refused: ReadonlySet<number>): void
  failed(error: unknown): void
}

/**
 * Settlements on their way to the store: what gathers in a turn goes in one batch. A settlement is never dropped because the
 * store fails: it waits and is written when the store is back, under the same fence, so that writing it twice does nothing.
 */
export class Outbox {
  readonly #store: LeaseStore
  readonly #world: World
  readonly #events: OutboxEvents
  readonly #open = new Map<number, number>()
  #settled: SettledRun[] = []
  #closing: number[] = []
  #writing: Promise<void> | undefined
  #retryMs = RETRY_FIRST_MS
  #resting = false

  constructor(store: LeaseStore, world: World, events: OutboxEvents) {
    this.#store = store
    this.#world = world
    this.#events = events
  }

  /** A claim of so many jobs was made: its lease is closed when all of them are settled. */
  opened(fence: number, jobs: number): void {
    if (jobs > 0) this.#open.set(fence, jobs)
  }

  /** Takes a settlement; `flush` writes it. */
  put(settled: SettledRun): void {
    this.#settled.push(settled)
    this.leave(settled.fence)
  }

  /** A job of this claim needs no settlement: somebody else ended it. */
  leave(fence: number): void {
    const left = (this.#open.get(fence) ?? 1) - 1
    if (left > 0) this.#open.set(fence, left)
    else if (this.#open.delete(fence)) this.#closing.push(fence)
  }

  get isEmpty(): boolean {
    return this.#settled.length === 0 && this.#closing.length === 0 && this.#writing === undefined
  }

  /** Forgets everything: the claims are lost, so nothing of them can be written. */
  abandon(): void {
    this.#settled = []
    this.#closing = []
    this.#open.clear()
  }

  /** Writes what gathered. Never rejects; resolves when this batch is written or waits for a later try. */
  flush(): Promise<void> {
    if (this.#writing !== undefined || this.#resting || (this.#settled.length === 0 && this.#closing.length === 0))
      return this.#writing ?? Promise.resolve()
    const settled = this.#settled
    const closing = this.#closing
    this.#settled = []
    this.#closing = []
    this.#writing = this.#write(settled, closing)
    return this.#writing
  }

  /** Writes until nothing is left, however often the store fails, or until `giveUp` says so. */
  async drain(giveUp: () => boolean): Promise<void> {
    while (!this.isEmpty && !giveUp()) {
      await this.flush()
      if (!this.isEmpty) await new Promise<void>((next) => this.#world.timers.after(5, next))
    }
  }

  async #write(settled: readonly SettledRun[], closing: readonly number[]): Promise<void> {
    try {
      const { refused, turned } = await this.#store.settleJobs(settled, closing)
      this.#retryMs = RETRY_FIRST_MS
      this.#writing = undefined
      this.#events.written(asTurned(settled, turned), new Set(refused))
    } catch (error) {
      this.#settled = [...settled, ...this.#settled]
      this.#closing = [...closing, ...this.#closing]
      this.#writing = undefined
      this.#rest()
      this.#events.failed(error)
    }
  }

  #rest(): void {
    this.#resting = true
    this.#world.timers.after(this.#retryMs, () => {
      this.#resting = false
      void this.flush()
    })
    this.#retryMs = Math.min(RETRY_MAX_MS, this.#retryMs * 2)
  }
}

/** What was written: where a wish turned a settlement, that one. */
function asTurned(settled: readonly SettledRun[], turned: readonly SettledJob[]): readonly SettledRun[] {
  if (turned.length === 0) return settled
  const instead = new Map(turned.map((job) => [job.ref, job]))
  return settled.map((job) => {
    const other = instead.get(job.ref)
    return other === undefined ? job : { ...other, running: job.running }
  })
}
