import { logCommand } from '../../../job/attempt/attempt-log.js'
import { isSequence } from '../../../job/definition/stored-options.js'
import type { Encoded } from '../../../job/rules/outcome.js'
import { isPaused } from '../../../job/rules/queue-pause.js'
import type { RequestKind } from '../../../job/rules/request.js'
import { positionAfter } from '../../../job/rules/sequence.js'
import { isFinal } from '../../../job/rules/states.js'
import { sortOf } from '../../rows/ordering.js'
import type { HeldJob } from '../../queues.js'
import { ITEMS_AHEAD, ITEMS_AHEAD_BYTES } from '../../sequences.js'
import type { Appended, AppendedStep, Boundary, ClaimedSequence, NewStep } from '../../sequences.js'
import type { ClaimedJob } from '../../store.js'
import { rowOf } from '../../verbs/sequences.js'
import { toEncoded } from '../connection/driver.js'
import type { SqliteValue } from '../connection/driver.js'
import type { Session } from '../connection/session.js'
import { readPauses } from './claim.js'
import { countMoves } from './groups.js'
import { endTaken } from './moves.js'
import type { JobEnd } from './moves.js'
import { readForChange } from './read.js'

/** Adds to claimed sequences where they continue; plain jobs are returned as they are. */
export function withPositions(session: Session, jobs: readonly ClaimedJob[]): readonly ClaimedJob[] {
  if (!jobs.some((job) => isSequence(job.options))) return jobs
  return jobs.map((job) => (isSequence(job.options) ? { ...job, sequence: positionOf(session, job.ref) } : job))
}

function positionOf(session: Session, ref: number): ClaimedSequence | undefined {
  const rows = session.statement(session.queries.readPosition).all(ref) as PositionRow[]
  const [last, before] = rows
  if (last === undefined) return undefined
  const { index, attempt } = positionAfter(
    last.address === null ? undefined : rowOf(last.address, last.no, last.attempt ?? 0),
  )
  const previous = last.no === null ? before?.value : last.value
  return {
    run: last.run,
    list: last.list,
    total: last.total,
    index,
    attempt,
    previous: previous === null || previous === undefined ? null : toEncoded(previous),
    // The first item alone: a claim may take many sequences, and each reads ahead once it runs.
    items: readItems(session, last.list, index, 1),
  }
}

interface PositionRow {
  readonly run: number
  readonly list: number
  readonly total: number
  readonly address: string | null
  readonly no: number | null
  readonly attempt: number | null
  readonly value: Encoded | null
}

function readItems(session: Session, list: number, index: number, limit: number): Encoded[] {
  const rows = session.statement(session.queries.readItems).all(list, index, limit, ITEMS_AHEAD_BYTES)
  return (rows as { payload: Encoded }[]).map(({ payload }) => toEncoded(payload))
}

/** Appends a row to the log while the claim goes on. */
export function appendStep(session: Session, appended: AppendedStep, now: number): Appended {
  const { ref, fence, queue, step, endsStreak, itemsFrom } = appended
  const { queries } = session
  session.statement(queries.appendStep).run(...stepColumns(step), ref, fence)
  const boundary = readBoundary(session, { ref, fence, queue }, now)
  if (!boundary.held) return { ...boundary, isAnswered: false, items: [] }
  if (endsStreak) session.statement(queries.endStreak).run(ref, fence)
  const isAnswered = session.statement(queries.isAnswered).get(ref, step.run, step.address) !== undefined
  const items = itemsFrom === undefined ? [] : readItems(session, itemsFrom.list, itemsFrom.index, ITEMS_AHEAD)
  return { ...boundary, isAnswered, items }
}

export function readBoundary(session: Session, { ref, fence, queue }: HeldJob, now: number): Boundary {
  const held = session.statement(session.queries.holdsClaim).get(ref, fence) !== undefined
  const request = session.statement(session.queries.requestOf).get(ref) as { kind: RequestKind } | undefined
  const pause = readPauses(session).get(queue)
  const isQueuePaused = pause !== undefined && isPaused({ until: pause.until ?? Infinity }, now)
  return { held, requested: request?.kind ?? null, isQueuePaused }
}

/** Writes the steps of settlements whose claims this transaction has checked. Returns those that had their answer already. */
export function settleSteps(
  session: Session,
  settled: readonly { readonly ref: number; readonly step?: NewStep | undefined }[],
  refused: readonly number[],
): number[] {
  const before: number[] = []
  for (const { ref, step } of settled) {
    if (step === undefined || refused.includes(ref)) continue
    const { changes } = session.statement(session.queries.settleStep).run(ref, ...stepColumns(step))
    if (Number(changes) === 0) before.push(ref)
  }
  return before
}

export function stepColumns(step: NewStep): SqliteValue[] {
  const { run, address, kind, no, since = 0, attempt, startedAt, until = null, value, error, note } = step
  const endedAt = no === null ? null : step.endedAt
  return [run, address, kind, no, since, attempt, startedAt, endedAt, until, value, error, note]
}

export function addItems(session: Session, list: number, from: number, payloads: readonly Encoded[]): void {
  const statement = session.statement(session.queries.addItem)
  for (const [i, payload] of payloads.entries()) statement.run(list, from + i, payload)
}

/** An unfinished job that the caller takes from its place or its claim. */
function takeUnfinished(session: Session, id: string): ReturnType<typeof readForChange> {
  const job = readForChange(session, id)
  if (job === undefined || isFinal(job.state)) return undefined
  session.takings += 1
  // A claimed job is counted as ready, whether it runs or is held.
  session.groupMoves.leave(job, job.state === 'running' ? 'ready' : job.state)
  return job
}

/** Takes an unfinished job from its place or its claim and ends it. */
export function endUnfinished(session: Session, id: string, end: JobEnd, now: number): boolean {
  const job = takeUnfinished(session, id)
  if (job === undefined) return false
  session.statement(session.queries.dropRequests).run(JSON.stringify([job.ref]))
  endTaken(session, job, end, now)
  countMoves(session)
  return true
}

/** Takes an unfinished job from its place or its claim and pauses it. */
export function resetUnfinished(session: Session, id: string, reason: string, now: number): boolean {
  const job = takeUnfinished(session, id)
  if (job === undefined) return false
  session.groupMoves.enter(job, 'paused')
  const log = logCommand(job.log, 'reset', now)
  session.statement(session.queries.resetJob).run(now, sortOf(now, job.priority), reason, log, job.ref)
  session.statement(session.queries.dropRequests).run(JSON.stringify([job.ref]))
  countMoves(session)
  return true
}

/** Removes at most `limit` rows of the longest overdue leftover; returns how many. */
export function sweepLeftovers(session: Session, limit: number, now: number): number {
  const { queries } = session
  const left = session.statement(queries.nextLeftover).get(now) as Leftover | undefined
  if (left === undefined) return 0
  const run = (sql: string, ...values: SqliteValue[]): number => Number(session.statement(sql).run(...values).changes)
  const steps = left.seq === null ? 0 : run(queries.sweepSteps, left.seq, left.run, limit)
  let swept = left.list === null ? steps : steps + run(queries.sweepItems, left.list, Math.max(0, limit - steps))
  for (const sql of left.job === null ? [] : [queries.sweepInbox, queries.sweepTaken])
    swept += run(sql, left.job, Math.max(0, limit - swept))
  if (swept >= limit) return limit
  if (left.list !== null) run(queries.dropList, left.list)
  if (left.seq !== null) run(queries.dropWorkflow, left.seq, left.number)
  run(queries.dropLeftoverRow, left.number)
  return swept + 1
}

interface Leftover {
  readonly number: number
  readonly seq: number | null
  readonly run: number | null
  readonly list: number | null
  readonly job: string | null
}

export function isAnyLeftover(session: Session, now: number): boolean {
  return session.statement(session.queries.anyLeftover).get(now) !== undefined
}
