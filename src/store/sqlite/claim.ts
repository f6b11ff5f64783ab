import type { Encoded } from '../../job/outcome.js'
import { chooseSuspects } from '../../job/quarantine.js'
import type { Claim, ClaimedJob, ClaimRequest, Claimed, Report } from '../store.js'
import { toEncoded } from './driver.js'
import type { Lane } from './lanes.js'
import { pausedNow, resumeQueue } from './pause.js'
import type { Session } from './session.js'
import { stretchesOf } from './stretches.js'

/**
 * Taking jobs. Each lane is one line in one index; the claim reads the head of every lane it may take from, merges them by
 * `sort` (due time, moved by priority), and marks what it takes with its fence. The list also goes into one lease row, which
 * is how a rescuer finds the jobs of the dead without an index that every claim would have to pay for.
 */
export function claimJobs(session: Session, request: ClaimRequest, now: number): Claimed {
  const nothing = nothingTaken(now)
  if (session.statement(session.queries.isWorker).get(request.worker) === undefined) return { ...nothing, lost: true }
  const { queues: paused, over, resumesInMs } = pausedNow(session, now)
  // An old pause costs one claim and no other.
  for (const queue of over) resumeQueue(session, queue)
  const lanes = eligibleLanes(session, request, paused)
  if (lanes.length === 0) return { ...nothing, resumesInMs }
  const suspects = waitingSuspects(session, lanes)
  const others = suspects.length === 0 || request.suspects !== 'first' ? takeOthers(session, request, lanes, now) : []
  const isQuarantine = suspects.length > 0 && others.length === 0 && request.suspects !== 'none'
  const jobs = isQuarantine ? takeSuspects(session, request, suspects, now) : others
  const left = isQuarantine ? waitingSuspects(session, lanes) : suspects
  const suspectStreak = left.length === 0 ? null : Math.min(...left.map((lane) => lane.streak))
  return { now, jobs, suspectStreak, isQuarantine, lost: false, resumesInMs }
}

function nothingTaken(now: number): Claimed {
  return { now, jobs: [], suspectStreak: null, isQuarantine: false, lost: false, resumesInMs: null }
}

function takeOthers(session: Session, request: ClaimRequest, lanes: readonly Lane[], now: number): ClaimedJob[] {
  return lanes.length === 1
    ? takeFromLane(session, request, lanes[0] as Lane, now)
    : takeMerged(session, request, lanes, now)
}

/** The answer of a claim that would take nothing, by reading alone; undefined when it must be made. */
export function nothingToClaim(session: Session, request: ClaimRequest, now: number): Claimed | undefined {
  if (session.statement(session.queries.isWorker).get(request.worker) === undefined) return undefined
  const { queues: paused, resumesInMs } = pausedNow(session, now)
  if (isAnyReady(session, eligibleLanes(session, request, paused))) return undefined
  return { ...nothingTaken(now), resumesInMs }
}

export function isAnyReady(session: Session, lanes: Iterable<Lane>): boolean {
  const { readyJobs, readySuspects } = session.queries
  // Not `get`: claims ask the same statements for all, and after that libsql's next `get` finds nothing.
  for (const { lane } of lanes)
    for (const sql of [readyJobs, readySuspects]) if (session.statement(sql).all(lane, 1).length > 0) return true
  return false
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

/** A lane with suspects, and the shortest streak among them. */
interface SuspectLane extends Lane {
  readonly streak: number
}

/** Suspects of one lane that a claim looks at. */
const SUSPECTS_MAX = 1_000

function waitingSuspects(session: Session, lanes: readonly Lane[]): SuspectLane[] {
  const waiting = session.statement(session.queries.suspectsWait).all() as { lane: number; streak: number }[]
  if (waiting.length === 0) return []
  const streaks = new Map(waiting.map((row) => [row.lane, row.streak]))
  return lanes.flatMap((lane) => {
    const streak = streaks.get(lane.lane)
    return streak === undefined ? [] : [{ ...lane, streak }]
  })
}

function takeSuspects(
  session: Session,
  request: ClaimRequest,
  lanes: readonly SuspectLane[],
  now: number,
): ClaimedJob[] {
  const waiting = lanes.flatMap(({ lane, queue }) => {
    const rows = session.statement(session.queries.readySuspects).all(lane, SUSPECTS_MAX)
    return (rows as { seq: number; sort: number; streak: number }[]).map((row) => ({ ...row, ref: row.seq, queue }))
  })
  waiting.sort((a, b) => a.sort - b.sort || a.seq - b.seq)
  const refs = chooseSuspects(waiting, request.starting, request.rooms).map((each) => each.ref)
  mark(session, request, refs, refs.length, now)
  return readBodies(session, refs, request.fence)
}

/** One lane needs no merging, so its jobs are read whole at once. */
function takeFromLane(session: Session, request: ClaimRequest, lane: Lane, now: number): ClaimedJob[] {
  const room = Math.min(request.max, request.rooms.get(lane.queue) ?? request.max)
  if (room <= 0) return []
  const rows = session.rows(session.queries.headOfLane).all(lane.lane, room) as BodyRow[]
  mark(
    session,
    request,
    rows.map((row) => row[0]),
    0,
    now,
  )
  return rows.map((row) => toClaimedJob(lane, row, request.fence))
}

function takeMerged(session: Session, request: ClaimRequest, lanes: readonly Lane[], now: number): ClaimedJob[] {
  const refs = heads(session, session.queries.readyJobs, lanes, request.max, request.rooms)
  mark(session, request, refs, 0, now)
  return readBodies(session, refs, request.fence)
}

/** The first `max` of several lanes together, no more of a queue than it has room for. */
function heads(
  session: Session,
  sql: string,
  lanes: readonly Lane[],
  max: number,
  rooms: ReadonlyMap<string, number>,
): number[] {
  if (max <= 0) return []
  const found: { readonly seq: number; readonly sort: number; readonly queue: string }[] = []
  for (const { lane, queue } of lanes) {
    const room = Math.min(max, rooms.get(queue) ?? max)
    for (const row of session.statement(sql).all(lane, room) as { seq: number; sort: number }[])
      found.push({ seq: row.seq, sort: row.sort, queue })
  }
  found.sort((a, b) => a.sort - b.sort || a.seq - b.seq)
  const left = new Map(rooms)
  const taken: number[] = []
  for (const head of found) {
    if (taken.length === max) break
    const room = left.get(head.queue)
    if (room === 0) continue
    if (room !== undefined) left.set(head.queue, room - 1)
    taken.push(head.seq)
  }
  return taken
}

/** Puts the claim's fence on them: the first `starting` run from now on, the rest is held. */
function mark(
  session: Session,
  request: ClaimRequest,
  refs: readonly number[],
  quarantined: number,
  now: number,
): void {
  if (refs.length === 0) return
  const starting = refs.slice(0, request.starting)
  session.statement(session.queries.claimStarting).run(request.fence, now, JSON.stringify(starting))
  const { runs, rest } = stretchesOf(refs.slice(request.starting), itself, always)
  for (const run of runs)
    session.statement(session.queries.claimHeldRun).run(request.fence, run[0] as number, run.at(-1) as number)
  if (rest.length > 0) session.statement(session.queries.claimHeld).run(request.fence, JSON.stringify(rest))
  session.statement(session.queries.addLease).run(request.fence, request.worker, quarantined, now, JSON.stringify(refs))
}

const itself = (ref: number): number => ref
const always = (): boolean => true

function readBodies(session: Session, refs: readonly number[], fence: number): ClaimedJob[] {
  if (refs.length === 0) return []
  const rows = session.rows(session.queries.claimedBodies).all(JSON.stringify(refs)) as LanedRow[]
  return rows.map((row) => toClaimedJob(session.lanes.get(row[5]), row, fence))
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

/** seq, id, payload, due_at, and as JSON text the columns that most jobs have nothing in; null when this one has not either. */
type BodyRow = readonly [number, string, Encoded, number, string | null, ...(readonly unknown[])]
/** The same with its lane. */
type LanedRow = readonly [number, string, Encoded, number, string | null, number]

type Rare = readonly [
  attempt: number,
  retries: number,
  crashes: number,
  streak: number,
  log: string | null,
  expiresAt: number | null,
  key: string | null,
  options: string | null,
  group: string | null,
]
const NOTHING_RARE: Rare = [0, 0, 0, 0, null, null, null, null, null]

export function toClaimedJob(lane: Lane, row: BodyRow, fence: number): ClaimedJob {
  const [ref, id, payload, dueAt, rare] = row
  const [attempt, retries, crashes, streak, log, expiresAt, key, options, group] =
    rare === null ? NOTHING_RARE : (JSON.parse(rare) as Rare)
  return {
    ref,
    fence,
    id,
    name: lane.name,
    queue: lane.queue,
    key,
    group,
    payload: toEncoded(payload),
    options,
    dueAt,
    expiresAt,
    attempt,
    retries,
    crashes,
    streak,
    log,
  }
}
