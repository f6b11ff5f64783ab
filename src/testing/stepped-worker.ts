import type { ErrorRecord } from '../codec/error-text.js'
import type { State } from '../job/rules/states.js'
import type { StartedParts, PartsToStart } from '../mill/started-parts.js'
import type { ClaimedJob, SettledJob } from '../store/store.js'
import type { ClaimPlan } from '../worker/claim.js'
import type { HandlerExecutor } from '../worker/executors/loop.js'
import type { WorkerEvents } from '../worker/in-flight/in-flight-parts.js'
import { upcastPayload } from '../job/definition/upcast.js'
import { Running } from '../worker/attempt/running.js'
import { Worker } from '../worker/worker.js'
import type { WorkerOptions } from '../worker/worker.js'

/** What became of one attempt. */
export interface EndedAttempt {
  readonly running: Running
  /** The state that was written; undefined when the claim was lost and nothing was. */
  readonly to: State | undefined
  readonly threw: boolean
  readonly thrown: unknown
  readonly returned: unknown
  /** A workflow that waits for something: its attempt goes on later. */
  readonly isSuspended?: boolean | undefined
}

/** An attempt from its claim to its written settlement. */
interface Attempt {
  readonly claimed: ClaimedJob
  running: Running | undefined
  /** How its handler came back; undefined while it has not. */
  handled: Handled | undefined
  readonly ended: Promise<EndedAttempt | undefined>
  readonly end: (ended: EndedAttempt | undefined) => void
  readonly fail: (error: unknown) => void
}

type Handled =
  | { readonly threw: false; readonly returned: unknown }
  | { readonly threw: true; readonly thrown: unknown }

/** A claim that a test asked for. */
interface Claiming {
  readonly queues: readonly string[] | undefined
  readonly found: (attempt: Attempt | undefined) => void
  readonly failed: (error: unknown) => void
  isPlanned: boolean
}

const NO_CLAIM: ClaimPlan = { claim: false }

/** The worker of a mill under test: the real one, but that it claims one job when a test asks for it and none otherwise. */
export class SteppedWorker {
  readonly #parts: PartsToStart
  readonly #worker: Worker
  /** Attempts whose end is not written, by the fence of their claim: each claim takes one job. */
  readonly #attempts = new Map<number, Attempt>()
  #claiming: Claiming | undefined
  /** One claim at a time, so that the attempt that begins belongs to it. */
  #lastClaim: Promise<unknown> = Promise.resolve()

  constructor(parts: PartsToStart) {
    this.#parts = parts
    this.#worker = new Worker(
      {
        ...parts,
        executor: this.#watched(parts.executor),
        events: this.#watchedEvents(),
        planClaim: () => this.#plan(),
        // No virtual time passes while a test waits for an attempt.
        inHandMs: 0,
      },
      stepped(parts.options()),
    )
  }

  start(): Promise<void> {
    return this.#worker.start()
  }

  /** What the mill sees of it. It never stops, since that would wait in virtual time; closing the store ends it. */
  get parts(): StartedParts {
    return {
      wake: () => this.#worker.wake(),
      configure: (options) => this.#worker.configure(stepped(options)),
      stop: () => Promise.resolve(),
      abandon: (error) => void this.#worker.abandon(error),
      releasedCount: () => 0,
    }
  }

  get isBusy(): boolean {
    return this.#worker.isBusy
  }

  /** Runs the next job of these queues, or of any, until its end is written; undefined when there is none. */
  async runNext(queues: readonly string[] | undefined): Promise<EndedAttempt | undefined> {
    const claiming = this.#lastClaim.then(() => this.#claimOne(queues))
    this.#lastClaim = claiming.catch(() => undefined) // The caller has the error; the next claim comes all the same.
    return (await claiming)?.ended
  }

  /** Calls the handler of an attempt once more. That attempt is over, so what it enqueues is under no claim. */
  callAgain(attempt: Running): Promise<unknown> {
    const { claimed, registered, options, startedAt, begunAt } = attempt
    const begin = { claimed, registered, options, startedAt, begunAt, heldSince: begunAt, reported: true }
    const parts = this.#parts
    const context = new Running(
      { ...begin, timeoutMs: Infinity, slowAfterMs: Infinity },
      {
        verbs: { ...parts, enqueue: (_, ...given) => parts.enqueue(undefined, ...given) },
        noteProgress: () => undefined,
        logLine: () => undefined,
        settling: {
          settleIn: (_, tx, result) => attempt.settleIn(tx, result),
          transaction: (_, work) => attempt.transaction(work),
        },
      },
    )
    const payload = upcastPayload(registered.upcast, options.version ?? 0, registered.codec.decode(claimed.payload))
    return registered.job.run(payload, context)
  }

  #claimOne(queues: readonly string[] | undefined): Promise<Attempt | undefined> {
    return new Promise<Attempt | undefined>((found, failed) => {
      this.#claiming = { queues, found, failed, isPlanned: false }
      this.#worker.wake()
      // The promise is settled by the first of these: an attempt begins, the claim fails, or the turn ends with neither.
      this.#worker.idle().then(() => found(undefined), failed)
    }).finally(() => (this.#claiming = undefined))
  }

  #plan(): ClaimPlan {
    const claiming = this.#claiming
    if (claiming === undefined || claiming.isPlanned) return NO_CLAIM
    claiming.isPlanned = true
    return { claim: true, max: 1, starting: 1, suspects: 'none', queues: claiming.queues }
  }

  #watchedEvents(): WorkerEvents {
    const { events } = this.#parts
    return {
      ...events,
      began: (job) => {
        events.began(job)
        this.#began(job)
      },
      settled: (job, tookMs, running) => {
        events.settled(job, tookMs, running)
        this.#settled(job, running)
      },
      lost: (what) => {
        events.lost(what)
        if ('id' in what) this.#lost(what.id)
      },
      storeFailed: (what, error) => {
        events.storeFailed(what, error)
        if (what === 'claim') this.#claiming?.failed(error)
        // The worker writes it again later, but virtual time does not pass while a test waits.
        if (what === 'settle') for (const attempt of this.#attempts.values()) attempt.fail(error)
      },
    }
  }

  #began(claimed: ClaimedJob): void {
    let [end, fail]: [Attempt['end'], Attempt['fail']] = [() => undefined, () => undefined]
    const ended = new Promise<EndedAttempt | undefined>((resolve, reject) => ([end, fail] = [resolve, reject]))
    const attempt: Attempt = { claimed, running: undefined, handled: undefined, ended, end, fail }
    this.#attempts.set(claimed.fence, attempt)
    this.#claiming?.found(attempt)
  }

  /** Notes what a handler returns or throws: a test gets the very value, which the store has only in writing. */
  #watched(executor: HandlerExecutor): HandlerExecutor {
    const call: HandlerExecutor['call'] = async (handler, payload, running) => {
      const attempt = this.#attempts.get(running.claimed.fence)
      const note = (handled: Handled): void => {
        // The end of a workflow that did not succeed is in its settlement.
        const isKnown = running.workflow === undefined || running.workflow.ended?.outcome.kind === 'succeeded'
        if (attempt !== undefined) Object.assign(attempt, isKnown ? { handled, running } : { running })
      }
      try {
        const returned: unknown = await executor.call(handler, payload, running)
        note({ threw: false, returned })
        return returned
      } catch (thrown) {
        note({ threw: true, thrown })
        throw thrown
      }
    }
    return { ...executor, call }
  }

  #settled(job: SettledJob, running: Running | undefined): void {
    const attempt = this.#attempts.get(job.fence)
    this.#attempts.delete(job.fence)
    if (attempt === undefined || running === undefined) return attempt?.end(undefined)
    if (job.workflow?.suspended !== undefined)
      return attempt.end({
        running,
        to: job.to,
        threw: false,
        thrown: undefined,
        returned: undefined,
        isSuspended: true,
      })
    const { handled = withoutHandler(running, job) } = attempt
    if (!handled.threw)
      return attempt.end({ running, to: job.to, threw: false, thrown: undefined, returned: handled.returned })
    // An error that is treated as done, or was thrown after the job had settled itself, is not the job's end.
    attempt.end({ running, to: job.to, threw: job.to !== 'done', thrown: handled.thrown, returned: undefined })
  }

  #lost(id: string): void {
    const attempt = [...this.#attempts.values()].find(({ claimed }) => claimed.id === id)
    if (attempt === undefined) return
    this.#attempts.delete(attempt.claimed.fence)
    const { running, handled } = attempt
    attempt.end(
      running === undefined || handled === undefined
        ? undefined
        : {
            running,
            to: undefined,
            threw: handled.threw,
            thrown: handled.threw ? handled.thrown : undefined,
            returned: handled.threw ? undefined : handled.returned,
          },
    )
  }
}

/** Hints alone wake it, its lease has no end and nothing is slow: each of these would make millions of steps of a long advance. */
function stepped(options: WorkerOptions): WorkerOptions {
  return { ...options, queues: new Map(), pollMs: Infinity, leaseMs: Infinity, slowAfterMs: Infinity }
}

/** The attempt ended and its handler did not: it was aborted and stayed away, or could not be called at all. */
function withoutHandler(running: Running, { to, error }: SettledJob): Handled {
  if (to === 'done') return { threw: false, returned: undefined }
  const recorded = error === null ? undefined : new Error((JSON.parse(error) as ErrorRecord).message)
  return { threw: true, thrown: running.abortReason ?? recorded }
}
