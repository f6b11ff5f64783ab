import { describeError } from '../../codec/error-text.js'
import { TimeoutError, StepNestedError } from '../../errors.js'
import { formatDuration } from '../../job/duration/duration.js'
import type { Outcome } from '../../job/rules/outcome.js'
import type { Cancel } from '../../world/timers.js'
import type { Operation } from '../../workflow/operation.js'
import type { StepContext } from '../../workflow/work.js'
import { attemptInput } from '../attempt/attempt-input.js'
import { classify, failure, succeeded } from '../attempt/run.js'
import type { Attempt } from '../attempt/run.js'
import { Running } from '../attempt/running.js'
import type { AttemptHost, JobVerbs } from '../attempt/running.js'
import type { InFlightParts } from '../in-flight/in-flight-parts.js'
import { ABORT_GRACE_MS } from '../in-flight/overdue.js'

export interface StepRunParts {
  readonly parts: Pick<InFlightParts, 'world' | 'executor' | 'events'>
  readonly verbs: JobVerbs
  /** The claim of the workflow that the step belongs to. */
  readonly workflow: Running
  readonly slowAfterMs: number
  logLine: AttemptHost['logLine']
}

/** One attempt of a step: an attempt like that of a job, with its own signal, lines, timeout and retry policy. */
export class StepRun {
  readonly running: Running
  readonly #parts: StepRunParts
  readonly #attempt: Attempt
  readonly #timers: Cancel[] = []
  #resolve: (outcome: Outcome) => void = () => undefined

  constructor(parts: StepRunParts, operation: Operation) {
    this.#parts = parts
    this.running = stepRunning(parts, operation)
    this.#attempt = attemptInput(this.running, parts.parts)
  }

  /** The context that the function of the step is given. */
  context(run: number, { address }: Operation): StepContext {
    const { running } = this
    return {
      id: `${running.id}:${run}:${address}`,
      workflow: running.id,
      attempt: running.attempt,
      get signal() {
        return running.signal
      },
      log: (...parts) => running.log(...parts),
      // The progress that is shown is that of the workflow.
      progress: (done, total) => this.#parts.workflow.progress(done, total),
      enqueue: ((...args: Parameters<Running['enqueue']>) => running.enqueue(...args)) as StepContext['enqueue'],
    }
  }

  /** Calls it. Resolves when it has returned or thrown, or when it has not within the grace after its signal was aborted. */
  act(call: () => unknown): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.#watch()
      void this.#outcome(call).then((outcome) => this.#end(outcome))
    })
  }

  abort(reason: unknown): void {
    if (this.running.abortReason !== undefined) return
    this.running.abort(reason)
    this.#after(ABORT_GRACE_MS, () => this.#end(this.#unreturned(reason)))
  }

  /** The outcome of an error, by the policy of the step. */
  classify(error: unknown): Outcome {
    return classify(this.#attempt, error)
  }

  async #outcome(call: () => unknown): Promise<Outcome> {
    try {
      return succeeded(this.running.registered, await call())
    } catch (error) {
      // The code of the step is wrong: another attempt would fail in the same way.
      if (error instanceof StepNestedError) return { kind: 'aborted', error: describeError(error) }
      return classify(this.#attempt, error)
    }
  }

  #end(outcome: Outcome): void {
    for (const cancel of this.#timers.splice(0)) cancel()
    this.#resolve(outcome)
  }

  /** Whether a step acted that does not return is not known, unless its own timeout ended it. */
  #unreturned(reason: unknown): Outcome {
    if (reason instanceof TimeoutError) return failure(this.#attempt, reason)
    return { kind: 'cancelled', error: null, reason: String(reason) }
  }

  #watch(): void {
    const { alarmAt, slowAt, begunAt, job, id } = this.running
    const timeoutMs = alarmAt - begunAt
    if (timeoutMs !== Infinity)
      this.#after(timeoutMs, () =>
        this.abort(
          new TimeoutError(`a step of ${job} ${id} ran longer than its timeout (${formatDuration(timeoutMs)})`),
        ),
      )
    if (slowAt !== Infinity) this.#watchSlow(slowAt - begunAt)
  }

  #watchSlow(everyMs: number): void {
    this.#after(everyMs, () => {
      const { parts } = this.#parts
      parts.events.slow(this.running, parts.world.clock.monotonic() - this.running.begunAt)
      this.#watchSlow(everyMs)
    })
  }

  #after(ms: number, callback: () => void): void {
    this.#timers.push(this.#parts.parts.world.timers.after(ms, callback, { idle: true }))
  }
}

function stepRunning(parts: StepRunParts, { deed, attempt, name }: Operation): Running {
  const { workflow, verbs } = parts
  const { registered, options, claimed } = workflow
  const [retry, timeoutMs] = deed.kind === 'step' ? [deed.retry, deed.timeoutMs] : [undefined, undefined]
  const levels = options.retry === undefined ? registered.retryLevels : [options.retry, ...registered.retryLevels]
  const ownTimeout = options.timeout === undefined ? registered.timeoutMs : (options.timeout ?? Infinity)
  const now = parts.parts.world.clock.monotonic()
  const made = new Running(
    {
      claimed: { ...claimed, attempt, retries: attempt },
      // An error of a step that counts as success is caught in the body, not by an option of a category.
      registered: { ...registered, retryLevels: levels, workflow: undefined, treatAsDone: undefined },
      options: { ...options, retry },
      startedAt: Math.round(workflow.startedAt + (now - workflow.begunAt)),
      begunAt: now,
      heldSince: now,
      timeoutMs: timeoutMs ?? ownTimeout,
      slowAfterMs: parts.slowAfterMs,
      reported: true,
    },
    {
      verbs,
      noteProgress: () => undefined,
      logLine: parts.logLine,
      settling: {
        settleIn: () => Promise.reject(new Error('a step has no settleIn; use w.transaction')),
        transaction: () => Promise.reject(new Error('a step has no transaction; use w.transaction')),
      },
    },
  )
  // Until it logs something, a slow step is shown by its name.
  made.lastActivity = `step: ${name}`
  return made
}
