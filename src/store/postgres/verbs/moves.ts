import { isSuspect } from '../../../job/rules/quarantine.js'
import { isFinal, isTimed } from '../../../job/rules/states.js'
import { laneOfTurn } from '../../../job/limits/turns.js'
import type { HistoryRow } from '../../rows/history-row.js'
import { sortOf } from '../../rows/ordering.js'
import type { NewJob } from '../../store.js'
import type { GroupMember } from '../../rows/group-moves.js'
import { numberOf } from '../../rows/columns.js'
import type { Moved } from '../../verbs/commands.js'
import { noteCallEnds } from './inbox.js'
import { LaneMoved } from './lanes.js'
import { readById, toColumns } from './read.js'
import type { StoredJob } from './read.js'
import type { Session } from '../connection/session.js'
import { arrayOf, clean, finite } from '../connection/session.js'

/*
 * A command moves a job: it deletes the row from the table it was read in, which fails when the row is no longer there,
 * and inserts one into another. No lock is needed for that: of two transactions that delete a row, one succeeds.
 */

/** Takes a job out of the table it was read in; false, and nothing is written, when another process moved it first. */
export async function takeOut(session: Session, job: StoredJob): Promise<boolean> {
  if (job.table !== 'lease') return (await takeAllOut(session, [job], 'wait')).length > 0
  // First the lock and then the read: a settlement holds the lock of the lease.
  await session.query(session.queries.lockLease, String(job.fence))
  const taken = await session.query(session.queries.takeHeld, String(job.ref), String(job.fence))
  if (taken.length > 0) session.groupMoves.leave(job, job.state)
  return taken.length > 0
}

/**
 * Takes unclaimed jobs out of the tables they were read in, and returns those that it got: the others were moved or
 * changed since. Rows that another process has locked are waited for, or skipped: a transaction that holds several must
 * not wait for one more.
 */
export async function takeAllOut(
  session: Session,
  jobs: readonly StoredJob[],
  locked: 'wait' | 'skip',
): Promise<readonly StoredJob[]> {
  const { takeReady, takeWaiting, takeHistory, takeFreeReady, takeFreeWaiting, takeFreeHistory } = session.queries
  const [fromReady, fromWaiting, fromHistory] =
    locked === 'wait' ? [takeReady, takeWaiting, takeHistory] : [takeFreeReady, takeFreeWaiting, takeFreeHistory]
  const at = (table: StoredJob['table']): string | undefined => {
    const there = jobs.filter((job) => job.table === table)
    return there.length === 0 ? undefined : JSON.stringify(there.map(seenOf))
  }
  const [ready, waiting, history] = [at('ready'), at('waiting'), at('history')]
  const rows = [
    ...(ready === undefined ? [] : await session.query<RefRow>(fromReady, ready)),
    ...(waiting === undefined ? [] : await session.query<RefRow>(fromWaiting, waiting)),
    ...(history === undefined ? [] : await session.query<RefRow>(fromHistory, history, session.nowText)),
  ]
  const taken = new Set(rows.map((row) => numberOf(row.ref)))
  const got = jobs.filter((job) => taken.has(job.ref))
  for (const job of got) session.groupMoves.leave(job, job.state)
  return got
}

interface RefRow {
  readonly ref: unknown
}

/** A job as it was read, for the statement that takes it out. */
function seenOf({ ref, version, lane, jobTurn, state, dueAt, priority }: StoredJob): object {
  return { ref, version, lane: laneOfTurn(lane, jobTurn.limit), state, sort: sortOf(dueAt, priority) }
}

/** The lane of a job that is moved to a queue, checked within this transaction. */
export async function laneIn(session: Session, job: StoredJob, queue: string): Promise<number> {
  if (queue === job.queue) return job.lane
  const lane = session.lanes.known(queue, job.name)
  const there = await session.query(session.queries.checkLane, String(lane), queue, job.name, String(session.isAgain))
  if (there.length === 0) throw new LaneMoved()
  return lane
}

/** Writes jobs that were taken out, with their changes, to the table of their state. */
export async function putIn(session: Session, moved: readonly Moved<StoredJob>[], now: number): Promise<void> {
  if (moved.length === 0) return
  await session.query(session.queries.updateJobs, JSON.stringify(moved.map(({ job }) => columnsOf(job))))
  const [ready, waiting] = [moved.filter(isReadyRow), moved.filter((one) => !isReadyRow(one))]
  if (ready.length > 0)
    await session.query(session.queries.putReady, JSON.stringify(ready.map(({ job }) => seenOf(job))))
  if (waiting.length > 0)
    await session.query(
      session.queries.putWaiting,
      JSON.stringify(
        waiting.map(({ job, state }) => ({ ref: job.ref, lane: job.lane, state, due_at: job.dueAt, grp: job.group })),
      ),
    )
  const expiring = moved.flatMap(({ job: { expiresAt, ref } }) =>
    expiresAt === null ? [] : [{ expires_at: expiresAt, ref }],
  )
  if (expiring.length > 0) await session.query(session.queries.putExpiring, JSON.stringify(expiring))
  for (const { job, state } of moved) {
    session.groupMoves.enter(job, state)
    if (state === 'ready') session.note({ ready: true })
    else if (isTimed(state)) session.note({ dueInMs: Math.max(0, job.dueAt - now) })
    if (job.expiresAt !== null) session.note({ dueInMs: Math.max(0, job.expiresAt - now) })
  }
}

function isReadyRow({ job, state }: Moved<StoredJob>): boolean {
  return state === 'ready' && !isSuspect(job.streak)
}

function columnsOf(job: StoredJob): object {
  const { text, bytes } = toColumns(job.payload)
  return {
    ref: job.ref,
    due_at: job.dueAt,
    expires_at: job.expiresAt,
    lane: job.lane,
    priority: job.priority,
    attempt: orNull(job.attempt),
    retries: orNull(job.retries),
    crashes: orNull(job.crashes),
    streak: orNull(job.streak),
    payload: text,
    bytes,
    options: job.options,
    error: job.error,
    reason: clean(job.reason),
    log: job.log,
    turn: job.jobTurn.limit,
    rate_turn: job.jobTurn.rate,
    weight: job.jobTurn.weight,
  }
}

/** An end, and the key that it frees. */
export interface KeyedEnd extends HistoryRow, GroupMember {
  readonly id: string
  readonly name: string
  readonly key: string | null
}

/** Inserts ends into history and frees their keys; jobs with a retention of zero are deleted. */
export async function endAll(session: Session, ends: readonly KeyedEnd[]): Promise<void> {
  if (ends.length === 0) return
  for (const end of ends) session.groupMoves.enter(end, end.to)
  const cancelled = ends.filter((end) => end.to === 'cancelled').map(refOf)
  if (cancelled.length > 0) await session.query(session.queries.freeSlots, arrayOf(cancelled))
  const kept = ends.filter((end) => end.keepMs !== 0)
  if (kept.length > 0) {
    const written = await session.query<ChildrenRow>(
      session.queries.appendHistory,
      session.given({ ended: kept.map(historyOf) }),
    )
    if (noteChildren(session, written)) await noteCallEnds(session, kept)
  }
  const forgotten = ends.filter((end) => end.keepMs === 0)
  if (forgotten.length > 0)
    await deleteAll(
      session,
      forgotten.map((end) => ({ ref: end.ref, what: end.to, end })),
    )
  await freeKeys(session, ends)
  session.note({ settled: true })
}

/** Cancels a job that this transaction has just inserted. */
export async function cancelWritten(session: Session, { id, keepCancelledMs }: NewJob, reason: string): Promise<void> {
  const job = await readById(session, id)
  if (job === undefined || !(await takeOut(session, job)))
    throw new Error(`job ${id} is not there, though this transaction just wrote it`)
  await endAll(session, [{ ...job, to: 'cancelled', keepMs: keepCancelledMs ?? Infinity, reason, result: null }])
}

/**
 * Deletes jobs with all their rows. Waits for transactions that insert a child of one of them, so that its link is
 * seen.
 */
export async function deleteAll(
  session: Session,
  jobs: readonly { readonly ref: number; readonly what: string; readonly end?: KeyedEnd | undefined }[],
): Promise<void> {
  const refs = arrayOf(jobs.map(refOf))
  await session.query(session.queries.lockJobs, refs)
  const forgotten = JSON.stringify(jobs.map(({ ref, what }) => ({ ref, what })))
  const noted = await session.query(session.queries.noteForgotten, forgotten)
  if (noted.length > 0) {
    session.note({ dueInMs: 0 })
    await noteCallEnds(
      session,
      jobs.flatMap(({ end }) => end ?? []),
    )
  }
  await session.query(session.queries.dropLinks, refs)
  await session.query(session.queries.deleteJobs, refs)
}

/** How many of the ended jobs have children. */
export interface ChildrenRow {
  readonly parents?: number | undefined
}

/** Whether an ended job has children, whose to-dos are worked off at once. */
export function noteChildren(session: Session, rows: readonly ChildrenRow[]): boolean {
  const isAny = rows.some((row) => Number(row.parents ?? 0) > 0)
  if (isAny) session.note({ dueInMs: 0 })
  return isAny
}

export async function freeKeys(
  session: Session,
  jobs: readonly { readonly name: string; readonly key: string | null; readonly ref: number }[],
): Promise<void> {
  const keyed = jobs.filter((job) => job.key !== null).map(({ name, key, ref }) => ({ name, key, ref }))
  if (keyed.length > 0) await session.query(session.queries.freeKeys, JSON.stringify(keyed))
}

export function historyOf(end: HistoryRow): object {
  const { text, bytes } = toColumns(end.result)
  return {
    ref: end.ref,
    started_at: end.startedAt,
    keep_ms: finite(end.keepMs),
    state: isFinal(end.to) ? end.to : undefined,
    attempt: end.attempt,
    retries: end.retries,
    crashes: end.crashes,
    worker: end.worker,
    result: text,
    bytes,
    error: end.error,
    reason: clean(end.reason),
    log: end.log,
  }
}

const refOf = (end: { readonly ref: number }): number => end.ref

export function orNull(count: number): number | null {
  return count === 0 ? null : count
}
