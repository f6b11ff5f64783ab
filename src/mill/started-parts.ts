import type { EngineEvents } from '../observe/engine-events.js'
import type { Log } from '../world/log.js'
import type { UncaughtErrors } from '../world/uncaught.js'
import { settledWithin } from '../world/timers.js'
import { Worker } from '../worker/worker.js'
import type { WorkerOptions, WorkerParts } from '../worker/worker.js'
import { describeWorker, reportWorker } from './worker-reports.js'
import { heldJobsLogger, startUpkeep, withUpkeepNotified } from './upkeep.js'
import type { Upkeep } from './upkeep.js'

/** The parts that run between `start()` and `stop()`. */
export interface StartedParts {
  /** There may be jobs to claim. */
  wake(): void
  configure(options: WorkerOptions): void
  /** Stops claiming, and waits for what runs until the deadline. */
  stop(deadlineMs: number): Promise<void>
  /** The store is gone: stops claims, promotion, schedules and pruning, and aborts running handlers. */
  abandon(error: Error): void
  /** How many running jobs the worker released because it stopped. */
  releasedCount(): number
}

export interface PartsToStart extends WorkerParts {
  readonly events: EngineEvents
  readonly log: Log
  /** Where the uncaught errors of the process are claimed. */
  readonly uncaught?: UncaughtErrors | undefined
  readonly options: () => WorkerOptions
  /** The version of the app; undefined: that of its package.json. */
  readonly version?: string | undefined
  /** Logs the store's warnings, some of which are known only once a worker listens. */
  readonly warn: () => void
}

export type StartParts = (parts: PartsToStart) => Promise<StartedParts>

/** A worker that claims by itself, and the upkeep beside it. */
export async function startParts(parts: PartsToStart): Promise<StartedParts> {
  const { world, store, registry, events, log, options } = parts
  const started: { upkeep?: Upkeep } = {}
  const counted = countReleased(events)
  const about = describeWorker(parts)
  const worker = new Worker(
    { ...parts, about, events: withUpkeepNotified(counted.events, () => started.upkeep) },
    options(),
  )
  await worker.start()
  parts.warn()
  const unlisten = parts.uncaught?.add({
    claim: (error) => worker.claimUncaught(error),
    unclaimed: (error, isShared) => events.uncaught(error, isShared),
  })
  const self = (): string | undefined => worker.workerId
  const stopReports = reportWorker(parts, self, about)
  const held = heldJobsLogger(log)
  const upkeep = (started.upkeep = startUpkeep({ world, store, registry, events, options, self, held }))
  logStarted(parts, worker)
  return {
    wake: () => worker.wake(),
    configure: (changed) => {
      worker.configure(changed)
      upkeep.configured()
    },
    stop: async (deadlineMs) => {
      const stopped = upkeep.stop()
      stopReports()
      await worker.stop(deadlineMs)
      parts.executor.close?.()
      unlisten?.()
      await settledWithin(world.timers, stopped, UPKEEP_STOP_MS)
    },
    abandon: (error) => {
      void upkeep.stop()
      stopReports()
      void worker.abandon(error)
      unlisten?.()
    },
    releasedCount: counted.releasedCount,
  }
}

/** A stop does not wait longer than this for upkeep that the store does not answer. */
const UPKEEP_STOP_MS = 1_000

/** The worker's events, with the jobs counted that it released. */
function countReleased(events: EngineEvents): { events: EngineEvents; releasedCount: () => number } {
  let count = 0
  const settled: EngineEvents['settled'] = (job, tookMs, running) => {
    if (job.to === 'ready' && running !== undefined) count += 1
    events.settled(job, tookMs, running)
  }
  return { events: { ...events, settled }, releasedCount: () => count }
}

function logStarted({ log, registry, store, options }: PartsToStart, { workerId, beatsFromThread }: Worker): void {
  const { concurrency } = options()
  log.write('info', { worker: workerId, registered: registry.list().length, concurrency }, 'started')
  const isShared = store.info.name !== ':memory:'
  if (isShared && !beatsFromThread) log.write('info', { worker: workerId }, BEATS_FROM_LOOP)
}

const BEATS_FROM_LOOP =
  'the heartbeat runs on the event loop: if a handler blocks it for a lease, other workers take over its jobs'

export function logStopped(log: Log, released: number): void {
  if (released === 0) return log.write('info', {}, 'stopped')
  const jobs = released === 1 ? '1 job' : `${released} jobs`
  log.write('info', { givenBack: released }, `stopped; gave back ${jobs} that had not ended by the deadline`)
}
