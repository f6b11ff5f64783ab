import type { Encoded } from '../../../job/rules/outcome.js'
import { labelsOf, mayHaveLabels } from '../../../job/definition/stored-options.js'
import { isPlainJob } from '../../conflicts.js'
import { parentLabel } from '../../rows/parent-labels.js'
import type { InsertOptions, Inserted, NewJob } from '../../store.js'
import { haveMembers } from '../../verbs/groups.js'
import { LaneMoved } from './lanes.js'
import type { Lane } from './lanes.js'
import { toColumns } from './read.js'
import { booleanOf } from '../../rows/columns.js'
import type { Session } from '../connection/session.js'
import { textOf } from '../connection/session.js'

/** Size limit of one statement: a larger one would spill to the server's disk and gain nothing. */
export const INSERT_MAX = 5_000
/** The size of a job is one, and one more per this many characters. */
const CHARACTERS = 200

export function weightOf(jobs: readonly NewJob[]): number {
  let weight = 0
  for (const { payload } of jobs) weight += weigh(payload)
  return weight
}

function weigh(payload: Encoded): number {
  return 1 + Math.floor((typeof payload === 'string' ? payload.length : payload.byteLength) / CHARACTERS)
}

/** Whether one statement is enough: nothing has to be read first. */
export function isOneStatement(jobs: readonly NewJob[], options: InsertOptions): boolean {
  if (options.claim !== undefined || options.audit !== undefined) return false
  return jobs.every(isPlainJob) && (jobs.length === 1 || weightOf(jobs) <= INSERT_MAX)
}

export function asNew({ id }: NewJob): Inserted {
  return { id, isNew: true }
}

/** The answers of an insert as a receipt holds them: only those that differ from the new job itself. */
export function keptAnswer(jobs: readonly NewJob[], inserted: readonly Inserted[]): unknown {
  return inserted.flatMap(({ id, isNew }, index) => (isNew && id === jobs[index]?.id ? [] : [[index, id, isNew]]))
}

export function readAnswer(jobs: readonly NewJob[], answer: string | null): readonly Inserted[] {
  const inserted = jobs.map(asNew)
  const others = answer === null ? [] : (JSON.parse(answer) as [index: number, id: string, isNew: boolean][])
  for (const [index, id, isNew] of others) inserted[index] = { id, isNew }
  return inserted
}

/** A job whose links are known before it is inserted. */
export interface PlannedJob extends NewJob {
  readonly planned: Readonly<Record<'after' | 'blocked' | 'is_parent', string | true | undefined>>
}

/** A job as it is inserted, with its turn for its key, the unique slot that it takes and when its window ends. */
export interface JobToWrite {
  readonly job: NewJob
  readonly turn?: number | undefined
  readonly until?: number | null
}

export async function writeJobs(session: Session, jobs: readonly NewJob[]): Promise<void> {
  for (let from = 0, to = 0; from < jobs.length; from = to) {
    to = endOfSlice(jobs, from)
    const slice = jobs.slice(from, to)
    if (isSimple(slice) && !session.isAgain) await writeOne(session, slice[0] as NewJob)
    else
      await (areAlike(slice)
        ? writeAlike(session, slice)
        : writeRowsOf(
            session,
            slice.map((job) => ({ job })),
          ))
  }
}

/** One job, due at once, with nothing but a text payload. */
function isSimple(jobs: readonly NewJob[]): boolean {
  const [job] = jobs
  return (
    jobs.length === 1 &&
    job !== undefined &&
    job.group === undefined &&
    job.shape === undefined &&
    job.turn === undefined &&
    !mayHaveLabels(job.options) &&
    typeof job.payload === 'string' &&
    job.expires === null &&
    'inMs' in job.due &&
    job.due.inMs === 0
  )
}

async function writeOne(session: Session, job: NewJob): Promise<void> {
  const { id, queue, name, priority, payload, options } = job
  const lane = String(session.lanes.known(queue, name))
  const given = [
    session.nowText,
    id,
    lane,
    String(priority),
    payload as string,
    options,
    queue,
    name,
    session.receipt ?? null,
  ]
  const written = await session.query(session.queries.insertOne, ...given)
  if (written.length === 0) throw new LaneMoved()
  session.note({ ready: true })
}

function endOfSlice(jobs: readonly NewJob[], from: number): number {
  let weight = 0
  for (let to = from; to < jobs.length; to += 1) {
    weight += weigh((jobs[to] as NewJob).payload)
    if (weight > INSERT_MAX && to > from) return to
  }
  return jobs.length
}

interface Written {
  readonly written: unknown
  readonly ready: boolean
  readonly dueIn: number | null
}

/** Jobs of one lane, priority and time with nothing but a text payload, as in most bulks. */
function areAlike(jobs: readonly NewJob[]): boolean {
  const first = jobs[0] as NewJob
  if (mayHaveLabels(first.options)) return false
  return jobs.every(
    (job) =>
      typeof job.payload === 'string' &&
      job.group === undefined &&
      job.shape === undefined &&
      job.turn === undefined &&
      job.name === first.name &&
      job.queue === first.queue &&
      job.priority === first.priority &&
      job.options === first.options &&
      isSameTime(job.due, first.due) &&
      (job.expires === first.expires ||
        (job.expires !== null && first.expires !== null && isSameTime(job.expires, first.expires))),
  )
}

function isSameTime(a: NewJob['due'], b: NewJob['due']): boolean {
  return a === b || ('at' in a ? 'at' in b && a.at === b.at : 'inMs' in b && a.inMs === b.inMs)
}

async function writeAlike(session: Session, jobs: readonly NewJob[]): Promise<void> {
  const first = jobs[0] as NewJob
  const given = session.given({
    ...laneOf(session, first),
    again: session.isAgain,
    receipt: session.receipt,
    priority: first.priority,
    options: first.options,
    ...timesOf(first),
  })
  const [ids, payloads] = [jobs.map((job) => job.id), jobs.map((job) => job.payload)]
  await insertAndNote(
    session,
    jobs.length,
    session.queries.insertAlike,
    given,
    JSON.stringify(ids),
    JSON.stringify(payloads),
  )
}

/**
 * Jobs of any kind; their keys and unique slots are free by now. `now`: the time at which that was decided, if it was.
 */
export async function writeRowsOf(session: Session, rows: readonly JobToWrite[], now?: number): Promise<void> {
  const jobs = rows.map((row) => row.job)
  for (let from = 0, to = 0; from < rows.length; from = to) {
    to = endOfSlice(jobs, from)
    await writeRows(session, rows.slice(from, to), now)
  }
}

async function writeRows(session: Session, rows: readonly JobToWrite[], now: number | undefined): Promise<void> {
  const lanes = new Map(rows.map(({ job }) => [`${job.queue}\n${job.name}`, job]))
  const given = session.given(
    { lanes: [...lanes.values()].map((job) => laneOf(session, job)), again: session.isAgain, receipt: session.receipt },
    now,
  )
  await insertAndNote(
    session,
    rows.length,
    insertFor(session, rows),
    given,
    JSON.stringify(rows.map((row) => columnsOf(session, row))),
  )
}

function insertFor({ queries }: Session, rows: readonly JobToWrite[]): string {
  if (rows.some(({ job }) => mayHaveLabels(job.options) || parentsOf(job).length > 0)) return queries.insertLabelled
  return haveMembers(rows.map((row) => row.job)) ? queries.insertMembers : queries.insertJobs
}

function columnsOf(session: Session, { job, turn, until }: JobToWrite): object {
  const { text, bytes } = toColumns(job.payload)
  return {
    id: job.id,
    lane: session.lanes.known(job.queue, job.name),
    name: job.name,
    priority: job.priority,
    key: job.key,
    turn,
    limit_turn: job.turn?.limit,
    rate_turn: job.turn?.rate,
    weight: job.turn?.weight,
    group: job.group,
    payload: text,
    bytes,
    options: job.options,
    shape: job.shape,
    labels: labelled(job),
    slot: job.unique?.key,
    until: until === undefined ? undefined : textOf(until),
    ...(job as Partial<PlannedJob>).planned,
    ...timesOf(job),
  }
}

/** Its labels and those of its parents. */
function labelled(job: NewJob): readonly string[] | undefined {
  const own = mayHaveLabels(job.options) ? labelsOf(job.options) : []
  const all = [...own, ...parentsOf(job).map(parentLabel)]
  return all.length === 0 ? undefined : all
}

function parentsOf(job: NewJob & Partial<PlannedJob>): readonly string[] {
  const after = job.planned?.after
  return typeof after === 'string' ? (JSON.parse(after) as string[]) : []
}

/** The number with the queue and name that it means, which the statement checks. */
function laneOf(session: Session, { queue, name }: NewJob): Lane {
  return { lane: session.lanes.known(queue, name), queue, name }
}

function timesOf({ due, expires }: NewJob): object {
  return {
    ...('at' in due ? { at: due.at } : { in: due.inMs }),
    ...(expires === null ? {} : 'at' in expires ? { expiresAt: expires.at } : { expiresIn: expires.inMs }),
  }
}

async function insertAndNote(session: Session, jobs: number, sql: string, ...given: readonly string[]): Promise<void> {
  const [row] = await session.query<Written>(sql, ...given)
  if (Number(row?.written) !== jobs) throw new LaneMoved()
  if (booleanOf(row?.ready)) session.note({ ready: true })
  if (row !== undefined && row.dueIn !== null) session.note({ dueInMs: Number(row.dueIn) })
}
