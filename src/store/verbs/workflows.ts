import { isSequence } from '../../job/definition/stored-options.js'
import { decideCommand } from '../../job/rules/command.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { RequestKind } from '../../job/rules/request.js'
import { isFinal } from '../../job/rules/states.js'
import type { State } from '../../job/rules/states.js'
import { decideWorkflow, resumedWorkflow, waitName } from '../../job/rules/workflow-commands.js'
import type { WorkflowMove } from '../../job/rules/workflow-commands.js'
import { booleanOf, numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import type { NewStep } from '../sequences.js'
import type { GuardedChange, Inserted, JobRow } from '../store.js'
import { INBOX_MAX } from '../workflows.js'
import type {
  EncodedEvent,
  InboxRow,
  LogAppend,
  NewChild,
  NewEvent,
  Sent,
  StepPage,
  StepRow,
  WorkflowChange,
  WorkflowChanged,
  WorkflowRecordRow,
  WorkflowStore,
} from '../workflows.js'
import { entryOf, writeAudit } from './audit.js'
import { goneEnd } from './call-ends.js'
import type { JobSteps } from './job-steps.js'
import { requestChange } from './requests.js'
import { changeSequence } from './sequences.js'
import { awaited } from './verb.js'
import type { Answer, Verb, VerbRunner, VerbSession } from './verb.js'

/** The steps of workflows that each store takes in its own way. */
export interface WorkflowSteps {
  /** False: an event of that id was sent before. */
  putEvent(ref: number, event: EncodedEvent): Answer<boolean>
  /** Makes suspended workflows ready and due now; those in another state stay as they are. */
  wakeWorkflows(refs: readonly number[]): Answer<unknown>
  /** Ends an unfinished job as cancelled, and takes it from its claim. False: another process changed it meanwhile. */
  endUnfinished(id: string, reason: string, keepMs: number): Answer<boolean>
  /** Brings the end of a called job into the inbox of the workflow that called it. */
  linkCall(call: NewCall): Answer<unknown>
}

/** A workflow waits for a job that this transaction has inserted, or found by a held key. */
export interface NewCall {
  /** The ref of the workflow. */
  readonly caller: number
  readonly called: Inserted
  /** How long the called job is kept if it is cancelled with the workflow. */
  readonly keepMs: number
}

type At = VerbSession & JobSteps

/** The verbs of workflows on the store of these steps. */
export function workflowVerbs(verbs: VerbRunner): WorkflowStore {
  return {
    sendEvent: (event) => verbs.write((at) => sendEvent(at, event), idsOf(event)),
    changeWorkflow: (change) => verbs.write((at) => changeWorkflow(at, change), { ids: [change.id] }),
    readWorkflow: (id) => verbs.read((at) => readWorkflow(at, id)),
    readSteps: (id, after, limit) => verbs.read((at) => readSteps(at, id, after, limit)),
    readInbox: ({ ref }, after, limit) => verbs.read((at) => readInbox(at, ref, after, limit)),
  }
}

function idsOf({ to }: NewEvent): { readonly ids: readonly string[] } {
  return { ids: 'id' in to ? [to.id] : [] }
}

/**
 * Writes an event into the inbox. `isLater`: the transaction may stay open for long, so it locks no row that a worker
 * needs, and a to-do wakes the workflow after the commit (PostgreSQL).
 */
export function* sendEvent(at: At, event: NewEvent, isLater = false): Verb<Sent> {
  const id = yield* idOf(at, event.to)
  // No other process deletes the job before this transaction ends.
  if (id === undefined || (yield* awaited(at.rows('holdJob', id))).length === 0) return NOT_SENT
  if (!isLater) yield* lockWorkflow(at, id)
  const job = yield* readPlace(at, id)
  if (job === undefined) return NOT_SENT
  const answer = (did: Sent['did']): Sent => ({ did, id, jobName: job.name })
  if (job.shape !== 'workflow') return answer('plain')
  if (isFinal(job.state)) return answer('ended')
  if ((yield* awaited(at.rows('isInboxFull', job.ref, INBOX_MAX - 1))).length > 0) return answer('full')
  const payload = typeof event.payload === 'function' ? event.payload(job.name) : event.payload
  if (!(yield* awaited(at.putEvent(job.ref, { ...event, payload })))) return answer('known')
  if (isLater) yield* awaited(at.run('noteWake', job.ref))
  else if (job.waits?.includes(waitName('event', event.name)) === true) yield* awaited(at.wakeWorkflows([job.ref]))
  at.note(isLater ? { dueInMs: 0, requested: true } : { requested: true })
  yield* writeAudit(at, entryOf(event.audit, `job ${id}`, job.state, `${job.state}, event ${event.name}`))
  return answer('sent')
}

const NOT_SENT: Sent = { did: 'gone', id: null, jobName: null }

function* idOf(at: At, to: NewEvent['to']): Verb<string | undefined> {
  if ('id' in to) return to.id
  return (yield* awaited(at.readKeyed(to.name, to.key)))?.id
}

/** Of two transactions that change a workflow or its inbox, the second sees what the first did. */
function* lockWorkflow(at: At, id: string): Verb<void> {
  yield* awaited(at.run('ensureWorkflow', id))
  yield* awaited(at.rows('lockWorkflow', id))
}

/** A workflow as its verbs read it. */
interface Place {
  readonly ref: number
  readonly name: string
  readonly queue: string
  readonly shape: string | null
  readonly state: State
  readonly claimed: boolean
  readonly dueAt: number
  readonly requested: RequestKind | null
  readonly run: number
  /** The run that users see as 0. */
  readonly firstRun: number
  /** What it waits for while it is suspended; null: it is not. */
  readonly waits: readonly string[] | null
  readonly wakeAt: number | null
  readonly pausedFrom: State | null
  readonly forgetFrom: number | null
  readonly hasBegun: boolean
  readonly isCancelRequested: boolean
}

function* readPlace(at: VerbSession, id: string): Verb<Place | undefined> {
  const [row] = yield* awaited(at.rows<StoredPlace>('readWorkflow', id))
  if (row === undefined) return undefined
  return {
    ref: numberOf(row.ref),
    name: row.name,
    queue: row.queue,
    shape: row.shape,
    state: row.state,
    claimed: booleanOf(row.claimed),
    dueAt: numberOf(row.due_at),
    requested: row.requested,
    run: numberOf(row.run),
    firstRun: numberOf(row.first_run),
    waits: row.waits === null ? null : (JSON.parse(row.waits) as string[]),
    wakeAt: numberOrNull(row.wake_at),
    pausedFrom: row.paused_from,
    forgetFrom: numberOrNull(row.forget_from),
    hasBegun: booleanOf(row.begun),
    isCancelRequested: booleanOf(row.cancelling),
  }
}

interface StoredPlace {
  readonly ref: Numeric
  readonly name: string
  readonly queue: string
  readonly shape: string | null
  readonly state: State
  readonly claimed: unknown
  readonly due_at: Numeric
  readonly requested: RequestKind | null
  readonly run: Numeric
  readonly first_run: Numeric
  readonly waits: string | null
  readonly wake_at: Numeric | null
  readonly paused_from: State | null
  readonly forget_from: Numeric | null
  readonly begun: unknown
  readonly cancelling: unknown
}

/** Give up after this many lost races with other processes for the same workflow. */
const TRIES = 20

export function* changeWorkflow(at: At, change: WorkflowChange): Verb<WorkflowChanged> {
  let place: Place | undefined
  for (let tries = 0; tries < TRIES; tries += 1) {
    yield* lockWorkflow(at, change.id)
    place = yield* readPlace(at, change.id)
    if (place?.shape !== 'workflow') return changed(place === undefined ? 'gone' : 'plain', place)
    const move = decideWorkflow(place, change.verb)
    if (move === null) break
    const done = yield* applyMove(at, change, place, move)
    if (done !== 'stale') return done
  }
  return changed('no', place)
}

function changed(
  did: WorkflowChanged['did'],
  place: Place | undefined,
  more: Partial<WorkflowChanged> = {},
): WorkflowChanged {
  const { state: from = null, name = null, queue = null } = place ?? {}
  return { did, from, to: null, name, queue, isTaken: false, forgotten: [], ...more }
}

function* applyMove(at: At, change: WorkflowChange, place: Place, move: WorkflowMove): Verb<WorkflowChanged | 'stale'> {
  const { id, reason, keepMs, audit } = change
  if ('already' in move) return changed('requested', place)
  if ('inbox' in move) return yield* cancelInside(at, change, place)
  if ('end' in move) return yield* endNow(at, change, place)
  if ('resume' in move) return yield* resume(at, change, place)
  if ('retry' in move) return yield* retry(at, change, place, move.retry)
  if ('request' in move) {
    const noted = yield* requestChange(at, { id, verb: move.request, reason, keepMs, audit })
    if (noted === 'refused') return changed('no', place)
    return noted === 'noted' ? changed('requested', place) : 'stale'
  }
  const exit = move.to === 'paused' ? { exit: 'paused' } : {}
  const done = yield* awaited(at.changeJob({ id, from: place.state, to: move.to, reason, keepMs, audit, ...exit }))
  if (done === 'stale') return 'stale'
  if (move.to === 'paused') yield* awaited(at.run('pauseWorkflow', place.state, place.ref))
  return changed('moved', place, { to: move.to, isTaken: done === 'taken' })
}

/** Its body unwinds: at once if a worker has it, else when a worker claims it. */
function* cancelInside(at: At, { id, reason, audit }: WorkflowChange, place: Place): Verb<WorkflowChanged | 'stale'> {
  if (place.state === 'paused') {
    const now = yield* awaited(at.now())
    const ready: GuardedChange = {
      id,
      from: 'paused',
      to: 'ready',
      place: { state: 'ready', dueAt: now },
      keepMs: Infinity,
    }
    if ((yield* awaited(at.changeJob(ready))) === 'stale') return 'stale'
    yield* awaited(at.run('endWaits', place.ref))
  } else yield* awaited(at.wakeWorkflows([place.ref]))
  yield* awaited(at.run('putCancel', place.ref, at.storable(reason), at.givenNow))
  // A pause that was requested before would keep it from unwinding.
  yield* awaited(at.run('dropRequests', at.list([place.ref])))
  yield* writeAudit(at, entryOf(audit, `job ${id}`, place.state, `${place.state}, cancel requested`))
  at.note({ requested: true })
  return changed('requested', place)
}

/** Its body runs no further, and a worker that has it loses its claim. */
function* endNow(at: At, { id, reason, keepMs, audit }: WorkflowChange, place: Place): Verb<WorkflowChanged | 'stale'> {
  // Before its end drops the links to them.
  yield* cancelCalled(at, place.ref, yield* openCalls(at, place))
  if (!(yield* awaited(at.endUnfinished(id, reason, keepMs)))) return 'stale'
  yield* awaited(at.run('endWaits', place.ref))
  yield* writeAudit(at, entryOf(audit, `job ${id}`, place.state, 'cancelled'))
  at.note({ requested: true })
  return changed('moved', place, { to: 'cancelled' })
}

/** Jobs that it waits for and that are cancelled with it. */
function* openCalls(at: At, { ref, run }: Place): Verb<readonly string[]> {
  const rows = yield* awaited(at.rows<StoredStep>('openSteps', ref, run))
  return rows.flatMap(({ note }) => {
    const { child, isOld, isLeft } = noteOf(note)
    return child === undefined || isOld === true || isLeft === true ? [] : [child]
  })
}

/** The part of a row's note that names the job that it called. */
interface CallNote {
  readonly child?: string | undefined
  readonly isOld?: boolean | undefined
  readonly isLeft?: boolean | undefined
}

function noteOf(note: string | null): CallNote {
  return note === null ? {} : (JSON.parse(note) as CallNote)
}

/** A suspended workflow that was paused waits again, unless something that it waits for has come. */
function* resume(at: At, { id, audit }: WorkflowChange, place: Place): Verb<WorkflowChanged | 'stale'> {
  const resumed = { id, from: 'paused', to: 'ready', exit: 'resumed', keepMs: Infinity, audit } as const
  // It never began: its parents and its due time decide.
  if (place.waits === null && !place.hasBegun) {
    if ((yield* awaited(at.changeJob(resumed))) === 'stale') return 'stale'
    return changed('moved', place, { to: 'ready' })
  }
  const now = yield* awaited(at.now())
  const state = yield* resumedState(at, place, now)
  const dueAt = state === 'ready' ? now : place.dueAt
  if ((yield* awaited(at.changeJob({ ...resumed, place: { state, dueAt } }))) === 'stale') return 'stale'
  yield* awaited(at.run(state === 'ready' ? 'endWaits' : 'resumeWorkflow', place.ref))
  if (state === 'blocked' && place.wakeAt !== null) at.note({ dueInMs: Math.max(0, place.wakeAt - now) })
  return changed('moved', place, { to: state })
}

function* resumedState(at: At, { ref, waits, pausedFrom, wakeAt, dueAt }: Place, now: number): Verb<State> {
  if (waits === null || pausedFrom === null) return 'ready'
  const isAnswered = (yield* awaited(at.rows('isWaitOver', ref, JSON.stringify(waits)))).length > 0
  return resumedWorkflow({ from: pausedFrom, isAnswered, dueAt: pausedFrom === 'blocked' ? wakeAt : dueAt }, now)
}

/** The addresses in the entry of a retry in the job's log. */
const FORGOTTEN_SHOWN = 20

/** It runs again: with what is left of its log, or with an empty one. */
function* retry(at: At, change: WorkflowChange, place: Place, how: 'rest' | 'fresh'): Verb<WorkflowChanged | 'stale'> {
  const { id, audit } = change
  const { ref, run } = place
  const forgetFrom = place.forgetFrom ?? (yield* unwoundFrom(at, place))
  const isForgetting = how === 'rest' && forgetFrom !== null
  const from = forgetFrom ?? 0
  // The answer, what was called after it, and steps that only threw because it ended their branch.
  const which = [ref, run, from, from, from] as const
  const rows = isForgetting ? yield* awaited(at.rows<{ address: string }>('forgottenSteps', ...which)) : []
  const forgotten = rows.map(({ address }) => address)
  const without = forgotten.length === 0 ? '' : `; forgot ${forgotten.slice(0, FORGOTTEN_SHOWN).join(', ')}`
  const exit = how === 'fresh' ? 'retried afresh' : `retried${without}`
  const again = { due: { inMs: 0 }, exit, freshRetries: true, keepMs: Infinity, audit } as const
  if ((yield* awaited(at.changeJob({ id, from: place.state, to: 'ready', ...again }))) === 'stale') return 'stale'
  yield* awaited(at.run('dropCancel', ref))
  yield* awaited(at.run('retryWorkflow', at.givenNow, at.givenNow, ref))
  if (how === 'fresh') {
    yield* awaited(at.run('addLeftover', ref, run, null, at.givenNow, 0))
    yield* awaited(at.run('restartWorkflow', ref, run + 1, null))
  } else if (isForgetting) {
    yield* awaited(at.run('keepNumbers', ref))
    yield* awaited(at.run('forgetSteps', ...which))
  }
  if (how === 'rest') yield* awaitCalls(at, change, place)
  return changed('moved', place, { to: 'ready', forgotten })
}

/** It was ended at once while it unwound: the number of the answer that began that. */
function* unwoundFrom(at: At, { ref, run, state }: Place): Verb<number | null> {
  if (state !== 'cancelled') return null
  for (const address of ['!cancel', '!deadline']) {
    const [row] = yield* awaited(at.rows<{ position: Numeric }>('findStep', ref, run, address))
    if (row !== undefined) return numberOf(row.position)
  }
  return null
}

/** The end of a workflow ended its calls too: the ends of the called jobs, which may be long over, come into its inbox again. */
function* awaitCalls(at: At, { keepCancelledMs }: WorkflowChange, { ref, run }: Place): Verb<void> {
  const rows = yield* awaited(at.rows<StoredStep>('openSteps', ref, run))
  const called = new Set(rows.flatMap(({ note }) => noteOf(note).child ?? []))
  for (const id of called) {
    const isThere = (yield* awaited(at.rows('isWaitOver', ref, JSON.stringify([waitName('call', id)])))).length > 0
    if (isThere) continue
    const [job] = yield* awaited(at.readJobs([id]))
    if (job === undefined) yield* awaited(at.run('putCallEnd', ref, id, goneEnd('gone').error, at.givenNow))
    else {
      const keepMs = keepCancelledMs?.(job.name) ?? Infinity
      yield* awaited(at.linkCall({ caller: ref, called: { id, isNew: false }, keepMs }))
    }
  }
}

/** Rows with the jobs that they call, and what became of these. */
export interface WrittenChildren {
  readonly rows: readonly NewStep[]
  readonly inserted: readonly Inserted[]
}

/** Inserts the jobs that rows of a log call or enqueue: one for an address, also when the append is repeated. */
export function* writeChildren(
  at: At,
  { ref, run, rows, children }: Pick<LogAppend, 'ref' | 'run' | 'rows' | 'children'>,
): Verb<WrittenChildren> {
  const notes = new Map<string, CallNote>()
  const inserted: Inserted[] = []
  for (const child of children) {
    const [row] = yield* awaited(at.rows<{ note: string | null }>('findStep', ref, run, child.address))
    const known = noteOf(row?.note ?? null)
    const isKnown = known.child !== undefined
    const one = isKnown ? { id: known.child, isNew: known.isOld !== true } : yield* insertChild(at, ref, child)
    inserted.push(one)
    const left = child.isLeft === true ? { isLeft: true } : {}
    notes.set(child.address, { child: one.id, ...(one.isNew ? {} : { isOld: true }), ...left })
  }
  return { inserted, rows: rows.map((row) => withNote(row, notes.get(row.address))) }
}

function* insertChild(at: At, caller: number, { job, options, isAwaited }: NewChild): Verb<Inserted> {
  const [called] = (yield* awaited(at.insertJobs([job], options))) as [Inserted]
  if (isAwaited) yield* awaited(at.linkCall({ caller, called, keepMs: options.keepCancelledMs }))
  return called
}

function withNote(row: NewStep, call: CallNote | undefined): NewStep {
  if (call === undefined) return row
  return { ...row, note: JSON.stringify({ ...(JSON.parse(row.note ?? '{}') as object), ...call }) }
}

/** Cancels jobs that a workflow called and waits for no longer. */
export function* cancelCalled(at: At, caller: number, ids: readonly string[]): Verb<void> {
  for (const id of ids) {
    const [link] = yield* awaited(at.rows<{ keep_ms: Numeric | null }>('dropCall', caller, id))
    // Without a link its end is in the inbox already.
    if (link === undefined) continue
    const [row] = yield* awaited(at.readJobs([id]))
    if (row !== undefined) yield* cancelJob(at, row, numberOrNull(link.keep_ms) ?? Infinity)
  }
}

function* cancelJob(at: At, { id, options }: JobRow, keepMs: number): Verb<void> {
  const reason = 'the workflow that called it waits for it no longer'
  const place = yield* readPlace(at, id)
  if (place?.shape === 'workflow') return void (yield* changeWorkflow(at, { id, verb: 'cancel', reason, keepMs }))
  if (isSequence(options)) return void (yield* changeSequence(at, { id, verb: 'cancel', reason, keepMs }))
  for (let tries = 0; tries < TRIES; tries += 1) {
    const [row] = yield* awaited(at.readJobs([id]))
    const move = row === undefined ? null : decideCommand(row.state, 'cancel')
    if (row === undefined || move === null) return
    const done =
      move.request === undefined
        ? yield* awaited(at.changeJob({ id, from: row.state, to: move.to, reason, keepMs }))
        : yield* requestChange(at, { id, verb: move.request, reason, keepMs })
    if (done !== 'stale') return
  }
}

/** The most rows with warnings that the record reads. */
const WARNED_MAX = 100

export function* readWorkflow(at: At, id: string): Verb<WorkflowRecordRow | undefined> {
  const place = yield* readPlace(at, id)
  if (place === undefined) return undefined
  const { ref, run, firstRun, isCancelRequested } = place
  const open = yield* awaited(at.rows<StoredStep>('openSteps', ref, run))
  const warned = yield* awaited(at.rows<{ note: string }>('warnedSteps', ref, run, WARNED_MAX))
  const [counts] = yield* awaited(at.rows<{ answers: Numeric; unread: Numeric }>('countAnswers', run, ref))
  return {
    ref,
    isWorkflow: place.shape === 'workflow',
    run: run - firstRun,
    answers: numberOf(counts?.answers ?? 0),
    open: open.map((row) => stepRowOf(at, run, row)),
    unread: numberOf(counts?.unread ?? 0),
    isCancelRequested: isCancelRequested && !isFinal(place.state),
    isPauseRequested: place.state === 'running' && place.requested === 'pause',
    warned: warned.map(({ note }) => note),
  }
}

/** A page of the log. A row that a retry has forgotten since has no rows after it. */
export function* readSteps(at: At, id: string, after: string | undefined, limit: number): Verb<StepPage | undefined> {
  const place = yield* readPlace(at, id)
  if (place === undefined) return undefined
  const { ref, run, name } = place
  const page = { name, isWorkflow: place.shape === 'workflow' }
  const [last] =
    after === undefined
      ? [{ open: false, position: -1 }]
      : yield* awaited(at.rows<{ open: unknown; position: Numeric }>('findStep', ref, run, after))
  if (last === undefined) return { ...page, rows: [] }
  const from = [booleanOf(last.open), numberOf(last.position)] as const
  const rows = yield* awaited(at.rows<StoredStep>('readSteps', ref, run, ...from, limit))
  return { ...page, rows: rows.map((row) => stepRowOf(at, run, row)) }
}

function* readInbox(at: At, ref: number, after: number, limit: number): Verb<readonly InboxRow[]> {
  const rows = yield* awaited(at.rows<StoredInboxRow>('listInbox', ref, after, limit))
  return rows.map(({ number, kind, name, payload, bytes, error, sent_at }) => ({
    number: numberOf(number),
    kind,
    name,
    payload: at.encoded(payload, bytes),
    error,
    sentAt: numberOf(sent_at),
  }))
}

interface StoredInboxRow extends Pick<InboxRow, 'kind' | 'name' | 'error'> {
  readonly number: Numeric
  readonly payload: unknown
  readonly bytes?: unknown
  readonly sent_at: Numeric
}

/** A row of the log as both stores select it. */
export interface StoredStep {
  readonly address: string
  readonly kind: string
  readonly no: Numeric | null
  readonly since: Numeric
  readonly attempt: Numeric
  readonly called_at: Numeric
  readonly answered_at: Numeric | null
  readonly until: Numeric | null
  readonly value: unknown
  readonly bytes?: unknown
  readonly error: string | null
  readonly note: string | null
}

export function stepRowOf(
  at: { encoded(value: unknown, bytes: unknown): Encoded | null },
  run: number,
  row: StoredStep,
): StepRow {
  const [startedAt, answeredAt] = [numberOf(row.called_at), numberOrNull(row.answered_at)]
  return {
    run,
    address: row.address,
    kind: row.kind,
    no: numberOrNull(row.no),
    since: numberOf(row.since),
    attempt: numberOf(row.attempt),
    startedAt,
    endedAt: answeredAt ?? startedAt,
    answeredAt,
    until: numberOrNull(row.until),
    value: at.encoded(row.value, row.bytes),
    error: row.error,
    note: row.note,
  }
}
