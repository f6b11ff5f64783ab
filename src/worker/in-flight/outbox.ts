import { StoreError } from '../../errors.js'
import type { LeaseStore, SettledJob } from '../../store/store.js'
import { SingleFlight } from '../../world/single-flight.js'
import type { Cancel } from '../../world/timers.js'
import type { World } from '../../world/world.js'
import type { Running } from '../attempt/running.js'

/** A settlement with the attempt that it ends; undefined for a job that is released before it began. */
export interface SettledRun extends SettledJob {
  readonly running: Running | undefined
}

/** The wait before a failed write is tried again, doubled up to the longest. */
const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000

export interface OutboxEvents {
  /** Settlements were written; `refused` are the refs of those that were not, because the claim was lost. */
  written(settled: readonly SettledRun[], refused: ReadonlySet<number>): void
  /** `job`: the one that could not be written, where the store works and that job alone fails. */
  failed(error: unknown, job?: SettledRun): void
}

/**
 * Settlements that wait to be written: those of one round are one batch. A settlement is never dropped because the store fails:
 * it is written when the store is back, under the same fence, so that a second write of it does nothing. One that cannot be
 * written although the store works is retried alone, so that it does not hold up the others.
 */
export class Outbox {
  readonly #store: LeaseStore
  readonly #world: World
  readonly #events: OutboxEvents
  readonly #open = new Map<number, number>()
  #settled: SettledRun[] = []
  /** Those that could not be written alone although the store works: they are retried apart from the others. */
  #failing: SettledRun[] = []
  #closing: number[] = []
  #writing: Promise<void> | undefined
  readonly #retrying = new SingleFlight(() => this.#retryEach())
  #retryTimer: Cancel | undefined
  #retryMs = RETRY_FIRST_MS
  #isBackingOff = false

  constructor(store: LeaseStore, world: World, events: OutboxEvents) {
    this.#store = store
    this.#world = world
    this.#events = events
  }

  /** Registers a claim of so many jobs: its lease row is closed when all of them are settled. */
  opened(fence: number, jobs: number): void {
    if (jobs > 0) this.#open.set(fence, jobs)
  }

  /** Takes a settlement; `flush` writes it. */
  put(settled: SettledRun): void {
    this.#settled.push(settled)
    this.drop(settled.fence)
  }

  /** A job of this claim needs no settlement: its own transaction or another process has ended it. */
  drop(fence: number): void {
    const left = (this.#open.get(fence) ?? 1) - 1
    if (left > 0) this.#open.set(fence, left)
    else if (this.#open.delete(fence)) this.#closing.push(fence)
  }

  /** Nothing waits to be written: every other process sees all ends of this worker. */
  get isEmpty(): boolean {
    return this.#isDrained && this.#failing.length === 0
  }

  /** How many wait for the next batch. */
  get waiting(): number {
    return this.#settled.length
  }

  /** Drops everything: the claims are lost, so nothing of them can be written. */
  abandon(): void {
    this.#settled = []
    this.#failing = []
    this.#closing = []
    this.#open.clear()
  }

  /** Writes the batch. Never rejects; resolves when the batch is written or waits for a retry. */
  flush(): Promise<void> {
    if (this.#writing !== undefined || this.#isBackingOff || this.#isDrained) return this.#writing ?? Promise.resolve()
    const settled = this.#settled
    const closing = this.#closable()
    this.#settled = []
    this.#closing = this.#closing.filter((fence) => !closing.includes(fence))
    this.#writing = this.#write(settled, closing)
    return this.#writing
  }

  /** Writes until nothing is left, however often the store fails, or until `giveUp` says so. */
  async drain(giveUp: () => boolean): Promise<void> {
    await this.#retryFailing()
    while (!this.#isDrained && !giveUp()) {
      await this.flush()
      if (!this.#isDrained) await new Promise<void>((next) => this.#world.timers.after(5, next))
    }
  }

  /** Everything is written that can be. */
  get #isDrained(): boolean {
    return this.#settled.length === 0 && this.#writing === undefined && this.#closable().length === 0
  }

  /** A lease row stays while a settlement of its claim is not written: a rescuer finds the job by it. */
  #closable(): readonly number[] {
    if (this.#failing.length === 0) return this.#closing
    return this.#closing.filter((fence) => this.#failing.every((job) => job.fence !== fence))
  }

  async #write(settled: readonly SettledRun[], closing: readonly number[]): Promise<void> {
    try {
      const report = await this.#send(settled, closing)
      this.#retryMs = RETRY_FIRST_MS
      this.#writing = undefined
      report()
    } catch (error) {
      for (const { running } of settled) if (running !== undefined) running.isEndUnanswered = true
      this.#events.failed(error)
      this.#closing = [...closing, ...this.#closing]
      if (isStoreDown(error)) this.#putBack(settled)
      else await this.#writeEach(settled)
      this.#writing = undefined
      this.#events.written([], new Set())
    }
  }

  /** Writes, and returns the function that reports it. */
  async #send(settled: readonly SettledRun[], closing: readonly number[]): Promise<() => void> {
    const { refused, changed } = await this.#store.settleJobs(settled, closing)
    return () => this.#events.written(withChanges(settled, changed), new Set(refused))
  }

  /** One of them cannot be written, whatever the reason: each is written alone, so that it does not hold up the others. */
  async #writeEach(settled: readonly SettledRun[]): Promise<void> {
    for (const job of settled) {
      const report = await this.#sendAlone(job)
      if (report === undefined) this.#failing.push(job)
      else report()
    }
    this.#retryLater()
  }

  /** Undefined: it could not be written, and that was reported. */
  async #sendAlone(job: SettledRun): Promise<(() => void) | undefined> {
    try {
      return await this.#send([job], [])
    } catch (error) {
      this.#events.failed(error, job)
      return undefined
    }
  }

  #retryLater(): void {
    if (this.#failing.length > 0)
      this.#retryTimer ??= this.#world.timers.after(RETRY_MAX_MS, () => void this.#retryFailing(), { idle: true })
  }

  #retryFailing(): Promise<void> {
    this.#retryTimer?.()
    this.#retryTimer = undefined
    return this.#retrying.join()
  }

  /** Each stays in `#failing` until it is written: a flush meanwhile would close its lease row, and no rescuer could find it. */
  async #retryEach(): Promise<void> {
    const tried = this.#failing.slice()
    for (const job of tried) {
      const report = this.#failing.includes(job) ? await this.#sendAlone(job) : undefined
      if (report === undefined) continue
      this.#failing = this.#failing.filter((each) => each !== job)
      report()
    }
    this.#retryLater()
    void this.flush()
  }

  #putBack(settled: readonly SettledRun[]): void {
    this.#settled = [...settled, ...this.#settled]
    this.#isBackingOff = true
    this.#world.timers.after(this.#retryMs, () => {
      this.#isBackingOff = false
      void this.flush()
    })
    this.#retryMs = Math.min(RETRY_MAX_MS, this.#retryMs * 2)
  }
}

/** The store as a whole cannot be written for now. A lock conflict may concern one job only. */
function isStoreDown(error: unknown): boolean {
  return error instanceof StoreError && error.code !== 'E_STORE' && error.code !== 'E_STORE_LOCKED'
}

/** What was written: where a requested change was applied to a settlement, the changed one. */
function withChanges(settled: readonly SettledRun[], changed: readonly SettledJob[]): readonly SettledRun[] {
  if (changed.length === 0) return settled
  const instead = new Map(changed.map((job) => [job.ref, job]))
  return settled.map((job) => {
    const other = instead.get(job.ref)
    return other === undefined ? job : { ...other, running: job.running }
  })
}
