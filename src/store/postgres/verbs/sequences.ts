import { logCommand } from '../../../job/attempt/attempt-log.js'
import { isSequence } from '../../../job/definition/stored-options.js'
import type { Encoded } from '../../../job/rules/outcome.js'
import type { RequestKind } from '../../../job/rules/request.js'
import { positionAfter } from '../../../job/rules/sequence.js'
import { isFinal } from '../../../job/rules/states.js'
import { booleanOf, numberOf } from '../../rows/columns.js'
import type { Numeric } from '../../rows/columns.js'
import type { HeldJob } from '../../queues.js'
import { ITEMS_AHEAD, ITEMS_AHEAD_BYTES } from '../../sequences.js'
import type { Appended, AppendedStep, Boundary, ClaimedSequence, NewStep } from '../../sequences.js'
import type { ClaimedJob, SettledJob } from '../../store.js'
import { rowOf } from '../../verbs/sequences.js'
import { arrayOf, clean } from '../connection/session.js'
import type { Session } from '../connection/session.js'
import { countMoves } from './groups.js'
import { endAll, putIn, takeOut } from './moves.js'
import { encodedOf, readById, toColumns } from './read.js'
import type { StoredJob } from './read.js'

/** Adds to claimed sequences where they continue; plain jobs are returned as they are. */
export async function withPositions(session: Session, jobs: readonly ClaimedJob[]): Promise<readonly ClaimedJob[]> {
  const refs = jobs.filter((job) => isSequence(job.options)).map((job) => job.ref)
  if (refs.length === 0) return jobs
  const rows = await session.query<PositionRow>(session.queries.readPositions, arrayOf(refs))
  const positions = new Map<number, ClaimedSequence>()
  for (const ref of refs) {
    const position = positionOf(rows.filter((row) => numberOf(row.ref) === ref))
    // The first item alone: a claim may take many sequences, and each reads ahead once it runs.
    if (position !== undefined)
      positions.set(ref, { ...position, items: await readItems(session, position.list, position.index, 1) })
  }
  return jobs.map((job) => (positions.has(job.ref) ? { ...job, sequence: positions.get(job.ref) } : job))
}

function positionOf([last, before]: readonly PositionRow[]): Omit<ClaimedSequence, 'items'> | undefined {
  if (last === undefined) return undefined
  const row = last.address === null ? undefined : rowOf(last.address, last.no, last.attempt ?? 0)
  const answered = last.no === null ? before : last
  return {
    run: numberOf(last.run),
    list: numberOf(last.list),
    total: numberOf(last.total),
    ...positionAfter(row),
    previous: encodedOf(answered?.value ?? null, answered?.bytes ?? null),
  }
}

interface PositionRow {
  readonly ref: Numeric
  readonly run: Numeric
  readonly list: Numeric
  readonly total: Numeric
  readonly address: string | null
  readonly no: Numeric | null
  readonly attempt: Numeric | null
  readonly value: string | null
  readonly bytes: string | null
}

async function readItems(session: Session, list: number, index: number, limit: number): Promise<Encoded[]> {
  const rows = await session.query<{ payload: string | null; bytes: string | null }>(
    session.queries.readItems,
    String(list),
    String(index),
    String(limit),
    String(ITEMS_AHEAD_BYTES),
  )
  return rows.map(({ payload, bytes }) => encodedOf(payload, bytes) ?? '')
}

/** Appends a row to the log while the claim goes on. One statement, unless items or a request are to be read. */
export async function appendStep(session: Session, appended: AppendedStep): Promise<Appended> {
  const { ref, fence, queue, step, endsStreak, itemsFrom } = appended
  const { queries } = session
  const given = JSON.stringify([stepJson({ ref, fence, step })])
  const row = await session.one<AppendedRow>(queries.appendStep, session.nowText, given, queue)
  if (numberOf(row.held) === 0) return LOST
  const isWritten = numberOf(row.answered) > 0
  const isAnswered =
    isWritten || (await session.query(queries.isAnswered, String(ref), String(step.run), step.address)).length > 0
  if (endsStreak) await session.query(queries.endStreak, String(ref))
  // The lease says that there may be a request: only then another statement reads it.
  const boundary = booleanOf(row.has_request)
    ? await readBoundary(session, { ref, fence, queue })
    : { held: true, requested: null, isQueuePaused: booleanOf(row.paused) }
  const items = itemsFrom === undefined ? [] : await readItems(session, itemsFrom.list, itemsFrom.index, ITEMS_AHEAD)
  return { ...boundary, isAnswered, items }
}

const LOST: Appended = { held: false, requested: null, isQueuePaused: false, isAnswered: false, items: [] }

interface AppendedRow {
  readonly held: Numeric
  readonly answered: Numeric
  readonly has_request: unknown
  readonly paused: unknown
}

export async function readBoundary(session: Session, { ref, fence, queue }: HeldJob): Promise<Boundary> {
  const row = await session.one<{ requested: RequestKind | null; paused: unknown; held: Numeric }>(
    session.queries.readBoundary,
    session.nowText,
    String(ref),
    String(fence),
    queue,
  )
  return {
    held: numberOf(row.held) > 0,
    requested: row.requested,
    isQueuePaused: booleanOf(row.paused),
  }
}

/** Writes the steps of settlements whose leases this transaction has locked; returns the refs of those it wrote. */
export async function settleSteps(session: Session, settled: readonly SettledJob[]): Promise<ReadonlySet<number>> {
  const rows = settled.flatMap(({ ref, fence, step }) => (step === undefined ? [] : [stepJson({ ref, fence, step })]))
  if (rows.length === 0) return new Set()
  const written = await session.query<{ ref: Numeric }>(session.queries.settleSteps, JSON.stringify(rows))
  return new Set(written.map((row) => numberOf(row.ref)))
}

export function stepJson({
  ref,
  fence,
  step,
}: {
  readonly ref: number
  readonly fence: number
  readonly step: NewStep
}): object {
  const { run, address, kind, no, since = 0, attempt, startedAt, endedAt, until, value, error, note } = step
  const { text, bytes } = toColumns(value)
  const answeredAt = no === null ? null : endedAt
  const times = { called_at: startedAt, answered_at: answeredAt, until }
  return { ref, fence, run, address, kind, no, since, attempt, ...times, value: text, bytes, error, note }
}

export async function addItems(
  session: Session,
  list: number,
  from: number,
  payloads: readonly Encoded[],
): Promise<void> {
  if (payloads.length === 0) return
  const items = payloads.map((payload) => {
    const { text, bytes } = toColumns(payload)
    return [text, bytes]
  })
  await session.query(session.queries.addItems, String(list), String(from), JSON.stringify(items))
}

/** Takes an unfinished job from its place or its claim. Undefined: it has ended, or another process moved it meanwhile. */
async function takeUnfinished(session: Session, id: string): Promise<StoredJob | undefined> {
  const job = await readById(session, id)
  if (job === undefined || isFinal(job.state)) return undefined
  if (job.table !== 'lease') return (await takeOut(session, job)) ? job : undefined
  await session.query(session.queries.lockLease, String(job.fence))
  const taken = await session.query(session.queries.takeClaimed, String(job.ref), String(job.fence))
  if (taken.length === 0) return undefined
  // A claimed job is counted as ready, whether it runs or is held.
  session.groupMoves.leave(job, 'ready')
  await session.query(session.queries.dropRequests, arrayOf([job.ref]))
  await session.query(session.queries.dropReports, arrayOf([job.ref]))
  return job
}

/** Takes an unfinished job from its place or its claim and cancels it. */
export async function endUnfinished(session: Session, id: string, reason: string, keepMs: number): Promise<boolean> {
  const job = await takeUnfinished(session, id)
  if (job === undefined) return false
  await endAll(session, [{ ...job, to: 'cancelled', keepMs, reason, result: null }])
  await countMoves(session)
  return true
}

/** Takes an unfinished job from its place or its claim and pauses it. */
export async function resetUnfinished(session: Session, id: string, reason: string): Promise<boolean> {
  const now = await session.now()
  const job = await takeUnfinished(session, id)
  if (job === undefined) return false
  const counts = { attempt: 0, retries: 0, crashes: 0, streak: 0 }
  const log = logCommand(job.log, 'reset', now)
  const fresh = { ...job, ...counts, dueAt: now, expiresAt: null, error: null, reason: clean(reason), log }
  await putIn(session, [{ job: fresh, state: 'paused' }], now)
  await countMoves(session)
  return true
}

/** Removes at most `limit` rows of each kind of the longest overdue leftover; returns how many. */
export async function sweepLeftovers(session: Session, limit: number): Promise<number> {
  const { sweepLeftover, dropSwept } = session.queries
  const [row] = await session.query<{ number: Numeric; swept: Numeric }>(sweepLeftover, session.nowText, String(limit))
  if (row === undefined) return 0
  const swept = numberOf(row.swept)
  if (swept > 0) return swept
  await session.query(dropSwept, String(numberOf(row.number)))
  return 1
}
