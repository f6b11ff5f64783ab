import type { Encoded } from '../../../job/rules/outcome.js'
import { chooseSuspects } from '../../../job/rules/quarantine.js'
import type { Claim, ClaimedJob, ClaimRequest, Claimed, Report } from '../../store.js'
import type { CurrentPause } from '../../queues.js'
import { resumeQueue } from '../../verbs/pauses.js'
import { runVerb } from '../../verbs/verb.js'
import { toEncoded } from '../connection/driver.js'
import type { Lane, LaneList } from './lanes.js'
import { SessionAt } from '../connection/session.js'
import type { Session } from '../connection/session.js'
import { claimNotesOf } from './claim-notes.js'
import type { ClaimNotes } from './claim-notes.js'
import { rowRunsOf } from './row-runs.js'

/** Up to this many lanes are read directly, without checking first which have jobs. */
const FEW_LANES = 8
/** The number of lanes with ready jobs that are looked up at a time. */
const FILLED_AT_ONCE = 64

/**
 * Claims jobs. Each lane is one range of one index. The claim reads the head of every lane it may take from, merges
 * them by `sort` (due time, moved by priority), and writes its fence to the jobs it takes. With many lanes it first
 * looks up which have jobs. The list also goes into one lease row: a rescuer finds the jobs of a dead worker there,
 * without an index that every claim would have to maintain.
 */
export function claimJobs(session: Session, request: ClaimRequest, now: number): Claimed {
  const nothing = nothingTaken(now)
  if (session.statement(session.queries.isWorker).get(request.worker) === undefined) return { ...nothing, lost: true }
  const notes = claimNotesOf(session, now)
  // The first claim after the end of a pause deletes it; later claims pay nothing.
  for (const queue of notes.over) runVerb(resumeQueue(new SessionAt(session, now), queue))
  const known = session.lanes.named(request.names)
  const may = mayTake(request, notes)
  const suspects = waitingSuspects(session, known, may)
  const isFirst = suspects.length > 0 && request.suspects === 'first'
  const others = isFirst ? [] : takeOthers(session, request, lanesToTake(session, known, may), now)
  const isQuarantine = suspects.length > 0 && others.length === 0 && request.suspects !== 'none'
  const jobs = isQuarantine ? takeSuspects(session, request, suspects, now) : others
  const left = isQuarantine ? waitingSuspects(session, known, may) : suspects
  const suspectStreak = left.length === 0 ? null : Math.min(...left.map((lane) => lane.streak))
  return { ...nothing, ...factsOf(session, notes), jobs, suspectStreak, isQuarantine }
}

function nothingTaken(now: number): Claimed {
  return { now, jobs: [], suspectStreak: null, isQuarantine: false, lost: false, resumesInMs: null }
}

/** What a claim reports beside its jobs. */
function factsOf(session: Session, { resumesInMs, limited, hasTurns, failing }: ClaimNotes): Partial<Claimed> {
  return {
    resumesInMs,
    ...(limited.size > 0 || hasTurns ? { limited: true } : {}),
    ...(failing.length > 0 ? { failing: failing.map((lane) => session.lanes.get(lane)) } : {}),
  }
}

function takeOthers(session: Session, request: ClaimRequest, lanes: readonly Lane[], now: number): ClaimedJob[] {
  return lanes.length === 1
    ? takeFromLane(session, request, lanes[0] as Lane, now)
    : takeMerged(session, request, lanes, now)
}

/** The result of a claim that would take nothing, by reading alone; undefined when the claim must write. */
export function nothingToClaim(session: Session, request: ClaimRequest, now: number): Claimed | undefined {
  if (session.statement(session.queries.isWorker).get(request.worker) === undefined) return undefined
  const notes = claimNotesOf(session, now)
  const known = session.lanes.named(request.names)
  const may = mayTake(request, notes)
  if (waitingSuspects(session, known, may).length > 0 || isAnyReady(session, lanesToTake(session, known, may)))
    return undefined
  return { ...nothingTaken(now), ...factsOf(session, notes) }
}

function isAnyReady(session: Session, lanes: readonly Lane[]): boolean {
  // Not `get`: claims call `all` on the same statement, and after that libsql's next `get` returns nothing.
  return lanes.some(({ lane }) => session.statement(session.queries.readyJobs).all(lane, 1).length > 0)
}

type MayTake = (lane: Lane) => boolean

function mayTake(request: ClaimRequest, { paused, limited }: ClaimNotes): MayTake {
  const queues = request.queues === undefined ? undefined : new Set(request.queues)
  return ({ queue, name }) =>
    queues?.has(queue) !== false &&
    (request.rooms.get(queue) ?? 1) > 0 &&
    !paused.has(queue) &&
    !limited.has(queue) &&
    request.except?.includes(name) !== true
}

/** The lanes to take from; with many lanes, only those that have jobs. */
function lanesToTake(session: Session, known: LaneList, may: MayTake): Lane[] {
  if (known.lanes.length <= FEW_LANES) return known.lanes.filter(may)
  const lanes: Lane[] = []
  // Alternates between the next lane with jobs and the next known lane, so it visits neither empty lanes nor those of
  // other workers.
  for (let next = known.from(0); next !== undefined;) {
    const filled = session.statement(session.queries.filledLanes).all(next.lane, FILLED_AT_ONCE) as { lane: number }[]
    for (const { lane } of filled) {
      const found = known.from(lane)
      if (found?.lane === lane && may(found)) lanes.push(found)
    }
    next = filled.length < FILLED_AT_ONCE ? undefined : known.from((filled.at(-1)?.lane ?? 0) + 1)
  }
  return lanes
}

/** A lane with suspects, and their shortest streak. */
interface SuspectLane extends Lane {
  readonly streak: number
}

/** The most suspects of one lane that a claim reads. */
const SUSPECTS_MAX = 1_000

function waitingSuspects(session: Session, known: LaneList, may: MayTake): SuspectLane[] {
  const waiting = session.statement(session.queries.suspectsWait).all() as { lane: number; streak: number }[]
  return waiting.flatMap(({ lane, streak }) => {
    const found = known.from(lane)
    return found?.lane === lane && may(found) ? [{ ...found, streak }] : []
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

/** One lane needs no merging, so its jobs are read with their bodies in one statement. */
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

/** The first `max` jobs of several lanes together, and no more of a queue than it has room for. */
function heads(
  session: Session,
  sql: string,
  lanes: readonly Lane[],
  max: number,
  rooms: ReadonlyMap<string, number>,
): number[] {
  if (max <= 0) return []
  const read = (lane: Lane, most: number): LaneHead => {
    const rows = session.statement(sql).all(lane.lane, most) as HeadRow[]
    return { lane, most, rows }
  }
  // With many lanes, read a few jobs of each: usually that is enough; if not, read more of the lanes that ran out.
  const share = lanes.length <= FEW_LANES ? max : Math.ceil((2 * max) / lanes.length)
  let all = lanes.map((lane) => read(lane, Math.min(max, share)))
  for (;;) {
    const taken = firstOf(all, max, rooms)
    const ranOut = ({ most, rows }: LaneHead): boolean =>
      most < max && rows.length === most && taken.has((rows.at(-1) as HeadRow).seq)
    if (!all.some(ranOut)) return [...taken]
    all = all.map((head) => (ranOut(head) ? read(head.lane, Math.min(max, head.most * 8)) : head))
  }
}

interface HeadRow {
  readonly seq: number
  readonly sort: number
}

/** The first jobs of a lane, up to a limit. */
interface LaneHead {
  readonly lane: Lane
  readonly most: number
  readonly rows: readonly HeadRow[]
}

function firstOf(heads: readonly LaneHead[], max: number, rooms: ReadonlyMap<string, number>): Set<number> {
  const found = heads.flatMap(({ lane, rows }) => rows.map(({ seq, sort }) => ({ seq, sort, queue: lane.queue })))
  found.sort((a, b) => a.sort - b.sort || a.seq - b.seq)
  const left = new Map(rooms)
  const taken = new Set<number>()
  for (const head of found) {
    if (taken.size === max) break
    const room = left.get(head.queue)
    if (room === 0) continue
    if (room !== undefined) left.set(head.queue, room - 1)
    taken.add(head.seq)
  }
  return taken
}

/** Writes the claim's fence to the jobs: the first `starting` are running from now on, the rest are held. */
export function mark(
  session: Session,
  request: ClaimRequest,
  refs: readonly number[],
  quarantined: number,
  now: number,
): void {
  if (refs.length === 0) return
  const starting = refs.slice(0, request.starting)
  session.statement(session.queries.claimStarting).run(request.fence, now, JSON.stringify(starting))
  const { runs, rest } = rowRunsOf(refs.slice(request.starting), itself, always)
  for (const run of runs)
    session.statement(session.queries.claimHeldRun).run(request.fence, run[0] as number, run.at(-1) as number)
  if (rest.length > 0) session.statement(session.queries.claimHeld).run(request.fence, JSON.stringify(rest))
  session.statement(session.queries.addLease).run(request.fence, request.worker, quarantined, now, JSON.stringify(refs))
}

const itself = (ref: number): number => ref
const always = (): boolean => true

export function readBodies(session: Session, refs: readonly number[], fence: number): ClaimedJob[] {
  if (refs.length === 0) return []
  const rows = session.rows(session.queries.claimedBodies).all(JSON.stringify(refs)) as LanedRow[]
  return rows.map((row) => toClaimedJob(session.lanes.get(row[5]), row, fence))
}

/** The jobs that are still held under their fence. */
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

/** seq, id, payload, due_at, and the rarely used columns as one JSON text; null when all of them are empty. */
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

/** Every queue that has a pause row, over or not. */
export function readPauses(session: Session): Map<string, CurrentPause> {
  const rows = session.statement(session.queries.readPauses).all() as PauseRow[]
  return new Map(rows.map((row) => [row.queue, { pausedAt: row.paused_at, until: row.until }]))
}

interface PauseRow {
  readonly queue: string
  readonly until: number | null
  readonly paused_at: number
}

/** Whether any worker holds a job in advance, or a sequence, of which it may begin the next item. */
export function isAnyHeld(session: Session): boolean {
  const { anyHeld, anySequenceInHand } = session.queries
  return [anyHeld, anySequenceInHand].some((sql) => session.statement(sql).get() !== undefined)
}
