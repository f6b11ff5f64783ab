import { DuplicateKeyError, LeaseLostError } from '../../errors.js'
import type { State } from '../../job/states.js'
import { decideDuplicate } from '../../job/unique.js'
import type { InsertOptions, Inserted, NewJob } from '../store.js'
import type { SqliteValue } from './driver.js'
import { appendHistory, cancelledRow } from './history.js'
import { ROWS_PER_INSERT } from './queries.js'
import type { Session } from './session.js'
import { instant, sortOf } from './session.js'

/** Writes jobs within the current transaction. Bodies go in in rows of twenty, then each run of equal times in one statement. */
export function insertJobs(session: Session, jobs: readonly NewJob[], options: InsertOptions, now: number): Inserted[] {
  if (options.under !== undefined && !holds(session, options.under.ref, options.under.fence))
    throw new LeaseLostError('enqueue from a handler')
  const inserted: Inserted[] = []
  const fresh: NewJob[] = []
  for (const [index, job] of jobs.entries()) {
    const held =
      job.key === null
        ? undefined
        : answerDuplicate(session, { ...job, key: job.key }, options, now, index, jobs.length)
    if (held === undefined) {
      if (job.key !== null) writeJobs(session, [job], now)
      else fresh.push(job)
      inserted.push({ id: job.id, isNew: true })
    } else inserted.push(held)
  }
  writeJobs(session, fresh, now)
  return inserted
}

interface Holder {
  readonly seq: number
  readonly id: string
  readonly state: State
  readonly fence: number | null
}

/** Undefined: the key is free (or was just made free) and the job is to be written. */
function answerDuplicate(
  session: Session,
  job: NewJob & { readonly key: string },
  options: InsertOptions,
  now: number,
  index: number,
  count: number,
): Inserted | undefined {
  const holder = session.statement(session.queries.keyHolder).get(job.name, job.key) as Holder | undefined
  if (holder === undefined) return undefined
  const verdict = decideDuplicate({ state: holder.state, claimed: holder.fence !== null }, options.onDuplicate)
  switch (verdict) {
    case 'return':
      return { id: holder.id, isNew: false }
    case 'reject': {
      const which = count > 1 ? ` (item ${index})` : ''
      const why =
        options.onDuplicate === 'replace'
          ? 'is held by a job that is running and cannot be replaced'
          : 'is held by an unfinished job'
      throw new DuplicateKeyError(job.name, job.key, holder.id, `${why}${which}`)
    }
    case 'replace':
      replaceHolder(session, job, holder, options, now)
      return undefined
    case 'move':
      moveHolder(session, job, holder, now)
      return { id: holder.id, isNew: false }
    default:
      return verdict satisfies never
  }
}

function replaceHolder(
  session: Session,
  job: NewJob & { readonly key: string },
  holder: Holder,
  options: InsertOptions,
  now: number,
): void {
  const row = cancelledRow(session, holder.id, `replaced by ${job.id}`, options.keepCancelledMs, now)
  session.statement(session.queries.deleteLive).run(holder.seq)
  appendHistory(session, [row], now)
  session.statement(session.queries.freeKey).run(job.name, job.key, holder.seq)
  session.noteSettled()
}

/** The one that waits gets the new time and payload and keeps its id. */
function moveHolder(session: Session, job: NewJob, holder: Holder, now: number): void {
  const dueAt = instant(job.due, now)
  // A paused one stays paused, with its new time: only a resume lets it go.
  const state = holder.state === 'paused' ? 'paused' : dueAt <= now ? 'ready' : 'scheduled'
  const expiresAt = job.expires === null ? null : instant(job.expires, now)
  const { lane } = session.lanes.need(job.queue, job.name)
  session.statement(session.queries.moveJob).run(state, dueAt, sortOf(dueAt, job.priority), lane, expiresAt, holder.seq)
  session.statement(session.queries.editJob).run(job.payload, job.options, job.priority, lane, holder.seq)
  noteTimes(session, dueAt, expiresAt, now)
}

function writeJobs(session: Session, jobs: readonly NewJob[], now: number): void {
  let from = 0
  while (from < jobs.length) {
    const run = runOfEqualTimes(jobs, from, now)
    const last = writeBodies(session, jobs, from, run.end, now)
    const first = last - (run.end - from) + 1
    const state = run.dueAt <= now ? 'ready' : 'scheduled'
    session.statement(session.queries.insertLive).run(state, run.dueAt, run.dueAt, run.expiresAt, first, last)
    noteTimes(session, run.dueAt, run.expiresAt, now)
    const only = jobs[from] as NewJob
    // Keyed jobs come one at a time, so that a key twice in one bulk meets its first holder.
    if (only.key !== null) session.statement(session.queries.takeKey).run(only.name, only.key, last)
    from = run.end
  }
}

/** Rowids within one transaction are consecutive, so the last one tells them all. */
function writeBodies(session: Session, jobs: readonly NewJob[], from: number, to: number, now: number): number {
  let last = 0
  for (let start = from; start < to; start += ROWS_PER_INSERT) {
    const end = Math.min(to, start + ROWS_PER_INSERT)
    const values: SqliteValue[] = []
    for (let i = start; i < end; i += 1) {
      const job = jobs[i] as NewJob
      const lane = session.lanes.need(job.queue, job.name).lane
      values.push(job.id, lane, job.priority, job.key, job.payload, job.options, now)
    }
    last = Number(session.statement(session.queries.insertJobs(end - start)).run(...values).lastInsertRowid)
  }
  return last
}

function runOfEqualTimes(
  jobs: readonly NewJob[],
  from: number,
  now: number,
): { end: number; dueAt: number; expiresAt: number | null } {
  const timeOf = (job: NewJob): [number, number | null] => [
    instant(job.due, now),
    job.expires === null ? null : instant(job.expires, now),
  ]
  const [dueAt, expiresAt] = timeOf(jobs[from] as NewJob)
  let end = from + 1
  for (; end < jobs.length; end += 1) {
    const [due, expires] = timeOf(jobs[end] as NewJob)
    if (due !== dueAt || expires !== expiresAt) break
  }
  return { end, dueAt, expiresAt }
}

/** An expiry is a time to look at too: the job must be called off by then. */
function noteTimes(session: Session, dueAt: number, expiresAt: number | null, now: number): void {
  if (dueAt <= now) session.noteReady()
  else session.noteDue(dueAt - now)
  if (expiresAt !== null) session.noteDue(Math.max(0, expiresAt - now))
}

function holds(session: Session, ref: number, fence: number): boolean {
  return session.statement(session.queries.holdsClaim).get(ref, fence) !== undefined
}
