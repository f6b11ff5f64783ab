import type { Claim, ClaimedJob, Store } from '../../store/store.js'
import type { LogRead } from '../../workflow/host.js'
import type { WorkerEvents } from '../in-flight/in-flight-parts.js'

export interface UnbegunParts {
  readonly store: Pick<Store, 'leases'>
  readonly events: Pick<WorkerEvents, 'storeFailed'>
  /** The store's clock. */
  now(): number
}

/**
 * Workflows that are held for the next free slot and have nothing to read: no log, no suspension, no inbox. They are found by one
 * query for a claim, so that each begins without a read of its own. Only the inbox can change while they are held. What is sent
 * comes with a hint, which makes the worker forget them, and they are read when they begin. A hint may be lost: then the inbox is
 * as old as that of a workflow in hand, and is read with the next request, or by the suspension.
 */
export class UnbegunWorkflows {
  readonly #parts: UnbegunParts
  /** When each was found, by the store's clock. */
  #foundAt = new WeakMap<ClaimedJob, number>()

  constructor(parts: UnbegunParts) {
    this.#parts = parts
  }

  /** Something was sent, or may have been. */
  forget(): void {
    this.#foundAt = new WeakMap()
  }

  /** Never rejects: what is not found is read later. */
  async find(held: readonly ClaimedJob[]): Promise<void> {
    const foundAt = this.#foundAt
    const now = this.#parts.now()
    try {
      const unbegun = new Set(await this.#parts.store.leases.findUnbegun(held.map(claimOf)))
      // What was forgotten meanwhile stays so: this read may be older than what was sent.
      for (const job of held) if (unbegun.has(job.ref)) foundAt.set(job, now)
    } catch (error) {
      this.#parts.events.storeFailed('look for new workflows', error)
    }
  }

  /** The empty log of a workflow that begins; undefined when it must be read. */
  logOf(job: ClaimedJob): LogRead | undefined {
    const inboxAt = this.#foundAt.get(job)
    return inboxAt === undefined ? undefined : { run: 0, deadlineAt: null, rows: NONE, inbox: NONE, inboxAt }
  }
}

const NONE: readonly never[] = []

function claimOf({ ref, fence }: ClaimedJob): Claim {
  return { ref, fence }
}
