import type { Registry } from '../job/registry.js'
import type { Promoted, Store } from '../store/store.js'
import type { Cancel } from '../world/timers.js'
import type { World } from '../world/world.js'

/** Jobs made ready in one write. */
const BATCH = 1_000
/** The wait when what is due could not be moved. */
const STUCK_MS = 50
/** The wait after a failure of the store. */
const TROUBLE_MS = 500

export interface PromoterParts {
  readonly world: World
  readonly store: Store
  readonly registry: Registry
  readonly pollMs: () => number
  readonly cancelled: (
    job: { readonly id: string; readonly name: string; readonly queue: string },
    reason: string,
  ) => void
  readonly troubled: (what: string, error: unknown) => void
}

/**
 * Makes due jobs ready. It sleeps until the next one is due, or for one poll: another process may have scheduled something
 * sooner, and a hint that would have said so may be lost.
 */
export class Promoter {
  readonly #parts: PromoterParts
  #timer: Cancel | undefined
  #unhint: Cancel | undefined
  #dueAt = Infinity
  #working: Promise<void> | undefined
  #again = false

  constructor(parts: PromoterParts) {
    this.#parts = parts
  }

  start(): void {
    this.#unhint = this.#parts.store.changes.onHint((hint) => {
      if (hint.dueInMs !== null) this.#lookIn(hint.dueInMs)
    })
    this.#lookIn(0)
  }

  async stop(): Promise<void> {
    this.#unhint?.()
    this.#unhint = undefined
    this.#timer?.()
    await this.#working
  }

  /** Sets the timer, unless it is set to an earlier moment already. */
  #lookIn(ms: number): void {
    const at = this.#parts.world.clock.monotonic() + ms
    if (at >= this.#dueAt) return
    this.#timer?.()
    this.#dueAt = at
    this.#timer = this.#parts.world.timers.after(ms, () => {
      this.#dueAt = Infinity
      // A look under way may have read before what this one is to see was written.
      if (this.#working !== undefined) this.#again = true
      else this.#working = this.#look().finally(() => (this.#working = undefined))
    })
  }

  async #look(): Promise<void> {
    let waitMs = this.#parts.pollMs()
    try {
      const { promoted, calledOff, again, expired, troubled, nextInMs } =
        await this.#parts.store.jobs.promoteJobs(BATCH)
      for (const job of calledOff) this.#parts.cancelled(job, job.reason)
      for (const { group, error } of troubled)
        this.#parts.troubled(`enqueue what follows group ${JSON.stringify(group)}`, error)
      for (const job of expired) await this.#expire(job)
      if (again || promoted === BATCH || expired.length === BATCH) waitMs = 0
      // Something is due and was not moved: whatever keeps it must not be asked in a hot loop.
      else if (nextInMs === 0 && promoted + expired.length === 0) waitMs = Math.min(waitMs, STUCK_MS)
      else if (nextInMs !== null) waitMs = Math.min(waitMs, nextInMs)
    } catch (error) {
      this.#parts.troubled('promote', error)
      waitMs = TROUBLE_MS
    }
    if (this.#unhint !== undefined) this.#lookIn(this.#again ? 0 : waitMs)
    this.#again = false
  }

  async #expire(job: Promoted['expired'][number]): Promise<void> {
    const keepMs = this.#parts.registry.keepOf(job.name).cancelled
    const change = {
      id: job.id,
      from: job.state,
      to: 'cancelled',
      reason: 'it expired before it began',
      keepMs,
    } as const
    if ((await this.#parts.store.jobs.changeJob(change)) !== 'stale') this.#parts.cancelled(job, change.reason)
  }
}
