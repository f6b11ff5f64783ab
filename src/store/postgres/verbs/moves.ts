import { isSuspect } from '../../../job/rules/quarantine.js'
import type { State } from '../../../job/rules/states.js'
import { isFinal, isTimed } from '../../../job/rules/states.js'
import type { HistoryRow } from '../../history-row.js'
import { sortOf } from '../../ordering.js'
import type { CancelledByParent } from '../../links.js'
import type { NewJob } from '../../store.js'
import type { GroupMember } from '../../group-moves.js'
import { numberOf } from '../connection/executor.js'
import { LaneMoved } from './lanes.js'
import { readById } from './read.js'
import type { Standing } from './rows.js'
import { toColumns } from './rows.js'
import type { Session } from '../connection/session.js'
import { arrayOf, finite } from '../connection/session.js'

/*
 * A command moves a job: out of the place it was seen in, which fails when it is no longer there, and then into another. No
 * lock is needed for that: of two who want a row out, one gets it.
 */

/** Takes a job out of the place it was seen in; false when somebody was faster, and nothing was written. */
export async function takeOut(s: Session, job: Standing): Promise<boolean> {
  if (job.place !== 'lease') return (await takeAllOut(s, [job], 'wait')).length > 0
  // First the lock and then the look: who ends the job holds the lease meanwhile.
  await s.query(s.queries.lockLease, String(job.fence))
  const taken = await s.query(s.queries.takeHeld, String(job.ref), String(job.fence))
  if (taken.length > 0) s.tally.leave(job, job.state)
  return taken.length > 0
}

/**
 * Takes jobs that no lease has out of the places they were seen in, and gives those it got: the others were moved or written
 * since. What somebody has locked is waited for, or skipped: who has several in hand must not wait for one more.
 */
export async function takeAllOut(
  s: Session,
  jobs: readonly Standing[],
  locked: 'wait' | 'skip',
): Promise<readonly Standing[]> {
  const { takeReady, takeWaiting, takeHistory, takeFreeReady, takeFreeWaiting, takeFreeHistory } = s.queries
  const [fromReady, fromWaiting, fromHistory] =
    locked === 'wait' ? [takeReady, takeWaiting, takeHistory] : [takeFreeReady, takeFreeWaiting, takeFreeHistory]
  const at = (place: Standing['place']): string | undefined => {
    const there = jobs.filter((job) => job.place === place)
    return there.length === 0 ? undefined : JSON.stringify(there.map(seenOf))
  }
  const [ready, waiting, history] = [at('ready'), at('waiting'), at('history')]
  const rows = [
    ...(ready === undefined ? [] : await s.query<RefRow>(fromReady, ready)),
    ...(waiting === undefined ? [] : await s.query<RefRow>(fromWaiting, waiting)),
    ...(history === undefined ? [] : await s.query<RefRow>(fromHistory, history, s.nowText)),
  ]
  const taken = new Set(rows.map((row) => numberOf(row.ref)))
  const got = jobs.filter((job) => taken.has(job.ref))
  for (const job of got) s.tally.leave(job, job.state)
  return got
}

interface RefRow {
  readonly ref: unknown
}

/** A job as whoever takes it out has seen it. */
function seenOf({ ref, version, lane, state, dueAt, priority }: Standing): object {
  return { ref, version, lane, state, sort: sortOf(dueAt, priority) }
}

/** The lane of a job that is moved into a queue, proven within this transaction. */
export async function laneIn(s: Session, job: Standing, queue: string): Promise<number> {
  if (queue === job.queue) return job.lane
  const lane = s.lanes.known(queue, job.name)
  const there = await s.query(s.queries.checkLane, String(lane), queue, job.name, String(s.isAgain))
  if (there.length === 0) throw new LaneMoved()
  return lane
}

/** A job as it is to be from now on, and where it belongs then. */
export interface Placed {
  readonly job: Standing
  readonly state: State
}

/** Puts jobs that were taken out where their states belong, as they now are. */
export async function putIn(s: Session, placed: readonly Placed[], now: number): Promise<void> {
  if (placed.length === 0) return
  await s.query(s.queries.updateJobs, JSON.stringify(placed.map(({ job }) => columnsOf(job))))
  const [line, aside] = [placed.filter(isInLine), placed.filter((one) => !isInLine(one))]
  if (line.length > 0) await s.query(s.queries.putReady, JSON.stringify(line.map(({ job }) => seenOf(job))))
  if (aside.length > 0)
    await s.query(
      s.queries.putWaiting,
      JSON.stringify(
        aside.map(({ job, state }) => ({ ref: job.ref, lane: job.lane, state, due_at: job.dueAt, grp: job.group })),
      ),
    )
  const expiring = placed.flatMap(({ job: { expiresAt, ref } }) =>
    expiresAt === null ? [] : [{ expires_at: expiresAt, ref }],
  )
  if (expiring.length > 0) await s.query(s.queries.putExpiring, JSON.stringify(expiring))
  for (const { job, state } of placed) {
    s.tally.enter(job, state)
    if (state === 'ready') s.note({ ready: true })
    else if (isTimed(state)) s.note({ dueInMs: Math.max(0, job.dueAt - now) })
  }
}

function isInLine({ job, state }: Placed): boolean {
  return state === 'ready' && !isSuspect(job.streak)
}

function columnsOf(job: Standing): object {
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
  }
}

/** An end, and the key that goes free with it. */
export interface KeyedEnd extends HistoryRow, GroupMember {
  readonly name: string
  readonly key: string | null
}

/** Appends ends to history, with their keys freed; what is kept for no time at all is forgotten whole. */
export async function endAll(s: Session, ends: readonly KeyedEnd[]): Promise<void> {
  if (ends.length === 0) return
  for (const end of ends) s.tally.enter(end, end.to)
  const cancelled = ends.filter((end) => end.to === 'cancelled').map(refOf)
  if (cancelled.length > 0) await s.query(s.queries.freePlaces, arrayOf(cancelled))
  const kept = ends.filter((end) => end.keepMs !== 0)
  if (kept.length > 0)
    noteTold(s, await s.query<ToldRow>(s.queries.appendHistory, s.given({ ended: kept.map(historyOf) })))
  const forgotten = ends.filter((end) => end.keepMs === 0)
  if (forgotten.length > 0)
    await forgetAll(
      s,
      forgotten.map(({ ref, to }) => ({ ref, what: to })),
    )
  await freeKeys(s, ends)
  s.note({ settled: true })
}

/** Calls off a job that this transaction has just written. */
export async function callOff(
  s: Session,
  { id, name, queue, keepCancelledMs }: NewJob,
  reason: string,
): Promise<CancelledByParent> {
  const job = await readById(s, id)
  if (job === undefined || !(await takeOut(s, job)))
    throw new Error(`job ${id} is not there, though this transaction just wrote it`)
  await endAll(s, [{ ...job, to: 'cancelled', keepMs: keepCancelledMs ?? Infinity, reason, result: null }])
  return { id, name, queue, reason }
}

/** Forgets jobs whole. Who writes a child of one of them is waited for, so that its link is seen. */
export async function forgetAll(
  s: Session,
  jobs: readonly { readonly ref: number; readonly what: string }[],
): Promise<void> {
  const refs = arrayOf(jobs.map(refOf))
  await s.query(s.queries.lockJobs, refs)
  const noted = await s.query(s.queries.noteForgotten, JSON.stringify(jobs))
  if (noted.length > 0) s.note({ dueInMs: 0 })
  await s.query(s.queries.dropLinks, refs)
  await s.query(s.queries.deleteJobs, refs)
}

/** How many ends there are that somebody waited for. */
export interface ToldRow {
  readonly told?: number | undefined
}

export function noteTold(s: Session, rows: readonly ToldRow[]): void {
  if (rows.some((row) => Number(row.told ?? 0) > 0)) s.note({ dueInMs: 0 })
}

export async function freeKeys(
  s: Session,
  jobs: readonly { readonly name: string; readonly key: string | null; readonly ref: number }[],
): Promise<void> {
  const keyed = jobs.filter((job) => job.key !== null).map(({ name, key, ref }) => ({ name, key, ref }))
  if (keyed.length > 0) await s.query(s.queries.freeKeys, JSON.stringify(keyed))
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

/** PostgreSQL's texts hold no NUL and no half of a pair. Errors and logs are JSON and have neither. */
export function clean(text: string | null): string | null {
  return text === null ? null : text.replaceAll(UNWRITABLE, '\ufffd')
}

const UNWRITABLE = /\u0000|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
