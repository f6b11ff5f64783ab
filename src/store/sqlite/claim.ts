import type { Encoded } from '../../job/outcome.js'
import type { Claim, ClaimedJob, ClaimRequest, Claimed, Report } from '../store.js'
import { toEncoded } from './driver.js'
import type { Lane } from './lanes.js'
import { pausedNow } from './pause.js'
import type { Session } from './session.js'

/**
 * Taking jobs. Each lane is one line in one index; the claim reads the head of every lane it may take from, merges them by
 * `sort` (due time, moved by priority), and marks what it takes with its fence. The list also goes into one lease row, which
 * is how a rescuer finds the jobs of the dead without an index that every claim would have to pay for.
 */
export function claimJobs(session: Session, request: ClaimRequest, now: number): Claimed {
  const nothing = { now, jobs: [], suspectsWait: false, lost: false, resumesInMs: null }
  if (session.statement(session.queries.isWorker).get(request.worker) === undefined) return { ...nothing, lost: true }
  const { queues: paused, resumesInMs } = pausedNow(session, now)
  const lanes = eligibleLanes(session, request, paused)
  if (lanes.length === 0) return { ...nothing, resumesInMs }
  const suspects = waitingSuspects(session, lanes)
  if (suspects.length > 0 && request.suspects !== 'none') {
    const taken = heads(session, session.queries.readySuspect, suspects, 1, new Map())
    return {
      now,
      jobs: take(session, request, taken, request.suspects === 'alone', now),
      suspectsWait: true,
      lost: false,
      resumesInMs,
    }
  }
  const taken =
    lanes.length === 1
      ? headOfOneLane(session, request, lanes[0] as Lane)
      : heads(session, session.queries.readyJobs, lanes, request.max, request.rooms)
  return {
    now,
    jobs: take(session, request, taken, false, now),
    suspectsWait: suspects.length > 0,
    lost: false,
    resumesInMs,
  }
}

function eligibleLanes(session: Session, request: ClaimRequest, paused: ReadonlySet<string>): Lane[] {
  const known = request.names === undefined ? undefined : new Set(request.names)
  const lanes: Lane[] = []
  for (const lane of session.lanes.all())
    if (
      request.queues?.includes(lane.queue) !== false &&
      (known === undefined || known.has(lane.name)) &&
      (request.rooms.get(lane.queue) ?? 1) > 0 &&
      !paused.has(lane.queue)
    )
      lanes.push(lane)
  return lanes
}

function waitingSuspects(session: Session, lanes: readonly Lane[]): Lane[] {
  const waiting = session.statement(session.queries.suspectsWait).all() as { lane: number }[]
  if (waiting.length === 0) return []
  const numbers = new Set(waiting.map((row) => row.lane))
  return lanes.filter((lane) => numbers.has(lane.lane))
}

/** A job that may be taken; its body too where the line was read in one go. */
interface Head {
  readonly seq: number
  readonly queue: string
  readonly body?: BodyRow | undefined
}

/** One lane needs no merging, so its jobs are read whole at once. */
function headOfOneLane(session: Session, request: ClaimRequest, lane: Lane): Head[] {
  const room = Math.min(request.max, request.rooms.get(lane.queue) ?? request.max)
  if (room <= 0) return []
  const rows = session.statement(session.queries.headOfLane).all(lane.lane, room) as BodyRow[]
  return rows.map((body) => ({ seq: body.seq, queue: lane.queue, body }))
}

/** The first `max` of several lanes together, no more of a queue than it has room for. */
function heads(
  session: Session,
  sql: string,
  lanes: readonly Lane[],
  max: number,
  rooms: ReadonlyMap<string, number>,
): Head[] {
  if (max <= 0) return []
  const found: (Head & { readonly sort: number })[] = []
  for (const { lane, queue } of lanes) {
    const room = Math.min(max, rooms.get(queue) ?? max)
    for (const row of session.statement(sql).all(lane, room) as { seq: number; sort: number }[])
      found.push({ seq: row.seq, sort: row.sort, queue })
  }
  found.sort((a, b) => a.sort - b.sort || a.seq - b.seq)
  const left = new Map(rooms)
  const taken: Head[] = []
  for (const head of found) {
    if (taken.length === max) break
    const room = left.get(head.queue)
    if (room === 0) continue
    if (room !== undefined) left.set(head.queue, room - 1)
    taken.push(head)
  }
  return taken
}

function take(
  session: Session,
  request: ClaimRequest,
  taken: readonly Head[],
  alone: boolean,
  now: number,
): ClaimedJob[] {
  if (taken.length === 0) return []
  const refs = taken.map((head) => head.seq)
  const all = JSON.stringify(refs)
  const starting = refs.length <= request.starting ? all : JSON.stringify(refs.slice(0, request.starting))
  session.statement(session.queries.claimStarting).run(request.fence, now, starting)
  if (starting !== all)
    session.statement(session.queries.claimHeld).run(request.fence, JSON.stringify(refs.slice(request.starting)))
  session.statement(session.queries.addLease).run(request.fence, request.worker, alone ? 1 : 0, now, all)
  const read = taken[0]?.body !== undefined
  const rows = read
    ? taken.map((head) => head.body as BodyRow)
    : (session.statement(session.queries.claimedBodies).all(all) as BodyRow[])
  return rows.map((row) => toClaimedJob(session, row, request.fence))
}

/** Which of these are still held under their fence. */
export function confirmJobs(session: Session, claims: readonly Claim[]): Set<number> {
  const confirmed = new Set<number>()
  for (const [fence, refs] of byFence(claims)) {
    const rows = session.statement(session.queries.confirmJobs).all(JSON.stringify(refs), fence) as { seq: number }[]
    for (const row of rows) confirmed.add(row.seq)
  }
  return confirmed
}

export function reportJobs(session: Session, reports: readonly Report[]): number[] {
  const lost: number[] = []
  const statement = session.statement(session.queries.reportJob)
  for (const report of reports)
    if (Number(statement.run(report.startedAt, report.progress, report.ref, report.fence).changes) === 0)
      lost.push(report.ref)
  return lost
}

export function byFence(claims: readonly Claim[]): Map<number, number[]> {
  const groups = new Map<number, number[]>()
  for (const { ref, fence } of claims) {
    const refs = groups.get(fence)
    if (refs === undefined) groups.set(fence, [ref])
    else refs.push(ref)
  }
  return groups
}

export interface BodyRow {
  readonly seq: number
  readonly lane: number
  readonly id: string
  readonly payload: Encoded
  readonly due_at: number
  /** JSON text of the columns that most jobs have nothing in; null when this one has not either. */
  readonly rare: string | null
}

type Rare = readonly [number, number, number, number, string | null, number | null, string | null, string | null]
const NOTHING_RARE: Rare = [0, 0, 0, 0, null, null, null, null]

export function toClaimedJob(session: Session, row: BodyRow, fence: number): ClaimedJob {
  const lane = session.lanes.get(row.lane)
  const [attempt, retries, crashes, suspect, log, expiresAt, key, options] =
    row.rare === null ? NOTHING_RARE : (JSON.parse(row.rare) as Rare)
  return {
    ref: row.seq,
    fence,
    id: row.id,
    name: lane.name,
    queue: lane.queue,
    key,
    payload: toEncoded(row.payload),
    options,
    dueAt: row.due_at,
    expiresAt,
    attempt,
    retries,
    crashes,
    suspect: suspect === 1,
    log,
  }
}
