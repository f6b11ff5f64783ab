import type { EngineEvents } from '../observe/engine-events.js'
import type { Log } from '../world/log.js'
import { settledWithin } from '../world/timers.js'
import type { World } from '../world/world.js'
import type { Worker } from '../worker/worker.js'
import type { Upkeep } from './upkeep.js'

/** What a started mill runs. */
export interface StartedParts {
  readonly worker: Worker
  readonly upkeep: Upkeep
  /** How many jobs went back to the line because the worker stopped while they ran. */
  readonly givenBack: () => number
}

/** The worker's events, with those jobs counted. */
export function countGivenBack(events: EngineEvents): { events: EngineEvents; givenBack: () => number } {
  let count = 0
  const settled: EngineEvents['settled'] = (job, tookMs, running) => {
    if (job.to === 'ready' && running !== undefined) count += 1
    events.settled(job, tookMs, running)
  }
  return { events: { ...events, settled }, givenBack: () => count }
}

interface StartLogFields {
  /** Names of jobs. */
  readonly registered: number
  readonly concurrency: number
  /** Another process may have workers on this store. */
  readonly isShared: boolean
}

export function logStarted(log: Log, worker: Worker, { isShared, ...fields }: StartLogFields): void {
  log.write('info', { worker: worker.workerId, ...fields }, 'started')
  if (isShared && !worker.beatsFromThread) log.write('info', { worker: worker.workerId }, BEATS_FROM_LOOP)
}

const BEATS_FROM_LOOP =
  'the heartbeat runs on the event loop: if a handler blocks it for a lease, other workers take over its jobs'

export function logStopped(log: Log, givenBack: number): void {
  if (givenBack === 0) return log.write('info', {}, 'stopped')
  const jobs = givenBack === 1 ? '1 job' : `${givenBack} jobs`
  log.write('info', { givenBack }, `stopped; gave back ${jobs} that had not ended by the deadline`)
}

/** Upkeep that a store does not answer is left to itself. */
const UPKEEP_STOP_MS = 1_000

export async function stopParts(
  { worker, upkeep }: StartedParts,
  deadlineMs: number,
  { timers }: World,
): Promise<void> {
  const stopped = upkeep.stop()
  await worker.stop(deadlineMs)
  await settledWithin(timers, stopped, UPKEEP_STOP_MS)
}

/** The store is gone: nothing is claimed, promoted, fired or pruned any more, and running handlers are aborted. */
export function abandonParts({ worker, upkeep }: StartedParts, error: Error): void {
  void upkeep.stop()
  void worker.abandon(error)
}
