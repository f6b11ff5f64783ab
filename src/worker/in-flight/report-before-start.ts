import type { ClaimedJob, LeaseStore } from '../../store/store.js'

/**
 * Reports held jobs as begun before they begin, if they were in flight at a crash. All others are reported just after they
 * began, with the next commit: a handler that kills its process at once leaves no record that it began. After that crash the job
 * is reported here first, so that the next crash finds it in flight.
 */
export class ReportBeforeStart {
  readonly #store: LeaseStore
  readonly #reported = new WeakSet<ClaimedJob>()

  constructor(store: LeaseStore) {
    this.#store = store
  }

  isDue(job: ClaimedJob | undefined): boolean {
    return job !== undefined && job.streak > 0 && !this.#reported.has(job)
  }

  isReported(job: ClaimedJob): boolean {
    return job.streak > 0 && this.#reported.has(job)
  }

  /** Reports those of the next held jobs that are due. The worker confirms afterwards that its claim still holds them. */
  async report(next: readonly ClaimedJob[], startedAt: number): Promise<void> {
    const due = next.filter((job) => this.isDue(job))
    if (due.length === 0) return
    await this.#store.reportJobs(due.map(({ ref, fence }) => ({ ref, fence, startedAt, progress: null })))
    for (const job of due) this.#reported.add(job)
  }
}
