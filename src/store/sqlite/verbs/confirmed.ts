import type { Confirmation, HeldJob } from '../../queues.js'
import { isPaused } from '../../../job/rules/queue-pause.js'
import { byFence, confirmJobs, readPauses } from './claim.js'
import type { Session } from '../connection/session.js'

/**
 * Claims that need no new confirmation. A worker confirms held jobs before it starts them, many times a second, and
 * usually no other process has committed since the claim was made or last confirmed. A claim's stamp shows that: the
 * connection's `data_version` (commits of other connections), and a count of this process's own commands that can take
 * a job or pause a queue.
 */
export class Confirmed {
  readonly #session: Session
  readonly #stamps = new Map<number, string>()

  constructor(session: Session) {
    this.#session = session
  }

  claimed(fence: number): void {
    this.#stamps.set(fence, this.#stamp())
  }

  closed(fences: readonly number[]): void {
    for (const fence of fences) this.#stamps.delete(fence)
  }

  confirm(held: readonly HeldJob[], now: number): Confirmation {
    const stamp = this.#stamp()
    const unconfirmed = held.filter((job) => this.#stamps.get(job.fence) !== stamp)
    if (unconfirmed.length === 0) return { mine: new Set(held.map((job) => job.ref)), paused: new Set() }
    const mine = confirmJobs(this.#session, unconfirmed)
    const paused = this.#takePaused(unconfirmed, mine, now)
    for (const fence of byFence(unconfirmed).keys()) this.#stamps.set(fence, stamp)
    for (const job of held) if (!unconfirmed.includes(job)) mine.add(job.ref)
    return { mine, paused }
  }

  /**
   * Moves the jobs of paused queues out of those that may start. A claim takes no job of a paused queue, so only
   * unconfirmed ones need the check.
   */
  #takePaused(unconfirmed: readonly HeldJob[], mine: Set<number>, now: number): Set<number> {
    const pauses = readPauses(this.#session)
    const paused = new Set<number>()
    if (pauses.size === 0) return paused
    for (const { ref, queue } of unconfirmed) {
      const pause = pauses.get(queue)
      if (pause !== undefined && isPaused({ until: pause.until ?? Infinity }, now) && mine.delete(ref)) paused.add(ref)
    }
    return paused
  }

  #stamp(): string {
    const { data_version: version } = this.#session.statement(this.#session.queries.dataVersion).get() as {
      data_version: number
    }
    return `${version} ${this.#session.takings}`
  }
}
