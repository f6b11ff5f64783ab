import type { ErrorRecord } from '../codec/error-text.js'
import type { Logged } from '../job/attempt/log-text.js'
import type { Registry } from '../job/definition/registry.js'
import type { Claim, ClaimedJob, SettledJob, Store } from '../store/store.js'
import type { World } from '../world/world.js'
import type { Executor } from './executors/loop.js'
import type { JobVerbs, Running } from './running.js'
import type { Surround } from './attempt-host.js'

export interface HandParts extends JobVerbs {
  readonly world: World
  readonly store: Store
  readonly registry: Registry
  readonly executor: Executor
  /** Puts in place what jobs captured; undefined when nothing is. */
  readonly surround: Surround | undefined
  readonly events: WorkerEvents
  /** The grace after which a handler that blocks the event loop is reported (`loop-watch.ts`), in ms; default: 30 s. */
  readonly blockGraceMs?: number | undefined
}

/** What others may want to know: the log, hooks, tests. */
export interface WorkerEvents {
  began(job: ClaimedJob): void
  /** `tookMs` is undefined for a job that never began. */
  settled(job: SettledJob, tookMs: number | undefined, running?: Running): void
  /** A worker was taken for dead, or the claim of a job was lost. */
  lost(what: Lost): void
  /** A job that has settled itself threw afterwards: it stays done. */
  threwAfterwards(running: Running, error: ErrorRecord): void
  troubled(what: string, error: unknown): void
  slow(running: Running, forMs: number): void
  logLine(running: Running, logged: Logged): void
}

/** What was lost: a worker's lease, with the reason, or one job's claim. */
export type Lost =
  | { readonly worker: string; readonly why: string }
  | { readonly id: string; readonly name: string; readonly queue: string }

/** What the worker above tells its hand. */
export interface Master {
  readonly options: () => { readonly concurrency: number; readonly crashBudget: number; readonly slowAfterMs: number }
  readonly workerId: () => string
  /** Something ended or freed a slot: another turn is wanted. */
  readonly wake: () => void
  /** Settlements were written: to everybody else these jobs are out of this hand now. */
  readonly written: () => void
  /** This job has left the worker: its end is written, or its claim is lost. */
  readonly left: (claim: Claim) => void
}
