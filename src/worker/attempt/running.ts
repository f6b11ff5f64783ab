import type { ErrorRecord } from '../../codec/error-text.js'
import type { EnqueueArguments, Enqueueable, Handle } from '../../job/enqueue.js'
import type { RunInContext } from '../../job/attempt/capture.js'
import type { Context } from '../../job/attempt/context.js'
import { readLogged } from '../../job/attempt/log-text.js'
import type { Logged } from '../../job/attempt/log-text.js'
import { checkProgress } from '../../job/attempt/check-progress.js'
import type { Handler } from '../../job/definition/define.js'
import type { Registered } from '../../job/definition/registry.js'
import type { Encoded, Outcome } from '../../job/rules/outcome.js'
import type { InboxRow, NewChild, WorkflowEnd } from '../../store/workflows.js'
import type { ObservedPromise } from './observed-promise.js'
import type { Claim, ClaimedJob, SettledJob } from '../../store/store.js'
import type { CalledBy, StoredOptions } from '../../job/definition/stored-options.js'
import type { ActingSteps } from '../../job/workflow-record.js'

/** Lines one attempt's log keeps, and characters of a line. */
const LOG_LINES_MAX = 100
const LOG_LINE_MAX = 2_000
/** The last lines that the report of an attempt shows: a report is written again and again while the attempt runs. */
const REPORTED_LINES = 20

/** What a running job needs of the client. */
export interface JobVerbs {
  /** `claim` must still hold; undefined once the job has settled itself. */
  enqueue(claim: Claim | undefined, job: Enqueueable, payload: unknown, options: unknown): Promise<Handle<unknown>>
  /** Checks and encodes a job that a workflow calls or enqueues. */
  prepareChild(job: Enqueueable, payload: unknown, options: unknown, calledBy: CalledBy): Promise<PreparedChild>
  /** Checks and encodes the input of a workflow that restarts. */
  prepareInput(registered: Registered, input: unknown): Promise<Encoded>
  /** Pauses a queue on behalf of the handler under this claim. */
  pauseQueue(claim: Claim, queue: string, when: unknown): Promise<void>
  /** The results of the parents of a job that are jobs of this name. */
  results(id: string, parent: Enqueueable): Promise<unknown[]>
}

export type PreparedChild = Omit<NewChild, 'address' | 'isAwaited'>

/** What a running attempt needs of its worker. */
export interface AttemptHost {
  readonly verbs: JobVerbs
  noteProgress(running: Running): void
  logLine(running: Running, logged: Logged): void
  readonly settling: Settling
}

/** How a handler settles its own job in a transaction of its own. */
export interface Settling {
  settleIn(running: Running, tx: unknown, result: unknown): Promise<void> | void
  transaction<T>(running: Running, work: (tx: unknown) => T): Promise<T>
}

/**
 * One running attempt, and the context that its handler sees. Members are on the prototype and the abort controller is made at
 * the first read of `signal`: most handlers never read it, and it is the most expensive part.
 */
export class Running implements Context {
  readonly claimed: ClaimedJob
  readonly registered: Registered
  readonly options: StoredOptions
  readonly startedAt: number
  /** By the monotonic clock. */
  readonly begunAt: number
  /** When its claim began to hold the slot: for an item of a sequence, when the first item of this claim began. */
  readonly heldSince: number
  /** When the watchdog acts next: at the timeout, then at the end of the grace. */
  alarmAt: number
  slowAt: number
  /** The attempt's outcome is decided. Its handler may still run, and then holds its slot. */
  settled = false
  /** Whether it is written that the attempt began. */
  reported: boolean
  #progress: { readonly done: number; readonly total: number | undefined } | undefined
  lines: string[] | undefined
  /** The step of this workflow that reported last. */
  #step: Running | undefined
  /** How its thread or process ended, when that did not return or throw. */
  exit: string | undefined
  /** An uncaught error failed it: its handler may never return, so its slot is freed after the grace. */
  isFailedOutside = false
  /** Its index in the set of running attempts. */
  index = -1
  /** How long the handler took; 0 until it returned. */
  tookMs = 0
  lastActivity: string | undefined
  /** Calls a function in the context that the job captured; undefined when it captured none. */
  within: RunInContext | undefined = undefined
  /** The end that the handler wrote in a transaction of its own, whether that committed or not. */
  settledIn: SettledJob | undefined
  /** The end that `ctx.transaction` sent to the store, which failed or did not answer: it may be committed. */
  unansweredEnd: SettledJob | undefined
  /** Its settlement was sent to the store and not answered: it may be written. */
  isEndUnanswered = false
  /** Promises of `settleIn` and `transaction` that the handler was given and may not await. */
  pendingWrites: readonly ObservedPromise<unknown>[] | undefined
  /** That transaction has committed. */
  isCommitted = false
  /** Runs the body of a workflow under this claim; undefined for other jobs. */
  workflow: RunningWorkflow | undefined
  /** What the handler threw after it had settled its job. */
  errorAfterSettling: ErrorRecord | undefined
  readonly #host: AttemptHost
  #controller: AbortController | undefined
  #abortReason: unknown

  constructor(begin: Begin, host: AttemptHost) {
    this.claimed = begin.claimed
    this.registered = begin.registered
    this.options = begin.options
    this.startedAt = begin.startedAt
    this.begunAt = begin.begunAt
    this.heldSince = begin.heldSince
    this.alarmAt = begin.begunAt + begin.timeoutMs
    this.slowAt = begin.begunAt + begin.slowAfterMs
    this.reported = begin.reported
    this.#host = host
  }

  get id(): string {
    return this.claimed.id
  }
  get job(): string {
    return this.claimed.name
  }
  get attempt(): number {
    return this.claimed.attempt + 1
  }
  get tick(): Context['tick'] {
    const { tick } = this.options
    return tick === undefined ? undefined : { schedule: tick.schedule, at: new Date(tick.at) }
  }
  get sequence(): Context['sequence'] {
    const { sequence } = this.claimed
    if (sequence === undefined) return undefined
    const { index, total, previous } = sequence
    const { codec } = this.registered
    return {
      id: this.id,
      index,
      total,
      get previous(): unknown {
        return previous === null ? undefined : codec.decode(previous)
      },
    }
  }
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }
  get queue(): Context['queue'] {
    const name = this.claimed.queue
    return { name, pauseUntil: (when) => this.#host.verbs.pauseQueue(this.claimed, name, when) }
  }
  get abortReason(): unknown {
    return this.#abortReason
  }

  abort(reason: unknown): void {
    if (this.#abortReason !== undefined) return
    this.#abortReason = reason
    this.#controller?.abort(reason)
    this.workflow?.aborted()
  }

  log(...parts: readonly unknown[]): void {
    const logged = readLogged(parts)
    const line = logged.line.slice(0, LOG_LINE_MAX)
    this.lines ??= []
    if (this.lines.length < LOG_LINES_MAX) this.lines.push(line)
    else if (this.lines.length === LOG_LINES_MAX)
      this.lines.push(`… more lines were logged than the ${LOG_LINES_MAX} that are kept`)
    this.lastActivity = `log: ${line}`
    this.#host.noteProgress(this)
    this.#host.logLine(this, logged)
  }

  progress(done: number, total?: number): void {
    checkProgress(done, total)
    this.#progress = { done, total }
    this.lastActivity = `progress: ${done}${total === undefined ? '' : ` of ${total}`}`
    this.#host.noteProgress(this)
  }

  /** The steps of a workflow that act are shown with its report. */
  noteActing(): void {
    if (this.workflow?.acting !== undefined) this.#host.noteProgress(this)
  }

  /** A step of this workflow has logged or made progress: the report of the workflow shows it. */
  noteStep(step: Running): void {
    this.#step = step
    this.#host.noteProgress(this)
  }

  /** What the attempt has reported so far, as JSON; null: nothing. */
  get progressText(): string | null {
    const { sequence } = this.claimed
    const acting = this.workflow?.acting
    const { lines } = this.#step ?? this
    if (this.#progress === undefined && lines === undefined && acting === undefined) return null
    // The index of the item, because the next item must not show the report of this one.
    const item = sequence === undefined ? {} : { done: 0, item: sequence.index }
    return JSON.stringify({ ...item, ...this.#progress, log: lines?.slice(-REPORTED_LINES), acting })
  }

  enqueue(job: Enqueueable, payload?: unknown, options?: EnqueueArguments<unknown>[1]): Promise<Handle<never, never>> {
    // After the handler has settled its job it holds no claim, so what it enqueues needs none.
    const claim = this.settledIn === undefined ? this.claimed : undefined
    return this.#host.verbs.enqueue(claim, job, payload, options) as Promise<Handle<never, never>>
  }

  results(parent: Enqueueable): Promise<never[]> {
    return this.#host.verbs.results(this.id, parent) as Promise<never[]>
  }
  settleIn(tx: unknown, result?: unknown): Promise<void> | void {
    return this.#host.settling.settleIn(this, tx, result)
  }
  transaction<T, Tx>(work: (tx: Tx) => T): Promise<T> {
    return this.#host.settling.transaction(this, work as (tx: unknown) => T)
  }
}

/** The claim of a workflow, as the rest of the worker sees it. */
export interface RunningWorkflow {
  /** Drives the body until it ends for this claim. Never rejects. */
  drive(body: Handler<unknown, unknown>, input: unknown): Promise<unknown>
  /** What is written with the end of the claim; undefined until the driver has ended. */
  readonly ended: { readonly outcome: Outcome; readonly written: WorkflowEnd | undefined } | undefined
  /** Its steps that have acted for a while; undefined: none. */
  readonly acting: ActingSteps | undefined
  /** This claim has recorded an answer, which ends the count of crashes. */
  readonly hasProgressed: boolean
  /** A pause was requested: no other step begins. */
  pause(isRequested: boolean): void
  /** A pause was requested, and is not withdrawn. */
  readonly isPausing: boolean
  /** The worker stops, or its slots are needed: look again. */
  wake(): void
  /** `takes`: its count when the read of the inbox began. */
  receive(inbox: readonly InboxRow[], takes: number): void
  readonly takes: number
  /** Its claim is lost, or the worker's deadline has passed: see `abortReason`. */
  aborted(): void
  /** The claim is over without the driver: the run is frozen. */
  freeze(): void
}

export interface Begin {
  readonly claimed: ClaimedJob
  readonly registered: Registered
  readonly options: StoredOptions
  /** By the store's clock. */
  readonly startedAt: number
  readonly begunAt: number
  readonly heldSince: number
  readonly timeoutMs: number
  readonly slowAfterMs: number
  readonly reported: boolean
}
