import { describeError } from '../codec/error-text.js'
import { ForeignAwaitError, JobCancelledError, LeaseLostError, TimeoutError, WorkflowOverError } from '../errors.js'
import { isThenable } from '../job/definition/schema.js'
import type { InboxRow, StepRow } from '../store/workflows.js'
import type { DriverHost, LogRead, RunEnd, Workflow } from './host.js'
import { LiveRun } from './live-run.js'
import { CANCEL, DEADLINE, errorOf, readNote, UNWOUND, valueOf } from './log-row.js'
import { acts, makeOperation, rejected } from './operation.js'
import type { Deed, Operation } from './operation.js'
import { abortActs, drifted, finished, restarted, yielded } from './run-ends.js'
import { RunState, WAITING } from './run-state.js'
import type { Ended, Round } from './run-state.js'
import { SCOPES_MAX } from './scope.js'
import type { Scope } from './scope.js'
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
 *
 * The loop is rounds and callbacks, not an async function: a worker runs thousands of steps a second, and where an
 * `AsyncLocalStorage` is in use, each promise costs more than the round that it would await.
 */

/** On replay, how long the body may take to call a row that followed something that is not of `w`. */
const FOREIGN_WAIT_MS = 30_000

interface Settle {
  readonly resolve: (end: RunEnd) => void
  readonly reject: (error: unknown) => void
}

export class Driver {
  readonly workflow: Workflow
  readonly #state: RunState
  readonly #live: LiveRun
  readonly #goOn = (): void => this.#run(undefined)
  #isStarted = false
  #isFrozen = true
  /** The body called a verb while the run was frozen, which never settles: only a replay can go on. */
  #isSpoiled = false
  #inTurn = false
  #calls = 0
  #turns = 0
  /** Recorded rows wait for a call that follows something that is not of `w`: since which call, and until when. */
  #foreignWait: { readonly calls: number; readonly until: number } | undefined
  #settle: Settle | undefined

  constructor(workflow: Workflow, host: DriverHost) {
    this.workflow = workflow
    this.#state = new RunState(workflow, host)
    this.#live = new LiveRun(this.#state, { goOn: this.#goOn, later: (round) => this.#later(round) })
  }

  /** As the body sees it. */
  get run(): number {
    const { run, firstRun } = this.#state.log
    return run - firstRun
  }
  /** Whether a kept run can go on. */
  get isSpoiled(): boolean {
    return this.#isSpoiled
  }
  get steps(): number {
    return this.#state.log.given
  }
  /** The answers that are recorded, and those that a retry has forgotten. */
  get answers(): number {
    return this.#state.log.nextNo
  }
  get host(): DriverHost {
    return this.#state.host
  }
  /** The store's time of the answer last given. */
  get givenAt(): number {
    return this.#state.log.givenAt
  }

  /** Drives the run until it ends for this claim. A run that was kept goes on where it was frozen. */
  drive(host: DriverHost, log: LogRead): Promise<RunEnd> {
    return new Promise((resolve, reject) => this.start(host, log, { resolve, reject }))
  }

  /** The same by callbacks. */
  start(host: DriverHost, log: LogRead, settle: Settle): void {
    const state = this.#state
    state.host = host
    state.signal.timers = host.timers
    this.#isFrozen = false
    state.deadlineAt = log.deadlineAt ?? state.deadlineAt
    state.receive(log.inbox.slice(), log.inboxAt)
    if (log.rows !== undefined) this.#load(log, log.rows)
    this.#live.claimed()
    this.#settle = settle
    this.#goOn()
  }

  /** Something that the host knows may have changed: a stop, a pause, the time. */
  wake(): void {
    this.#state.signal.raise()
  }

  /** The rows of the inbox that are not taken. */
  receive(inbox: readonly InboxRow[]): void {
    this.#state.receive(inbox.slice())
  }

  /** The claim is lost: the run is frozen and never unwound. */
  lose(): void {
    this.#state.isLost = true
    this.#state.signal.raise()
  }

  /* What the body calls */

  /** Calls a verb: the operation is pending until its answer is given. */
  call(verb: string, scope: Scope, name: string, deed: Deed, key?: string): Promise<unknown> {
    const refused = this.refusal(verb, scope)
    if (refused !== undefined) return refused
    const { log, host, signal } = this.#state
    const address = scope.next(deed.kind, name, key)
    const isForeign = !this.#inTurn
    if (isForeign && this.workflow.isStrict) return rejected(new ForeignAwaitError(`w.${verb}() at ${address}`))
    this.#calls += 1
    if (deed.kind === 'call') this.#state.hasCalls = true
    const operation = makeOperation({ address, name, scope, deed, order: this.#calls, since: log.lastNo + 1 })
    this.#add(operation, isForeign)
    this.#match(operation)
    // The body may call more than one before it goes no further.
    if (isForeign) host.timers.soon(() => signal.raise())
    return operation.promise
  }

  /** Why a verb cannot be called here and now: a promise that rejects, or that never settles on a frozen run. */
  refusal(verb: string, scope: Scope): Promise<never> | undefined {
    const { ended, host } = this.#state
    if (ended !== undefined) return rejected(new WorkflowOverError(verb, this.workflow.id))
    if (this.#isFrozen) {
      this.#isSpoiled = true
      host.warn({ kind: 'foreign-await', address: `w.${verb}() on a suspended run` })
      return new Promise(() => undefined)
    }
    if (scope.depth > SCOPES_MAX) {
      this.#state.fullBecause = `scopes within scopes are limited to ${SCOPES_MAX}`
      return new Promise(() => undefined)
    }
    const reason = scope.abortReason
    return reason === undefined ? undefined : rejected(reason)
  }

  /** The same for a verb that answers at once: it throws, and on a frozen run it answers. */
  refuseOver(verb: string): void {
    if (this.#state.ended !== undefined) throw new WorkflowOverError(verb, this.workflow.id)
  }

  /** A branch lost or failed with a sibling: its verbs reject from now on, in this turn. */
  abort(scope: Scope, reason: Error): void {
    scope.abort(reason)
    for (const operation of this.#state.pending) if (operation.scope.isUnder(scope)) this.#reject(operation, reason)
  }

  version(id: string, latest: number): number {
    return this.#state.log.version(id, latest)
  }

  log(parts: readonly unknown[]): void {
    if (this.#isHeard) this.#state.log.addLine(this.host.logLine(parts))
  }

  progress(done: number, total: number | undefined): void {
    if (this.#isHeard) this.host.progress(done, total)
  }

  requestRestart(request: RestartRequest): void {
    this.#state.restart = request
  }

  /** What the body logs or reports now, it says for the first time. */
  get #isHeard(): boolean {
    return this.#state.log.isLive && !this.#isFrozen && this.#state.ended === undefined
  }

  #add(operation: Operation, isForeign: boolean): void {
    this.#state.silentSince = undefined
    const isSameName = this.#state.pending.add(operation, this.#turns)
    if (!isForeign && !isSameName) return
    const warnings = [
      ...(isForeign ? (['foreign-await'] as const) : []),
      ...(isSameName ? (['same-name'] as const) : []),
    ]
    operation.note = { ...(isForeign ? { foreign: true } : {}), warnings }
    for (const kind of warnings) this.host.warn({ kind, address: operation.address })
  }

  /** An operation that has an open row goes on where that row says. */
  #match(operation: Operation): void {
    const { uncalled } = this.#state.log
    const row = uncalled.get(operation.address)
    if (row === undefined) return
    uncalled.delete(operation.address)
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

  #load(log: LogRead, rows: readonly StepRow[]): void {
    const state = this.#state
    const { deadlineMs } = this.workflow.rules
    const { retriedAt = null } = log
    state.log.load(log, rows, this.host.now())
    if (deadlineMs === undefined) return
    state.deadlineAt ??= state.log.beganAt + deadlineMs
    // A workflow that was overdue and is retried has its whole time again.
    if (retriedAt !== null && state.deadlineAt <= retriedAt) state.deadlineAt = retriedAt + deadlineMs
  }

  /* Rounds */

  /** Rounds follow each other until one waits for a callback, or the run has ended for this claim. */
  #run(from: Round): void {
    try {
      let round = from
      while (round === undefined) round = this.#state.isLost ? LOST : this.#round()
      if (round !== WAITING) this.#end(this.#state.isLost ? LOST : round)
    } catch (error) {
      this.#isFrozen = true
      this.#settle?.reject(error)
    }
  }

  #later(round: Promise<Round>): typeof WAITING {
    round.then(
      (reached) => this.#run(reached),
      (error: unknown) => this.#settle?.reject(error),
    )
    return WAITING
  }

  #end(end: RunEnd): void {
    this.#isFrozen = true
    const { name, id } = this.workflow
    if (end.kind === 'lost') abortActs(this.#state, new LeaseLostError(`workflow ${name} ${id}`))
    this.#settle?.resolve(end)
    this.#settle = undefined
  }

  #round(): Round {
    const { ended, fullBecause, log } = this.#state
    if (!this.#isStarted) return this.#start()
    if (ended !== undefined) return this.#finish(ended)
    if (fullBecause !== undefined) return this.#live.whenIdle({ kind: 'full', why: fullBecause })
    if (log.recorded.length > 0) return this.#giveNext()
    if (log.uncalled.size > 0) return this.#awaitCalls([...log.uncalled.values()])
    return this.#live.round()
  }

  #finish(ended: Ended): Round {
    const end = finished(this.#state, ended)
    return end === 'restarts' ? this.#later(restarted(this.#state)) : end
  }

  /* Turns */

  /** Two immediates are queued together: between them run only microtasks, so nothing else can come into the turn. */
  #turn(give: () => void): typeof WAITING {
    const { timers } = this.host
    timers.soon(() => {
      this.#inTurn = true
      this.#turns += 1
      give()
    })
    timers.soon(() => {
      this.#inTurn = false
      this.#goOn()
    })
    return WAITING
  }

  #start(): typeof WAITING {
    this.#isStarted = true
    return this.#turn(() => this.#begin())
  }

  #begin(): void {
    const { body, input } = this.workflow
    const end = (ended: Ended): void => {
      this.#state.ended ??= ended
      this.#state.signal.raise()
    }
    const fail = (error: unknown): void => end({ error })
    try {
      const returned = body(input, new WorkVerbs(this, this.#state.root) as never)
      if (isThenable(returned)) Promise.resolve(returned).then((value) => end({ value }), fail)
      else end({ value: returned })
    } catch (error) {
      fail(error)
    }
  }

  /** Gives the first recorded answer whose operation has been called. */
  #giveNext(): Round {
    const { log, pending } = this.#state
    // A branch that ended outside a turn may have rejected an operation whose answer was being written.
    if (pending.anyRejected)
      for (const each of log.recorded.filter(({ address }) => pending.isRejected(address))) log.remove(each)
    if (log.recorded.length === 0) return undefined
    const at = log.recorded.findIndex(({ address }, i) => this.#isGivable(address, i))
    const row = log.recorded[at]
    if (row === undefined) return this.#awaitCalls(log.recorded)
    const operation = pending.get(row.address)
    if (operation?.deed.kind === 'wait' && row.error === null) return this.#later(this.#giveEvent(row, operation, at))
    const read = this.#read(operation, row)
    if (read instanceof Error) return unreadable(read)
    return this.#giveAt(at, row, operation, read.value)
  }

  #isGivable(address: string, at: number): boolean {
    if (address === CANCEL || address === DEADLINE) return at === 0
    return this.#state.pending.has(address)
  }

  /** An event is decoded before its turn: its schema may be asynchronous. */
  async #giveEvent(row: StepRow, operation: Operation, at: number): Promise<Round> {
    if (operation.deed.kind !== 'wait') return undefined
    try {
      const read = await this.host.readEvent(operation.deed.event, row.value)
      if (read.ok) return this.#giveAt(at, row, operation, read.payload)
      return unreadable(new Error(read.error.message))
    } catch (error) {
      return unreadable(notReadable(row, error))
    }
  }

  #read(operation: Operation | undefined, row: StepRow): { readonly value: unknown } | Error {
    if (operation === undefined || row.error !== null) return { value: undefined }
    try {
      return {
        value: valueOf(operation, row, (name) => (name === '' ? this.workflow.codec : this.host.codecOf(name))),
      }
    } catch (error) {
      return notReadable(row, error)
    }
  }

  #giveAt(at: number, row: StepRow, operation: Operation | undefined, value: unknown): Round {
    const { log } = this.#state
    if (at > 0 && log.addWarning('reordered')) this.host.warn({ kind: 'reordered', address: row.address })
    log.remove(row)
    this.#foreignWait = undefined
    return this.#turn(() => this.#give(row, operation, value))
  }

  #give(row: StepRow, operation: Operation | undefined, value: unknown): void {
    const { log, pending, errorNumbers } = this.#state
    log.lastNo = row.no as number
    log.given += 1
    log.givenAt = row.answeredAt ?? log.givenAt
    if (operation === undefined) return this.#giveEnd(row)
    pending.settle(operation)
    if (row.error === null) return operation.resolve(value)
    const unwound = readNote(row.note).unwound === true ? operation.scope.abortReason : undefined
    const error = unwound ?? errorOf(operation, row)
    if (unwound === undefined) errorNumbers.set(error, row.no as number)
    operation.reject(error)
  }

  /** A cancel, or the deadline: every verb rejects from now on, except those of a cleanup. */
  #giveEnd(row: StepRow): void {
    const { id, name, rules } = this.workflow
    const state = this.#state
    state.cancelNo = row.no as number
    state.unwindBy = (row.answeredAt ?? this.host.now()) + rules.cancelWithinMs
    if (row.address === CANCEL) state.cancelReason = row.error ?? 'cancelled'
    const reason =
      row.address === CANCEL
        ? new JobCancelledError(id, name, row.error ?? 'cancelled')
        : new TimeoutError(`workflow ${name} ${id} did not end by its deadline`)
    this.abort(state.root, reason)
  }

  /** Recorded rows wait for calls that may still come, because they followed something that is not of `w`; else it is drift. */
  #awaitCalls(rows: readonly StepRow[]): Round {
    const { signal } = this.#state
    const now = this.host.now()
    if (!rows.some((row) => readNote(row.note).foreign === true)) return drifted(this.#state)
    if (this.#foreignWait?.calls !== this.#calls)
      this.#foreignWait = { calls: this.#calls, until: now + FOREIGN_WAIT_MS }
    if (now >= this.#foreignWait.until) return drifted(this.#state)
    const draining = this.host.draining()
    if (draining !== undefined) return yielded(this.#state, draining)
    return signal.wait(this.#foreignWait.until - now, this.#goOn) ? WAITING : undefined
  }

  /* Rejections of branches */

  /**
   * Rejects what only waits. A step is always rejected by an answer of its own: whether it acts at this moment is not in the
   * log, so the path of the body must not depend on it.
   */
  #reject(operation: Operation, reason: Error): void {
    const { log, pending, host } = this.#state
    if (log.isRecorded(operation.address)) return
    if (operation.state === 'acting') return host.abort(operation, reason)
    if (operation.state === 'acted') return
    if (acts(operation)) return this.#unwindAct(operation, reason)
    pending.reject(operation, reason)
  }

  /** A step that has not begun, or waits for its next attempt, and will not act any more. */
  #unwindAct(operation: Operation, reason: Error): void {
    if (operation.calledAt === 0) operation.calledAt = this.host.now()
    operation.state = 'acted'
    operation.outcome = { kind: 'cancelled', error: describeError(reason), reason: reason.message }
  }
}

const LOST: RunEnd = { kind: 'lost' }

function unreadable(error: Error): RunEnd {
  return { kind: 'unreadable', error: describeError(error) }
}

function notReadable(row: StepRow, error: unknown): Error {
  return new Error(`the answer of ${row.address} cannot be read: ${describeError(error).message}`)
}
