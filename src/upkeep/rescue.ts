import { readReport } from '../job/attempt/attempt-log.js'
import { KEEP_ALL } from '../job/definition/keep.js'
import { settleJob } from '../store/settled-job.js'
import type { LeasedJob, SettledJob, Store } from '../store/store.js'
import type { WorkerBeat } from '../store/workers.js'
import type { Cancel } from '../world/timers.js'
import type { ProcessMark } from '../world/processes.js'
import type { World } from '../world/world.js'
import type { Observation } from './observe-beats.js'
import { nextObservationMs, NOTHING_SEEN, observeBeats } from './observe-beats.js'

export interface RescuerParts {
  readonly world: World
  readonly store: Store
  /** This process's own worker. */
  readonly self: () => string | undefined
  readonly leaseMs: () => number
  readonly crashBudget: () => number
  /** Whether the handlers of this job run in processes of their own. */
  readonly isIsolated?: ((name: string) => boolean) | undefined
  readonly rescued: (worker: string, jobs: readonly LeasedJob[], parked: number) => void
  /** Called for a job of a dead worker that does not run again: it is parked, or was cancelled or paused while it ran. */
  readonly settled: (job: SettledJob) => void
  readonly storeFailed: (what: string, error: unknown) => void
  /** Called once, after the first round, with jobs that other workers hold. Undefined: nothing is read. */
  readonly held?: ((held: HeldElsewhere) => void) | undefined
}

/** Jobs of a worker that may have died: they are rescued when its lease ends, unless its heartbeat moves before. */
export interface HeldElsewhere {
  readonly worker: string
  readonly jobs: readonly { readonly id: string; readonly name: string }[]
  readonly leaseMs: number
  readonly until: number
}

/** In a larger fleet a silent worker is rarely dead, and the jobs are many. */
const REPORTED_WORKERS_MAX = 5

/** How often the processes of this machine are checked: their death must be detected within a second in total. */
const LOCAL_CHECK_MS = 400

/**
 * Observes the heartbeats of all workers and the processes of this machine, and rescues the jobs of dead workers. It runs in a
 * loop, not once at the start: an error costs one round.
 */
export class Rescuer {
  readonly #parts: RescuerParts
  #seen: Observation = NOTHING_SEEN
  /** Processes of this machine that had workers in the last round. */
  #local: readonly ProcessMark[] = []
  #timer: Cancel | undefined
  #inFlight: Promise<void> | undefined
  #ended = false
  #hasReportedHeld = false

  constructor(parts: RescuerParts) {
    this.#parts = parts
  }

  /** Observes at once: the silence of a worker that died before counts from here on. */
  start(): void {
    this.#scheduleRound(0)
  }

  async stop(): Promise<void> {
    this.#ended = true
    this.#timer?.()
    await this.#inFlight
  }

  /**
   * Schedules the next round; it comes sooner when a process of this machine has ended. That check reads only from the kernel, and
   * runs only while other workers are on this machine.
   */
  #scheduleRound(inMs: number): void {
    const { timers, processes } = this.#parts.world
    const stepMs = this.#local.length === 0 ? inMs : Math.min(inMs, LOCAL_CHECK_MS)
    const next = (): void => {
      if (stepMs < inMs && !this.#local.some((process) => processes.isGone(process))) this.#scheduleRound(inMs - stepMs)
      else this.#inFlight = this.#round()
    }
    this.#timer = timers.after(stepMs, next, { idle: true })
  }

  /** Another process of this machine; other mills of this process live as long as it does. */
  #isNeighbour(process: ProcessMark): boolean {
    const { processes } = this.#parts.world
    const { pid, identity } = processes.own
    return processes.isLocal(process) && (process.pid !== pid || process.identity !== identity)
  }

  async #round(): Promise<void> {
    try {
      const { world, store, self, leaseMs } = this.#parts
      const beats = await store.leases.readWorkers()
      const judged = observeBeats(this.#seen, beats, self(), world.clock.monotonic(), leaseMs())
      this.#seen = judged.observation
      this.#local = beats.flatMap(({ process }) =>
        process !== undefined && this.#isNeighbour(process) ? [process] : [],
      )
      const gone = beats.filter(({ process }) => process !== undefined && world.processes.isGone(process))
      // These processes have ended, so nothing of them can be written later, however long the write waits for its lock.
      for (const worker of gone) await this.#rescue(worker, Infinity)
      for (const worker of judged.dead)
        if (!gone.includes(worker)) await this.#rescue(worker, judged.validUntil - world.clock.monotonic())
      await this.#reportHeld(beats.filter((worker) => !gone.includes(worker)))
    } catch (error) {
      this.#parts.storeFailed('rescue', error)
    }
    if (!this.#ended) this.#scheduleRound(nextObservationMs(this.#seen, this.#parts.self(), this.#parts.leaseMs()))
  }

  /** After a kill that cannot be proven, reports for which jobs the end of the lease is awaited. */
  async #reportHeld(beats: readonly WorkerBeat[]): Promise<void> {
    const { held, world, store, self, leaseMs } = this.#parts
    if (held === undefined || this.#hasReportedHeld) return
    this.#hasReportedHeld = true
    // A process of this machine that has not ended is alive.
    const unproven = beats.filter(
      ({ id, beat, process }) =>
        id !== self() && beat !== null && (process === undefined || !world.processes.isLocal(process)),
    )
    for (const worker of unproven.length > REPORTED_WORKERS_MAX ? [] : unproven) {
      const waitMs = Math.max(leaseMs(), worker.leaseMs ?? 0)
      const jobs = await store.leases.readLeases(worker.id)
      if (jobs.length > 0) held({ worker: worker.id, jobs, leaseMs: waitMs, until: world.clock.now() + waitMs })
    }
  }

  async #rescue(worker: WorkerBeat, withinMs: number): Promise<void> {
    const { store } = this.#parts
    const leased = await store.leases.readLeases(worker.id)
    const settled = leased.map((job) => this.#crashed(job, worker.id))
    const written = await store.leases.rescueJobs(worker.id, worker.beat, settled, withinMs)
    if (written === null) return
    const changed = new Set(written.changed.map((job) => job.ref))
    const parked = settled.filter((job) => job.to === 'parked' && !changed.has(job.ref))
    this.#parts.rescued(worker.id, leased, parked.length)
    for (const job of [...parked, ...written.changed]) this.#parts.settled(job)
  }

  #crashed(job: LeasedJob, worker: string): SettledJob {
    const startedAt = job.startedAt ?? job.claimedAt
    const { quarantined, isBlocking } = job
    const isIsolated = this.#parts.isIsolated?.(job.name)
    return settleJob(
      job,
      { kind: 'crashed', hasBegun: job.startedAt !== null, quarantined, isBlocking, isIsolated },
      { crashBudget: this.#parts.crashBudget(), keepMs: KEEP_ALL },
      { startedAt, endedAt: startedAt, worker, lines: readReport(job.progress).log, running: undefined },
    )
  }
}
