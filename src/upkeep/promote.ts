import type { Registry } from '../job/definition/registry.js'
import { NO_PICK } from '../job/limits/outage.js'
import type { NewJob, Promoted, Store } from '../store/store.js'
import { Poller } from '../world/poller.js'
import type { Cancel } from '../world/timers.js'
import type { World } from '../world/world.js'

/** How many jobs one write makes ready. */
const BATCH = 1_000
/** The wait when due jobs could not be moved. */
const STUCK_MS = 50
/** The wait after a failure of the store. */
const STORE_RETRY_MS = 500

export interface PromoterParts extends PromoteParts {
  readonly pollMs: () => number
}

export interface PromoteParts {
  readonly world: World
  /** The time between two probes of a lane that is closed by an outage. */
  readonly probeEveryMs?: (() => number) | undefined
  readonly store: Store
  readonly registry: Registry
  /** Called with each `whenDone` job that was written. */
  readonly followedUp: (group: string, job: NewJob) => void
  readonly cancelled: (
    job: { readonly id: string; readonly name: string; readonly queue: string },
    reason: string,
  ) => void
  readonly storeFailed: (what: string, error: unknown) => void
}

/**
 * Makes due jobs ready. It sleeps until the next job is due, or for one poll interval: another process may have scheduled an
 * earlier job, and its hint may be lost.
 */
export class Promoter {
  readonly #parts: PromoterParts
  readonly #poller: Poller
  #unhint: Cancel | undefined

  constructor(parts: PromoterParts) {
    this.#parts = parts
    this.#poller = new Poller(parts.world, () => this.#poll())
  }

  start(): void {
    this.#unhint = this.#parts.store.changes.onHint((hint) => {
      if (hint.dueInMs !== null) this.#poller.pollIn(hint.dueInMs)
    })
    this.#poller.start()
  }

  /** The poll interval was changed: a shorter one must not wait for the end of a longer one. */
  configured(): void {
    this.#poller.pollIn(this.#parts.pollMs())
  }

  async stop(): Promise<void> {
    this.#unhint?.()
    await this.#poller.stop()
  }

  /** Returns the wait until the next poll. */
  async #poll(): Promise<number> {
    let waitMs = this.#parts.pollMs()
    try {
      const { promoted, again, expired, nextInMs } = await promoteOnce(this.#parts)
      if (again || promoted === BATCH || expired.length === BATCH) waitMs = 0
      // Jobs are due and were not moved: do not retry in a busy loop.
      else if (nextInMs === 0 && promoted + expired.length === 0) waitMs = Math.min(waitMs, STUCK_MS)
      else if (nextInMs !== null) waitMs = Math.min(waitMs, nextInMs)
    } catch (error) {
      this.#parts.storeFailed('promote', error)
      waitMs = STORE_RETRY_MS
    }
    return waitMs
  }
}

/** Makes one batch of due jobs ready, cancels expired ones, and reports what was cancelled or could not be written. */
export async function promoteOnce(parts: PromoteParts): Promise<Promoted> {
  const probe = { everyMs: parts.probeEveryMs?.() ?? NO_PICK.everyMs, pick: parts.world.random() }
  const promoted = await parts.store.jobs.promoteJobs(BATCH, probe)
  for (const { group, job } of promoted.followUps) parts.followedUp(group, job)
  for (const job of promoted.cancelledByParents) parts.cancelled(job, job.reason)
  for (const { group, error } of promoted.failedGroups)
    parts.storeFailed(`enqueue what follows group ${JSON.stringify(group)}`, error)
  // Together: the store writes them in one transaction, or a few.
  await Promise.all(promoted.expired.map((job) => expire(parts, job)))
  return promoted
}

async function expire(parts: PromoteParts, job: Promoted['expired'][number]): Promise<void> {
  const reason = 'it expired before it began'
  const keepMs = parts.registry.keepOf(job.name).cancelled
  const change = { id: job.id, from: job.state, to: 'cancelled', reason, keepMs } as const
  if ((await parts.store.jobs.changeJob(change)) !== 'stale') parts.cancelled(job, reason)
}
