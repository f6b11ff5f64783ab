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
 * Claimed workflows that have nothing to read: no log, no suspension, no inbox. They are found by one query for a claim, so that
 * each begins without a read of its own. Only the inbox can change until then. What is sent comes with a hint, which makes the
 * worker forget them, and they are read when they begin. A hint may be lost: then the inbox is as old as that of a workflow in
 * hand, and is read with the next request, or by the suspension.
 */
export class UnbegunWorkflows {
  readonly #parts: UnbegunParts
  /** When each was found, by the store's clock; or the query that may find it. */
  #found = new WeakMap<ClaimedJob, number | Promise<void>>()

  constructor(parts: UnbegunParts) {
    this.#parts = parts
  }

  /** Something was sent, or may have been. */
  forget(): void {
    this.#found = new WeakMap()
  }

  /** Asks for these, which were claimed just now. Never rejects: what is not found is read later. */
  find(claimed: readonly ClaimedJob[]): Promise<void> {
    const finding = this.#find(claimed, this.#found)
    for (const job of claimed) this.#found.set(job, finding)
    return finding
  }

  /** Calls `then` with the empty log of a workflow that begins, or with undefined when its log must be read: at once if that is known. */
  logOf(job: ClaimedJob, then: (log: LogRead | undefined) => void): void {
    const found = this.#found.get(job)
    if (found instanceof Promise) void found.then(() => then(this.#logOf(job)))
    else then(this.#logOf(job))
  }

  #logOf(job: ClaimedJob): LogRead | undefined {
    const inboxAt = this.#found.get(job)
    if (typeof inboxAt !== 'number') return undefined
    return { run: 0, deadlineAt: null, rows: NONE, inbox: NONE, inboxAt }
  }

  /** What was forgotten meanwhile stays so: the answer may be older than what was sent. */
  async #find(claimed: readonly ClaimedJob[], found: WeakMap<ClaimedJob, number | Promise<void>>): Promise<void> {
    const now = this.#parts.now()
    let unbegun: ReadonlySet<number> = new Set()
    try {
      unbegun = new Set(await this.#parts.store.leases.findUnbegun(claimed.map(claimOf)))
    } catch (error) {
      this.#parts.events.storeFailed('look for new workflows', error)
    }
    for (const job of claimed)
      if (unbegun.has(job.ref)) found.set(job, now)
      else found.delete(job)
  }
}

const NONE: readonly never[] = []

function claimOf({ ref, fence }: ClaimedJob): Claim {
  return { ref, fence }
}
