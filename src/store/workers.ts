import type { WorkerAbout } from './observing/lists.js'
import type { Clock } from '../world/clock.js'
import type { ClaimedJob, SettledJob } from './store.js'
import type { LoopShare } from './loop-watch.js'
import type { ProcessMark } from '../world/processes.js'

/** A worker as other processes see it: its identity and its lease. */
export interface WorkerInfo {
  readonly id: string
  readonly host: string
  readonly pid: number
  /** See `ProcessMark`; null or absent where the end of the process cannot be proven. */
  readonly identity?: string | null | undefined
  /** Its lease, by which other workers judge it: it beats three times per lease. */
  readonly leaseMs?: number | undefined
  readonly about?: WorkerAbout | undefined
}

/** How long a worker that was declared dead is listed. */
export const DEAD_KEPT_MS = 600_000

export interface WorkerBeat {
  readonly id: string
  /** Null: the worker's row is deleted and its leases are not. */
  readonly beat: number | null
  /** Its process, if its end can be proven on the same machine. */
  readonly process?: ProcessMark | undefined
  /** The lease of this worker. */
  readonly leaseMs?: number | undefined
}

/** A worker's row as both stores read it. */
export interface WorkerRow {
  readonly worker: string
  readonly beat: unknown
  readonly pid: unknown
  readonly identity: string | null
  readonly leaseMs: unknown
}

export function beatOf({ worker, beat, pid, identity, leaseMs }: WorkerRow): WorkerBeat {
  const lease = leaseMs === null ? {} : { leaseMs: Number(leaseMs) }
  const seen = { id: worker, beat: beat === null ? null : Number(beat), ...lease }
  return identity === null ? seen : { ...seen, process: { pid: Number(pid), identity } }
}

/**
 * How a rescuer ends a dead worker: its id, the beat that did not move, and the settlements of its jobs. The judgement
 * is valid for `withinMs`: a write that gets its lock later does nothing, because the worker may have waited for the
 * same lock in order to beat.
 */
export type Rescue = [worker: string, beat: number | null, settled: readonly SettledJob[], withinMs?: number]

/** Called when a write has its lock: true when that took too long. */
export function lateAfter(clock: Clock, ms: number): () => boolean {
  const until = clock.monotonic() + ms
  return () => clock.monotonic() > until
}

/**
 * The arguments of a heartbeat. `loop`: memory that the worker shares with the thread, so that the thread detects an
 * event loop that is blocked for too long, and then stops beating (`loop-watch.ts`).
 */
export type HeartbeatRequest = [worker: string, everyMs: number, onLost: (why: string) => void, loop?: LoopShare]

export interface Heartbeat {
  /** It watches the event loop that it was given. */
  readonly watchesLoop?: boolean | undefined
  stop(): Promise<void>
}

export interface LeasedJob extends ClaimedJob {
  /**
   * The number of suspects that its claim took into quarantine; 0 when it took none, or when that quarantine is over.
   */
  readonly quarantined: number
  readonly claimedAt: number
  readonly startedAt: number | null
  /** What its attempt reported last. */
  readonly progress: string | null
  /** Its handler blocked the event loop until the heartbeat thread stopped the worker's heartbeat. */
  readonly isBlocking: boolean
}
