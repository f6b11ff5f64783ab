import { describeError } from '../codec/error-text.js'
import {
  CallDepthError,
  ForeignAwaitError,
  JobCancelledError,
  LeaseLostError,
  RestartUnusedError,
  TimeoutError,
  WorkflowOverError,
} from '../errors.js'
import { isSnooze } from '../job/attempt/control-errors.js'
import { formatDuration } from '../job/duration/duration.js'
import type { Outcome } from '../job/rules/outcome.js'
import type { NewStep } from '../store/sequences.js'
import type { InboxRow, StepRow } from '../store/workflows.js'
import { difference } from './drift.js'
import type { DriverHost, Draining, LogRead, LogRest, LogWrite, RunEnd, Workflow } from './host.js'
import {
  actedAnswer,
  asStored,
  bytesOf,
  calledAnswer,
  CANCEL,
  DEADLINE,
  errorOf,
  readNote,
  rowOf,
  UNWOUND,
  unwoundRow,
  valueOf,
  writeNote,
} from './log-row.js'
import type { LogNote } from './log-row.js'
import { acts, makeOperation } from './operation.js'
import type { Deed, Operation } from './operation.js'
import { Scope, SCOPES_MAX } from './scope.js'
import { Signal } from './signal.js'
import { earliest, nextFound, waitsOf } from './waits.js'
import type { Found } from './waits.js'
import { WorkVerbs } from './verbs.js'
import type { RestartRequest } from './verbs.js'

/*
 * The driver runs the body of one workflow. It calls no clock and writes nothing itself: the worker that holds the claim is
 * its host.
 *
 * One answer a turn. An answer is written to the log with the next number before it is given, and answers are given one by
 * one in the order of their numbers: live and on replay by the same code. Two immediates are queued together, the first
 * gives the answer, the second closes the turn, so that between them run only microtasks. The operations that the body
 * calls are therefore a function of the sequence of answers: native `Promise.race`, shared variables and equal names in
 * concurrent branches replay as they ran.
 *
 *     claim ─► replay: a recorded answer a turn ─► live: begin what was called, act, append, a turn for each answer
 *                 │                                   │
 *                 └─► drifted: recorded and not called └─► suspended: all that is pending waits, and nothing acts
 *
 * A run that is suspended or whose claim is lost is frozen: its promises never settle, and no error is thrown into the body.
 */

/** On replay, how long the body may take to call a row that followed something that is not of `w`. */
const FOREIGN_WAIT_MS = 30_000
/** A run that waits for nothing of `w` gets a warning after this time. */
const SILENT_MS = 10_000
/** The most bytes of the answers of a run. */
const LOG_MAX_BYTES = 64 * 1024 * 1024
/** Calls within calls. */
const CALL_DEPTH_MAX = 32

export class Driver {
  readonly workflow: Workflow
  readonly #root = new Scope('')
  readonly #signal: Signal
  #host: DriverHost
  #run = 0
  #isStarted = false
  #isFrozen = true
  /** The body called a verb while the run was frozen, which never settles: only a replay can go on. */
  #isSpoiled = false
  #isLost = false
  #inTurn = false
  #ended: { readonly value: unknown } | { readonly error: unknown } | undefined
  /** Answers that are written and not given, in order. */
  #recorded: StepRow[] = []
  /** Open rows whose operations have not been called yet. */
  readonly #uncalled = new Map<string, StepRow>()
  /** Operations that are not settled, in the order of their calls. */
  readonly #pending = new Map<string, Operation>()
  /** The addresses of operations that were rejected without an answer. */
  readonly #rejected = new Set<string>()
  /** Rejected operations whose open rows are to be closed. */
  readonly #unwound = new Set<Operation>()
  #inbox: InboxRow[] = []
  #inboxAt = -Infinity
  #nextNo = 0
  #nextNoAtClaim = 0
  #lastNo = -1
  #given = 0
  #bytes = 0
  #calls = 0
  #turns = 0
  /** The pending operations of each name, and the turn of the last call of it. */
  readonly #names = new Map<string, { readonly count: number; readonly turn: number }>()
  #beganAt = 0
  #givenAt = 0
  #deadlineAt: number | null = null
  #unwindBy = Infinity
  readonly #versions = new Map<string, number>()
  /** What the next row carries beside its own note. */
  #nextNote: LogNote = {}
  /** The transaction that acts: its row has the next number, so no other answer is written meanwhile. */
  #transacting: Operation | undefined
  #fullBecause: string | undefined
  #silentSince: number | undefined
  #isSilenceReported = false
  readonly #errorNumbers = new WeakMap<object, number>()
  #cancelNo: number | undefined
  #cancelReason: string | undefined
  #restart: RestartRequest | undefined

  constructor(workflow: Workflow, host: DriverHost) {
    this.workflow = workflow
    this.#host = host
    this.#signal = new Signal(host.timers)
  }

  get run(): number {
    return this.#run
  }
  /** Whether a kept run can go on. */
  get isSpoiled(): boolean {
    return this.#isSpoiled
  }
  get steps(): number {
    return this.#given
  }
  /** The answers that are recorded, and those that a retry has forgotten. */
  get answers(): number {
    return this.#nextNo
  }
  get host(): DriverHost {
    return this.#host
  }
  get rootScope(): Scope {
    return this.#root
  }
  /** The store's time of the answer last given. */
  get givenAt(): number {
    return this.#givenAt
  }
  /** Everything recorded has been given and called: what the body does now, it does for the first time. */
  get isLive(): boolean {
    return this.#recorded.length === 0 && this.#uncalled.size === 0
  }

  /** Drives the run until it ends for this claim. A run that was kept goes on where it was frozen. */
  async drive(host: DriverHost, log: LogRead): Promise<RunEnd> {
    this.#host = host
    this.#isFrozen = false
    this.#signal.timers = host.timers
    this.#deadlineAt = log.deadlineAt ?? this.#deadlineAt
    this.receive(log.inbox)
    if (log.rows !== undefined) this.#load(log, log.rows)
    this.#nextNoAtClaim = this.#nextNo
    const end = await this.#pump()
    this.#isFrozen = true
    if (end.kind === 'lost') for (const each of this.#pending.values()) this.#abortAct(each, lostError(this.workflow))
    return end
  }

  /** Something that the host knows may have changed: a stop, a pause, the time. */
  wake(): void {
    this.#signal.raise()
  }

  /** The rows of the inbox that are not taken. */
  receive(inbox: readonly InboxRow[]): void {
    this.#inbox = [...inbox]
    this.#inboxAt = this.#host.now()
    this.#signal.raise()
  }

  /** The claim is lost: the run is frozen and never unwound. */
  lose(): void {
    this.#isLost = true
    this.#signal.raise()
  }

  /** Calls a verb: the operation is pending until its answer is given. */
  call(verb: string, scope: Scope, name: string, deed: Deed, key?: string): Promise<unknown> {
    const refused = this.refusal(verb, scope)
    if (refused !== undefined) return refused
    const address = scope.next(deed.kind, name, key)
    const isForeign = !this.#inTurn
    if (isForeign && this.workflow.isStrict) return rejected(new ForeignAwaitError(`w.${verb}() at ${address}`))
    this.#calls += 1
    const operation = makeOperation({ address, name, scope, deed, order: this.#calls, since: this.#lastNo + 1 })
    this.#noteCall(operation, isForeign)
    this.#match(operation)
    this.#pending.set(address, operation)
    if (isForeign) this.#signal.raise()
    return operation.promise
  }

  /** Why a verb cannot be called here and now: a promise that rejects, or that never settles on a frozen run. */
  refusal(verb: string, scope: Scope): Promise<never> | undefined {
    if (this.#ended !== undefined) return rejected(new WorkflowOverError(verb, this.workflow.id))
    if (this.#isFrozen) {
      this.#isSpoiled = true
      this.#host.warn({ kind: 'foreign-await', address: `w.${verb}() on a suspended run` })
      return new Promise(() => undefined)
    }
    if (scope.depth > SCOPES_MAX) {
      this.#fullBecause = `scopes within scopes are limited to ${SCOPES_MAX}`
      return new Promise(() => undefined)
    }
    const reason = scope.abortReason
    return reason === undefined ? undefined : rejected(reason)
  }

  /** The same for a verb that answers at once: it throws, and on a frozen run it answers. */
  refuseOver(verb: string): void {
    if (this.#ended !== undefined) throw new WorkflowOverError(verb, this.workflow.id)
  }

  /** A branch lost or failed with a sibling: its verbs reject from now on, in this turn. */
  abort(scope: Scope, reason: Error): void {
    scope.abort(reason)
    for (const operation of this.#pending.values()) if (operation.scope.isUnder(scope)) this.#reject(operation, reason)
  }

  version(id: string, latest: number): number {
    const known = this.#versions.get(id)
    if (known !== undefined) return known
    const version = this.isLive ? latest : 0
    this.#versions.set(id, version)
    this.#nextNote = { ...this.#nextNote, versions: { ...this.#nextNote.versions, [id]: version } }
    return version
  }

  log(parts: readonly unknown[]): void {
    if (!this.isLive || this.#isFrozen || this.#ended !== undefined) return
    const line = this.#host.logLine(parts)
    this.#nextNote = { ...this.#nextNote, log: addLine(this.#nextNote.log, line) }
  }

  progress(done: number, total: number | undefined): void {
    if (this.isLive && !this.#isFrozen && this.#ended === undefined) this.#host.progress(done, total)
  }

  requestRestart(request: RestartRequest): void {
    this.#restart = request
  }

  /* What was called */

  #noteCall(operation: Operation, isForeign: boolean): void {
    this.#silentSince = undefined
    const warnings: string[] = []
    if (isForeign) warnings.push('foreign-await')
    const same = this.#names.get(withoutNumber(operation.address))
    if (same !== undefined && same.turn !== this.#turns) warnings.push('same-name')
    this.#names.set(withoutNumber(operation.address), { count: (same?.count ?? 0) + 1, turn: this.#turns })
    if (warnings.length === 0) return
    operation.note = { ...(isForeign ? { foreign: true } : {}), warnings }
    for (const kind of warnings)
      this.#host.warn({ kind: kind as 'foreign-await' | 'same-name', address: operation.address })
  }

  /** An operation that has an open row goes on where that row says. */
  #match(operation: Operation): void {
    const row = this.#uncalled.get(operation.address)
    if (row === undefined) return
    this.#uncalled.delete(operation.address)
    const note = readNote(row.note)
    const { until: before, log: _log, ...kept } = note
    operation.note = { ...kept, ...operation.note, log: note.log }
    operation.attempt = row.attempt
    operation.lastError = row.error
    operation.calledAt = row.startedAt
    operation.openAs = row.kind
    operation.until = row.until ?? before ?? null
    if (note.child !== undefined) operation.child = { id: note.child, isOld: note.isOld === true }
    operation.state = acts(operation) ? 'retrying' : operation.kind === 'enqueue' ? 'called' : 'waiting'
    // A branch that had ended goes on, because a retry forgot its end.
    if (row.kind === UNWOUND) operation.isRowDue = true
  }

  #load({ run, nextNo = 0, retriedAt = null }: LogRead, rows: readonly StepRow[]): void {
    this.#run = run
    this.#nextNo = nextNo
    const now = this.#host.now()
    this.#beganAt = now
    for (const row of rows) {
      const note = readNote(row.note)
      if (note.beganAt !== undefined) this.#beganAt = note.beganAt
      for (const [id, version] of Object.entries(note.versions ?? {})) this.#versions.set(id, version)
      if (row.no === null) this.#uncalled.set(row.address, row)
      else {
        this.#recorded.push(row)
        this.#nextNo = Math.max(this.#nextNo, row.no + 1)
        this.#bytes += bytesOf(row)
      }
    }
    if (rows.length === 0) this.#nextNote = { beganAt: now }
    this.#givenAt = this.#beganAt
    const { deadlineMs } = this.workflow.rules
    if (deadlineMs === undefined) return
    this.#deadlineAt ??= this.#beganAt + deadlineMs
    // A workflow that was overdue and is retried has its whole time again.
    if (retriedAt !== null && this.#deadlineAt <= retriedAt) this.#deadlineAt = retriedAt + deadlineMs
  }

  /* Turns */

  async #pump(): Promise<RunEnd> {
    if (!this.#isStarted) {
      this.#isStarted = true
      await this.#turn(() => this.#begin())
    }
    for (;;) {
      if (this.#isLost) return { kind: 'lost' }
      const end = await this.#round()
      if (end !== undefined) return this.#isLost ? { kind: 'lost' } : end
    }
  }

  #round(): Promise<RunEnd | undefined> {
    if (this.#ended !== undefined) return this.#finish(this.#ended)
    if (this.#fullBecause !== undefined) return this.#whenIdle({ kind: 'full', why: this.#fullBecause })
    if (this.#recorded.length > 0) return this.#giveNext()
    if (this.#uncalled.size > 0) return this.#awaitCalls([...this.#uncalled.values()])
    return this.#live()
  }

  /** Two immediates are queued together: between them run only microtasks, so nothing else can come into the turn. */
  #turn(give: () => void): Promise<void> {
    const { timers } = this.#host
    return new Promise((closed) => {
      timers.soon(() => {
        this.#inTurn = true
        this.#turns += 1
        give()
      })
      timers.soon(() => {
        this.#inTurn = false
        closed()
      })
    })
  }

  #begin(): void {
    const { body, input } = this.workflow
    const end = (ended: NonNullable<Driver['endedWith']>): void => {
      this.#ended = ended
      this.#signal.raise()
    }
    new Promise((returned) => returned(body(input, new WorkVerbs(this, this.#root) as never))).then(
      (value) => end({ value }),
      (error: unknown) => end({ error }),
    )
  }

  /** How the body ended. */
  get endedWith(): { readonly value: unknown } | { readonly error: unknown } | undefined {
    return this.#ended
  }

  /** Gives the first recorded answer whose operation has been called. */
  async #giveNext(): Promise<RunEnd | undefined> {
    // A branch that ended outside a turn may have rejected an operation whose answer was being written.
    if (this.#rejected.size > 0) this.#recorded = this.#recorded.filter(({ address }) => !this.#rejected.has(address))
    if (this.#recorded.length === 0) return undefined
    const at = this.#recorded.findIndex(({ address }, i) => this.#isGivable(address, i))
    const row = this.#recorded[at]
    if (row === undefined) return this.#awaitCalls(this.#recorded)
    const operation = this.#pending.get(row.address)
    const read = await this.#read(operation, row)
    if (read instanceof Error) return { kind: 'unreadable', error: describeError(read) }
    if (at > 0) this.#warnReordered(row.address)
    this.#recorded.splice(at, 1)
    await this.#turn(() => this.#give(row, operation, read))
    return undefined
  }

  #isGivable(address: string, at: number): boolean {
    if (address === CANCEL || address === DEADLINE) return at === 0
    return this.#pending.has(address)
  }

  #warnReordered(address: string): void {
    const { warnings = [] } = this.#nextNote
    if (warnings.includes('reordered')) return
    this.#nextNote = { ...this.#nextNote, warnings: [...warnings, 'reordered'] }
    this.#host.warn({ kind: 'reordered', address })
  }

  /** Decodes an answer before its turn: a schema may be asynchronous. */
  async #read(operation: Operation | undefined, row: StepRow): Promise<{ readonly value: unknown } | Error> {
    if (operation === undefined || row.error !== null) return { value: undefined }
    try {
      if (operation.deed.kind !== 'wait')
        return {
          value: valueOf(operation, row, (name) => (name === '' ? this.workflow.codec : this.#host.codecOf(name))),
        }
      const read = await this.#host.readEvent(operation.deed.event, row.value)
      return read.ok ? { value: read.payload } : new Error(read.error.message)
    } catch (error) {
      return new Error(`the answer of ${row.address} cannot be read: ${describeError(error).message}`)
    }
  }

  #give(row: StepRow, operation: Operation | undefined, read: { readonly value: unknown }): void {
    this.#lastNo = row.no as number
    this.#given += 1
    this.#givenAt = row.answeredAt ?? this.#givenAt
    if (operation === undefined) return this.#giveEnd(row)
    this.#settle(operation)
    if (row.error === null) return operation.resolve(read.value)
    const unwound = readNote(row.note).unwound === true ? operation.scope.abortReason : undefined
    const error = unwound ?? errorOf(operation, row)
    if (unwound === undefined) this.#errorNumbers.set(error, row.no as number)
    operation.reject(error)
  }

  /** A cancel, or the deadline: every verb rejects from now on, except those of a cleanup. */
  #giveEnd(row: StepRow): void {
    const { id, name, rules } = this.workflow
    this.#cancelNo = row.no as number
    this.#unwindBy = (row.answeredAt ?? this.#host.now()) + rules.cancelWithinMs
    if (row.address === CANCEL) this.#cancelReason = row.error ?? 'cancelled'
    const reason =
      row.address === CANCEL
        ? new JobCancelledError(id, name, row.error ?? 'cancelled')
        : new TimeoutError(`workflow ${name} ${id} did not end by its deadline`)
    this.abort(this.#root, reason)
  }

  /** Recorded rows wait for calls that may still come, because they followed something that is not of `w`; else it is drift. */
  async #awaitCalls(rows: readonly StepRow[]): Promise<RunEnd | undefined> {
    const isForeign = rows.some((row) => readNote(row.note).foreign === true)
    const [calls, end] = [this.#calls, this.#host.now() + FOREIGN_WAIT_MS]
    while (isForeign && this.#calls === calls && this.#ended === undefined && !this.#isLost) {
      if (this.#host.now() >= end) break
      if (this.#host.draining() !== undefined) return this.#yielded(this.#host.draining() as Draining)
      await this.#signal.wait(end - this.#host.now())
    }
    if (this.#calls !== calls || this.#ended !== undefined || this.#isLost) return undefined
    return this.#drifted()
  }

  #drifted(): RunEnd {
    return { kind: 'drifted', ...difference(this.#recorded, this.#uncalled.values(), this.#pending) }
  }

  /* Live */

  async #live(): Promise<RunEnd | undefined> {
    if (this.#host.draining() === 'replay') return this.#yielded('replay')
    for (const operation of this.#pending.values()) if (operation.state === 'called') this.#start(operation)
    const now = this.#host.now()
    const cancel = this.#inbox.find(({ kind }) => kind === 'cancel')
    if (cancel !== undefined && this.#cancelNo === undefined) return this.#append(this.#endRow(CANCEL, cancel))
    if (this.#deadlineAt !== null && now >= this.#deadlineAt && this.#cancelNo === undefined)
      return this.#append(this.#endRow(DEADLINE))
    if (now >= this.#unwindBy) return this.#forced()
    const draining = this.#draining()
    if (draining === undefined) this.#beginSteps(now)
    return this.#step(now, draining)
  }

  /** A claim that has recorded nothing does not yield: it would replay for ever. */
  #draining(): Draining | undefined {
    const why = this.#host.draining()
    return why === 'yield' && this.#nextNo === this.#nextNoAtClaim ? undefined : why
  }

  async #step(now: number, draining: Draining | undefined): Promise<RunEnd | undefined> {
    const found =
      draining === undefined && !this.#isFull ? nextFound(this.#pending.values(), this.#inbox, now) : undefined
    if (found !== undefined && (await this.#isInboxStale(found))) return undefined
    if (found?.by !== undefined && !(await this.#fits(found))) return this.#unfit(found)
    if (this.#has('acted') || this.#has('prepared') || (found !== undefined && this.#transacting === undefined))
      if (await this.#answer(found)) return undefined
    if (this.#has('acting') || this.#has('preparing')) return this.#awaitActs(now)
    if (draining !== undefined) return this.#yielded(draining)
    if (this.#isFull && (this.#has('queued') || nextFound(this.#pending.values(), this.#inbox, now) !== undefined))
      return this.#full()
    if (this.#pending.size === 0) return this.#silent(now)
    const wakeAt = this.#wakeAt()
    if (wakeAt !== null && wakeAt - now <= this.workflow.inHandMs) return this.#awaitActs(now)
    return this.#suspended(wakeAt)
  }

  /** An operation that the store knows nothing of yet. */
  #start(operation: Operation): void {
    const now = this.#host.now()
    const { deed } = operation
    operation.calledAt = now
    if (acts(operation)) operation.state = 'queued'
    else if (deed.kind === 'call' || deed.kind === 'enqueue') this.#prepare(operation, deed)
    else {
      operation.state = 'waiting'
      operation.isRowDue = true
      if (deed.kind === 'sleep') operation.until = deed.until ?? now + (deed.spanMs ?? 0)
      if (deed.kind === 'wait' && deed.timeoutMs !== undefined) operation.until = now + deed.timeoutMs
      if (deed.kind === 'wait' && operation.name !== deed.event.name)
        operation.note = { ...operation.note, event: deed.event.name }
    }
  }

  #prepare(operation: Operation, deed: Extract<Deed, { kind: 'call' | 'enqueue' }>): void {
    operation.state = 'preparing'
    const ready = (): void => {
      if (operation.state === 'preparing') operation.state = 'prepared'
      this.#signal.raise()
    }
    const refuse = (error: unknown): void => {
      operation.outcome = { kind: 'aborted', error: describeError(error) }
      ready()
    }
    if (deed.kind === 'call' && this.workflow.depth >= CALL_DEPTH_MAX)
      return refuse(new CallDepthError(operation.name, CALL_DEPTH_MAX))
    this.#host.prepareChild(deed).then((prepared) => {
      operation.prepared = prepared
      ready()
    }, refuse)
  }

  /** Begins as many steps as may act at once, in the order of their calls. A transaction acts with no other. */
  #beginSteps(now: number): void {
    let acting = this.#count('acting')
    for (const operation of this.#pending.values()) {
      if (operation.state === 'retrying' && (operation.until === null || operation.until <= now))
        operation.state = 'queued'
      if (operation.state !== 'queued') continue
      if (acting >= this.workflow.rules.concurrency || this.#isFullWith(acting)) return
      if (operation.kind === 'tx' && this.#transacting !== undefined) continue
      acting += 1
      this.#act(operation)
    }
  }

  #act(operation: Operation): void {
    operation.state = 'acting'
    operation.until = null
    const acted = (outcome: Outcome): void => {
      if (operation.state !== 'acting') return
      operation.state = 'acted'
      operation.outcome = outcome
      this.#signal.raise()
    }
    if (operation.kind !== 'tx') return void this.#host.act(operation).then(acted)
    this.#transacting = operation
    let row: NewStep | undefined
    const record = (outcome: Outcome): NewStep => {
      row = { ...this.#answerRow(operation, this.#nextNo, outcome), attempt: operation.attempt + 1 }
      return row
    }
    void this.#host.transact(operation, record).then((outcome) => {
      this.#transacting = undefined
      if (outcome.kind !== 'succeeded' || row === undefined) return acted(outcome)
      operation.state = 'acted'
      this.#written(row)
      this.#signal.raise()
    })
  }

  /** Writes answers: of one wait, sleep or call, then of all steps that have ended. False when there is nothing to write. */
  async #answer(found: Found | undefined): Promise<boolean> {
    const children = [...this.#pending.values()].filter(
      ({ state, prepared }) => state === 'prepared' && prepared !== undefined,
    )
    if (children.length > 0 && this.#transacting === undefined) return this.#appendChildren(children)
    const [rows, taken]: [NewStep[], number[]] = [[], []]
    let no = this.#nextNo
    const answer = (operation: Operation, given: Pick<NewStep, 'value' | 'error'>): void => {
      rows.push(this.#stamped(operation, no, given))
      no += 1
    }
    if (found !== undefined && this.#transacting === undefined) {
      answer(found.operation, this.#foundAnswer(found))
      if (found.by !== undefined && this.#isLastFor(found)) taken.push(found.by.number)
    }
    for (const operation of this.#pending.values()) {
      if (operation.state === 'prepared' && operation.prepared === undefined && this.#transacting === undefined)
        answer(operation, actedAnswer(operation, operation.outcome as Outcome))
      else if (operation.state === 'acted' && operation.outcome !== undefined)
        this.#settleAct(operation, operation.outcome, answer)
    }
    const open = [...this.#dueRows(rows)]
    if (rows.length + open.length === 0) return this.#recorded.length > 0
    await this.#append({ rows: [...rows, ...open], taken, children: [], cancelled: this.#takeCancelled() })
    return true
  }

  /** What the end of an act makes of its operation: an answer, or another attempt later. */
  #settleAct(
    operation: Operation,
    outcome: Outcome,
    answer: (o: Operation, given: Pick<NewStep, 'value' | 'error'>) => void,
  ): void {
    const isAborted = operation.scope.abortReason !== undefined && outcome.kind !== 'succeeded'
    if (outcome.kind === 'released') return void Object.assign(operation, { state: 'queued', outcome: undefined })
    const isCounted = outcome.kind === 'succeeded' || outcome.kind === 'failed' || outcome.kind === 'aborted'
    if (outcome.kind === 'snoozed' && !isAborted) return this.#later(operation, outcome.delayMs, operation.lastError)
    if (outcome.kind === 'failed' && !isAborted && outcome.retryable && operation.attempt < outcome.retryLimit) {
      operation.attempt += 1
      return this.#later(operation, outcome.delayMs, JSON.stringify(outcome.error))
    }
    // Another answer is written once the transaction has ended, whose row has the next number.
    if (this.#transacting !== undefined) return
    if (isCounted) operation.attempt += 1
    if (isAborted) operation.note = { ...operation.note, unwound: true }
    if (outcome.kind === 'cancelled' && outcome.error === null) operation.note = { ...operation.note, unknown: true }
    answer(operation, actedAnswer(operation, outcome))
    operation.outcome = undefined
  }

  #later(operation: Operation, delayMs: number, error: string | null): void {
    operation.state = 'retrying'
    operation.outcome = undefined
    operation.lastError = error
    operation.until = this.#host.now() + delayMs
    operation.isRowDue = true
  }

  #foundAnswer({ operation, by }: Found): Pick<NewStep, 'value' | 'error'> {
    if (operation.kind === 'sleep') return { value: null, error: null }
    if (by === undefined) return { value: null, error: JSON.stringify(timedOut(operation)) }
    if (operation.kind === 'wait') return { value: by.payload, error: null }
    return calledAnswer(by, operation.name, operation.child?.id ?? '')
  }

  /** Several calls of one job are answered by one row of the inbox: the last of them removes it. */
  #isLastFor({ operation, by }: Found): boolean {
    if (operation.kind !== 'call') return true
    for (const other of this.#pending.values())
      if (other !== operation && other.kind === 'call' && other.child?.id === by?.name) return false
    return true
  }

  /** Time has answered: an event that was sent before must have been seen. */
  async #isInboxStale({ instant, by }: Found): Promise<boolean> {
    if (by !== undefined || this.#inboxAt >= instant) return false
    if (waitsOf(this.#pending.values()).length === 0) return false
    const inbox = await this.#host.readInbox()
    if (inbox === undefined) return false
    this.receive(inbox)
    return true
  }

  async #fits({ operation, by }: Found): Promise<boolean> {
    if (operation.deed.kind !== 'wait') return true
    return (await this.#host.readEvent(operation.deed.event, by?.payload ?? null)).ok
  }

  async #unfit({ operation, by }: Found): Promise<RunEnd | undefined> {
    if (operation.deed.kind !== 'wait') return undefined
    const read = await this.#host.readEvent(operation.deed.event, by?.payload ?? null)
    return read.ok ? undefined : this.#whenIdle({ kind: 'unreadable', error: read.error })
  }

  /** Ends so once nothing acts: what acts is recorded first. */
  async #whenIdle(end: RunEnd): Promise<RunEnd | undefined> {
    if (this.#has('acted') && (await this.#answer(undefined))) return undefined
    if (!this.#has('acting')) return end
    await this.#signal.wait(null)
    return undefined
  }

  /* Writing */

  #answerRow(operation: Operation, no: number, outcome: Outcome): NewStep {
    return this.#stamped(operation, no, actedAnswer(operation, outcome))
  }

  /** The row with what is due to be written with the next one. */
  #stamped(operation: Operation, no: number | null, answer?: Pick<NewStep, 'value' | 'error'>): NewStep {
    operation.note = merged(operation.note, this.#nextNote)
    this.#nextNote = {}
    return rowOf(operation, this.#run, no, this.#answerTime(), answer)
  }

  /** The times of answers never go back, so that `w.now()` does not either. */
  #answerTime(): number {
    return Math.max(this.#host.now(), this.#givenAt)
  }

  /** Open rows that differ from what is stored, and those of rejected operations. */
  *#dueRows(answered: readonly NewStep[]): Generator<NewStep> {
    for (const operation of this.#pending.values()) {
      if (!operation.isRowDue || answered.some(({ address }) => address === operation.address)) continue
      yield this.#stamped(operation, null)
      operation.isRowDue = false
      operation.openAs = operation.kind
    }
    for (const operation of this.#unwound) yield unwoundRow(operation, this.#run, this.#host.now())
  }

  /** Called jobs whose calls were rejected. */
  #takeCancelled(): string[] {
    const cancelled = [...this.#unwound].flatMap((operation) => cancelledChild(operation))
    this.#unwound.clear()
    return cancelled
  }

  #endRow(address: string, cancel?: InboxRow): LogWrite {
    const at = this.#answerTime()
    const note = writeNote(this.#nextNote)
    this.#nextNote = {}
    const row: NewStep = {
      run: this.#run,
      address,
      kind: address === CANCEL ? 'cancel' : 'deadline',
      no: this.#nextNo,
      since: this.#lastNo + 1,
      attempt: 0,
      startedAt: at,
      endedAt: at,
      value: null,
      error: cancel?.error ?? null,
      note,
    }
    return { rows: [row], taken: cancel === undefined ? [] : [cancel.number], children: [], cancelled: [] }
  }

  async #append(write: LogWrite): Promise<undefined> {
    const written = await this.#host.append(write)
    if (written === undefined) {
      this.#isLost = true
      return undefined
    }
    this.#inbox = this.#inbox.filter(({ number }) => !write.taken.includes(number))
    for (const row of write.rows) if (row.no !== null) this.#written(row)
    return undefined
  }

  #written(row: NewStep): void {
    this.#nextNo = Math.max(this.#nextNo, (row.no as number) + 1)
    this.#bytes += bytesOf(row)
    this.#recorded.push(asStored(row))
    if (this.#nextNo === Math.ceil(this.workflow.rules.steps / 2))
      this.#host.warn({ kind: 'log-half-full', address: row.address })
  }

  /** All children at once; if the store refuses one of them, each alone, so that only that one fails. */
  async #appendChildren(operations: readonly Operation[]): Promise<boolean> {
    try {
      await this.#insert(operations)
    } catch (error) {
      if (operations.length > 1) {
        for (const each of operations) await this.#appendChildren([each])
        return true
      }
      const [operation] = operations
      if (operation !== undefined)
        Object.assign(operation, { prepared: undefined, outcome: { kind: 'aborted', error: describeError(error) } })
    }
    return true
  }

  async #insert(operations: readonly Operation[]): Promise<void> {
    let no = this.#nextNo
    const rows = operations.map((operation) => {
      const isAnswered = operation.kind === 'enqueue'
      no += isAnswered ? 1 : 0
      return this.#stamped(operation, isAnswered ? no - 1 : null, isAnswered ? NO_ANSWER : undefined)
    })
    const children = operations.flatMap(({ address, prepared, kind, deed }) =>
      prepared === undefined ? [] : [{ ...prepared, address, isAwaited: kind === 'call', isLeft: isLeft(deed) }],
    )
    const inserted = await this.#host.append({ rows, taken: [], children, cancelled: [] })
    if (inserted === undefined) return this.lose()
    for (const [i, operation] of operations.entries()) {
      const { id, isNew } = inserted[i] as { id: string; isNew: boolean }
      operation.child = { id, isOld: !isNew }
      operation.note = { ...operation.note, child: id, ...(isNew ? {} : { isOld: true }) }
      operation.openAs = operation.kind
      operation.state = operation.kind === 'call' ? 'waiting' : 'settled'
      operation.prepared = undefined
      const row = rows[i] as NewStep
      if (row.no !== null) this.#written({ ...row, note: writeNote(operation.note) })
    }
  }

  #settle(operation: Operation): void {
    operation.state = 'settled'
    this.#pending.delete(operation.address)
    const name = withoutNumber(operation.address)
    const { count, turn } = this.#names.get(name) ?? { count: 1, turn: 0 }
    if (count > 1) this.#names.set(name, { count: count - 1, turn })
    else this.#names.delete(name)
  }

  /* Rejections of branches */

  /**
   * Rejects what only waits. A step is always rejected by an answer of its own: whether it acts at this moment is not in the
   * log, so the path of the body must not depend on it.
   */
  #reject(operation: Operation, reason: Error): void {
    if (this.#recorded.some(({ address }) => address === operation.address)) return
    if (operation.state === 'acting' || operation.state === 'acted') return this.#abortAct(operation, reason)
    if (acts(operation)) return this.#unwindAct(operation, reason)
    this.#settle(operation)
    this.#rejected.add(operation.address)
    if (operation.openAs !== undefined && operation.openAs !== UNWOUND) this.#unwound.add(operation)
    operation.reject(reason)
  }

  /** A step that has not begun, or waits for its next attempt, and will not act any more. */
  #unwindAct(operation: Operation, reason: Error): void {
    if (operation.calledAt === 0) operation.calledAt = this.#host.now()
    operation.state = 'acted'
    operation.outcome = { kind: 'cancelled', error: describeError(reason), reason: reason.message }
  }

  #abortAct(operation: Operation, reason: Error): void {
    if (operation.state === 'acting') this.#host.abort(operation, reason)
  }

  /* Ends */

  async #awaitActs(now: number): Promise<undefined> {
    const due = [...this.#dueRows([])]
    if (due.length > 0) {
      await this.#append({ rows: due, taken: [], children: [], cancelled: this.#takeCancelled() })
      return
    }
    const wakeAt = this.#wakeAt()
    await this.#signal.wait(wakeAt === null ? null : Math.max(1, wakeAt - now))
  }

  /** The body awaits something that is not of `w`. */
  async #silent(now: number): Promise<RunEnd | undefined> {
    this.#silentSince ??= now
    const left = this.#silentSince + SILENT_MS - now
    if (left <= 0 && this.workflow.isStrict) {
      this.#ended = { error: new ForeignAwaitError(`workflow ${this.workflow.name} ${this.workflow.id}`) }
      return undefined
    }
    if (left <= 0 && !this.#isSilenceReported) {
      this.#isSilenceReported = true
      this.#host.warn({ kind: 'foreign-await', address: `${this.workflow.name} awaits something that is not of w` })
    }
    const wakeAt = this.#wakeAt()
    const until = Math.min(left > 0 ? left : Infinity, wakeAt === null ? Infinity : Math.max(1, wakeAt - now))
    await this.#signal.wait(until === Infinity ? null : until)
    return undefined
  }

  #wakeAt(): number | null {
    const times = [earliest(this.#pending.values()), this.#cancelNo === undefined ? this.#deadlineAt : null]
    if (this.#unwindBy !== Infinity) times.push(this.#unwindBy)
    return times.reduce((a, b) => (a === null ? b : b === null ? a : Math.min(a, b)), null)
  }

  #suspended(wakeAt: number | null): RunEnd {
    const waits = waitsOf(this.#pending.values())
    const isRetrying = [...this.#pending.values()].every(({ state }) => state === 'retrying')
    const to = waits.length > 0 ? 'blocked' : isRetrying ? 'retrying' : 'scheduled'
    return { kind: 'suspended', to, waits, wakeAt, rest: this.#rest(null) }
  }

  #yielded(why: Draining): RunEnd {
    return { kind: 'yielded', why, rest: this.#rest(null) }
  }

  #full(): RunEnd {
    const { steps } = this.workflow.rules
    const why =
      this.#nextNo >= steps
        ? `the run has ${this.#nextNo} answers, and its limit is ${steps}; return w.restart(input) now and then, or raise the option steps and retry it`
        : `the answers of the run have ${this.#bytes} bytes, and the limit is ${LOG_MAX_BYTES}; return w.restart(input), or return less from steps`
    return { kind: 'full', why }
  }

  get #isFull(): boolean {
    return this.#isFullWith(0)
  }

  #isFullWith(acting: number): boolean {
    return this.#nextNo + acting >= this.workflow.rules.steps || this.#bytes >= LOG_MAX_BYTES
  }

  #forced(): RunEnd {
    const { id, name, rules } = this.workflow
    const error = new TimeoutError(
      `workflow ${name} ${id}: unwinding took longer than cancelWithin (${formatDuration(rules.cancelWithinMs)})`,
    )
    for (const operation of this.#pending.values()) this.#abortAct(operation, error)
    this.#ended = { error }
    return this.#end({ error })
  }

  async #finish(ended: NonNullable<Driver['endedWith']>): Promise<RunEnd | undefined> {
    const isUncalled = this.#uncalled.size > 0 || this.#recorded.some(({ address }) => !this.#isCalled(address))
    if (isUncalled) return this.#drifted()
    if (this.#pending.size > 0) this.#abortLeft()
    if (this.#cancelNo === undefined && this.#isRestart(ended)) return this.#restarted()
    return this.#end(ended)
  }

  #abortLeft(): void {
    const reason = new WorkflowOverError('step', this.workflow.id)
    for (const operation of this.#pending.values()) this.#abortAct(operation, reason)
  }

  #isRestart(ended: NonNullable<Driver['endedWith']>): boolean {
    return this.#restart !== undefined && 'value' in ended && ended.value === this.#restart
  }

  #isCalled(address: string): boolean {
    return this.#pending.has(address) || this.#rejected.has(address) || address.startsWith('!')
  }

  #end(ended: NonNullable<Driver['endedWith']>): RunEnd {
    const left = [...this.#pending.keys()]
    for (const address of left) this.#host.warn({ kind: 'left-behind', address })
    const note = left.length === 0 ? undefined : `left behind without an await: ${left.slice(0, SHOWN_MAX).join(', ')}`
    const error = 'error' in ended ? bodyError(ended.error) : undefined
    if (this.#cancelReason !== undefined) {
      const value = 'value' in ended && !this.#isRestart(ended) ? ended.value : undefined
      const own = error instanceof JobCancelledError ? undefined : error
      return {
        kind: 'cancelled',
        reason: this.#cancelReason,
        value,
        error: own,
        rest: this.#rest(this.#cancelNo ?? null),
      }
    }
    if (this.#cancelNo !== undefined)
      return { kind: 'failed', error: error ?? this.#root.abortReason, rest: this.#rest(this.#cancelNo) }
    if (error !== undefined) return { kind: 'failed', error, rest: this.#rest(this.#numberOf(error)) }
    if (this.#restart !== undefined) return { kind: 'failed', error: new RestartUnusedError(), rest: this.#rest(null) }
    return { kind: 'done', value: 'value' in ended ? ended.value : undefined, note, rest: this.#rest(null) }
  }

  async #restarted(): Promise<RunEnd> {
    try {
      const input = await this.#host.prepareInput(this.#restart?.input)
      return { kind: 'restarted', input, rest: this.#rest(null) }
    } catch (error) {
      return { kind: 'failed', error, rest: this.#rest(null) }
    }
  }

  /** The answer whose error ended the body: that error, or a cause of it. */
  #numberOf(error: unknown): number | null {
    for (let each = error, depth = 0; typeof each === 'object' && each !== null && depth < CAUSES_MAX; depth += 1) {
      const no = this.#errorNumbers.get(each)
      if (no !== undefined) return no
      each = (each as { cause?: unknown }).cause
    }
    return null
  }

  /** What is written with the end of the claim. Called jobs are cancelled when the workflow has ended without them. */
  #rest(forgetFrom: number | null): LogRest {
    if (this.#ended !== undefined)
      for (const operation of this.#pending.values()) {
        operation.isRowDue = false
        const isAnswered = this.#recorded.some(({ address }) => address === operation.address)
        if (!isAnswered && operation.openAs !== undefined && operation.openAs !== UNWOUND) this.#unwound.add(operation)
      }
    const rows = [...this.#dueRows([])]
    return { rows, cancelled: this.#takeCancelled(), deadlineAt: this.#deadlineAt, forgetFrom }
  }

  #has(state: Operation['state']): boolean {
    for (const operation of this.#pending.values())
      if (operation.state === state && (state !== 'acted' || operation.outcome !== undefined)) return true
    return false
  }

  #count(state: Operation['state']): number {
    let count = 0
    for (const operation of this.#pending.values()) if (operation.state === state) count += 1
    return count
  }
}

const NO_ANSWER = { value: null, error: null }
/** How many causes of an error are looked at, and addresses that a note lists. */
const CAUSES_MAX = 10
const SHOWN_MAX = 10
/** Lines that one row keeps. */
const LOG_LINES_MAX = 100

function rejected(error: Error): Promise<never> {
  const promise = Promise.reject<never>(error)
  promise.catch(() => undefined)
  return promise
}

function addLine(lines: readonly string[] = [], line: string): readonly string[] {
  return lines.length < LOG_LINES_MAX ? [...lines, line] : lines
}

function merged(own: LogNote, next: LogNote): LogNote {
  const log = next.log === undefined ? own.log : [...(own.log ?? []), ...next.log].slice(0, LOG_LINES_MAX)
  const warnings =
    next.warnings === undefined ? own.warnings : [...new Set([...(own.warnings ?? []), ...next.warnings])]
  return { ...own, ...next, log, warnings }
}

function withoutNumber(address: string): string {
  return address.slice(0, address.lastIndexOf('#'))
}

function lostError({ name, id }: Workflow): LeaseLostError {
  return new LeaseLostError(`workflow ${name} ${id}`)
}

function timedOut({ name, deed }: Operation): { name: string; message: string; code: string } {
  const span = deed.kind === 'wait' && deed.timeoutMs !== undefined ? ` within ${formatDuration(deed.timeoutMs)}` : ''
  return { name: 'TimeoutError', message: `no event ${JSON.stringify(name)} was sent${span}`, code: 'E_TIMEOUT' }
}

function isLeft(deed: Deed): boolean {
  return deed.kind === 'call' && deed.leaves
}

/** A job to cancel: one that this call inserted, unless its option says to leave it. */
function cancelledChild({ deed, child }: Operation): string[] {
  if (deed.kind !== 'call' || deed.leaves || child === undefined || child.isOld) return []
  return [child.id]
}

/** A body has no attempts, so a Snooze of it means nothing. */
function bodyError(error: unknown): unknown {
  if (!isSnooze(error)) return error ?? new Error('the body threw undefined')
  return new Error('the body threw new Snooze(), which only a step can; use await w.sleep(span) in the body')
}
