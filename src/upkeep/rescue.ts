import { KEEP_ALL } from '../job/keep.js'
import { appendLog } from '../job/attempt-log.js'
import { decide } from '../job/decide.js'
import type { LeasedJob, SettledJob, Store } from '../store/store.js'
import type { WorkerBeat } from '../store/workers.js'
import type { Cancel } from '../world/timers.js'
import type { World } from '../world/world.js'
import type { Observation } from './observe-beats.js'
import { nextLookMs, NOTHING_SEEN, observeBeats } from './observe-beats.js'

export interface RescuerParts {
  readonly world: World
  readonly store: Store
  /** This process's own worker. */
  readonly self: () => string | undefined
  readonly leaseMs: () => number
  readonly crashBudget: () => number
  readonly rescued: (worker: string, jobs: readonly LeasedJob[], parked: number) => void
  /** A job of the dead does not run again: it is parked, or had been cancelled or paused while it ran. */
  readonly settled: (job: SettledJob) => void
  readonly troubled: (what: string, error: unknown) => void
}

/** Looks at everybody's beats and frees the jobs of the dead. A loop, not a sweep at boot: an error costs one round. */
export class Rescuer {
  readonly #parts: RescuerParts
  #seen: Observation = NOTHING_SEEN
  #timer: Cancel | undefined
  #working: Promise<void> | undefined
  #ended = false

  constructor(parts: RescuerParts) {
    this.#parts = parts
  }

  /** Looks at once: whoever died before is silent from here on, as far as anybody here can know. */
  start(): void {
    this.#again(0)
  }

  async stop(): Promise<void> {
    this.#ended = true
    this.#timer?.()
    await this.#working
  }

  #again(inMs: number): void {
    const begin = (): void => {
      this.#working = this.#round()
    }
    this.#timer = this.#parts.world.timers.after(inMs, begin, { idle: true })
  }

  async #round(): Promise<void> {
    try {
      const beats = await this.#parts.store.leases.readWorkers()
      const { observation, dead } = observeBeats(
        this.#seen,
        beats,
        this.#parts.self(),
        this.#parts.world.clock.monotonic(),
        this.#parts.leaseMs(),
      )
      this.#seen = observation
      for (const worker of dead) await this.#rescue(worker)
    } catch (error) {
      this.#parts.troubled('rescue', error)
    }
    if (!this.#ended) this.#again(nextLookMs(this.#seen, this.#parts.self(), this.#parts.leaseMs()))
  }

  async #rescue(worker: WorkerBeat): Promise<void> {
    const { store } = this.#parts
    const leased = await store.leases.readLeases(worker.id)
    const settled = leased.map((job) => this.#crashed(job, worker.id))
    const written = await store.leases.rescueJobs(worker.id, worker.beat, settled)
    if (written === null) return
    const turned = new Set(written.turned.map((job) => job.ref))
    const parked = settled.filter((job) => job.to === 'parked' && !turned.has(job.ref))
    this.#parts.rescued(worker.id, leased, parked.length)
    for (const job of [...parked, ...written.turned]) this.#parts.settled(job)
  }

  #crashed(job: LeasedJob, worker: string): SettledJob {
    const settlement = decide(
      job,
      { kind: 'crashed', hasBegun: job.startedAt !== null, quarantined: job.quarantined },
      { crashBudget: this.#parts.crashBudget(), keepMs: KEEP_ALL },
    )
    const startedAt = job.startedAt ?? job.claimedAt
    return {
      ref: job.ref,
      fence: job.fence,
      id: job.id,
      name: job.name,
      queue: job.queue,
      key: job.key,
      group: job.group,
      to: settlement.to,
      delayMs: settlement.delayMs,
      dueAt: job.dueAt,
      attempt: settlement.attempt,
      retries: settlement.retries,
      crashes: settlement.crashes,
      streak: settlement.streak,
      startedAt,
      worker,
      result: null,
      error: null,
      reason: settlement.reason,
      log: appendLog(job.log, { startedAt, endedAt: startedAt, worker, exit: 'crashed' }),
      keepMs: settlement.keepMs,
    }
  }
}
