import type { Encoded } from '../../../job/rules/outcome.js'
import { isFinal, isTimed } from '../../../job/rules/states.js'
import type { LeasedJob, SettledJob } from '../../store.js'
import { applyRequests } from '../../../job/rules/request.js'
import type { RequestedChange, RequestKind } from '../../../job/rules/request.js'
import type { SettleResult } from '../../requests.js'
import { byFence, toClaimedJob } from './claim.js'
import { countAttempts } from '../../rows/attempt-counts.js'
import { isPlainEnd } from '../../rows/history-row.js'
import { countMoves } from './groups.js'
import { appendHistory, keepUntil } from './moves.js'
import { beatOf, DEAD_KEPT_MS } from '../../workers.js'
import type { WorkerBeat, WorkerRow } from '../../workers.js'
import { noteEnds } from './moves.js'
import { noteHealth } from '../../verbs/outages.js'
import { runVerb } from '../../verbs/verb.js'
import { settleSteps } from './sequences.js'
import { endClaim, placeWorkflow, writeLogs } from './workflows.js'
import { SessionAt } from '../connection/session.js'
import type { Session } from '../connection/session.js'
import { rowRunsOf } from './row-runs.js'

/**
 * Writes the settlements of claimed jobs, each altered by its pending request, and only if the claim still holds the
 * job.
 */
export function settleJobs(
  session: Session,
  settled: readonly SettledJob[],
  closeLeases: readonly number[],
  now: number,
): SettleResult {
  if (settled.some((job) => job.claimGoesOn === true)) return appendSettled(session, settled, now)
  const placed = settled.some(isWorkflow) ? placeWorkflows(session, settled, now) : settled
  const requested = withRequests(session, placed)
  const ended: SettledJob[] = []
  const refused: number[] = []
  for (const job of requested.settled) {
    if (isFinal(job.to)) ended.push(job)
    else if (!requeueJob(session, job, now)) refused.push(job.ref)
  }
  if (ended.length > 0) refused.push(...endJobs(session, ended, now))
  for (const fence of closeLeases) session.statement(session.queries.closeLease).run(fence)
  dropRequests(session, requested.refs, refused)
  settleSteps(session, settled, refused)
  if (placed !== settled) endClaims(session, placed, requested.settled, refused, now)
  noteAllHealth(session, requested.settled, refused, now)
  countEnds(session, requested.settled, refused, now)
  countMoves(session)
  return { refused, changed: requested.changed.filter((job) => !refused.includes(job.ref)) }
}

function noteAllHealth(
  session: Session,
  settled: readonly SettledJob[],
  refused: readonly number[],
  now: number,
): void {
  const noted = settled.filter(({ health, ref }) => health !== undefined && !refused.includes(ref))
  if (noted.length > 0) runVerb(noteHealth(new SessionAt(session, now), noted))
}

/** Appends what these settlements add to the statistics. */
function countEnds(session: Session, settled: readonly SettledJob[], refused: readonly number[], now: number): void {
  const written = refused.length === 0 ? settled : settled.filter(({ ref }) => !refused.includes(ref))
  for (const { queue, name, done, failed, retried, wait, run, failures } of countAttempts(written))
    session.statement(session.queries.countAttempts).run(queue, name, now, done, failed, retried, wait, run, failures)
}

function isWorkflow({ workflow }: SettledJob): boolean {
  return workflow !== undefined
}

/** Workflows write their rows while the claim holds; then the inbox decides where those that are suspended wait. */
function placeWorkflows(session: Session, settled: readonly SettledJob[], now: number): readonly SettledJob[] {
  writeLogs(session, settled, now)
  return settled.map((job) => (isWorkflow(job) ? placeWorkflow(session, job, now) : job))
}

function endClaims(
  session: Session,
  placed: readonly SettledJob[],
  written: readonly SettledJob[],
  refused: readonly number[],
  now: number,
): void {
  const hasLinks = session.statement(session.queries.anyLink).get() !== undefined
  for (const [index, job] of written.entries())
    if (!refused.includes(job.ref)) endClaim(session, job, { wanted: placed[index]?.to ?? job.to, hasLinks }, now)
}

/** Items and steps that settle themselves in a transaction of their handler: only their rows are written. */
function appendSettled(session: Session, settled: readonly SettledJob[], now: number): SettleResult {
  const lost = settled
    .filter(({ ref, fence }) => session.statement(session.queries.holdsClaim).get(ref, fence) === undefined)
    .map(refOf)
  writeLogs(session, settled, now)
  const refused = [...lost, ...settleSteps(session, settled, lost)]
  for (const { ref, fence, endsStreak } of settled)
    if (endsStreak === true && !refused.includes(ref)) session.statement(session.queries.endStreak).run(ref, fence)
  return { refused, changed: [] }
}

/** Settlements altered by pending requests. */
interface Requested {
  readonly settled: readonly SettledJob[]
  readonly changed: readonly SettledJob[]
  /**
   * Refs of jobs with a request, whether it altered the settlement or not: the request is deleted with the settlement.
   */
  readonly refs: readonly number[]
}

/** Usually there is no pending request, and then this is one lookup in an empty table. */
function withRequests(session: Session, settled: readonly SettledJob[]): Requested {
  const requests = requestsOf(session, settled)
  if (requests === undefined) return { settled, changed: [], refs: [] }
  const { settlements, changed } = applyRequests(settled, requests)
  return { settled: settlements, changed, refs: [...requests.keys()] }
}

function requestsOf(session: Session, settled: readonly SettledJob[]): Map<number, RequestedChange> | undefined {
  if (settled.length === 0 || session.statement(session.queries.anyRequest).get() === undefined) return undefined
  const refs = JSON.stringify(settled.map((job) => job.ref))
  const rows = session.statement(session.queries.requestsOf).all(refs) as RequestRow[]
  if (rows.length === 0) return undefined
  return new Map(
    rows.map(({ seq, kind, reason, keep_ms }) => [seq, { kind, reason, keepMs: keep_ms ?? Number.POSITIVE_INFINITY }]),
  )
}

interface RequestRow {
  readonly seq: number
  readonly kind: RequestKind
  readonly reason: string
  readonly keep_ms: number | null
}

/** A request ends with its claim. The job of a refused settlement is under another claim, and keeps its request. */
function dropRequests(session: Session, refs: readonly number[], refused: readonly number[]): void {
  const gone = refs.filter((ref) => !refused.includes(ref))
  if (gone.length > 0) session.statement(session.queries.dropRequests).run(JSON.stringify(gone))
}

/** Releases an unfinished job: ready now or later, or paused or parked. */
function requeueJob(session: Session, job: SettledJob, now: number): boolean {
  const dueAt = job.delayMs === null ? null : now + job.delayMs
  const { changes } = session
    .statement(session.queries.requeueJob)
    .run(
      job.to,
      dueAt,
      dueAt,
      job.attempt,
      job.retries,
      job.crashes,
      job.streak,
      job.error,
      job.reason,
      job.log,
      job.hasBegun ? 1 : 0,
      job.ref,
      job.fence,
    )
  if (Number(changes) === 0) return false
  moved(session, job)
  if (job.to === 'parked') noteEnds(session, [job], now)
  if (job.to === 'ready') session.note({ ready: true })
  else if (isTimed(job.to)) session.note({ dueInMs: job.delayMs ?? 0 })
  return true
}

/** A claimed job is counted as ready, whether it is running or held. */
function moved(session: Session, job: SettledJob): void {
  session.groupMoves.leave(job, 'ready')
  session.groupMoves.enter(job, job.to)
}

/**
 * Usually all claims still hold, and the row counts show it. If not, the writes are undone, and the held jobs are found
 * first.
 */
function endJobs(session: Session, ended: readonly SettledJob[], now: number): number[] {
  session.statement(session.queries.savepoint).run()
  const all = end(session, ended, now)
  if (!all) session.statement(session.queries.rollbackTo).run()
  session.statement(session.queries.release).run()
  const [mine, refused] = all ? [ended, []] : partOwned(session, ended)
  if (!all && !end(session, mine, now))
    throw new Error(`some of ${mine.length} jobs under their fence could not be ended`)
  for (const job of mine) {
    moved(session, job)
    if (job.key !== null) session.statement(session.queries.freeKey).run(job.name, job.key, job.ref)
  }
  noteEnds(session, mine, now)
  if (mine.length > 0) session.note({ settled: true })
  return refused.map(refOf)
}

/** Moves ended jobs from the live table to the history; false when some were not under their fence. */
function end(session: Session, ended: readonly SettledJob[], now: number): boolean {
  const { runs, rest } = rowRunsOf(ended, refOf, endedAlike)
  for (const run of runs) if (!endRun(session, run, now)) return false
  let removed = 0
  for (const [fence, refs] of byFence(rest))
    removed += Number(session.statement(session.queries.endJobs).run(fence, JSON.stringify(refs)).changes)
  if (removed < rest.length) return false
  appendHistory(session, rest, now)
  return true
}

function endRun(session: Session, run: readonly SettledJob[], now: number): boolean {
  const { ref: first, fence, startedAt, keepMs, worker } = run[0] as SettledJob
  const last = first + run.length - 1
  const { changes } = session
    .statement(session.queries.appendDoneRun)
    .run(startedAt, now, keepUntil(keepMs, now), worker, first, last, fence)
  if (Number(changes) < run.length) return false
  return Number(session.statement(session.queries.endRun).run(first, last, fence).changes) === run.length
}

const refOf = (job: SettledJob): number => job.ref

/** Consecutive jobs that one statement can end. */
function endedAlike(before: SettledJob, job: SettledJob): boolean {
  return (
    before.fence === job.fence &&
    before.startedAt === job.startedAt &&
    before.keepMs === job.keepMs &&
    needsNoOwnRow(before) &&
    needsNoOwnRow(job)
  )
}

function needsNoOwnRow(job: SettledJob): boolean {
  return job.result === null && job.keepMs !== 0 && isPlainEnd(job)
}

/** The jobs that are still under their fence, and the others. */
function partOwned(session: Session, ended: readonly SettledJob[]): [SettledJob[], SettledJob[]] {
  const fences = new Map<number, number>()
  for (const [fence, refs] of byFence(ended)) {
    const rows = session.statement(session.queries.ownedJobs).all(fence, JSON.stringify(refs)) as { seq: number }[]
    for (const row of rows) fences.set(row.seq, fence)
  }
  const isOwned = (job: SettledJob): boolean => fences.get(job.ref) === job.fence
  return [ended.filter(isOwned), ended.filter((job) => !isOwned(job))]
}

export function readWorkers(session: Session): WorkerBeat[] {
  return (session.statement(session.queries.readWorkers).all() as WorkerRow[]).map(beatOf)
}

/** The jobs that a worker's leases hold. The list in a lease only names candidates; the fence of each job decides. */
export function readLeases(session: Session, worker: string): LeasedJob[] {
  const leases = session.statement(session.queries.readLeases).all(worker) as LeaseRow[]
  const jobs: LeasedJob[] = []
  for (const lease of leases) {
    const rows = session.rows(session.queries.leasedBodies).all(lease.jobs, lease.fence) as LeasedRow[]
    for (const row of rows)
      jobs.push({
        ...toClaimedJob(session.lanes.get(row[5]), row, lease.fence),
        quarantined: lease.quarantined,
        claimedAt: lease.claimed_at,
        startedAt: row[6],
        progress: row[7],
        isBlocking: row[0] === lease.blocked_by,
      })
  }
  return jobs
}

/** A body with its lane, and the start and the report of its attempt. */
type LeasedRow = readonly [number, string, Encoded, number, string | null, number, number | null, string | null]

interface LeaseRow {
  readonly fence: number
  readonly quarantined: number
  readonly claimed_at: number
  readonly blocked_by: number | null
  readonly jobs: string
}

/** Settles a dead worker's jobs in one guarded write. Null, and nothing is written, when its beat moved. */
export function rescueJobs(
  session: Session,
  worker: string,
  beat: number | null,
  settled: readonly SettledJob[],
  now: number,
): SettleResult | null {
  if (beat === null) {
    if (session.statement(session.queries.isWorker).get(worker) !== undefined) return null
  } else {
    session.statement(session.queries.keepDeadWorker).run(now, worker, beat)
    if (Number(session.statement(session.queries.endWorker).run(worker, beat).changes) === 0) return null
    session.statement(session.queries.dropDeadWorkers).run(now - DEAD_KEPT_MS)
  }
  const written = settleJobs(session, settled, [], now)
  session.statement(session.queries.dropLeases).run(worker)
  return written
}
