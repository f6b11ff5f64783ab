import { cancel, countEnd, endJob } from './ends.js'
import { enqueue } from './enqueue.js'
import { CANCEL, follow } from './course.js'
import type { ActEnd, Body, Course, Deed, End, Operation } from './course.js'
import { BACKOFF_MS, isFinal, isUnfinished, jobOf, Refused, RETRY_LIMIT } from './state.js'
import type { Enqueue, Model, ModelJob, State } from './state.js'

/** A row of the log: an answer, or an operation that is open. */
export interface Row {
  readonly address: string
  readonly verb: Deed['verb'] | 'cancel'
  readonly since: number
  no: number | null
  isError: boolean
  /** Its branch ended: a step threw because of that, or another operation was rejected, and its row stays open. */
  isUnwound: boolean
  /** Of a step: its failed attempts. */
  attempt: number
  /** When a sleep, a timeout or the wait for the next attempt of a step is over. */
  until: number | null
  /** The job that it called or enqueued, and whether that existed before. */
  child: number | null
  isOld: boolean
  leaves: boolean
  /** The end of the called job is in the inbox, or was, or is not awaited. */
  isDelivered: boolean
}

export interface InboxRow {
  readonly kind: 'event' | 'call' | 'cancel'
  /** The event, or the number of the called job. */
  readonly name: string
  readonly at: number
}

/** What a workflow has beside its job. */
export interface Workflow {
  body: Body
  run: number
  rows: Row[]
  /** Numbers that a retry forgot are not given again. */
  nextNo: number
  inbox: InboxRow[]
  readonly sentIds: Set<string>
  /** Where it waits without a claim, or would if it were not paused. */
  suspended: { readonly state: State; readonly wakeAt: number | null } | null
  /** What a retry forgets: the answer of this number and all that was called after it. */
  forgetFrom: number | null
  /** Steps that act in its claim until a command ends them, and when an aborted one is answered without its end. */
  readonly acts: Map<string, { graceUntil: number | null }>
  /** Steps whose last act has ended, and that are not answered yet. */
  readonly ended: Map<string, ActAnswer>
}

export type ActAnswer = Pick<Row, 'isError' | 'isUnwound'>

/** A wait that ends within this time is waited for in hand. */
export const IN_HAND_MS = 250
const GRACE_MS = 30_000
/** How long unwinding after a cancel may last. */
const CANCEL_WITHIN_MS = 600_000

export type HeldEnd = ActEnd | 'snooze'
/** A step that snoozes acts again after this time. */
export const SNOOZE_MS = 5_000

export function newWorkflow(body: Body): Workflow {
  return {
    body,
    run: 0,
    rows: [],
    nextNo: 0,
    inbox: [],
    sentIds: new Set(),
    suspended: null,
    forgetFrom: null,
    acts: new Map(),
    ended: new Map(),
  }
}

export function copyOfWorkflow(flow: Workflow): Workflow {
  return {
    ...flow,
    rows: flow.rows.map((row) => ({ ...row })),
    inbox: [...flow.inbox],
    sentIds: new Set(flow.sentIds),
    acts: new Map([...flow.acts].map(([address, act]) => [address, { ...act }])),
    ended: new Map(flow.ended),
  }
}

const flowOf = (job: ModelJob): Workflow => job.workflow as Workflow

/** Its present run has recorded something. */
export const hasBegun = (job: ModelJob): boolean => job.workflow !== null && job.workflow.rows.length > 0

/** Any run of it has: its input and its times are those that it began with. */
export const hasRun = (job: ModelJob): boolean => hasBegun(job) || (job.workflow !== null && job.workflow.run > 0)

const answered = ({ rows }: Workflow): Row[] =>
  rows.filter(({ no }) => no !== null).toSorted((one, other) => (one.no as number) - (other.no as number))

export function courseOf(job: ModelJob): Course {
  const flow = flowOf(job)
  const answers = answered(flow).map((row) => ({ ...row, no: row.no as number, unwound: row.isUnwound }))
  return follow(flow.body, flow.run, answers)
}

/** It is being cancelled: its body unwinds, or will. */
function isCancelling({ inbox, rows }: Workflow): boolean {
  return inbox.some(({ kind }) => kind === 'cancel') || rows.some(({ address }) => address === CANCEL)
}

const isStopped = ({ state }: ModelJob): boolean => state === 'gone' || state === 'parked' || isFinal(state)

// ── In hand ──────────────────────────────────────────────────────────────────

/** What a store has of a run, where that is not promised: the order of its answers, and which jobs it called before they were in vain. */
export interface Recorded {
  readonly run: number
  readonly addresses: readonly string[]
  readonly called: ReadonlySet<string>
  /** It gave its slot back, because suspects wait for an empty process. */
  readonly hasYielded: boolean
}

/**
 * What the worker that holds the claim does until it must wait, commit by commit. Which of several acts that end together is
 * recorded first is not promised.
 */
export function drive(model: Model, job: ModelJob, recorded: Recorded, stops: boolean): void {
  const flow = flowOf(job)
  const begins = { mayBegin: !stops && job.request !== 'pause' }
  flow.suspended = null
  job.expiresAt = null
  const prepared = new Set<string>()
  for (;;) {
    const course = courseOf(job)
    closeRows(model, job, course)
    const isLate = (unwindBy(flow) ?? Infinity) <= model.now
    if (course.end !== undefined || isLate) return endRun(model, job, course.end)
    const commit = nextCommit(model, job, course, { recorded, prepared, ...begins })
    const isOver = recorded.run === flow.run && recorded.addresses.length === answered(flow).length
    if (recorded.hasYielded && isOver) return giveBack(model, job)
    if (commit === undefined) return rest(model, job, course, stops)
    for (const address of inOrder(job, commit, recorded)) answer(model, job, address)
  }
}

/** What one commit may record. */
interface Commit {
  readonly acts: readonly string[]
  /** One of these. */
  readonly waits: readonly string[]
}

/** `mayBegin`: for a pause and for a stop nothing begins, and nothing is answered but what acts. */
interface Going {
  readonly recorded: Recorded
  readonly prepared: Set<string>
  readonly mayBegin: boolean
}

function nextCommit(model: Model, job: ModelJob, course: Course, going: Going): Commit | undefined {
  const { recorded, prepared, mayBegin } = going
  const { pending } = course
  const flow = flowOf(job)
  const isCancelled = flow.rows.some(({ address }) => address === CANCEL)
  if (!isCancelled && flow.inbox.some(({ kind }) => kind === 'cancel')) return { acts: [CANCEL], waits: [] }
  const children = pending.filter(({ address, deed }) => isCall(deed) && rowIn(flow, address) === undefined)
  const isPast = recorded.run > flow.run
  insertChildren(
    model,
    job,
    children.filter(({ address }) => (isPast ? prepared : recorded.called).has(address)),
  )
  act(model, job, course, mayBegin)
  const enqueued = enqueuedFirst(job, pending, recorded)
  if (enqueued.length > 0) return { acts: enqueued, waits: [] }
  openRows(model, job, course)
  const waits = mayBegin ? waitsOver(model, job, course) : []
  const acts = [...flow.ended.keys()]
  // A job to call is prepared meanwhile.
  for (const { address } of children) prepared.add(address)
  return waits.length + acts.length + (isPast ? children.length : 0) === 0 ? undefined : { acts, waits }
}

/** Jobs that are enqueued together are recorded in one commit. */
function enqueuedFirst(job: ModelJob, pending: readonly Operation[], { run, addresses }: Recorded): string[] {
  const flow = flowOf(job)
  const isEnqueued = (address: string): boolean =>
    pending.some((each) => each.address === address && each.deed.verb === 'enqueue') &&
    rowIn(flow, address)?.no === null
  if (run > flow.run) return pending.map(({ address }) => address).filter(isEnqueued)
  const next = addresses.slice(answered(flow).length)
  const end = next.findIndex((address) => !isEnqueued(address))
  return end === -1 ? next : next.slice(0, end)
}

/** When its unwinding must have ended. */
const unwindBy = ({ rows }: Workflow): number | null => rows.find(({ address }) => address === CANCEL)?.until ?? null

const isCall = ({ verb }: Deed): boolean => verb === 'call' || verb === 'enqueue'

const rowIn = ({ rows }: Workflow, address: string): Row | undefined => rows.find((row) => row.address === address)

/** The answers of a commit as they were recorded: all of its acts, and one of its waits. */
function inOrder(job: ModelJob, { acts, waits }: Commit, recorded: Recorded): readonly string[] {
  const flow = flowOf(job)
  const size = acts.length + Math.min(1, waits.length)
  // The log of a run that was restarted is empty by now: nothing that it did is compared.
  if (recorded.run > flow.run) return [...waits.slice(0, 1), ...acts]
  const from = answered(flow).length
  const found = recorded.addresses.slice(from, from + size)
  const isRight = acts.every((address) => found.includes(address))
  if (!isRight || found.length < size || found.some((address) => !acts.includes(address) && !waits.includes(address)))
    throw new Error(
      `job ${job.number} has recorded ${found.join(', ')}, and the next answers are ${acts.join(', ')} and one of ${waits.join(', ')}`,
    )
  return found
}

/** A sleep and a wait have a row from their call on. */
function openRows(model: Model, job: ModelJob, { pending }: Course): void {
  const flow = flowOf(job)
  for (const { address, deed, since } of pending) {
    const known = rowIn(flow, address)
    // A retry has forgotten the end of its branch.
    if (known !== undefined && known.no === null) known.isUnwound = false
    if (known !== undefined || (deed.verb !== 'sleep' && deed.verb !== 'wait')) continue
    rowAt(flow, address, deed.verb, since).until = deed.ms === null ? null : model.now + deed.ms
  }
}

/** Inserts jobs with the rows of their calls. Which of the jobs is first is not promised. */
function insertChildren(model: Model, job: ModelJob, operations: readonly Operation[]): void {
  const flow = flowOf(job)
  if (operations.length === 0) return
  const { calls } = model
  for (const { address, deed, since } of operations) {
    if (deed.verb !== 'call' && deed.verb !== 'enqueue') continue
    const { key, inMs, name, body, verb, leaves } = deed
    const given: Enqueue = { inMs, ...(key === null ? {} : { key }), ...(body === null ? {} : { body }) }
    const { number, isNew } = enqueue(model, name, given, job)
    const child = { child: number, isOld: !isNew, leaves, isDelivered: verb === 'enqueue' }
    Object.assign(rowAt(flow, address, verb, since), child)
  }
  model.calls = calls + 1
}

/** The row of an operation that was called, and is neither answered nor tried. */
const rowOf = (address: string, verb: Row['verb'], since: number): Row => ({
  address,
  verb,
  since,
  no: null,
  isError: false,
  isUnwound: false,
  attempt: 0,
  until: null,
  child: null,
  isOld: false,
  leaves: false,
  isDelivered: false,
})

/** The row of an address, which a first row makes. */
function rowAt(flow: Workflow, address: string, verb: Row['verb'], since: number): Row {
  const known = rowIn(flow, address)
  const row = known ?? rowOf(address, verb, since)
  if (known === undefined) flow.rows.push(row)
  return row
}

/** What was rejected keeps its row; a job that it called is cancelled. */
function closeRows(model: Model, job: ModelJob, { rejected }: Course): void {
  for (const row of flowOf(job).rows) {
    if (!rejected.has(row.address) || row.no !== null || row.isUnwound) continue
    row.isUnwound = true
    dropCall(model, row)
  }
}

function dropCall(model: Model, row: Row): void {
  if (row.child === null || row.isDelivered || row.isOld || row.leaves) return
  row.isDelivered = true
  cancel(model, jobOf(model, row.child))
}

/** Begins the steps that may begin, and ends those that may not or whose code returns at once. */
function act(model: Model, job: ModelJob, { pending }: Course, mayBegin: boolean): void {
  const flow = flowOf(job)
  const { acts, ended } = flow
  for (const { address, deed, since, isAborted } of pending) {
    if (deed.verb !== 'step' || ended.has(address)) continue
    const acting = acts.get(address)
    if (isAborted && acting !== undefined) acting.graceUntil ??= model.now + GRACE_MS
    const isOver = acting === undefined ? isAborted : acting.graceUntil !== null && acting.graceUntil <= model.now
    if (isOver) {
      acts.delete(address)
      ended.set(address, { isError: true, isUnwound: true })
    }
    const row = rowIn(flow, address)
    const isDue = (row?.until ?? -Infinity) <= model.now
    if (isOver || acting !== undefined || !mayBegin || !isDue) continue
    if (deed.ends === 'held') acts.set(address, { graceUntil: null })
    else
      endAct(
        model,
        job,
        { address, since, isAborted },
        deed.ends[Math.min(row?.attempt ?? 0, deed.ends.length - 1)] as ActEnd,
      )
  }
}

/** An act has ended: it is tried again later, or its end is the answer. */
function endAct(
  model: Model,
  job: ModelJob,
  { address, since, isAborted }: Pick<Operation, 'address' | 'since' | 'isAborted'>,
  end: HeldEnd,
): void {
  const flow = flowOf(job)
  const { ended } = flow
  if (end === 'return') return void ended.set(address, { isError: false, isUnwound: false })
  if (isAborted) return void ended.set(address, { isError: true, isUnwound: true })
  const attempts = rowIn(flow, address)?.attempt ?? 0
  if (end === 'abort' || (end === 'throw' && attempts >= RETRY_LIMIT))
    return void ended.set(address, { isError: true, isUnwound: false })
  const row = rowAt(flow, address, 'step', since)
  if (end === 'throw') row.attempt += 1
  row.until = model.now + (end === 'throw' ? BACKOFF_MS : SNOOZE_MS)
}

/** Of what waits: that of the earliest instant, then the earliest call, so that a late worker decides as a punctual one. */
function waitsOver(model: Model, job: ModelJob, { pending }: Course): string[] {
  const flow = flowOf(job)
  const over = pending.flatMap(({ address, deed, since }) => {
    const row = rowIn(flow, address)
    const at = row === undefined || deed.verb === 'step' ? undefined : overAt(flow, row, deed, model.now)
    return at === undefined ? [] : [{ address, at, since }]
  })
  const first = over.toSorted((one, other) => one.at - other.at || one.since - other.since)[0]
  // Those of one turn were called in an order that the code decides.
  return over.filter(({ at, since }) => at === first?.at && since === first.since).map(({ address }) => address)
}

/** When an operation could be answered; undefined: not yet. An event that was sent by the time of the timeout wins. */
function overAt(flow: Workflow, row: Row, deed: Deed, now: number): number | undefined {
  const by = answerOf(flow, row, deed)
  if (by !== undefined) return by.at
  return row.until !== null && row.until <= now ? row.until : undefined
}

function answerOf({ inbox }: Workflow, row: Row, deed: Deed): InboxRow | undefined {
  if (deed.verb === 'call') return inbox.find(({ kind, name }) => kind === 'call' && name === String(row.child))
  if (deed.verb !== 'wait') return undefined
  const event = inbox.find(({ kind, name }) => kind === 'event' && name === deed.event)
  return event !== undefined && (row.until === null || event.at <= row.until) ? event : undefined
}

/** Records the next answer. An answer ends the count of crashes. */
function answer(model: Model, job: ModelJob, address: string): void {
  const flow = flowOf(job)
  const operation = courseOf(job).pending.find((each) => each.address === address)
  const since = operation?.since ?? (answered(flow).at(-1)?.no ?? -1) + 1
  const row = rowAt(flow, address, operation?.deed.verb ?? 'cancel', since)
  const how = flow.ended.get(address)
  if (address === CANCEL) {
    row.isError = true
    flow.inbox = flow.inbox.filter(({ kind }) => kind !== 'cancel')
  } else if (how !== undefined) Object.assign(row, how)
  else if (operation !== undefined) take(model, flow, row, operation.deed)
  Object.assign(row, { no: flow.nextNo, until: address === CANCEL ? model.now + CANCEL_WITHIN_MS : null })
  flow.nextNo += 1
  flow.ended.delete(address)
  Object.assign(job, { crashes: 0, streak: 0 })
}

/** A row of the inbox is removed by the operation that it answers: the end of a job by the last of its calls. */
function take(model: Model, flow: Workflow, row: Row, deed: Deed): void {
  const by = answerOf(flow, row, deed)
  if (deed.verb === 'wait') row.isError = by === undefined
  if (deed.verb === 'call' && row.child !== null) row.isError = !isDone(jobOf(model, row.child))
  const isShared = (other: Row): boolean =>
    other !== row && other.verb === 'call' && other.child === row.child && other.no === null && !other.isUnwound
  if (deed.verb !== 'call' || !flow.rows.some(isShared)) flow.inbox = flow.inbox.filter((each) => each !== by)
}

const isDone = ({ state, forgotten }: ModelJob): boolean => state === 'done' || forgotten === 'done'

/** Nothing can be answered: it stays in hand while a step acts or the wait is short, else it is suspended. */
function rest(model: Model, job: ModelJob, { pending }: Course, stops: boolean): void {
  const flow = flowOf(job)
  if (flow.acts.size > 0) return
  if (stops) return giveBack(model, job)
  const rows = pending.map(({ address }) => rowIn(flow, address))
  const wakeAt = earliest([unwindBy(flow), ...rows.map((row) => row?.until ?? null)])
  const waitsForTime = rows.every((row) => row !== undefined && row.verb !== 'wait' && row.verb !== 'call')
  const isRetrying = rows.every((row) => row?.verb === 'step')
  const state = !waitsForTime ? 'blocked' : isRetrying ? 'retrying' : 'scheduled'
  // A step that a pause keeps from acting is due.
  const isDue = rows.some((row) => row === undefined || (row.until !== null && row.until <= model.now))
  if (job.request !== 'pause' && wakeAt !== null && wakeAt - model.now <= IN_HAND_MS) return
  flow.suspended = isDue ? null : { state, wakeAt }
  job.state = job.request === 'pause' ? 'paused' : state
  job.dueAt = isDue || state === 'blocked' ? model.now : (wakeAt ?? model.now)
  endClaim(model, job)
}

function giveBack(model: Model, job: ModelJob): void {
  Object.assign(job, { state: job.request === 'pause' ? 'paused' : 'ready', dueAt: model.now })
  endClaim(model, job)
}

function earliest(times: readonly (number | null)[]): number | null {
  const at = Math.min(...times.map((time) => time ?? Infinity))
  return at === Infinity ? null : at
}

/** However its body ends after a cancel, it is cancelled. */
function endRun(model: Model, job: ModelJob, end: End | undefined): void {
  const flow = flowOf(job)
  const cancelNo = flow.rows.find(({ address }) => address === CANCEL)?.no ?? null
  const isPaused = job.request === 'pause'
  endClaim(model, job)
  job.attempt += 1
  if (cancelNo !== null) {
    flow.forgetFrom = cancelNo
    endJob(model, job, 'cancelled')
  } else if (end?.kind === 'threw') {
    flow.forgetFrom = end.no
    endJob(model, job, 'failed')
  } else if (end?.kind === 'returned') endJob(model, job, 'done')
  else {
    begin(flow, flow.run + 1)
    Object.assign(job, { attempt: 0, retries: 0, crashes: 0, streak: 0, dueAt: model.now })
    job.state = isPaused ? 'paused' : 'ready'
  }
  countEnd(model, job)
}

/** An empty log; what was sent stays. */
function begin(flow: Workflow, run: number): void {
  Object.assign(flow, { run, rows: [], nextNo: 0, suspended: null, forgetFrom: null })
}

function endClaim(model: Model, job: ModelJob): void {
  job.request = null
  leaveHand(job)
  model.attempts = model.attempts.filter((attempt) => attempt.job !== job.number || !attempt.hasClaim)
}

/** What acted is not recorded. */
export function leaveHand(job: ModelJob): void {
  job.workflow?.acts.clear()
  job.workflow?.ended.clear()
}

/** When something of a workflow in hand is over. */
export function nextInHand(job: ModelJob): number | null {
  const flow = flowOf(job)
  // A step acts although the wait for its attempt is over.
  const isOpen = (row: Row): boolean => row.no === null && !row.isUnwound && !flow.acts.has(row.address)
  return earliest([
    unwindBy(flow),
    ...(job.request === 'pause' ? [] : flow.rows.filter(isOpen).map(({ until }) => until)),
    ...[...flow.acts.values()].map(({ graceUntil }) => graceUntil),
  ])
}

/** A command ends the act of a step. */
export function endHeld(model: Model, job: ModelJob, address: string, end: HeldEnd): void {
  const operation = courseOf(job).pending.find((each) => each.address === address) as Operation
  flowOf(job).acts.delete(address)
  endAct(model, job, operation, end)
}

// ── From outside ─────────────────────────────────────────────────────────────

/** It is due now; a paused one stays paused. */
function wake(model: Model, job: ModelJob): void {
  if (flowOf(job).suspended === null || job.state === 'paused' || !isUnfinished(job)) return
  flowOf(job).suspended = null
  Object.assign(job, { state: 'ready', dueAt: model.now })
}

/** Blocked until a time that has come. */
export function wakeDue(model: Model): void {
  for (const job of model.jobs) {
    const wakeAt = job.workflow?.suspended?.wakeAt ?? null
    if (job.state === 'blocked' && wakeAt !== null && wakeAt <= model.now) wake(model, job)
  }
}

/** False: it has ended, or an event of that id was sent before. */
export function send(model: Model, job: ModelJob, event: string, id: string | null): boolean {
  if (job.state === 'gone') throw new Refused('E_JOB_GONE')
  if (job.workflow === null) throw new Refused('E_NOT_A_WORKFLOW')
  const flow = job.workflow
  if (isFinal(job.state) || (id !== null && flow.sentIds.has(id))) return false
  if (id !== null) flow.sentIds.add(id)
  flow.inbox.push({ kind: 'event', name: event, at: model.now })
  if (isAwaited(job, ({ verb, address }) => verb === 'wait' && address.includes(`wait:${event}#`))) wake(model, job)
  return true
}

function isAwaited(job: ModelJob, which: (row: Row) => boolean): boolean {
  return flowOf(job).rows.some((row) => row.no === null && !row.isUnwound && which(row))
}

/** The called jobs whose ends it waits for. */
export function awaitedCalls({ workflow }: ModelJob): number[] {
  return (workflow?.rows ?? []).flatMap(({ child, isDelivered }) => (isDelivered ? [] : (child ?? [])))
}

/** The ends of called jobs reach those that called them. */
export function deliverCallEnds(model: Model): void {
  for (const job of model.jobs) {
    if (job.workflow === null || !isUnfinished(job)) continue
    for (const row of job.workflow.rows) {
      const called = row.child === null || row.isDelivered ? undefined : jobOf(model, row.child)
      if (called === undefined || isUnfinished(called)) continue
      for (const each of job.workflow.rows) if (each.child === row.child) each.isDelivered = true
      job.workflow.inbox.push({ kind: 'call', name: String(row.child), at: called.endedAt ?? model.now })
      if (isAwaited(job, (each) => each.child === row.child)) wake(model, job)
    }
  }
}

/** At once while nothing is recorded; else its body unwinds. */
export function cancelWorkflow(model: Model, job: ModelJob): boolean {
  if (isStopped(job)) return false
  if (isCancelling(flowOf(job))) return true
  if (job.state !== 'running' && !hasBegun(job)) {
    endJob(model, job, 'cancelled')
    return true
  }
  flowOf(job).inbox.push({ kind: 'cancel', name: '', at: model.now })
  job.request = null
  if (job.state === 'running' || job.state === 'ready') return true
  flowOf(job).suspended = null
  Object.assign(job, { state: 'ready', dueAt: model.now })
  return true
}

/** Its body runs no further. */
export function endWorkflow(model: Model, job: ModelJob): boolean {
  if (job.state !== 'gone' && job.workflow === null) throw new Refused('E_INVALID_OPTIONS')
  if (isStopped(job)) return false
  const flow = flowOf(job)
  for (const row of flow.rows) if (row.no === null && !row.isUnwound) dropCall(model, row)
  flow.forgetFrom = flow.rows.find(({ address }) => address === CANCEL)?.no ?? null
  flow.suspended = null
  endClaim(model, job)
  endJob(model, job, 'cancelled')
  return true
}

export function pauseWorkflow(job: ModelJob): boolean {
  if (isStopped(job) || job.state === 'paused' || isCancelling(flowOf(job))) return false
  if (job.state === 'running') job.request = 'pause'
  else job.state = 'paused'
  return true
}

/** Ready if anything can be answered, else as it waited. */
export function resumeWorkflow(model: Model, job: ModelJob, unbegun: State): boolean {
  const flow = flowOf(job)
  if (isStopped(job) || isCancelling(flow)) return false
  if (job.state === 'running') {
    if (job.request !== 'pause') return false
    job.request = null
    return true
  }
  if (job.state !== 'paused') return false
  const { suspended } = flow
  if (suspended === null) {
    job.state = hasBegun(job) ? 'ready' : unbegun
    if (hasBegun(job)) job.dueAt = model.now
    return true
  }
  const isOver = waitsOver(model, job, courseOf(job)).length > 0 || (suspended.wakeAt ?? Infinity) <= model.now
  job.state = suspended.state
  if (isOver) wake(model, job)
  return true
}

/** It goes on where it failed or was cancelled; `fresh`: with an empty log. */
export function retryWorkflow(job: ModelJob, how: 'rest' | 'fresh'): void {
  const flow = flowOf(job)
  const { forgetFrom } = flow
  flow.inbox = flow.inbox.filter(({ kind }) => kind !== 'cancel')
  flow.suspended = null
  flow.forgetFrom = null
  if (how === 'fresh') return begin(flow, flow.run + 1)
  const isForgotten = ({ no, since, isUnwound }: Row): boolean =>
    forgetFrom !== null && (no === forgetFrom || since > forgetFrom || (no !== null && no > forgetFrom && isUnwound))
  flow.rows = flow.rows.filter((row) => !isForgotten(row))
  const isHere = (child: number): boolean =>
    flow.inbox.some(({ kind, name }) => kind === 'call' && name === String(child))
  // The ends of jobs that it called and has no answer of come again.
  for (const row of flow.rows) if (row.no === null && row.child !== null) row.isDelivered = isHere(row.child)
}
