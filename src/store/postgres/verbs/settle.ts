import { isFinal } from '../../../job/rules/states.js'
import { applyRequests } from '../../../job/rules/request.js'
import type { RequestedChange, RequestKind } from '../../../job/rules/request.js'
import { isPlain } from '../../history-row.js'
import type { SettledJob } from '../../store.js'
import type { SettleResult } from '../../requests.js'
import { causeCode } from '../connection/faults.js'
import { countMoves } from './groups.js'
import { clean, endAll, freeKeys, historyOf, noteTold, orNull } from './moves.js'
import type { ToldRow } from './moves.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'

/** First runs that went well, of one worker and kept equally long: one statement ends them all. */
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
    // One job twice, under two fences: the locks must say which counts.
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

/** Those whose end is one short row, with a text or nothing to say. */
function isShort(job: SettledJob): boolean {
  return (
    isPlain(job) &&
    job.key === null &&
    job.group === null &&
    job.isParent !== true &&
    (job.result === null || typeof job.result === 'string')
  )
}

/** Ends a batch that stands alone; one that has ended already, which never happens, costs all of them the long way. */
export async function endAlone(
  s: Session,
  batch: PlainBatch,
  closeLeases: readonly number[],
): Promise<readonly SettledJob[]> {
  try {
    return await endPlain(s, batch, closeLeases, s.queries.endPlain)
  } catch (error) {
    if (causeCode(error) === '23505') return batch.jobs
    throw error
  }
}

/** Ends a batch. Gives those it left: a wish stands beside them, or their fence is not theirs. */
export async function endPlain(
  s: Session,
  batch: PlainBatch,
  closeLeases: readonly number[],
  sql: string,
): Promise<SettledJob[]> {
  const row = batch.keepMs === 0 ? await endForgotten(s, batch, closeLeases) : await endKept(s, batch, closeLeases, sql)
  s.note({ settled: true })
  noteTold(s, [row])
  if (row.refs === null && row.ended >= batch.jobs.length) return []
  const ended = new Set(JSON.parse(row.refs ?? '[]') as number[])
  return batch.jobs.filter((job) => !ended.has(job.ref))
}

interface EndedRow {
  readonly ended: number
  readonly refs: string | null
  readonly told?: number
}

async function endKept(
  s: Session,
  { jobs, keepMs, worker }: PlainBatch,
  closeLeases: readonly number[],
  sql: string,
): Promise<EndedRow> {
  const hasResults = jobs.some((job) => job.result !== null)
  const [row] = await s.query<EndedRow>(
    sql,
    s.nowText,
    arrayOf([...new Set(jobs.map((job) => job.fence))]),
    arrayOf(jobs.map((job) => job.ref)),
    arrayOf(jobs.map((job) => job.fence)),
    arrayOf(jobs.map((job) => job.startedAt)),
    keepMs === Infinity ? null : String(keepMs),
    worker,
    hasResults ? JSON.stringify(jobs.map((job) => job.result)) : '[]',
    arrayOf(closeLeases),
  )
  return row as EndedRow
}

async function endForgotten(s: Session, { jobs }: PlainBatch, closeLeases: readonly number[]): Promise<EndedRow> {
  const refs = jobs.map((job) => job.ref)
  const [row] = await s.query<EndedRow>(
    s.queries.endForgotten,
    arrayOf([...new Set(jobs.map((job) => job.fence))]),
    arrayOf(refs),
    arrayOf(jobs.map((job) => job.fence)),
    arrayOf(closeLeases),
    String(Math.min(...refs)),
    String(Math.max(...refs)),
  )
  return row as EndedRow
}

export async function settleAndClose(
  s: Session,
  settled: readonly SettledJob[],
  closeLeases: readonly number[],
): Promise<SettleResult> {
  const written = await settleLocked(s, settled)
  if (closeLeases.length > 0) await s.query(s.queries.closeLeases, arrayOf(closeLeases))
  return written
}

/** Writes what became of claimed jobs, under the locks of their leases. Within a transaction. */
export async function settleLocked(s: Session, settled: readonly SettledJob[]): Promise<SettleResult> {
  if (settled.length === 0) return { refused: [], changed: [] }
  await s.query(s.queries.lockLeases, arrayOf([...new Set(settled.map((job) => job.fence))]))
  const asked = JSON.stringify(settled.map(({ ref, fence }) => ({ ref, fence })))
  const owned = await s.query<{ ref: unknown; fence: unknown }>(s.queries.ownedJobs, asked)
  const fences = new Map(owned.map((row) => [Number(row.ref), Number(row.fence)]))
  const mine = settled.filter((job) => fences.get(job.ref) === job.fence)
  const refused = await notWritten(
    s,
    settled.filter((job) => fences.get(job.ref) !== job.fence),
  )
  const { honoured, turned } = await honourWishes(s, mine)
  // A claimed job is counted as ready, whether it runs or is held.
  for (const job of honoured) s.tally.leave(job, 'ready')
  await endAll(
    s,
    honoured.filter((job) => isFinal(job.to)),
  )
  await giveBack(
    s,
    honoured.filter((job) => !isFinal(job.to)),
  )
  await countMoves(s)
  return { refused, changed: turned }
}

/** Of those whose claim is over: which were not ended by this very run before. */
async function notWritten(s: Session, lost: readonly SettledJob[]): Promise<number[]> {
  if (lost.length === 0) return []
  const asked = lost.map((job) => ({ ref: job.ref, state: job.to, worker: job.worker, started_at: job.startedAt }))
  const rows = await s.query<{ ref: unknown }>(s.queries.writtenBefore, JSON.stringify(asked))
  const written = new Set(rows.map((row) => Number(row.ref)))
  return lost.map((job) => job.ref).filter((ref) => !written.has(ref))
}

async function giveBack(s: Session, jobs: readonly SettledJob[]): Promise<void> {
  if (jobs.length === 0) return
  const back = jobs.map((job) => ({
    ref: job.ref,
    fence: job.fence,
    state: job.to,
    delay_ms: job.delayMs,
    attempt: orNull(job.attempt),
    retries: orNull(job.retries),
    crashes: orNull(job.crashes),
    streak: orNull(job.streak),
    error: job.error,
    reason: clean(job.reason),
    log: job.log,
    // It has begun, so it can no longer expire before it begins.
    begun: job.to !== 'ready' || job.streak > 0,
  }))
  await s.query(s.queries.giveBack, s.given({ back }))
  const parked = jobs.filter((job) => job.to === 'parked').map((job) => job.ref)
  const noted = parked.length === 0 ? [] : await s.query(s.queries.noteParked, arrayOf(parked))
  if (noted.length > 0) s.note({ dueInMs: 0 })
  for (const job of jobs) {
    s.tally.enter(job, job.to)
    if (job.to === 'ready') s.note({ ready: true })
    else if (job.to === 'scheduled' || job.to === 'retrying') s.note({ dueInMs: job.delayMs ?? 0 })
  }
}

interface Honoured {
  readonly honoured: readonly SettledJob[]
  readonly turned: readonly SettledJob[]
}

async function honourWishes(s: Session, settled: readonly SettledJob[]): Promise<Honoured> {
  const wishes = await wishesOf(s, settled)
  if (wishes.size === 0) return { honoured: settled, turned: [] }
  const { settlements, changed } = applyRequests(settled, wishes)
  // A wish is over with the claim it was for.
  await s.query(s.queries.dropWishes, arrayOf([...wishes.keys()]))
  return { honoured: settlements, turned: changed }
}

async function wishesOf(s: Session, settled: readonly SettledJob[]): Promise<Map<number, RequestedChange>> {
  if (settled.length === 0) return new Map()
  const rows = await s.query<WishRow>(s.queries.wishesOf, arrayOf(settled.map((job) => job.ref)))
  return new Map(
    rows.map(({ ref, kind, reason, keep_ms }) => [
      Number(ref),
      { kind, reason, keepMs: keep_ms === null ? Infinity : Number(keep_ms) },
    ]),
  )
}

interface WishRow {
  readonly ref: unknown
  readonly kind: RequestKind
  readonly reason: string
  readonly keep_ms: unknown
}

/**
 * Writes the end of one job into a transaction of somebody else's. Its lease is only shared: the other jobs of that lease
 * end as ever, however long the transaction stays open. Who settles this one waits for it, at its row in history.
 */
export async function settleShared(s: Session, job: SettledJob): Promise<boolean> {
  const held = await s.query(s.queries.shareLease, String(job.ref), String(job.fence))
  if (held.length === 0) return false
  const ended =
    job.keepMs === 0
      ? await s.query<ToldRow>(s.queries.forgetJob, String(job.ref))
      : await s.query<ToldRow>(s.queries.endOne, s.given({ ended: [historyOf(job)] }))
  if (ended[0] === undefined) return false
  noteTold(s, ended)
  await s.query(s.queries.dropWishes, arrayOf([job.ref]))
  await freeKeys(s, [job])
  s.tally.leave(job, 'ready')
  s.tally.enter(job, job.to)
  await countMoves(s)
  s.note({ settled: true })
  return true
}

/**
 * Ends a dead worker in one guarded write. Null: its beat moved after all, the lock came too late to act on what was seen, or
 * all it has is locked; no job was moved.
 */
export async function rescueJobs(
  s: Session,
  worker: string,
  beat: number | null,
  settled: readonly SettledJob[],
  isLate: () => boolean,
): Promise<SettleResult | null> {
  if (beat === null) {
    if ((await s.query(s.queries.isWorker, worker)).length > 0) return null
  } else {
    if ((await s.query(s.queries.lockWorker, worker, String(beat))).length === 0 || isLate()) return null
    await s.query(s.queries.endWorker, worker, String(beat))
  }
  const locked = await s.query<{ fence: unknown }>(s.queries.lockLeasesOf, worker)
  const fences = new Set(locked.map((row) => Number(row.fence)))
  const free = settled.filter((job) => fences.has(job.fence))
  if (free.length === 0 && settled.length > 0) return null
  const written = await settleLocked(s, free)
  await s.query(s.queries.dropReports, arrayOf(free.map((job) => job.ref)))
  await s.query(s.queries.dropLeases, arrayOf([...fences]))
  const left = settled.filter((job) => !fences.has(job.fence)).map((job) => job.ref)
  return { ...written, refused: [...written.refused, ...left] }
}
