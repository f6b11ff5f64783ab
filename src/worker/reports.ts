import { LeaseLostError } from '../errors.js'
import type { Cancel } from '../world/timers.js'
import type { HandParts } from './in-flight-parts.js'
import type { Members } from './roster.js'
import type { Running } from './running.js'

const PROGRESS_EVERY_MS = 250

/** What the store is told of attempts while they run: that they have begun, and how far they have come. */
export class Reports {
  readonly #parts: Pick<HandParts, 'world' | 'store' | 'events'>
  readonly #running: Members<Running>
  #reporting: Cancel | undefined

  constructor(parts: Pick<HandParts, 'world' | 'store' | 'events'>, running: Members<Running>) {
    this.#parts = parts
    this.#running = running
  }

  stop(): void {
    this.#reporting?.()
  }

  /** Progress is told to the store a few times a second at the most, whatever the handler's pace. */
  noteProgress(running: Running): void {
    running.reported = false
    const tell = (): void => {
      this.#reporting = undefined
      void this.report()
    }
    this.#reporting ??= this.#parts.world.timers.after(PROGRESS_EVERY_MS, tell, { idle: true })
  }

  /** Tells the store which held jobs have begun since the last commit, and how far jobs have come. */
  async report(): Promise<void> {
    const unreported = [...this.#running].filter((running) => !running.reported && !running.settled)
    if (unreported.length === 0) return
    for (const running of unreported) running.reported = true
    const reports = unreported.map(({ claimed: { ref, fence }, startedAt, progressText }) => ({
      ref,
      fence,
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
      this.#parts.events.troubled('report', error)
    }
  }
}
