import { describeError } from '../codec/error-text.js'
import { CallDepthError } from '../errors.js'
import { formatDuration } from '../job/duration/duration.js'
import type { Outcome } from '../job/rules/outcome.js'
import type { NewStep } from '../store/sequences.js'
import type { Inserted } from '../store/store.js'
import type { Draining, LogWrite, RunEnd } from './host.js'
import { actedAnswer, calledAnswer, CANCEL, DEADLINE, writeNote } from './log-row.js'
import { acts } from './operation.js'
import type { Deed, Operation } from './operation.js'
import { forced, silentEnd, suspended, takeDueRows, yielded } from './run-ends.js'
import { WAITING } from './run-state.js'
import type { Loop, Round, RunState } from './run-state.js'
import { earliest, nextFound, waitsOf } from './waits.js'
import type { Found } from './waits.js'

/** A run that waits for nothing of `w` gets a warning after this time. */
const SILENT_MS = 10_000
/** Calls within calls. */
const CALL_DEPTH_MAX = 32

type Answer = Pick<NewStep, 'value' | 'error'>

/**
 * What a run does when everything recorded has been given: it begins what was called, writes answers, and is suspended when
 * all that is pending waits. A round writes at most once, and the loop continues when that is committed.
 */
export class LiveRun {
  readonly #state: RunState
  readonly #loop: Loop
  #nextNoAtClaim = 0
  /** The transaction that acts: its row has the next number, so no other answer is written meanwhile. */
  #transacting: Operation | undefined
  #isSilenceReported = false

  constructor(state: RunState, loop: Loop) {
    this.#state = state
    this.#loop = loop
  }

  claimed(): void {
    this.#nextNoAtClaim = this.#state.log.nextNo
  }

  round(): Round {
    const { host, pending, inbox, cancelNo, deadlineAt, log } = this.#state
    const why = host.draining()
    if (why === 'replay') return yielded(this.#state, 'replay')
    const now = host.now()
    for (const operation of pending) if (operation.state === 'called') this.#start(operation, now)
    if (cancelNo === undefined) {
      const cancel = inbox.find(({ kind }) => kind === 'cancel')
      if (cancel !== undefined) return this.#append([log.endRow(CANCEL, now, cancel)], [cancel.number])
      if (deadlineAt !== null && now >= deadlineAt) return this.#append([log.endRow(DEADLINE, now)], NONE)
    }
    if (now >= this.#state.unwindBy) return forced(this.#state)
    // A claim that has recorded nothing does not yield: it would replay for ever.
    const draining = why === 'yield' && log.nextNo === this.#nextNoAtClaim ? undefined : why
    if (draining === undefined) this.#beginSteps(now)
    return this.#answerAny(now, draining)
  }

  /** Ends so once nothing acts: what acts is recorded first. */
  whenIdle(end: RunEnd): Round {
    const { pending } = this.#state
    const answered = pending.anyOutcome ? this.#answer(undefined) : undefined
    if (answered !== undefined) return answered.round
    return pending.any('acting') ? this.#wait(null) : end
  }

  #answerAny(now: number, draining: Draining | undefined): Round {
    const found = draining === undefined && !this.#state.isFullWith(0) ? this.#found(now) : undefined
    if (found !== undefined && this.#mustReadInbox(found)) return this.#loop.later(this.#readInbox(found, now))
    if (found?.by !== undefined && found.operation.deed.kind === 'wait')
      return this.#loop.later(this.#checkEvent(found, now))
    return this.#answerFound(found, now, draining)
  }

  #answerFound(found: Found | undefined, now: number, draining: Draining | undefined): Round {
    const { pending } = this.#state
    if (pending.anyOutcome || pending.any('prepared') || (found !== undefined && this.#transacting === undefined)) {
      const answered = this.#answer(found)
      if (answered !== undefined) return answered.round
    }
    if (pending.any('acting') || pending.any('preparing')) return this.#awaitActs(now)
    if (draining === 'pause' && this.#onlyWaits(now)) return suspended(this.#state, this.#wakeAt())
    if (draining !== undefined) return yielded(this.#state, draining)
    if (this.#state.isFullWith(0) && (pending.any('queued') || this.#found(now) !== undefined))
      return { kind: 'full', why: this.#state.log.whyFull(this.#state.workflow.rules.steps) }
    if (pending.size === 0) return this.#silent(now)
    const wakeAt = this.#wakeAt()
    if (wakeAt !== null && wakeAt - now <= this.#state.workflow.inHandMs) return this.#awaitActs(now)
    return suspended(this.#state, wakeAt)
  }

  /** Nothing can go on: a pause leaves it as it waits, so that a resume continues the wait. */
  #onlyWaits(now: number): boolean {
    const { pending } = this.#state
    if (pending.size === 0 || pending.any('queued') || this.#found(now) !== undefined) return false
    const wakeAt = this.#wakeAt()
    return wakeAt === null || wakeAt > now
  }

  #found(now: number): Found | undefined {
    return nextFound(this.#state.pending, this.#state.inbox, now)
  }

  /* What was called */

  /** An operation that the store knows nothing of yet. */
  #start(operation: Operation, now: number): void {
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
    const { workflow, host, signal } = this.#state
    operation.state = 'preparing'
    const ready = (): void => {
      if (operation.state === 'preparing') operation.state = 'prepared'
      signal.raise()
    }
    const refuse = (error: unknown): void => {
      operation.outcome = { kind: 'aborted', error: describeError(error) }
      ready()
    }
    if (deed.kind === 'call' && workflow.depth >= CALL_DEPTH_MAX)
      return refuse(new CallDepthError(operation.name, CALL_DEPTH_MAX))
    host.prepareChild(deed).then((prepared) => {
      operation.prepared = prepared
      ready()
    }, refuse)
  }

  /* Steps */

  /** Begins as many steps as may act at once, in the order of their calls. A transaction acts with no other. */
  #beginSteps(now: number): void {
    const { pending, workflow } = this.#state
    let acting = pending.count('acting')
    for (const operation of pending) {
      if (operation.state === 'retrying' && (operation.until === null || operation.until <= now))
        operation.state = 'queued'
      if (operation.state !== 'queued') continue
      if (acting >= workflow.rules.concurrency || this.#state.isFullWith(acting)) return
      if (operation.kind === 'tx' && this.#transacting !== undefined) continue
      acting += 1
      operation.state = 'acting'
      operation.until = null
      if (operation.kind === 'tx') this.#transact(operation)
      else this.#state.host.act(operation, (outcome) => this.#acted(operation, outcome))
    }
  }

  #acted(operation: Operation, outcome: Outcome): void {
    if (operation.state !== 'acting') return
    operation.state = 'acted'
    operation.outcome = outcome
    this.#raise()
  }

  /** Other steps may end in this turn of the event loop too: their answers share the commit. */
  #raise(): void {
    const { pending, signal, host } = this.#state
    if (pending.size > 1 && pending.any('acting')) host.timers.soon(() => signal.raise())
    else signal.raise()
  }

  #transact(operation: Operation): void {
    const { log, host } = this.#state
    this.#transacting = operation
    let row: NewStep | undefined
    const record = (outcome: Outcome): NewStep => {
      const answer = actedAnswer(operation, outcome)
      row = { ...log.rowOf(operation, log.nextNo, host.now(), answer), attempt: operation.attempt + 1 }
      return row
    }
    void host.transact(operation, record).then((outcome) => {
      this.#transacting = undefined
      if (outcome.kind !== 'succeeded' || row === undefined) return this.#acted(operation, outcome)
      operation.state = 'acted'
      this.#written(row)
      this.#raise()
    })
  }

  /* Answers */

  /** Writes answers: of one wait, sleep or call, then of all steps that have ended. Undefined when there is nothing to write. */
  #answer(found: Found | undefined): { readonly round: Round } | undefined {
    const { pending, log, host } = this.#state
    const isFree = this.#transacting === undefined
    const children = isFree ? childrenOf(pending) : NONE
    if (children.length > 0) return { round: this.#loop.later(this.#appendChildren(children).then(() => undefined)) }
    const rows: NewStep[] = []
    const now = host.now()
    const answer = (operation: Operation, given: Answer): void => {
      rows.push(log.rowOf(operation, log.nextNo + rows.length, now, given))
    }
    if (found !== undefined && isFree) answer(found.operation, foundAnswer(found))
    for (const operation of pending) {
      const { outcome, state } = operation
      if (outcome === undefined) continue
      if (state === 'prepared' && isFree) answer(operation, actedAnswer(operation, outcome))
      else if (state === 'acted') this.#settleAct(operation, outcome, answer)
    }
    const open = takeDueRows(this.#state, rows)
    if (rows.length + open.rows.length === 0) return log.recorded.length > 0 ? { round: undefined } : undefined
    const taken = found?.by !== undefined && isFree && this.#isLastFor(found) ? [found.by.number] : NONE
    return { round: this.#append(open.rows.length === 0 ? rows : [...rows, ...open.rows], taken, open.cancelled) }
  }

  /** What the end of an act makes of its operation: an answer, or another attempt later. */
  #settleAct(operation: Operation, outcome: Outcome, answer: (o: Operation, given: Answer) => void): void {
    const isAborted = outcome.kind !== 'succeeded' && operation.scope.abortReason !== undefined
    if (outcome.kind === 'released') {
      operation.state = 'queued'
      operation.outcome = undefined
      return
    }
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
    operation.until = this.#state.host.now() + delayMs
    operation.isRowDue = true
  }

  /** Several calls of one job are answered by one row of the inbox: the last of them removes it. */
  #isLastFor({ operation, by }: Found): boolean {
    if (operation.kind !== 'call') return true
    for (const other of this.#state.pending)
      if (other !== operation && other.kind === 'call' && other.child?.id === by?.name) return false
    return true
  }

  /** Time has answered: an event that was sent before must have been seen. */
  #mustReadInbox({ instant, by }: Found): boolean {
    if (by !== undefined || this.#state.inboxAt >= instant) return false
    return waitsOf(this.#state.pending).length > 0
  }

  async #readInbox(found: Found, now: number): Promise<Round> {
    const inbox = await this.#state.host.readInbox()
    if (inbox === undefined) return this.#answerFound(found, now, undefined)
    this.#state.receive(inbox)
    return undefined
  }

  /** An event that its schema refuses stays in the inbox, and the workflow is parked. */
  async #checkEvent(found: Found, now: number): Promise<Round> {
    const { deed } = found.operation
    if (deed.kind !== 'wait') return undefined
    const read = await this.#state.host.readEvent(deed.event, found.by?.payload ?? null)
    return read.ok ? this.#answerFound(found, now, undefined) : this.whenIdle({ kind: 'unreadable', error: read.error })
  }

  /* Writing */

  #append(rows: readonly NewStep[], taken: readonly number[], cancelled: readonly string[] = NONE): typeof WAITING {
    const state = this.#state
    state.host.append({ rows, taken, children: NONE, cancelled }, (written) => {
      if (written === undefined) state.isLost = true
      else {
        if (taken.length > 0) state.inbox = state.inbox.filter(({ number }) => !taken.includes(number))
        for (const row of rows) if (row.no !== null) this.#written(row)
      }
      this.#loop.goOn()
    })
    return WAITING
  }

  #written(row: NewStep): void {
    const { log, workflow, host } = this.#state
    log.written(row)
    if (log.nextNo === Math.ceil(workflow.rules.steps / 2)) host.warn({ kind: 'log-half-full', address: row.address })
  }

  /** All children at once; if the store refuses one of them, each alone, so that only that one fails. */
  async #appendChildren(operations: readonly Operation[]): Promise<void> {
    try {
      await this.#insert(operations)
    } catch (error) {
      if (operations.length > 1) {
        for (const each of operations) await this.#appendChildren([each])
        return
      }
      const [operation] = operations
      if (operation !== undefined)
        Object.assign(operation, { prepared: undefined, outcome: { kind: 'aborted', error: describeError(error) } })
    }
  }

  async #insert(operations: readonly Operation[]): Promise<void> {
    const { log, host } = this.#state
    let no = log.nextNo
    const rows = operations.map((operation) => {
      const isAnswered = operation.kind === 'enqueue'
      no += isAnswered ? 1 : 0
      return log.rowOf(operation, isAnswered ? no - 1 : null, host.now(), isAnswered ? NO_ANSWER : undefined)
    })
    const children = operations.flatMap(({ address, prepared, kind, deed }) =>
      prepared === undefined ? [] : [{ ...prepared, address, isAwaited: kind === 'call', isLeft: isLeft(deed) }],
    )
    const inserted = await this.#appended({ rows, taken: NONE, children, cancelled: NONE })
    if (inserted === undefined) {
      this.#state.isLost = true
      return
    }
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

  #appended(write: LogWrite): Promise<readonly Inserted[] | undefined> {
    return new Promise((resolve, reject) =>
      this.#state.host.append(write, (inserted, refused) =>
        refused === undefined ? resolve(inserted) : reject(refused as Error),
      ),
    )
  }

  /* Waiting */

  #wait(ms: number | null): Round {
    return this.#state.signal.wait(ms, this.#loop.goOn) ? WAITING : undefined
  }

  #awaitActs(now: number): Round {
    const { rows, cancelled } = takeDueRows(this.#state, NONE)
    if (rows.length > 0) return this.#append(rows, NONE, cancelled)
    // A time that has passed and is not answered waits for what acts: for a pause, a stop, or a transaction.
    const wakeAt = this.#wakeAt(now)
    return this.#wait(wakeAt === null ? null : wakeAt - now)
  }

  /** The body awaits something that is not of `w`. */
  #silent(now: number): Round {
    const state = this.#state
    state.silentSince ??= now
    const left = state.silentSince + SILENT_MS - now
    if (left <= 0 && state.workflow.isStrict) {
      state.ended = silentEnd(state)
      return undefined
    }
    if (left <= 0 && !this.#isSilenceReported) {
      this.#isSilenceReported = true
      state.host.warn({ kind: 'foreign-await', address: `${state.workflow.name} awaits something that is not of w` })
    }
    const wakeAt = this.#wakeAt()
    const until = Math.min(left > 0 ? left : Infinity, wakeAt === null ? Infinity : Math.max(1, wakeAt - now))
    return this.#wait(until === Infinity ? null : until)
  }

  /** The earliest time that matters, after this one. */
  #wakeAt(after = -Infinity): number | null {
    const { pending, cancelNo, deadlineAt, unwindBy } = this.#state
    const at = Math.min(
      earliest(pending, after) ?? Infinity,
      cancelNo === undefined ? (deadlineAt ?? Infinity) : Infinity,
      unwindBy,
    )
    return at === Infinity ? null : at
  }
}

const NONE: readonly never[] = []
const NO_ANSWER = { value: null, error: null }

/** Operations whose children are to be inserted. */
function childrenOf(pending: Iterable<Operation>): readonly Operation[] {
  let children: Operation[] | undefined
  for (const operation of pending)
    if (operation.state === 'prepared' && operation.prepared !== undefined) (children ??= []).push(operation)
  return children ?? NONE
}

function foundAnswer({ operation, by }: Found): Answer {
  if (operation.kind === 'sleep') return NO_ANSWER
  if (by === undefined) return { value: null, error: JSON.stringify(timedOut(operation)) }
  if (operation.kind === 'wait') return { value: by.payload, error: null }
  return calledAnswer(by, operation.name, operation.child?.id ?? '')
}

function timedOut({ name, deed }: Operation): { name: string; message: string; code: string } {
  const span = deed.kind === 'wait' && deed.timeoutMs !== undefined ? ` within ${formatDuration(deed.timeoutMs)}` : ''
  return { name: 'TimeoutError', message: `no event ${JSON.stringify(name)} was sent${span}`, code: 'E_TIMEOUT' }
}

function isLeft(deed: Deed): boolean {
  return deed.kind === 'call' && deed.leaves
}
