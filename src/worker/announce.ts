import type { ClaimedJob, LeaseStore } from '../store/store.js'

/**
 * Reports held jobs as begun before they begin, those that were in flight at a crash. All others are reported just after they
 * began, with the next commit: a handler that kills its process at once then leaves no trace of having begun, and this is
 * how the crash after that one finds it in flight.
 */
export class Announcer {
  readonly #store: LeaseStore
  readonly #announced = new WeakSet<ClaimedJob>()

  constructor(store: LeaseStore) {
    this.#store = store
  }

  isDue(job: ClaimedJob | undefined): boolean {
    return job !== undefined && job.streak > 0 && !this.#announced.has(job)
  }

  isAnnounced(job: ClaimedJob): boolean {
    return job.streak > 0 && this.#announced.has(job)
  }

  /** Reports those of the next held jobs that are due. Whether they are still this claim's is asked afterwards, as of all. */
  async announce(next: readonly ClaimedJob[], startedAt: number): Promise<void> {
    const due = next.filter((job) => this.isDue(job))
    if (due.length === 0) return
    await this.#store.reportJobs(due.map(({ ref, fence }) => ({ ref, fence, startedAt, progress: null })))
    for (const job of due) this.#announced.add(job)
  }
}
