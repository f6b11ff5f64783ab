import { isFinal } from '../../../job/rules/states.js'
import type { State } from '../../../job/rules/states.js'
import { applyRequests } from '../../../job/rules/request.js'
import type { RequestedChange, RequestKind } from '../../../job/rules/request.js'
import { countAttempts } from '../../rows/attempt-counts.js'
import { isPlainEnd } from '../../rows/history-row.js'
import type { Report, SettledJob } from '../../store.js'
import type { SettleResult } from '../../requests.js'
import { causeCode } from '../connection/faults.js'
import { countMoves } from './groups.js'
import { endAll, freeKeys, historyOf, noteChildren, orNull } from './moves.js'
import type { ChildrenRow } from './moves.js'
import { noteCallEnds } from './inbox.js'
import type { JobSession } from './job-session.js'
import { noteHealth } from '../../verbs/outages.js'
import { awaitVerb } from '../../verbs/verb.js'
import { settleSteps } from './sequences.js'
import { dueAtOf, endClaims, placeWorkflows, writeLogs } from './workflows.js'
import type { Session } from '../connection/session.js'
import { arrayOf, clean } from '../connection/session.js'

/** First attempts that succeeded, of one worker and with the same retention: one statement ends them all. */
export interface PlainBatch {
  readonly jobs: readonly SettledJob[]
  readonly keepMs: number
  readonly worker: string
}

export interface Sorted {
  readonly plain: readonly PlainBatch[]
  readonly other: readonly SettledJob[]
}

export function sortSettled(settled: readonly SettledJob[]): Sorted {
  const batches = new Map<string, SettledJob[]>()
  const other: SettledJob[] = []
  const seen = new Set<number>()
  for (const job of settled) {
    // One job twice, with two fences: the locks must decide which counts.
    if (!isShort(job) || seen.has(job.ref)) other.push(job)
    else {
      const kind = `${job.keepMs} ${job.worker}`
      const batch = batches.get(kind)
      if (batch === undefined) batches.set(kind, [job])
      else batch.push(job)
    }
    seen.add(job.ref)
  }
  const plain = [...batches.values()].map((jobs) => {
    const { keepMs, worker } = jobs[0] as SettledJob
    return { jobs, keepMs, worker }
  })
  return { plain, other }
}

/** Jobs whose end is one short row, with a text or no result. */
function isShort(job: SettledJob): boolean {
  return (
    isPlainEnd(job) &&
    job.key === null &&
    job.group === null &&
    job.isParent !== true &&
    job.health === undefined &&
    job.step === undefined &&
    job.workflow === undefined &&
    (job.result === null || typeof job.result === 'string')
  )
}

/**
 * Ends a batch by one statement alone. If a job has already ended, which never happens, the general settlement takes
 * the whole batch.
 */
export async function endAlone(
  session: Session,
  batch: PlainBatch,
  closeLeases: readonly number[],
): Promise<readonly SettledJob[]> {
  try {
    return await endPlain(session, batch, closeLeases, session.queries.endPlain)
  } catch (error) {
    if (causeCode(error) === '23505') return batch.jobs
    throw error
  }
}

/**
 * Ends a batch and appends what it adds to the statistics. Returns the jobs that it left: a change of them was requested,
 * or they have another fence.
 */
export async function endPlain(
  session: Session,
  batch: PlainBatch,
  closeLeases: readonly number[],
  sql: string,
): Promise<SettledJob[]> {
  const row =
    batch.keepMs === 0
      ? await endForgotten(session, batch, closeLeases)
      : await endKept(session, batch, closeLeases, sql)
  session.note({ settled: true })
  noteChildren(session, [row])
  if (row.refs === null && row.ended >= batch.jobs.length) return []
  const ended = new Set(JSON.parse(row.refs ?? '[]') as number[])
  // The statement counts a batch as a whole or not at all. Alone it also ends all of it or nothing.
  await countEnds(
    session,
    batch.jobs.filter((job) => ended.has(job.ref)),
  )
  return batch.jobs.filter((job) => !ended.has(job.ref))
}

interface EndedRow {
  readonly ended: number
  readonly refs: string | null
  readonly parents?: number
}

async function endKept(
  session: Session,
  { jobs, keepMs, worker }: PlainBatch,
  closeLeases: readonly number[],
  sql: string,
): Promise<EndedRow> {
  const hasResults = jobs.some((job) => job.result !== null)
  const [row] = await session.query<EndedRow>(
    sql,
    session.nowText,
    arrayOf([...new Set(jobs.map((job) => job.fence))]),
    arrayOf(jobs.map((job) => job.ref)),
    arrayOf(jobs.map((job) => job.fence)),
    arrayOf(jobs.map((job) => job.startedAt)),
    keepMs === Infinity ? null : String(keepMs),
    worker,
    hasResults ? JSON.stringify(jobs.map((job) => job.result)) : '[]',
    arrayOf(closeLeases),
    JSON.stringify(countAttempts(jobs)),
  )
  return row as EndedRow
}

/** Appends what these settlements add to the statistics, in the transaction that writes them. */
async function countEnds(session: Session, settled: readonly SettledJob[]): Promise<void> {
  const counts = settled.length === 0 ? [] : countAttempts(settled)
  if (counts.length > 0) await session.query(session.queries.countAttempts, session.nowText, JSON.stringify(counts))
}

async function endForgotten(session: Session, { jobs }: PlainBatch, closeLeases: readonly number[]): Promise<EndedRow> {
  const refs = jobs.map((job) => job.ref)
  const [row] = await session.query<EndedRow>(
    session.queries.endForgotten,
    arrayOf([...new Set(jobs.map((job) => job.fence))]),
    arrayOf(refs),
    arrayOf(jobs.map((job) => job.fence)),
    arrayOf(closeLeases),
    String(Math.min(...refs)),
    String(Math.max(...refs)),
    session.nowText,
    JSON.stringify(countAttempts(jobs)),
  )
  return row as EndedRow
}

export async function settleAndClose(
  session: JobSession,
  settled: readonly SettledJob[],
  closeLeases: readonly number[],
): Promise<SettleResult> {
  const written = await settleLocked(session, settled)
  if (closeLeases.length > 0) await session.query(session.queries.closeLeases, arrayOf(closeLeases))
  return written
}

/** Writes settlements under the locks of their leases. Within a transaction. */
export async function settleLocked(session: JobSession, settled: readonly SettledJob[]): Promise<SettleResult> {
  if (settled.length === 0) return { refused: [], changed: [] }
  const hasWorkflows = settled.some(({ workflow }) => workflow !== undefined)
  await session.query(session.queries.lockLeases, arrayOf([...new Set(settled.map((job) => job.fence))]))
  const claims = JSON.stringify(settled.map(({ ref, fence }) => ({ ref, fence })))
  const owned = await session.query<{ ref: unknown; fence: unknown }>(session.queries.ownedJobs, claims)
  const fences = new Map(owned.map((row) => [Number(row.ref), Number(row.fence)]))
  const mine = settled.filter((job) => fences.get(job.ref) === job.fence)
  const refused = await notWritten(
    session,
    settled.filter((job) => fences.get(job.ref) !== job.fence),
  )
  await settleSteps(session, mine)
  if (hasWorkflows) await writeLogs(session, mine)
  const placed = hasWorkflows ? await placeWorkflows(session, mine) : mine
  const { settlements: written, changed } = await withRequests(session, placed)
  // A claimed job is counted as ready, whether it runs or is held.
  for (const job of written) session.groupMoves.leave(job, 'ready')
  await endAll(
    session,
    written.filter((job) => isFinal(job.to)),
  )
  await requeueJobs(
    session,
    written.filter((job) => !isFinal(job.to)),
    placed,
  )
  if (hasWorkflows) await endClaims(session, placed, written)
  await awaitVerb(noteHealth(session, written))
  await countEnds(session, written)
  await countMoves(session)
  return { refused, changed }
}

/** Of jobs whose claim has ended: those that this same attempt has not ended before. */
async function notWritten(session: Session, lost: readonly SettledJob[]): Promise<number[]> {
  if (lost.length === 0) return []
  const ends = lost.map((job) => ({ ref: job.ref, state: job.to, worker: job.worker, started_at: job.startedAt }))
  const rows = await session.query<{ ref: unknown }>(session.queries.writtenBefore, JSON.stringify(ends))
  const written = new Set(rows.map((row) => Number(row.ref)))
  return lost.map((job) => job.ref).filter((ref) => !written.has(ref))
}

/** `placed`: the same jobs before a request altered them. */
async function requeueJobs(
  session: Session,
  jobs: readonly SettledJob[],
  placed: readonly SettledJob[],
): Promise<void> {
  if (jobs.length === 0) return
  const wanted = (ref: number): State | undefined => placed.find((job) => job.ref === ref)?.to
  const back = jobs.map((job) => ({
    ref: job.ref,
    fence: job.fence,
    state: job.to,
    due_at: job.workflow === undefined ? undefined : dueAtOf(job, wanted(job.ref) ?? job.to),
    delay_ms: job.delayMs,
    attempt: orNull(job.attempt),
    retries: orNull(job.retries),
    crashes: orNull(job.crashes),
    streak: orNull(job.streak),
    error: job.error,
    reason: clean(job.reason),
    log: job.log,
    begun: job.hasBegun,
  }))
  await session.query(session.queries.requeueJobs, session.given({ back }))
  const parked = jobs.filter((job) => job.to === 'parked').map((job) => job.ref)
  const noted = parked.length === 0 ? [] : await session.query(session.queries.noteParked, arrayOf(parked))
  if (noted.length > 0) session.note({ dueInMs: 0 })
  for (const job of jobs) {
    session.groupMoves.enter(job, job.to)
    if (job.to === 'ready') session.note({ ready: true })
    else if (job.to === 'scheduled' || job.to === 'retrying') session.note({ dueInMs: job.delayMs ?? 0 })
  }
}

/** Settlements as the requested changes alter them. */
interface Requested {
  readonly settlements: readonly SettledJob[]
  readonly changed: readonly SettledJob[]
}

async function withRequests(session: Session, settled: readonly SettledJob[]): Promise<Requested> {
  const requests = await requestsOf(session, settled)
  if (requests.size === 0) return { settlements: settled, changed: [] }
  const all = applyRequests(settled, requests)
  // A request ends with the claim it was made for.
  await session.query(session.queries.dropRequests, arrayOf([...requests.keys()]))
  return all
}

async function requestsOf(session: Session, settled: readonly SettledJob[]): Promise<Map<number, RequestedChange>> {
  if (settled.length === 0) return new Map()
  const rows = await session.query<RequestRow>(session.queries.requestsOf, arrayOf(settled.map((job) => job.ref)))
  return new Map(
    rows.map(({ ref, kind, reason, keep_ms }) => [
      Number(ref),
      { kind, reason, keepMs: keep_ms === null ? Infinity : Number(keep_ms) },
    ]),
  )
}

interface RequestRow {
  readonly ref: unknown
  readonly kind: RequestKind
  readonly reason: string
  readonly keep_ms: unknown
}

/**
 * Writes the end of one job in a caller's transaction. Its lease is locked for share: the other jobs of that lease can
 * still be settled, however long the transaction stays open. Another settlement of this job waits for it, at its row in
 * history.
 */
export async function settleShared(session: JobSession, given: SettledJob): Promise<boolean> {
  const held = await session.query(session.queries.shareLease, String(given.ref), String(given.fence))
  if (held.length === 0) return false
  // A row that has its answer already is not written again: the handler has settled this item before.
  if (given.step !== undefined && (await settleSteps(session, [given])).size === 0) return false
  if (given.workflow !== undefined) await writeLogs(session, [given])
  if (given.endsStreak === true) await session.query(session.queries.endStreak, String(given.ref))
  if (given.claimGoesOn === true) return true
  const job = given.step === undefined ? given : ((await withRequests(session, [given])).settlements[0] as SettledJob)
  if (job.to === 'cancelled') await session.query(session.queries.freeSlots, arrayOf([job.ref]))
  const ended =
    job.keepMs === 0
      ? await session.query<ChildrenRow>(session.queries.forgetJob, String(job.ref))
      : await session.query<ChildrenRow>(session.queries.endOne, session.given({ ended: [historyOf(job)] }))
  if (ended[0] === undefined) return false
  if (noteChildren(session, ended)) await noteCallEnds(session, [job])
  await session.query(session.queries.dropRequests, arrayOf([job.ref]))
  await freeKeys(session, [job])
  await awaitVerb(noteHealth(session, [job]))
  await countEnds(session, [job])
  session.groupMoves.leave(job, 'ready')
  session.groupMoves.enter(job, job.to)
  await countMoves(session)
  session.note({ settled: true })
  return true
}

/**
 * Settles the jobs of a dead worker in one guarded write. Null: the worker has beaten since, the lock came too late to
 * act on what was read, or all its leases are locked; no job was moved.
 */
export async function rescueJobs(
  session: JobSession,
  worker: string,
  beat: number | null,
  settled: readonly SettledJob[],
  isLate: () => boolean,
): Promise<SettleResult | null> {
  if (beat === null) {
    if ((await session.query(session.queries.isWorker, worker)).length > 0) return null
  } else {
    if ((await session.query(session.queries.lockWorker, worker, String(beat))).length === 0 || isLate()) return null
    await session.query(session.queries.endWorker, worker, String(beat), session.nowText)
  }
  const locked = await session.query<{ fence: unknown }>(session.queries.lockLeasesOf, worker)
  const fences = new Set(locked.map((row) => Number(row.fence)))
  const free = settled.filter((job) => fences.has(job.fence))
  if (free.length === 0 && settled.length > 0) return null
  const written = await settleLocked(session, free)
  await session.query(session.queries.dropReports, arrayOf(free.map((job) => job.ref)))
  await session.query(session.queries.dropLeases, arrayOf([...fences]))
  const left = settled.filter((job) => !fences.has(job.fence)).map((job) => job.ref)
  return { ...written, refused: [...written.refused, ...left] }
}

/** Which jobs have rows in `reports`, and which of those have ended, so that the rows can be deleted. */
export class ReportRows {
  readonly #reported = new Set<number>()
  readonly #over = new Set<number>()

  noted(reports: readonly Report[]): void {
    for (const { ref } of reports) this.#reported.add(ref)
  }

  /** A settlement is valid whether or not its reports could be deleted: a later settlement deletes them. */
  async settled(settled: readonly SettledJob[], drop: (refs: readonly number[]) => Promise<unknown>): Promise<void> {
    for (const { ref } of settled) if (this.#reported.delete(ref)) this.#over.add(ref)
    if (this.#over.size === 0) return
    const over = [...this.#over]
    // The server is unreachable: a report has no effect without its claim.
    await drop(over)
      .then(() => over.forEach((ref) => this.#over.delete(ref)))
      .catch(() => undefined)
  }
}
