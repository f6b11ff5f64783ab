import type { Clock } from '../world/clock.js'
import type { ClaimedJob, SettledJob } from './store.js'
import type { LoopShare } from './loop-watch.js'
import type { ProcessMark } from '../world/processes.js'

/** Workers as everybody sees them: who they are, and that they live. */
export interface WorkerInfo {
  readonly id: string
  readonly host: string
  readonly pid: number
  /** See `ProcessMark`; null or absent where nothing can be proven of the process. */
  readonly identity?: string | null | undefined
  /** Its lease, by which others judge it: it beats three times in that. */
  readonly leaseMs?: number | undefined
}

export interface WorkerBeat {
  readonly id: string
  /** Null: the worker is gone and its leases are not. */
  readonly beat: number | null
  /** Its process, where its end could be proven on the same machine. */
  readonly process?: ProcessMark | undefined
  /** Its own lease. */
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
 * How a rescuer ends a worker that it has found dead: its id, the beat that stood still, and what becomes of its jobs. The
 * judgement may be acted on for `withinMs` only: a write that gets its lock later does nothing, because the worker may have
 * waited for the same lock in order to beat.
 */
export type Rescue = [worker: string, beat: number | null, settled: readonly SettledJob[], withinMs?: number]

/** Asked when a write has its lock. */
export function lateAfter(clock: Clock, ms: number): () => boolean {
  const until = clock.monotonic() + ms
  return () => clock.monotonic() > until
}

/**
 * What a heart is started with. `loop`: what the worker shares with the thread, so that it finds an event loop that is blocked
 * for too long, and then stops beating (`loop-watch.ts`).
 */
export type HeartbeatRequest = [worker: string, everyMs: number, onLost: (why: string) => void, loop?: LoopShare]

export interface Heartbeat {
  /** It watches the event loop that it was given. */
  readonly watchesLoop?: boolean | undefined
  stop(): Promise<void>
}

export interface LeasedJob extends ClaimedJob {
  /** How many suspects its claim took into quarantine; 0 when it took none, or when that quarantine is over. */
  readonly quarantined: number
  readonly claimedAt: number
  readonly startedAt: number | null
  /** Its handler blocked the event loop until the worker's heartbeat was stopped. */
  readonly isBlocking: boolean
}
