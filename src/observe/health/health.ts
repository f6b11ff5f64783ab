import { reason } from '../../codec/show.js'
import { readLog } from '../../job/attempt/attempt-log.js'
import { inWords } from '../../job/why/words.js'
import type { JobRow, Store } from '../../store/store.js'
import type { Cancel } from '../../world/timers.js'
import type { Log } from '../../world/log.js'
import type { World } from '../../world/world.js'
import { findingsOf } from './findings.js'
import type { FailingJob, Finding } from './findings.js'

/** The health of the whole system, as this process sees it. */
export interface HealthReport {
  /** False: a job has been in error for longer than `allowedErrorTime`. Null: not checked yet. */
  readonly healthy: boolean | null
  readonly checkedAt: Date
  /** The database and its version, and how long it took to answer; undefined when it did not. */
  readonly store: { readonly name: string; readonly engine: string; readonly latencyMs: number | undefined }
  /** Workers that are registered. */
  readonly workers: number
  /** What is wrong, the worst first. */
  readonly findings: readonly Finding[]
}

/** What `onSystemError` and `onSystemRecovery` are called with. */
export type SystemCallback = (report: HealthReport) => void

export interface HealthParts {
  readonly world: World
  readonly store: Store
  readonly log: Log
  readonly allowedErrorMs: number
  readonly startGraceMs: number
  readonly slowAfterMs: () => number
  /** The store was lost for good. */
  readonly goneError: () => Error | undefined
  readonly onSystemError: SystemCallback | undefined
  readonly onSystemRecovery: SystemCallback | undefined
}

/** How often a started mill checks. */
const CHECK_MS = 30_000
/** An error is announced at most so often, also if the system recovers in between. */
const ANNOUNCE_MS = 300_000
/** Jobs of each error state, the oldest first, and ready jobs that a check reads. */
const LOOKED_AT = 50
const WORKERS_MAX = 1_000

/** Checks the system, and announces when it becomes unhealthy and when it has recovered. */
export class Health {
  readonly #parts: HealthParts
  readonly #since: number
  #healthy: boolean | null = null
  #announcedAt = -Infinity
  #isAnnounced = false
  #checking: Promise<HealthReport> | undefined

  constructor(parts: HealthParts) {
    this.#parts = parts
    this.#since = parts.world.clock.monotonic()
  }

  /** The result of the last check; null before the first. */
  get healthy(): boolean | null {
    return this.#healthy
  }

  /** Checks now. Calls at the same time share one check. */
  check(): Promise<HealthReport> {
    this.#checking ??= this.#check().finally(() => (this.#checking = undefined))
    return this.#checking
  }

  /** Checks repeatedly until stopped. */
  start(): Cancel {
    let cancel: Cancel = () => undefined
    let isStopped = false
    const again = async (): Promise<void> => {
      await this.check()
      if (!isStopped) schedule()
    }
    const schedule = (): void => {
      cancel = this.#parts.world.timers.after(CHECK_MS, () => void again(), { idle: true })
    }
    schedule()
    return () => {
      isStopped = true
      cancel()
    }
  }

  async #check(): Promise<HealthReport> {
    const { world, store, goneError } = this.#parts
    const { name, engine, warnings } = store.info
    const begun = world.clock.monotonic()
    const seen = await this.#read().catch((error: unknown) => ({ error: goneError() ?? error }))
    const latencyMs = Math.round(world.clock.monotonic() - begun)
    const checkedAt = new Date(world.clock.now())
    if ('error' in seen) {
      // The state of the jobs is not known: the last result stays.
      const findings = [unreachable(seen.error)]
      return { healthy: this.#healthy, checkedAt, store: { name, engine, latencyMs: undefined }, workers: 0, findings }
    }
    const isInGrace = begun - this.#since < this.#parts.startGraceMs
    this.#healthy = isInGrace || seen.failing.length === 0
    const findings = findingsOf({ ...seen, warnings })
    const workers = seen.workers.length
    const report = { healthy: this.#healthy, checkedAt, store: { name, engine, latencyMs }, workers, findings }
    this.#announce(report)
    return report
  }

  async #read(): Promise<Omit<Parameters<typeof findingsOf>[0], 'warnings'>> {
    const { store, world, allowedErrorMs, slowAfterMs } = this.#parts
    const { now, rows } = await store.observing.listWorkers({ limit: WORKERS_MAX, after: '', withDead: true })
    const ownNow = world.clock.now()
    const oldest = { order: 'oldest', limit: LOOKED_AT, cursor: null } as const
    const ready = await store.jobs.findJobs({ ...oldest, states: ['ready'] })
    const failing: FailingJob[] = []
    for (const state of ['failed', 'parked', 'retrying'] as const) {
      // A job that has been in error for so long was enqueued before.
      const page = await store.jobs.findJobs({ ...oldest, states: [state], createdBefore: now - allowedErrorMs })
      failing.push(...page.rows.map((row) => toFailing(row, state)).filter(({ since }) => now - since > allowedErrorMs))
    }
    return {
      storeNow: now,
      ownNow,
      workers: rows.filter(({ diedAt }) => diedAt === null),
      dead: rows.filter(({ diedAt }) => diedAt !== null),
      ready: ready.rows.map(({ name, dueAt }) => ({ job: name, since: dueAt })),
      failing,
      slowAfterMs: slowAfterMs(),
      ofStore: (await store.info.inspect?.()) ?? [],
    }
  }

  #announce(report: HealthReport): void {
    const { world, log, onSystemError, onSystemRecovery } = this.#parts
    const now = world.clock.monotonic()
    if (report.healthy === false && !this.#isAnnounced && now - this.#announcedAt >= ANNOUNCE_MS) {
      this.#isAnnounced = true
      this.#announcedAt = now
      const text = report.findings.find(({ kind }) => kind === 'failing-jobs')?.text ?? 'jobs are failing'
      this.#call(onSystemError, report, () =>
        log.write('error', { findings: report.findings.length }, `unhealthy: ${text}`),
      )
    } else if (report.healthy === true && this.#isAnnounced) {
      this.#isAnnounced = false
      const forMs = now - this.#announcedAt
      this.#call(onSystemRecovery, report, () => log.write('info', {}, `healthy again, after ${inWords(forMs)}`))
    }
  }

  #call(callback: SystemCallback | undefined, report: HealthReport, otherwise: () => void): void {
    if (callback === undefined) return otherwise()
    try {
      callback(report)
    } catch (error) {
      this.#parts.log.write('error', { err: error }, `onSystemError or onSystemRecovery threw: ${reason(error)}`)
    }
  }
}

/** A retrying job has been in error since its first attempt that failed, another since it got its state. */
function toFailing(row: JobRow, state: FailingJob['state']): FailingJob {
  const entries = readLog(row.log)
  const first = entries.find((entry) => entry.error !== undefined)
  const since = state === 'retrying' ? first?.endedAt : (row.settledAt ?? entries.at(-1)?.endedAt)
  return { id: row.id, job: row.name, queue: row.queue, state, since: since ?? row.createdAt }
}

function unreachable(error: unknown): Finding {
  return {
    kind: 'store',
    text: `The store does not answer: ${reason(error)}.`,
    since: undefined,
    effect: 'Nothing can be enqueued, and no job starts; what ran is recorded when the store is back.',
    mend: 'Look at the database; the error says what it answered.',
  }
}
