import { instant } from '../../rows/ordering.js'
import type { NewJob } from '../../store.js'
import type { SqliteValue } from '../connection/driver.js'
import type { Session } from '../connection/session.js'
import { ROWS_PER_INSERT } from '../queries/insert.js'
import { addLabels } from './labels.js'

/**
 * This many bodies are still in SQLite's cache when their live rows are written; a larger bulk would read them back
 * from disk.
 */
const JOBS_PER_RUN = 1_000

/**
 * Writes jobs: bodies twenty rows at a time, then the live rows of each run with equal times in one statement. Returns
 * the number of the last job.
 */
export function writeJobs(session: Session, jobs: readonly NewJob[], now: number): number {
  let from = 0
  let last = 0
  while (from < jobs.length) {
    const run = runOfEqualTimes(jobs, from, Math.min(jobs.length, from + JOBS_PER_RUN), now)
    last = writeBodies(session, jobs, from, run.end, now)
    const first = last - (run.end - from) + 1
    const state = run.dueAt <= now ? 'ready' : 'scheduled'
    session.statement(session.queries.insertLive).run(state, run.dueAt, run.dueAt, run.expiresAt, first, last)
    for (let i = from; i < run.end; i += 1) {
      const job = jobs[i] as NewJob
      session.groupMoves.enter(job, state)
      if (job.options !== null) addLabels(session, first + i - from, job.options)
    }
    noteTimes(session, run.dueAt, run.expiresAt, now)
    from = run.end
  }
  return last
}

/** Rowids within one transaction are consecutive, so the last one gives all of them. */
function writeBodies(session: Session, jobs: readonly NewJob[], from: number, to: number, now: number): number {
  let last = 0
  for (let start = from; start < to; start += ROWS_PER_INSERT) {
    const end = Math.min(to, start + ROWS_PER_INSERT)
    const { sql, values } = areAlike(jobs, start, end)
      ? alikeBodies(session, jobs, start, end, now)
      : bodies(session, jobs, start, end, now)
    last = Number(session.statement(sql).run(...values).lastInsertRowid)
  }
  return last
}

interface Bodies {
  readonly sql: string
  readonly values: readonly SqliteValue[]
}

/** Jobs of one lane, priority and group with only a payload: the usual bulk. */
function areAlike(jobs: readonly NewJob[], from: number, to: number): boolean {
  const { queue, name, priority, group, shape } = jobs[from] as NewJob
  for (let i = from; i < to; i += 1) {
    const job = jobs[i] as NewJob
    if (job.options !== null || job.key !== null || job.turn !== undefined || job.name !== name) return false
    if (job.queue !== queue || job.priority !== priority || job.group !== group) return false
    if (job.shape !== shape) return false
  }
  return true
}

function alikeBodies(session: Session, jobs: readonly NewJob[], from: number, to: number, now: number): Bodies {
  const { queue, name, priority, group, shape } = jobs[from] as NewJob
  const values: SqliteValue[] = [session.lanes.need(queue, name).lane, priority, now, group ?? null, shape ?? null]
  for (let i = from; i < to; i += 1) {
    const { id, payload } = jobs[i] as NewJob
    values.push(id, payload)
  }
  return { sql: session.queries.insertAlike(to - from), values }
}

function bodies(session: Session, jobs: readonly NewJob[], from: number, to: number, now: number): Bodies {
  const values: SqliteValue[] = []
  for (let i = from; i < to; i += 1) {
    const job = jobs[i] as NewJob
    const { lane } = session.lanes.need(job.queue, job.name)
    values.push(
      job.id,
      lane,
      job.priority,
      job.key,
      job.payload,
      job.options,
      now,
      job.group ?? null,
      ...turnColumns(job),
      job.shape ?? null,
    )
  }
  return { sql: session.queries.insertJobs(to - from), values }
}

/** turn, rate_turn, weight */
export function turnColumns({ turn }: NewJob): [number | null, number | null, number | null] {
  return [turn?.limit ?? null, turn?.rate ?? null, turn?.weight ?? null]
}

interface RunOfEqualTimes {
  readonly end: number
  readonly dueAt: number
  readonly expiresAt: number | null
}

function runOfEqualTimes(jobs: readonly NewJob[], from: number, to: number, now: number): RunOfEqualTimes {
  const { due, expires } = jobs[from] as NewJob
  const dueAt = instant(due, now)
  const expiresAt = expires === null ? null : instant(expires, now)
  let end = from + 1
  for (; end < to; end += 1) {
    const job = jobs[end] as NewJob
    if (job.due !== due && instant(job.due, now) !== dueAt) break
    if (job.expires !== expires && (job.expires === null ? null : instant(job.expires, now)) !== expiresAt) break
  }
  return { end, dueAt, expiresAt }
}

/** An expiry is a time to wake up for too: the job must be cancelled by then. */
export function noteTimes(session: Session, dueAt: number, expiresAt: number | null, now: number): void {
  if (dueAt <= now) session.note({ ready: true })
  else session.note({ dueInMs: dueAt - now })
  if (expiresAt !== null) session.note({ dueInMs: Math.max(0, expiresAt - now) })
}
