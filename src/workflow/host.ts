import type { Codec } from '../codec/codec.js'
import type { WorkflowRules } from '../job/definition/workflow-options.js'
import type { ErrorRecord } from '../codec/error-text.js'
import type { AnyEvent } from '../job/definition/workflow-options.js'
import type { Encoded, Outcome } from '../job/rules/outcome.js'
import type { NewStep } from '../store/sequences.js'
import type { Inserted } from '../store/store.js'
import type { InboxRow, NewChild, StepRow } from '../store/workflows.js'
import type { Timers } from '../world/timers.js'
import type { Deed, Operation } from './operation.js'

/** One workflow as its driver knows it. */
export interface Workflow {
  readonly id: string
  readonly name: string
  /** Calls within calls, up to this one. */
  readonly depth: number
  readonly body: (input: unknown, w: never) => unknown
  readonly input: unknown
  readonly rules: WorkflowRules
  readonly isStrict: boolean
  /** A wait that ends within this time is waited for in hand. */
  readonly inHandMs: number
  readonly codec: Codec
}

/** What a claim found: the log, or undefined rows for a run that was kept and goes on. */
export interface LogRead {
  readonly run: number
  /** The run that the body sees as 0. Default 0. */
  readonly firstRun?: number | undefined
  readonly deadlineAt: number | null
  /** When it was retried last: a deadline that had passed by then counts from here. */
  readonly retriedAt?: number | null
  /** The number of the next answer, where a retry has left a gap. */
  readonly nextNo?: number
  readonly rows: readonly StepRow[] | undefined
  readonly inbox: readonly InboxRow[]
  /** When the inbox was read, by the store's clock; default: now. */
  readonly inboxAt?: number
}

/** What the driver writes at once: all of it, or nothing. */
export interface LogWrite {
  readonly rows: readonly NewStep[]
  readonly taken: readonly number[]
  readonly children: readonly NewChild[]
  /** Called jobs that are no longer awaited. */
  readonly cancelled: readonly string[]
}

/** Everything that a driver needs of the worker that holds the claim. */
export interface DriverHost {
  readonly timers: Timers
  /** The store's clock, as far as the worker knows it. */
  now(): number
  /**
   * Writes, however often the store fails, and calls `done` when that is committed: with the children, or with undefined when
   * the claim is lost. `refused`: the store refuses a child, and nothing is written.
   */
  append(write: LogWrite, done: (inserted: readonly Inserted[] | undefined, refused?: unknown) => void): void
  /** The untaken rows of the inbox; undefined when they could not be read. */
  readInbox(): Promise<readonly InboxRow[] | undefined>
  /** Calls the function of a step, and `ended` when it has returned or thrown: at once or later. */
  act(operation: Operation, ended: (outcome: Outcome) => void): void
  /** The same in a transaction, whose last write is the row that `record` returns. */
  transact(operation: Operation, record: (outcome: Outcome) => NewStep): Promise<Outcome>
  /** Aborts the signal of a step that acts. */
  abort(operation: Operation, reason: Error): void
  /** Checks and encodes the job of a call or an enqueue. */
  prepareChild(deed: Extract<Deed, { kind: 'call' | 'enqueue' }>): Promise<Omit<NewChild, 'address' | 'isAwaited'>>
  /** Checks and encodes the input of a restart. */
  prepareInput(input: unknown): Promise<Encoded>
  /** Reads the payload of an event through its schema. */
  readEvent(event: AnyEvent, payload: Encoded | null): Promise<EventRead>
  codecOf(jobName: string): Codec
  /** Whether the calling code belongs to the function of a step. */
  isInsideStep(): boolean
  /** Why no other step may begin: the run ends when those that act have ended. */
  draining(): Draining | undefined
  logLine(parts: readonly unknown[]): string
  progress(done: number, total: number | undefined): void
  warn(warning: Warning): void
}

export type EventRead =
  | { readonly ok: true; readonly payload: unknown }
  | { readonly ok: false; readonly error: ErrorRecord }

/** 'replay': only what is recorded is given, and nothing else begins. */
export type Draining = 'yield' | 'stop' | 'pause' | 'replay'

export interface Warning {
  readonly kind: 'foreign-await' | 'same-name' | 'reordered' | 'left-behind' | 'log-half-full'
  readonly address: string
}

/** How a run ended for this claim. The rows and children of `rest` are written with it. */
export type RunEnd =
  | { readonly kind: 'done'; readonly value: unknown; readonly note: string | undefined; readonly rest: LogRest }
  | { readonly kind: 'failed'; readonly error: unknown; readonly rest: LogRest }
  | {
      readonly kind: 'cancelled'
      readonly reason: string
      readonly value: unknown
      readonly error: unknown
      readonly rest: LogRest
    }
  | {
      readonly kind: 'suspended'
      readonly to: 'blocked' | 'retrying' | 'scheduled'
      readonly waits: readonly string[]
      readonly wakeAt: number | null
      readonly rest: LogRest
    }
  /** It returns to `ready` between two steps: for other jobs, for a stop or for a pause. */
  | { readonly kind: 'yielded'; readonly why: Draining; readonly rest: LogRest }
  | { readonly kind: 'drifted'; readonly recorded: readonly string[]; readonly called: readonly string[] }
  | { readonly kind: 'full'; readonly why: string }
  | { readonly kind: 'unreadable'; readonly error: ErrorRecord }
  | { readonly kind: 'restarted'; readonly input: Encoded; readonly rest: LogRest }
  /** The claim is lost: nothing is written. */
  | { readonly kind: 'lost' }

export interface LogRest extends Pick<LogWrite, 'rows' | 'cancelled'> {
  readonly deadlineAt: number | null
  /** What a retry forgets: this answer, and every operation that was called after it was given. */
  readonly forgetFrom: number | null
  /** The run has called jobs: links of them may be left. */
  readonly hasCalls: boolean
}
