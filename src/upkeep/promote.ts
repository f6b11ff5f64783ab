import type { Registry } from '../job/definition/registry.js'
import type { Promoted, Store } from '../store/store.js'
import { Poller } from '../world/poller.js'
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
  readonly #looks: Poller
  #unhint: Cancel | undefined

  constructor(parts: PromoterParts) {
    this.#parts = parts
    this.#looks = new Poller(parts.world, () => this.#look())
  }

  start(): void {
    this.#unhint = this.#parts.store.changes.onHint((hint) => {
      if (hint.dueInMs !== null) this.#looks.pollIn(hint.dueInMs)
    })
    this.#looks.start()
  }

  async stop(): Promise<void> {
    this.#unhint?.()
    await this.#looks.stop()
  }

  /** Gives how long it may be until the next one. */
  async #look(): Promise<number> {
    let waitMs = this.#parts.pollMs()
    try {
      const {
        promoted,
        cancelledByParents: calledOff,
        again,
        expired,
        troubled,
        nextInMs,
      } = await this.#parts.store.jobs.promoteJobs(BATCH)
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
    return waitMs
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
