import { settledWithin } from '../world/timers.js'
import type { World } from '../world/world.js'
import type { Worker } from '../worker/worker.js'
import type { Upkeep } from './upkeep.js'

/** What a started mill runs. */
export interface Crew {
  readonly worker: Worker
  readonly upkeep: Upkeep
}

/** Upkeep that a store does not answer is left to itself. */
const UPKEEP_STOP_MS = 1_000

export async function stopCrew({ worker, upkeep }: Crew, deadlineMs: number, { timers }: World): Promise<void> {
  const stopped = upkeep.stop()
  await worker.stop(deadlineMs)
  await settledWithin(timers, stopped, UPKEEP_STOP_MS)
}

/** The store is gone: nothing is claimed, promoted, fired or pruned any more, and running handlers are aborted. */
export function abandonCrew({ worker, upkeep }: Crew, error: Error): void {
  void upkeep.stop()
  void worker.abandon(error)
}
