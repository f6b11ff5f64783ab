import { LeaseLostError } from '../../errors.js'
import type { Cancel } from '../../world/timers.js'
import type { InFlightParts } from './in-flight-parts.js'
import type { Members } from './indexed-set.js'
import type { Running } from '../attempt/running.js'

const PROGRESS_EVERY_MS = 250

/** Writes to the store, while attempts run, that they have begun and what progress they have made. */
export class AttemptReporter {
  readonly #parts: Pick<InFlightParts, 'world' | 'store' | 'events'>
  readonly #running: Members<Running>
  #timer: Cancel | undefined

  constructor(parts: Pick<InFlightParts, 'world' | 'store' | 'events'>, running: Members<Running>) {
    this.#parts = parts
    this.#running = running
  }

  stop(): void {
    this.#timer?.()
  }

  /** Progress is written a few times a second at the most, however often the handler reports it. */
  noteProgress(running: Running): void {
    running.reported = false
    const report = (): void => {
      this.#timer = undefined
      void this.report()
    }
    this.#timer ??= this.#parts.world.timers.after(PROGRESS_EVERY_MS, report, { idle: true })
  }

  /** Writes which held jobs have begun since the last commit, and the progress of running ones. */
  async report(): Promise<void> {
    const unreported = [...this.#running].filter((running) => !running.reported && !running.settled)
    if (unreported.length === 0) return
    for (const running of unreported) running.reported = true
    const reports = unreported.map(({ claimed: { ref, fence, id, name }, startedAt, progressText }) => ({
      ref,
      fence,
      id,
      name,
      startedAt,
      progress: progressText,
    }))
    try {
      const lost = new Set(await this.#parts.store.leases.reportJobs(reports))
      for (const running of unreported)
        if (lost.has(running.claimed.ref) && running.settledIn === undefined)
          running.abort(new LeaseLostError(`job ${running.id} was taken away as it began`))
    } catch (error) {
      for (const running of unreported) running.reported = false
      this.#parts.events.storeFailed('report', error)
    }
  }
}
