import { DuplicateJobError, DuplicateKeyError, StoreError } from '../../errors.js'
import { isSequence } from '../../job/definition/stored-options.js'
import type { Encoded } from '../../job/rules/outcome.js'
import type { RequestKind } from '../../job/rules/request.js'
import { decideSequence, itemAddress, positionAfter, WAITS_FOR_START } from '../../job/rules/sequence.js'
import type { SequenceMove } from '../../job/rules/sequence.js'
import { isFinal } from '../../job/rules/states.js'
import type { State } from '../../job/rules/states.js'
import { numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import { ITEMS_AHEAD_BYTES, LIST_KEEP_MS } from '../sequences.js'
import type {
  ItemSlice,
  NewSequence,
  Output,
  OutputRow,
  SequenceChange,
  SequenceChanged,
  SequenceRow,
  SequenceStore,
} from '../sequences.js'
import type { GuardedChange, Inserted, NewJob } from '../store.js'
import type { JobSteps } from './job-steps.js'
import { entryOf, writeAudit } from './audit.js'
import { requestChange } from './requests.js'
import { awaited } from './verb.js'
import type { Answer, Verb, VerbRunner, VerbSession } from './verb.js'

/** The steps of sequences that each store takes in its own way. */
export interface SequenceSteps {
  addItems(list: number, from: number, payloads: readonly Encoded[]): Answer<unknown>
  /** A stored value, as `readOutput` selects it. */
  encoded(value: unknown, bytes: unknown): Encoded | null
  /** Ends a job that this transaction has just inserted. */
  endNew(id: string, result: Encoded, keepMs: number): Answer<unknown>
  /**
   * Takes an unfinished job from its place, or from its claim, and puts it back as paused, without counts or error.
   * False: another process changed it meanwhile.
   */
  resetUnfinished(id: string, reason: string): Answer<boolean>
}

type At = VerbSession & JobSteps

/** The verbs of sequences on the store of these steps. */
export function sequenceVerbs(verbs: VerbRunner): SequenceStore {
  return {
    addItems: (slice) => verbs.write((at) => addItems(at, slice)),
    insertSequence: (sequence) => verbs.write((at) => insertSequence(at, sequence), { jobs: [sequence.job] }),
    changeSequence: (change) => verbs.write((at) => changeSequence(at, change), { ids: [change.id] }),
    readSequence: (id) => verbs.read((at) => readSequence(at, id)),
    readOutput: (id, from, limit) => verbs.read((at) => readOutput(at, id, from, limit)),
    readItems: ({ id }, from, limit) => verbs.read((at) => readItems(at, id, from, limit)),
  }
}

/** Writes a slice of a list, which no job has yet. Its leftover removes the list if none ever comes. */
export function* addItems(at: At, slice: ItemSlice): Verb<null> {
  const list = slice.from === 0 ? yield* newList(at, slice) : yield* knownList(at, slice)
  if (slice.from === 0) yield* awaited(at.run('addLeftover', null, null, list, at.givenNow, LIST_KEEP_MS))
  yield* awaited(at.addItems(list, slice.from, slice.payloads))
  return null
}

function* newList(at: At, { id, total }: ItemSlice): Verb<number> {
  const [row] = yield* awaited(at.rows<{ list: Numeric }>('addList', id, total, at.givenNow))
  return numberOf(row?.list ?? 0)
}

function* knownList(at: At, { id }: ItemSlice): Verb<number> {
  const [row] = yield* awaited(at.rows<{ list: Numeric }>('findList', id))
  if (row !== undefined) return numberOf(row.list)
  throw new StoreError('E_STORE', `the items of sequence ${id} took longer to write than an hour, and were removed`)
}

/** Inserts the job of a sequence and the rest of its items. */
export function* insertSequence(at: At, { job, options, last, start, empty }: NewSequence): Verb<Inserted> {
  const [inserted] = (yield* awaited(at.insertJobs([job], options))) as [Inserted]
  if (!inserted.isNew) {
    yield* refusePlainHolder(at, job, inserted.id)
    // The items that were written before are not needed.
    yield* awaited(at.run('hastenLeftover', job.id))
    return inserted
  }
  const list = last.from === 0 ? yield* newList(at, last) : yield* knownList(at, last)
  if (last.from > 0) yield* awaited(at.run('dropLeftover', list))
  yield* awaited(at.addItems(list, last.from, last.payloads))
  const [marked] = yield* awaited(at.rows<{ ref: Numeric }>('markSequence', job.id))
  yield* awaited(at.run('putWorkflow', numberOf(marked?.ref ?? 0), start ? null : UNSTARTED))
  if (last.total === 0) yield* awaited(at.endNew(job.id, empty.result, empty.keepMs))
  else if (!start) yield* awaited(at.changeJob({ id: job.id, from: 'ready', to: 'paused', ...UNSTARTED_JOB }))
  return inserted
}

const UNSTARTED = JSON.stringify([WAITS_FOR_START])
const UNSTARTED_JOB = { reason: 'it waits for start()', keepMs: Infinity }

/** A key or unique value that a plain job holds names no sequence. */
function* refusePlainHolder(at: At, job: NewJob, id: string): Verb<void> {
  const [holder] = yield* awaited(at.readJobs([id]))
  if (holder === undefined || isSequence(holder.options)) return
  const why = 'is held by a job that is no sequence'
  if (job.key !== null && holder.key === job.key) throw new DuplicateKeyError(job.name, job.key, id, why)
  throw new DuplicateJobError(job.name, job.unique?.key ?? '', id, why)
}

/** Give up after this many lost races with other processes for the same sequence. */
const TRIES = 20

/** Applies a verb. The row of `workflows` is locked first, so that of two verbs the second sees what the first did. */
export function* changeSequence(at: At, change: SequenceChange): Verb<SequenceChanged> {
  let row: SequenceRow | undefined
  for (let tries = 0; tries < TRIES; tries += 1) {
    yield* awaited(at.rows('lockWorkflow', change.id))
    row = yield* readSequence(at, change.id)
    if (row === undefined || !row.isSequence) return unchanged(row === undefined ? 'gone' : 'plain', row)
    const move = decideSequence(row, change.verb)
    if (move === null) break
    const changed = yield* applyMove(at, change, row, move)
    if (changed !== 'stale') return changed
  }
  return unchanged('no', row)
}

function unchanged(did: 'no' | 'gone' | 'plain', row: SequenceRow | undefined): SequenceChanged {
  const { state: from = null, name = null, queue = null } = row ?? {}
  return { did, from, to: null, name, queue, inHand: false }
}

function* applyMove(
  at: At,
  change: SequenceChange,
  row: SequenceRow,
  move: SequenceMove,
): Verb<SequenceChanged | 'stale'> {
  const { state: from, name, queue } = row
  const requested: SequenceChanged = { did: 'requested', from, to: null, name, queue, inHand: from === 'running' }
  if ('already' in move) return requested
  if ('reset' in move) return yield* resetSequence(at, change, row)
  if ('request' in move) {
    const { id, reason, keepMs, audit } = change
    const noted = yield* requestChange(at, { id, verb: move.request, reason, keepMs, audit })
    return noted === 'noted' ? requested : 'stale'
  }
  const done = yield* awaited(
    at.changeJob({ id: change.id, from: row.state, to: move.to, ...fieldsOf(change, row.state) }),
  )
  if (done === 'stale') return 'stale'
  if (change.verb === 'start') yield* awaited(at.run('startWorkflow', row.ref))
  if (change.verb === 'resume' && row.state !== 'paused') yield* awaited(at.run('clearAttempts', row.ref, row.run))
  return { did: 'moved', from, to: move.to, name, queue, inHand: done === 'taken' }
}

/** What a verb writes beside the new state of the job. */
function fieldsOf(
  { verb, reason, keepMs, audit }: SequenceChange,
  from: State,
): Omit<GuardedChange, 'id' | 'from' | 'to'> {
  if (verb === 'cancel') return { reason, keepMs, audit }
  if (verb === 'pause') return { reason, exit: 'paused', keepMs: Infinity, audit }
  if (from === 'paused') return { exit: verb === 'start' ? 'started' : 'resumed', keepMs: Infinity, audit }
  return { due: { inMs: 0 }, exit: 'retried', freshRetries: true, keepMs: Infinity, audit }
}

/** The claim ends, and a new run begins with an empty log. The rows of the old one are removed later. */
function* resetSequence(
  at: At,
  { id, reason, audit }: SequenceChange,
  row: SequenceRow,
): Verb<SequenceChanged | 'stale'> {
  const again = { reason, exit: 'reset', freshRetries: true, keepMs: Infinity }
  const done = isFinal(row.state)
    ? (yield* awaited(at.changeJob({ id, from: row.state, to: 'paused', ...again }))) !== 'stale'
    : yield* awaited(at.resetUnfinished(id, reason))
  if (!done) return 'stale'
  yield* awaited(at.run('addLeftover', row.ref, row.run, null, at.givenNow, 0))
  yield* awaited(at.run('resetWorkflow', UNSTARTED, row.ref))
  // The worker learns that its claim is lost.
  at.note({ requested: true })
  const { state: from, name, queue } = row
  yield* writeAudit(at, entryOf(audit, `job ${id}`, from, 'paused, reset'))
  return { did: 'moved', from, to: 'paused', name, queue, inHand: from === 'running' }
}

export function* readSequence(at: VerbSession, id: string): Verb<SequenceRow | undefined> {
  const [row] = yield* awaited(at.rows<StoredSequence>('readSequence', id))
  if (row === undefined) return undefined
  const last = row.address === null ? undefined : rowOf(row.address, row.no, 0)
  return {
    ref: numberOf(row.ref),
    name: row.name,
    queue: row.queue,
    isSequence: row.shape === 'sequence',
    state: row.state,
    isUnstarted: row.waits !== null && row.waits.includes(WAITS_FOR_START),
    requested: row.state === 'running' ? row.requested : null,
    run: numberOf(row.run ?? 0),
    done: positionAfter(last).index,
    total: numberOf(row.total ?? 0),
    error: row.error,
    reason: row.reason,
    progress: row.progress,
  }
}

interface StoredSequence {
  readonly ref: Numeric
  readonly name: string
  readonly queue: string
  readonly shape: string | null
  readonly state: State
  readonly requested: RequestKind | null
  readonly run: Numeric | null
  readonly waits: string | null
  readonly total: Numeric | null
  readonly error: string | null
  readonly reason: string | null
  readonly progress: string | null
  readonly address: string | null
  readonly no: Numeric | null
}

/** A row of the log for `positionAfter`. */
export function rowOf(
  address: string,
  no: Numeric | null,
  attempt: Numeric,
): { readonly address: string; readonly isAnswered: boolean; readonly attempt: number } {
  return { address, isAnswered: numberOrNull(no) !== null, attempt: numberOf(attempt) }
}

export function* readOutput(at: At, id: string, from: number, limit: number): Verb<Output | undefined> {
  const rows = yield* awaited(at.rows<StoredOutput>('readOutput', itemAddress(from), id, limit))
  const [first] = rows
  if (first === undefined) return undefined
  const { name, shape } = first
  return { name, isSequence: shape === 'sequence', rows: rows.flatMap((row) => outputRow(at, row)) }
}

export function* readItems(at: At, id: string, from: number, limit: number): Verb<readonly Encoded[]> {
  const rows = yield* awaited(
    at.rows<{ payload: unknown; bytes?: unknown }>('itemsOfJob', id, from, limit, ITEMS_AHEAD_BYTES),
  )
  return rows.map(({ payload, bytes }) => at.encoded(payload, bytes) ?? '')
}

function outputRow(at: At, { address, value, bytes, note, ...row }: StoredOutput): OutputRow[] {
  if (address === null) return []
  const [attempt, startedAt, endedAt] = [row.attempt, row.called_at, row.answered_at].map((one) => numberOf(one ?? 0))
  const result = at.encoded(value, bytes)
  return [{ index: Number(address), result, note, attempt, startedAt, endedAt } as OutputRow]
}

/** All but the job's own columns are null when there is no such row. */
interface StoredOutput {
  readonly name: string
  readonly shape: string | null
  readonly address: string | null
  readonly value: unknown
  readonly bytes?: unknown
  readonly note: string | null
  readonly attempt: Numeric | null
  readonly called_at: Numeric | null
  readonly answered_at: Numeric | null
}
