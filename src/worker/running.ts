import type { ErrorRecord } from '../codec/error-text.js'
import type { EnqueueArguments, Enqueueable, Handle } from '../job/enqueue.js'
import type { RunInContext } from '../job/attempt/capture.js'
import type { Context } from '../job/attempt/context.js'
import { readLogged } from '../job/attempt/log-text.js'
import type { Logged } from '../job/attempt/log-text.js'
import { checkProgress } from '../job/attempt/check-progress.js'
import type { Registered } from '../job/definition/registry.js'
import type { ObservedPromise } from './observed-promise.js'
import type { Claim, ClaimedJob, SettledJob } from '../store/store.js'
import type { StoredOptions } from '../job/definition/stored-options.js'

/** Lines one attempt's log keeps, and characters of a line. */
const LOG_LINES_MAX = 100
const LOG_LINE_MAX = 2_000

/** What a running job asks of the client. */
export interface JobVerbs {
  /** `under` is the claim that must still hold; undefined once the job has settled itself. */
  enqueue(under: Claim | undefined, job: Enqueueable, payload: unknown, options: unknown): Promise<Handle<unknown>>
  /** Pauses a queue on behalf of the handler under this claim. */
  pauseQueue(under: Claim, queue: string, when: unknown): Promise<void>
  /** What the parents of a job gave that are of this job. */
  results(id: string, parent: Enqueueable): Promise<unknown[]>
}

/** What a running job asks of its worker. */
export interface Surroundings {
  readonly verbs: JobVerbs
  noteProgress(running: Running): void
  logLine(running: Running, logged: Logged): void
  readonly settling: Settling
}

/** How a job settles itself, in a transaction of its handler's. */
export interface Settling {
  settleIn(running: Running, tx: unknown, result: unknown): Promise<void> | void
  transaction<T>(running: Running, work: (tx: unknown) => T): Promise<T>
}

/**
 * One attempt in hand, and the context its handler sees. Members are on the prototype and the abort controller is made when
 * first asked for: most handlers never look at it, and it is the dearest thing here.
 */
export class Running implements Context {
  readonly claimed: ClaimedJob
  readonly registered: Registered
  readonly options: StoredOptions
  readonly startedAt: number
  /** By the monotonic clock. */
  readonly begunAt: number
  /** When the watchdog does something next: the timeout, then the end of its grace. */
  alarmAt: number
  slowAt: number
  /** The attempt was settled without its handler, which still runs and holds its slot. */
  settled = false
  /** Whether the store has been told that it began. */
  reported: boolean
  progressText: string | null = null
  lines: string[] | undefined
  /** Where it is among those that run. */
  seat = -1
  /** How long the handler took, once it came back. */
  tookMs = 0
  lastWord: string | undefined
  /** Calls with what the job captured in place; undefined when there is nothing to put. */
  within: RunInContext | undefined = undefined
  /** The end that the handler put into a transaction of its own, whatever became of that. */
  settledIn: SettledJob | undefined
  /** What it asked of a transaction and was answered by a promise. */
  promised: readonly ObservedPromise<unknown>[] | undefined
  /** That transaction is known to have committed. */
  committed = false
  /** What the handler threw after that. */
  afterword: ErrorRecord | undefined
  readonly #around: Surroundings
  #controller: AbortController | undefined
  #abortReason: unknown

  constructor(begin: Begin, around: Surroundings) {
    this.claimed = begin.claimed
    this.registered = begin.registered
    this.options = begin.options
    this.startedAt = begin.startedAt
    this.begunAt = begin.begunAt
    this.alarmAt = begin.begunAt + begin.timeoutMs
    this.slowAt = begin.begunAt + begin.slowAfterMs
    this.reported = begin.reported
    this.#around = around
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
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }
  get queue(): Context['queue'] {
    const name = this.claimed.queue
    return { name, pauseUntil: (when) => this.#around.verbs.pauseQueue(this.claimed, name, when) }
  }
  get abortReason(): unknown {
    return this.#abortReason
  }

  abort(reason: unknown): void {
    if (this.#abortReason !== undefined) return
    this.#abortReason = reason
    this.#controller?.abort(reason)
  }

  log(...parts: readonly unknown[]): void {
    const logged = readLogged(parts)
    const line = logged.line.slice(0, LOG_LINE_MAX)
    this.lines ??= []
    if (this.lines.length < LOG_LINES_MAX) this.lines.push(line)
    else if (this.lines.length === LOG_LINES_MAX)
      this.lines.push(`… more lines were logged than the ${LOG_LINES_MAX} that are kept`)
    this.lastWord = `log: ${line}`
    this.#around.logLine(this, logged)
  }

  progress(done: number, total?: number): void {
    checkProgress(done, total)
    this.progressText = JSON.stringify(total === undefined ? { done } : { done, total })
    this.lastWord = `progress: ${done}${total === undefined ? '' : ` of ${total}`}`
    this.#around.noteProgress(this)
  }

  enqueue(job: Enqueueable, payload?: unknown, options?: EnqueueArguments<unknown>[1]): Promise<Handle<never, never>> {
    // Once it has settled itself it holds no claim, and what it enqueues is no longer a lost run's.
    const under = this.settledIn === undefined ? this.claimed : undefined
    return this.#around.verbs.enqueue(under, job, payload, options) as Promise<Handle<never, never>>
  }

  results(parent: Enqueueable): Promise<never[]> {
    return this.#around.verbs.results(this.id, parent) as Promise<never[]>
  }
  settleIn(tx: unknown, result?: unknown): Promise<void> | void {
    return this.#around.settling.settleIn(this, tx, result)
  }
  transaction<T, Tx>(work: (tx: Tx) => T): Promise<T> {
    return this.#around.settling.transaction(this, work as (tx: unknown) => T)
  }
}

export interface Begin {
  readonly claimed: ClaimedJob
  readonly registered: Registered
  readonly options: StoredOptions
  /** By the store's clock. */
  readonly startedAt: number
  readonly begunAt: number
  readonly timeoutMs: number
  readonly slowAfterMs: number
  readonly reported: boolean
}
