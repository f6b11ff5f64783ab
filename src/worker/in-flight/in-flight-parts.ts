import type { ErrorRecord } from '../../codec/error-text.js'
import type { Logged } from '../../job/attempt/log-text.js'
import type { Registry } from '../../job/definition/registry.js'
import type { Claim, ClaimedJob, SettledJob, Store } from '../../store/store.js'
import type { World } from '../../world/world.js'
import type { HandlerExecutor } from '../executors/loop.js'
import type { JobVerbs, Running } from '../attempt/running.js'
import type { RunAttemptInContext } from '../attempt/attempt-host.js'

export interface InFlightParts extends JobVerbs {
  readonly world: World
  readonly store: Store
  readonly registry: Registry
  readonly executor: HandlerExecutor
  /** Runs an attempt in the context that its job captured at enqueue; undefined when nothing is captured. */
  readonly runInContext: RunAttemptInContext | undefined
  readonly events: WorkerEvents
  /** The grace after which a handler that blocks the event loop is reported (`loop-watch.ts`), in ms; default: 30 s. */
  readonly blockGraceMs?: number | undefined
  /** A wait of a workflow that ends within this time is waited for in hand; default: 250 ms. */
  readonly inHandMs?: number | undefined
}

/** What the worker reports: to the log, to hooks, to tests. */
export interface WorkerEvents {
  began(job: ClaimedJob): void
  /** `tookMs` is undefined for a job that never began. */
  settled(job: SettledJob, tookMs: number | undefined, running?: Running): void
  /** A worker's lease was lost, or the claim of one job. */
  lost(what: Lost): void
  /** A job that has settled itself threw afterwards: it stays done. */
  threwAfterwards(running: Running, error: ErrorRecord): void
  /** Code of an attempt that has ended threw where no code catches it. */
  errorAfterEnd(running: Running, error: unknown): void
  storeFailed(what: string, error: unknown): void
  slow(running: Running, forMs: number): void
  /** The body of a workflow did something that replays badly: see `Warning`. */
  workflowWarned(running: Running, kind: string, address: string): void
  logLine(running: Running, logged: Logged): void
}

/** What was lost: a worker's lease, with the reason, or one job's claim. */
export type Lost =
  | { readonly worker: string; readonly why: string }
  | { readonly id: string; readonly name: string; readonly queue: string }

/** What the in-flight jobs need of the worker that owns them. */
export interface InFlightOwner {
  readonly options: () => {
    readonly concurrency: number
    readonly queues: ReadonlyMap<string, number>
    readonly crashBudget: number
    readonly outageAfter: number
    readonly slowAfterMs: number
    readonly workflows: { readonly sticky: number; readonly strict: boolean }
  }
  readonly workerId: () => string
  /** Suspects wait until nothing runs in this process. */
  readonly isDraining: () => boolean
  /** An attempt ended or a slot became free: another round is needed. */
  readonly wake: () => void
  /** Settlements were written: every other process now sees that these jobs have ended here. */
  readonly written: () => void
  /** This job is no longer in flight: its end is written, or its claim is lost. */
  readonly left: (claim: Claim) => void
}
