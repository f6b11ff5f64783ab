import { describeError } from '../../codec/error-text.js'
import { TimeoutError, StepNestedError } from '../../errors.js'
import type { Registered } from '../../job/definition/registry.js'
import { isThenable } from '../../job/definition/schema.js'
import { formatDuration } from '../../job/duration/duration.js'
import type { Outcome } from '../../job/rules/outcome.js'
import type { ClaimedJob } from '../../store/store.js'
import type { Operation } from '../../workflow/operation.js'
import type { StepContext } from '../../workflow/work.js'
import { attemptInput } from '../attempt/attempt-input.js'
import { classify, failure, succeeded } from '../attempt/run.js'
import { Running } from '../attempt/running.js'
import type { AttemptHost } from '../attempt/running.js'
import type { Alarmed } from '../in-flight/alarms.js'
import type { Indexed } from '../in-flight/indexed-set.js'
import type { InFlightParts } from '../in-flight/in-flight-parts.js'
import { ABORT_GRACE_MS } from '../in-flight/overdue.js'

/** What the steps of one claim have in common: made once for each claim, because there are many steps. */
export interface StepRunParts {
  readonly parts: Pick<InFlightParts, 'world' | 'executor' | 'events'>
  /** The claim of the workflow that the steps belong to. */
  readonly workflow: Running
  readonly registered: Registered
  readonly timeoutMs: number
  readonly slowAfterMs: number
  readonly host: AttemptHost
  /** The step acts: its timeout counts from now. */
  began(step: StepRun): void
  /** Its times were moved. */
  moved(step: StepRun): void
  ended(step: StepRun): void
}

/** One attempt of a step: an attempt like that of a job, with its own signal, lines, timeout and retry policy. */
export class StepRun implements Alarmed, Indexed {
  readonly running: Running
  index = -1
  readonly #parts: StepRunParts
  #ended: ((outcome: Outcome) => void) | undefined

  constructor(parts: StepRunParts, operation: Operation) {
    this.#parts = parts
    this.running = stepRunning(parts, operation)
  }

  get alarmAt(): number {
    return this.running.alarmAt
  }
  get slowAt(): number {
    return this.running.slowAt
  }

  /** The context that the function of the step is given. */
  context(run: number, { address }: Operation): StepContext {
    return new RunningStep(this.running, this.#parts.workflow, `${this.running.id}:${run}:${address}`)
  }

  /**
   * Calls it. `ended` is called once: when it has returned or thrown, or when it has not within the grace after its signal was
   * aborted.
   */
  act(call: () => unknown, ended: (outcome: Outcome) => void): void {
    this.#ended = ended
    this.#parts.began(this)
    try {
      const returned = call()
      if (!isThenable(returned)) return this.#end(succeeded(this.running.registered, returned))
      Promise.resolve(returned).then(
        (value) => this.#end(succeeded(this.running.registered, value)),
        (error: unknown) => this.#end(this.#thrown(error)),
      )
    } catch (error) {
      this.#end(this.#thrown(error))
    }
  }

  abort(reason: unknown): void {
    if (this.running.abortReason !== undefined) return
    this.running.abort(reason)
    this.running.alarmAt = this.#parts.parts.world.clock.monotonic() + ABORT_GRACE_MS
    this.#parts.moved(this)
  }

  /** One of its times has come. */
  due(now: number): void {
    const { running } = this
    const { slowAt, alarmAt, begunAt, abortReason, job, id } = running
    if (slowAt <= now) {
      this.#parts.parts.events.slow(running, now - begunAt)
      running.slowAt = now + this.#parts.slowAfterMs
    }
    if (alarmAt > now) return
    if (abortReason !== undefined) return this.#end(this.#unreturned(abortReason))
    const timeout = formatDuration(alarmAt - begunAt)
    this.abort(new TimeoutError(`a step of ${job} ${id} ran longer than its timeout (${timeout})`))
  }

  #thrown(error: unknown): Outcome {
    // The code of the step is wrong: another attempt would fail in the same way.
    if (error instanceof StepNestedError) return { kind: 'aborted', error: describeError(error) }
    return classify(attemptInput(this.running, this.#parts.parts), error)
  }

  #end(outcome: Outcome): void {
    const ended = this.#ended
    if (ended === undefined) return
    this.#ended = undefined
    this.#parts.ended(this)
    ended(outcome)
  }

  /** Whether a step acted that does not return is not known, unless its own timeout ended it. */
  #unreturned(reason: unknown): Outcome {
    if (reason instanceof TimeoutError) return failure(attemptInput(this.running, this.#parts.parts), reason)
    return { kind: 'cancelled', error: null, reason: String(reason) }
  }
}

/** Its functions may be called apart from it. A class, because a literal with a getter is slow to make. */
class RunningStep implements StepContext {
  readonly id: string
  readonly workflow: string
  readonly attempt: number
  readonly log: StepContext['log']
  readonly progress: StepContext['progress']
  readonly enqueue: StepContext['enqueue']
  readonly #running: Running

  constructor(running: Running, workflow: Running, id: string) {
    this.id = id
    this.workflow = running.id
    this.attempt = running.attempt
    this.log = (...parts) => {
      running.log(...parts)
      workflow.noteStep(running)
    }
    // The progress that is shown is that of the workflow.
    this.progress = (done, total) => workflow.progress(done, total)
    this.enqueue = ((...args: Parameters<Running['enqueue']>) => running.enqueue(...args)) as StepContext['enqueue']
    this.#running = running
  }

  get signal(): AbortSignal {
    return this.#running.signal
  }
}

function stepRunning(parts: StepRunParts, { deed, attempt, name }: Operation): Running {
  const { workflow, registered, host } = parts
  const { options, claimed } = workflow
  const [retry, timeoutMs] = deed.kind === 'step' ? [deed.retry, deed.timeoutMs] : [undefined, undefined]
  const now = parts.parts.world.clock.monotonic()
  const made = new Running(
    {
      claimed: claimedAt(claimed, attempt),
      registered,
      options: options.retry === retry ? options : { ...options, retry },
      startedAt: Math.round(workflow.startedAt + (now - workflow.begunAt)),
      begunAt: now,
      heldSince: now,
      timeoutMs: timeoutMs ?? parts.timeoutMs,
      slowAfterMs: parts.slowAfterMs,
      reported: true,
    },
    host,
  )
  // Until it logs something, a slow step is shown by its name.
  made.lastActivity = `step: ${name}`
  return made
}

/** The claim with the attempts of a step, which are its own. */
function claimedAt(claimed: ClaimedJob, attempt: number): ClaimedJob {
  if (claimed.attempt === attempt && claimed.retries === attempt) return claimed
  return { ...claimed, attempt, retries: attempt }
}

/** A workflow's definition as that of its steps. */
export function registeredSteps(registered: Registered, { options }: Running): Registered {
  const retryLevels = options.retry === undefined ? registered.retryLevels : [options.retry, ...registered.retryLevels]
  // An error of a step that counts as success is caught in the body, not by an option of a category.
  return { ...registered, retryLevels, workflow: undefined, treatAsDone: undefined }
}
