import type { Pruned } from '../store/prune.js'
import type { Store } from '../store/store.js'
import { Poller } from '../world/poller.js'
import type { World } from '../world/world.js'

/** Jobs deleted in one write: a few milliseconds of the event loop. */
export const STEP = 1_000
/** How many jobs a round deletes regardless of the load: a backlog shrinks by 20,000 a second, for less than a tenth of a core. */
export const BACKLOG_STEP = 1_000
/** The pause between two rounds while there are jobs to delete. */
export const PACE_MS = 50
/** The longest pause: other processes end jobs too, and may have died since. */
export const QUIET_MS = 30_000
/** The pause between two sweeps that found little, while jobs end. A sweep scans a table, so an idle process rarely does it. */
const SWEEP_MS = 1_000
const SWEEP_STEP = 1_000

/**
 * How many jobs a round may delete: twice those that ended in this process since the last round, so that pruning keeps up with
 * any rate, plus a fixed number. A backlog (the processes were stopped for a day) is deleted at that fixed pace, so that it does
 * not slow down current jobs.
 */
export function budgetOf(ended: number): number {
  return BACKLOG_STEP + 2 * ended
}

/** The pause after a round that ended because of its budget (undefined) or because nothing was overdue. */
export function waitAfter(last: Pick<Pruned, 'nextInMs'> | undefined): number {
  if (last === undefined) return PACE_MS
  return Math.min(QUIET_MS, Math.max(PACE_MS, last.nextInMs ?? QUIET_MS))
}

/**
 * Deletes finished jobs whose `keep` has passed, and other rows that are no longer needed, in small steps. Each process deletes
 * about as many jobs as it ends, so there is no leader. The stores skip jobs that another process is deleting.
 */
export class Pruner {
  readonly #store: Store
  readonly #storeFailed: (what: string, error: unknown) => void
  readonly #rounds: Poller
  readonly #sweeps: Poller
  #ended = 0
  #endedSinceSweep = false
  /** The shortest `keep` of the jobs that ended since the last round began; Infinity when none ended. */
  #shortestMs = Infinity
  #isOn = false

  constructor(world: World, store: Store, storeFailed: (what: string, error: unknown) => void) {
    this.#store = store
    this.#storeFailed = storeFailed
    this.#rounds = new Poller(world, () => this.#prune(), { idle: true })
    this.#sweeps = new Poller(world, () => this.#sweep(), { idle: true })
  }

  start(): void {
    this.#isOn = true
    this.#rounds.start(PACE_MS)
    this.#sweeps.start(PACE_MS)
  }

  async stop(): Promise<void> {
    this.#isOn = false
    await Promise.all([this.#rounds.stop(), this.#sweeps.stop()])
  }

  /** Records that a job of this process ended, and for how long it is kept. */
  ended(keepMs: number): void {
    this.#ended += 1
    this.#endedSinceSweep = true
    if (keepMs >= this.#shortestMs || keepMs >= QUIET_MS || !this.#isOn) return
    this.#shortestMs = keepMs
    this.#rounds.pollIn(Math.max(PACE_MS, keepMs))
  }

  async #prune(): Promise<number> {
    const ended = this.#ended
    // Reset before the read: the read may not see a job that ends from here on, and that job triggers another round.
    this.#ended = 0
    this.#shortestMs = Infinity
    try {
      for (let left = budgetOf(ended); left > 0 && this.#isOn; left -= STEP) {
        const last = await this.#store.jobs.pruneJobs(Math.min(STEP, left))
        // Another process is deleting the overdue jobs. The share of this process stays due.
        if (last.nextInMs === 0 && last.pruned === 0) this.#ended += ended
        if (last.nextInMs !== 0 || last.pruned === 0) return waitAfter(last)
      }
      return waitAfter(undefined)
    } catch (error) {
      this.#storeFailed('prune', error)
      return QUIET_MS
    }
  }

  async #sweep(): Promise<number> {
    const waitMs = this.#endedSinceSweep ? SWEEP_MS : QUIET_MS
    this.#endedSinceSweep = false
    try {
      return (await this.#store.jobs.sweepRows(SWEEP_STEP)).more ? PACE_MS : waitMs
    } catch (error) {
      this.#storeFailed('prune', error)
      return QUIET_MS
    }
  }
}
