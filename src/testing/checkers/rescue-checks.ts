import type { Census } from '../../store/census.js'
import { BrokenPromise } from './broken-promise.js'
import { placeOf } from '../simulation/sim-machines.js'
import type { SimProcess } from '../simulation/sim-process.js'

/** What the world knows of workers and their processes. */
export interface WorkerFacts {
  /** When each worker's last beat went through. */
  readonly lastBeats: ReadonlyMap<string, number>
  /** Workers that took themselves off the list. */
  readonly leaving: ReadonlySet<string>
  /** Workers whose heartbeats were stopped by their own processes. */
  readonly stopped: ReadonlySet<string>
  /** Which process each worker is of. */
  readonly processes: ReadonlyMap<string, SimProcess>
  /** No process could write until then. */
  readonly heldUntil: number
}

export interface RescueFacts {
  readonly workers: WorkerFacts
  readonly now: number
  /** How long a silent worker is believed to live. */
  readonly leaseMs: number
}

/**
 * A worker that is off the list and did not leave by itself was rescued. Of a process that has ended that is right at any
 * time. Of one that lives it is right only when its heart was silent for a lease and was kept from beating by its own
 * process (frozen, or stopping), and never because no process could write to the store.
 */
export function checkRescues(before: Census | undefined, census: Census, facts: RescueFacts): void {
  const { workers, now, leaseMs } = facts
  const listed = new Set(census.workers.map(({ worker }) => worker))
  for (const { worker } of before?.workers ?? []) {
    if (listed.has(worker) || workers.leaving.has(worker)) continue
    const [process, lastBeat] = [workers.processes.get(worker), workers.lastBeats.get(worker)]
    // Without a beat: its heartbeat had not started, because the answer to its first write came too late.
    if (process?.alive !== true || lastBeat === undefined) continue
    if (now - lastBeat < leaseMs * 0.9)
      throw new BrokenPromise(
        `G7: a worker was taken for dead ${(now - lastBeat).toFixed(0)} ms after its last beat, and a lease is ${leaseMs} ms`,
      )
    // One that was frozen beats as soon as it wakes and the store can be written.
    if (!workers.stopped.has(worker) && process.frozenUntil < Math.max(lastBeat, now - leaseMs * 0.7))
      throw new BrokenPromise(`G7: a worker was taken for dead though its process was never kept from beating`)
  }
}

/** A process that can prove a neighbour's death frees its jobs within a second. */
const FREED_WITHIN_MS = 1_000

/** X10: a worker whose process has ended is off the list a second after a well process of the same machine could know. */
export function checkFreed(census: Census, workers: WorkerFacts, watching: Iterable<SimProcess>, now: number): void {
  const dead = census.workers.flatMap(({ worker }) => {
    const process = workers.processes.get(worker)
    const isKnown = process !== undefined && process.world.processes.own.identity !== null
    return isKnown && !process.alive ? [process] : []
  })
  if (dead.length === 0) return
  for (const other of watching) {
    if (!other.alive) continue
    for (const process of dead) {
      const knownForMs = now - Math.max(process.diedAt, other.healthySince, workers.heldUntil)
      if (knownForMs > FREED_WITHIN_MS && placeOf(process.name).machine === placeOf(other.name).machine)
        throw new BrokenPromise(
          `X10: ${process.name} died, and ${other.name} of the same machine has not freed its jobs in ${knownForMs.toFixed(0)} ms`,
        )
    }
  }
}

/** Whether this worker's process ended less than a lease ago: only a proof frees its jobs so soon. */
export function isProven(workers: WorkerFacts, worker: string, now: number, leaseMs: number): boolean {
  return now - (workers.processes.get(worker)?.diedAt ?? Infinity) < leaseMs * 0.6
}
