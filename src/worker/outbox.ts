import { StoreError } from '../errors.js'
import type { LeaseStore, SettledJob } from '../store/store.js'
import { SingleFlight } from '../world/single-flight.js'
import type { Cancel } from '../world/timers.js'
import type { World } from '../world/world.js'
import type { Running } from './running.js'

/** A settlement with the attempt that it ends; undefined for a job that is given back before it began. */
export interface SettledRun extends SettledJob {
  readonly running: Running | undefined
}

/** The wait before a failed write is tried again, doubled up to the longest. */
const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000

export interface OutboxEvents {
  /** Settlements that were written, and which of them were refused because the claim was lost. */
  written(settled: readonly SettledRun[], refused: ReadonlySet<number>): void
  /** `job`: the one that could not be written, where it is that one and not the store. */
  failed(error: unknown, job?: SettledRun): void
}

/**
 * Settlements on their way to the store: what gathers in a turn goes in one batch. A settlement is never dropped because the
 * store fails: it waits and is written when the store is back, under the same fence, so that writing it twice does nothing.
 * One that cannot be written though the store works is set apart, so that it costs only itself.
 */
export class Outbox {
  readonly #store: LeaseStore
  readonly #world: World
  readonly #events: OutboxEvents
  readonly #open = new Map<number, number>()
  #settled: SettledRun[] = []
  /** Those that could not be written alone though the store works: they are tried again, and keep nobody waiting. */
  #apart: SettledRun[] = []
  #closing: number[] = []
  #writing: Promise<void> | undefined
  readonly #retries = new SingleFlight(() => this.#tryEach())
  #later: Cancel | undefined
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

  /** Nothing is on its way: to everybody else, nothing that ended is in this hand any more. */
  get isEmpty(): boolean {
    return this.#isDrained && this.#apart.length === 0
  }

  /** Forgets everything: the claims are lost, so nothing of them can be written. */
  abandon(): void {
    this.#settled = []
    this.#apart = []
    this.#closing = []
    this.#open.clear()
  }

  /** Writes what gathered. Never rejects; resolves when this batch is written or waits for a later try. */
  flush(): Promise<void> {
    if (this.#writing !== undefined || this.#resting || this.#isDrained) return this.#writing ?? Promise.resolve()
    const settled = this.#settled
    const closing = this.#closable()
    this.#settled = []
    this.#closing = this.#closing.filter((fence) => !closing.includes(fence))
    this.#writing = this.#write(settled, closing)
    return this.#writing
  }

  /** Writes until nothing is left, however often the store fails, or until `giveUp` says so. */
  async drain(giveUp: () => boolean): Promise<void> {
    await this.#tryApart()
    while (!this.#isDrained && !giveUp()) {
      await this.flush()
      if (!this.#isDrained) await new Promise<void>((next) => this.#world.timers.after(5, next))
    }
  }

  /** All is written that can be. */
  get #isDrained(): boolean {
    return this.#settled.length === 0 && this.#writing === undefined && this.#closable().length === 0
  }

  /** A lease stays for as long as a job of it is not written: it is how a rescuer would find that job. */
  #closable(): readonly number[] {
    if (this.#apart.length === 0) return this.#closing
    return this.#closing.filter((fence) => this.#apart.every((job) => job.fence !== fence))
  }

  async #write(settled: readonly SettledRun[], closing: readonly number[]): Promise<void> {
    try {
      const told = await this.#send(settled, closing)
      this.#retryMs = RETRY_FIRST_MS
      this.#writing = undefined
      told()
    } catch (error) {
      this.#events.failed(error)
      this.#closing = [...closing, ...this.#closing]
      if (isStoreDown(error)) this.#putBack(settled)
      else await this.#writeEach(settled)
      this.#writing = undefined
      this.#events.written([], new Set())
    }
  }

  /** Writes, and gives the telling of it. */
  async #send(settled: readonly SettledRun[], closing: readonly number[]): Promise<() => void> {
    const { refused, changed: turned } = await this.#store.settleJobs(settled, closing)
    return () => this.#events.written(asTurned(settled, turned), new Set(refused))
  }

  /** One of them cannot be written, whatever the reason: it must not keep the others. */
  async #writeEach(settled: readonly SettledRun[]): Promise<void> {
    for (const job of settled) {
      const told = await this.#sendAlone(job)
      if (told === undefined) this.#apart.push(job)
      else told()
    }
    this.#tryLater()
  }

  /** Undefined: it could not be written, and that was told. */
  async #sendAlone(job: SettledRun): Promise<(() => void) | undefined> {
    try {
      return await this.#send([job], [])
    } catch (error) {
      this.#events.failed(error, job)
      return undefined
    }
  }

  #tryLater(): void {
    if (this.#apart.length > 0)
      this.#later ??= this.#world.timers.after(RETRY_MAX_MS, () => void this.#tryApart(), { idle: true })
  }

  #tryApart(): Promise<void> {
    this.#later?.()
    this.#later = undefined
    return this.#retries.join()
  }

  /** Each stays set apart until it is written: a flush meanwhile would close its lease, and nobody could find it any more. */
  async #tryEach(): Promise<void> {
    const tried = this.#apart.slice()
    for (const job of tried) {
      const told = this.#apart.includes(job) ? await this.#sendAlone(job) : undefined
      if (told === undefined) continue
      this.#apart = this.#apart.filter((each) => each !== job)
      told()
    }
    this.#tryLater()
    void this.flush()
  }

  #putBack(settled: readonly SettledRun[]): void {
    this.#settled = [...settled, ...this.#settled]
    this.#resting = true
    this.#world.timers.after(this.#retryMs, () => {
      this.#resting = false
      void this.flush()
    })
    this.#retryMs = Math.min(RETRY_MAX_MS, this.#retryMs * 2)
  }
}

/** The store as a whole cannot be written for now: no job is to blame. A lock may be in the way of one job only. */
function isStoreDown(error: unknown): boolean {
  return error instanceof StoreError && error.code !== 'E_STORE' && error.code !== 'E_STORE_LOCKED'
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
