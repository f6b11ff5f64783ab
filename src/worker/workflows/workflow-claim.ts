import { describeError } from '../../codec/error-text.js'
import { LeaseLostError, OutcomeUnknownError } from '../../errors.js'
import { readLogged } from '../../job/attempt/log-text.js'
import type { Handler } from '../../job/definition/define.js'
import { checkPayload } from '../../job/definition/schema.js'
import type { AnyEvent, WorkflowRules } from '../../job/definition/workflow-options.js'
import type { Encoded, Outcome } from '../../job/rules/outcome.js'
import type { ActingSteps } from '../../job/workflow-record.js'
import { hasCrashed } from '../../job/rules/quarantine.js'
import type { NewStep } from '../../store/sequences.js'
import type { ClaimedJob, SettledJob } from '../../store/store.js'
import type { InboxRow, OwnedClaim } from '../../store/workflows.js'
import type { Timers } from '../../world/timers.js'
import { Driver } from '../../workflow/driver.js'
import type { DriverHost, Draining, EventRead, LogRead, LogWrite, RunEnd, Warning } from '../../workflow/host.js'
import type { Operation } from '../../workflow/operation.js'
import type { PreparedChild, Running, RunningWorkflow } from '../attempt/running.js'
import { succeeded } from '../attempt/run.js'
import { endedRun } from './run-end.js'
import type { EndedRun } from './run-end.js'
import { StepRun } from './step-run.js'
import type { StepRunParts } from './step-run.js'
import type { KeptRun } from './sticky-runs.js'
import type { WorkflowRuns } from './workflow-runs.js'

/** A step that has acted for this long is reported. Most steps end before that, and cost no report. */
const ACTING_AFTER_MS = 1_000
/** The characters of a line that a row keeps. */
const LOG_LINE_MAX = 2_000

/** One call of `drive`. */
interface Driven {
  readonly body: Handler<unknown, unknown>
  readonly input: unknown
  readonly kept: KeptRun | undefined
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * A claimed workflow: the host of its driver. The claim's attempt (`Running`) is aborted when the claim is lost or the
 * worker's deadline has passed; a cancel comes by the inbox and is the driver's.
 */
export class WorkflowClaim implements RunningWorkflow, DriverHost {
  readonly timers: Timers
  readonly #runs: WorkflowRuns
  readonly #running: Running
  readonly #acts = new Map<string, StepRun>()
  #driver: Driver | undefined
  #run = 0
  #isPausing = false
  #isOver = false
  #takes = 0
  readonly #claim: OwnedClaim
  readonly #isOverNow = (): boolean => this.#isOver
  #stepParts: StepRunParts | undefined
  /** What was read last may be outdated. */
  #isReadDue = false
  hasProgressed = false
  ended: EndedRun | undefined

  constructor(runs: WorkflowRuns, running: Running) {
    this.#runs = runs
    this.#running = running
    this.#claim = ownedClaim(running.claimed)
    this.timers = runs.parts.world.timers
  }

  /** By callbacks: there are thousands of claims a second, and each promise costs as much as a turn. */
  drive(body: Handler<unknown, unknown>, input: unknown): Promise<unknown> {
    this.#runs.began()
    return new Promise((resolve, reject) => {
      const driven: Driven = {
        body,
        input,
        kept: this.#runs.sticky.take(this.#running.claimed.id),
        resolve: (value) => {
          this.#runs.ended()
          resolve(value)
        },
        reject: (error) => {
          this.#runs.ended()
          reject(error as Error)
        },
      }
      if (driven.kept !== undefined) this.#read(driven, driven.kept.fence)
      else this.#runs.unbegun.logOf(this.#running.claimed, (log) => this.#begin(driven, log))
    })
  }

  #begin(driven: Driven, unbegun: LogRead | undefined): void {
    if (this.#isOver) driven.resolve(this.#lost())
    else if (unbegun === undefined) this.#read(driven, null)
    else this.#drive(driven, unbegun)
  }

  #read(driven: Driven, keptFence: number | null): void {
    this.#runs.logs.read({ ...this.#claim, keptFence }, this.#isOverNow, (log) => {
      // While it was frozen the body went on after something that is not of `w`: it is run again from its log.
      if (driven.kept?.driver.isSpoiled === true && log?.rows === undefined && keptFence !== null)
        return this.#read(driven, null)
      if (log === undefined) return driven.resolve(this.#lost())
      this.#drive(driven, log)
    })
  }

  #drive({ body, input, kept, resolve, reject }: Driven, log: LogRead): void {
    try {
      const driver = (log.rows === undefined ? kept?.driver : undefined) ?? this.#newDriver(body, input)
      this.#driver = driver
      this.#run = log.run
      driver.start(this, log, { resolve: (end) => resolve(this.#ended(driver, end)), reject })
    } catch (error) {
      reject(error)
    }
  }

  #ended(driver: Driver, end: RunEnd): unknown {
    if (end.kind === 'lost' || this.#isOver) return this.#lost()
    const { claimed } = this.#running
    this.ended = endedRun(end, this.#running, this.#run)
    if (end.kind === 'suspended' || end.kind === 'yielded') this.#runs.sticky.keep(claimed.id, driver, claimed.fence)
    return end.kind === 'done' ? end.value : undefined
  }

  get acting(): ActingSteps | undefined {
    const since = this.#runs.parts.world.clock.monotonic() - ACTING_AFTER_MS
    const steps = [...this.#acts].flatMap(([address, { running }]) =>
      running.begunAt > since ? [] : [{ address, attempt: running.attempt, startedAt: running.startedAt }],
    )
    return steps.length === 0 ? undefined : { run: this.#run, answers: this.#driver?.answers ?? 0, steps }
  }

  get isPausing(): boolean {
    return this.#isPausing
  }

  pause(isRequested: boolean): void {
    if (isRequested === this.#isPausing) return
    this.#isPausing = isRequested
    this.wake()
  }

  wake(): void {
    this.#driver?.wake()
  }

  /** Counts the appends that take rows of the inbox: odd while one is under way. A read belongs to the count at its start. */
  get takes(): number {
    return this.#takes
  }

  /** A read that a taking append overlaps may show a row that is taken: it is read again, or the row would be taken twice. */
  receive(inbox: readonly InboxRow[], takes: number): void {
    if (this.#isOver) return
    if (takes === this.#takes && takes % 2 === 0) return this.#driver?.receive(inbox)
    this.#isReadDue = true
    if (this.#takes % 2 === 0) this.#readAgain()
  }

  freeze(): void {
    this.#isOver = true
    this.#driver?.lose()
  }

  /* The host of the driver */

  now(): number {
    return this.#runs.now()
  }

  append(write: LogWrite, done: Parameters<DriverHost['append']>[1]): void {
    const { ref, fence, id, name, key } = this.#running.claimed
    const { rows, taken, children, cancelled } = write
    const hasAnswer = rows.some(({ no }) => no !== null)
    const endsStreak = hasAnswer && !this.hasProgressed && hasCrashed(this.#running.claimed)
    const isTaking = taken.length > 0
    if (isTaking) this.#takes += 1
    // Every field is named: a spread takes ten times as long, and there is one for each step.
    const append = { ref, fence, id, name, key, run: this.#run, rows, taken, children, cancelled, endsStreak }
    this.#runs.logs.append(append, this.#isOverNow, (appended) => {
      if (isTaking) this.#takes += 1
      if (this.#isReadDue) this.#readAgain()
      const isHeld = appended?.held === true
      if (isHeld && hasAnswer && appended.error === undefined) this.hasProgressed = true
      done(isHeld ? appended.children : undefined, isHeld ? appended.error : undefined)
    })
  }

  /** After the driver has removed what its append has taken. */
  #readAgain(): void {
    this.#isReadDue = false
    this.timers.soon(() => void this.#readNow())
  }

  async #readNow(): Promise<void> {
    const takes = this.#takes
    const inbox = await this.readInbox()
    if (inbox !== undefined) this.receive(inbox, takes)
  }

  async readInbox(): Promise<readonly InboxRow[] | undefined> {
    try {
      return (await this.#runs.parts.store.leases.readInboxes([this.#claim]))[0]?.inbox
    } catch (error) {
      this.#runs.parts.events.storeFailed('read the inbox of a workflow', error)
      return undefined
    }
  }

  act(operation: Operation, ended: (outcome: Outcome) => void): void {
    const { deed } = operation
    const step = this.#beginStep(operation)
    step.act(
      () => {
        if (deed.kind === 'results') return this.#runs.parts.results(this.#running.id, deed.parent)
        if (deed.kind !== 'step') throw new Error(`${deed.kind} does not act`)
        return this.#runs.callStep(deed.act, step.context(this.#run, operation))
      },
      (outcome) => {
        this.#stepEnded(operation, step)
        ended(outcome)
      },
    )
  }

  transact(operation: Operation, record: (outcome: Outcome) => NewStep): Promise<Outcome> {
    const step = this.#beginStep(operation)
    let recorded: Outcome | undefined
    const settle = (returned: unknown): SettledJob => {
      recorded = succeeded(this.#running.registered, returned)
      const settled = this.#runs.settlement(this.#running, recorded)
      const endsStreak = !this.hasProgressed && hasCrashed(this.#running.claimed)
      return { ...settled, step: record(recorded), claimGoesOn: true, endsStreak }
    }
    return new Promise((ended) =>
      step.act(
        () => this.#transaction(step, operation, settle),
        (outcome) => {
          this.#stepEnded(operation, step)
          const isRecorded = outcome.kind === 'succeeded' && recorded !== undefined
          if (isRecorded) this.hasProgressed = true
          ended(isRecorded ? (recorded as Outcome) : outcome)
        },
      ),
    )
  }

  abort(operation: Operation, reason: Error): void {
    this.#acts.get(operation.address)?.abort(reason)
  }

  prepareChild(deed: Extract<Operation['deed'], { kind: 'call' | 'enqueue' }>): Promise<PreparedChild> {
    const { id, options } = this.#running
    const calledBy = { id, depth: (options.calledBy?.depth ?? 0) + 1 }
    return this.#runs.parts.prepareChild(deed.job, deed.payload, deed.options, calledBy)
  }

  prepareInput(input: unknown): Promise<Encoded> {
    return this.#runs.parts.prepareInput(this.#running.registered, input)
  }

  async readEvent(event: AnyEvent, payload: Encoded | null): Promise<EventRead> {
    try {
      const decoded = payload === null ? undefined : this.#running.registered.codec.decode(payload)
      const checked = await checkPayload({ input: event.schema }, decoded)
      if (checked.ok) return { ok: true, payload: checked.value }
      const problems = checked.problems.map(({ path, message }) => `${path} ${message}`).join('; ')
      const message = `an event ${JSON.stringify(event.name)} no longer fits: ${problems}`
      return { ok: false, error: { name: 'InvalidPayloadError', message, code: 'E_INVALID_PAYLOAD' } }
    } catch (error) {
      return { ok: false, error: describeError(error) }
    }
  }

  codecOf(jobName: string) {
    return this.#runs.parts.registry.codecOf(jobName)
  }

  isInsideStep(): boolean {
    return this.#runs.isInsideStep()
  }

  draining(): Draining | undefined {
    return this.#runs.isClosed()
      ? 'stop'
      : this.#isPausing
        ? 'pause'
        : this.#runs.yields(this.#running)
          ? 'yield'
          : undefined
  }

  logLine(parts: readonly unknown[]): string {
    const logged = readLogged(parts)
    this.#runs.logLine(this.#running, logged)
    return logged.line.slice(0, LOG_LINE_MAX)
  }

  progress(done: number, total: number | undefined): void {
    this.#running.progress(done, total)
  }

  warn(warning: Warning): void {
    this.#runs.warn(this.#running, warning)
  }

  /* Steps */

  #beginStep(operation: Operation): StepRun {
    this.#stepParts ??= this.#runs.stepParts(this.#running)
    const step = new StepRun(this.#stepParts, operation)
    this.#acts.set(operation.address, step)
    const { abortReason } = this.#running
    if (abortReason !== undefined) step.abort(abortReason)
    return step
  }

  #stepEnded(operation: Operation, { running: { lines } }: StepRun): void {
    this.#acts.delete(operation.address)
    if (lines !== undefined) operation.note = { ...operation.note, log: [...(operation.note.log ?? []), ...lines] }
  }

  /** Whether a transaction whose reply was lost has committed is asked for; if that is not known, only the log knows. */
  async #transaction(step: StepRun, { deed }: Operation, settle: (returned: unknown) => SettledJob): Promise<unknown> {
    if (deed.kind !== 'tx') throw new Error(`${deed.kind} is no transaction`)
    const { store } = this.#runs.parts
    const work = (tx: unknown): unknown => this.#runs.callStep(deed.work, tx)
    try {
      return await store.transactions.transact({
        claim: this.#running.claimed,
        work,
        settle,
        stopped: () => step.running.abortReason,
      })
    } catch (error) {
      if (error instanceof LeaseLostError) this.freeze()
      if (!(error instanceof OutcomeUnknownError)) throw error
      return await error.retry().catch((unknown: unknown) => {
        this.freeze()
        throw unknown
      })
    }
  }

  /** The claim is lost, or the worker's deadline has passed: nothing that acts is recorded from here on. */
  aborted(): void {
    const reason = this.#running.abortReason
    for (const step of this.#acts.values()) step.abort(reason)
    if (reason instanceof LeaseLostError) this.freeze()
  }

  #lost(): undefined {
    const { id, job } = this.#running
    this.#isOver = true
    this.#running.abort(new LeaseLostError(`workflow ${job} ${id}`))
    this.ended = { outcome: { kind: 'released' }, written: undefined }
    return undefined
  }

  #newDriver(body: Handler<unknown, unknown>, input: unknown): Driver {
    const { id, job, registered, options } = this.#running
    const rules = registered.workflow as WorkflowRules
    const workflow = {
      id,
      name: job,
      depth: options.calledBy?.depth ?? 0,
      body: body as (input: unknown, w: never) => unknown,
      input,
      rules,
      isStrict: rules.strict ?? this.#runs.isStrict(),
      inHandMs: this.#runs.inHandMs,
      codec: registered.codec,
    }
    return new Driver(workflow, this)
  }
}

function ownedClaim({ ref, fence, id, name, key }: ClaimedJob): OwnedClaim {
  return { ref, fence, id, name, key }
}
