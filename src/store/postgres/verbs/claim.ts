import { chooseSuspects } from '../../../job/rules/quarantine.js'
import type { WaitingSuspect } from '../../../job/rules/quarantine.js'
import type { Confirmation, HeldJob } from '../../queues.js'
import type { Claimed, ClaimedJob, ClaimRequest, LeasedJob, Report } from '../../store.js'
import type { Lane } from './lanes.js'
import { filledLanes, firstLanes } from './filled-lanes.js'
import { encodedOf } from './rows.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'
import type { Before } from './claim-cursors.js'

export { Before } from './claim-cursors.js'

/** Payloads that are longer than this on average come as rows. */
const LARGE = 1_024

/**
 * Taking jobs: the heads of the lanes leave the line and are written into one lease. The scan begins behind what was taken
 * before (`starts`), since entries that are dead but cannot be removed yet would be walked over again at every claim.
 */
export async function claimJobs(s: Session, request: ClaimRequest, before: Before): Promise<Claimed> {
  if (before.hasManyLanes) return answer(s, request, await takeFilled(s, request, before), before)
  const from = before.starts.take()
  const taken = await takeNamed(s, request, from, before.areLarge)
  before.hasManyLanes = taken.told.known > MANY_LANES
  if (from === NOWHERE || taken.bodies.length > 0) return answer(s, request, taken, before)
  // Nothing behind there: what there is may stand before it.
  return answer(s, request, await takeNamed(s, request, NOWHERE, before.areLarge), before)
}

const NOWHERE = '[]'
/** More lanes than this are not each asked for their jobs: those that have any are looked up first. */
const MANY_LANES = 32

/** What one statement took, and what it told beside. */
interface Taken {
  readonly told: ToldRow
  readonly bodies: readonly Body[]
}

function takeNamed(s: Session, request: ClaimRequest, starts: string, asRows: boolean): Promise<Taken> {
  const { names, queues } = request
  const which = [names, queues].map((list) => (list === undefined ? null : JSON.stringify(list)))
  return take(s, asRows ? s.queries.claimLarge : s.queries.claimJobs, request, [...which, starts], asRows)
}

/** From the lanes that have jobs, at the moment; one that gets its first job meanwhile has its own hint. */
async function takeFilled(s: Session, request: ClaimRequest, before: Before): Promise<Taken> {
  const { lanes, until } = firstLanes(await filledLanes(s, request, before), request)
  const given = JSON.stringify(lanes.map(({ lane, queue, name }) => ({ lane, queue, name })))
  const sql = before.areLarge ? s.queries.claimGivenLarge : s.queries.claimGiven
  return take(s, sql, request, [given, until, NOWHERE], before.areLarge)
}

async function take(
  s: Session,
  sql: string,
  request: ClaimRequest,
  lanes: readonly (string | null)[],
  asRows: boolean,
): Promise<Taken> {
  const rooms = [...request.rooms].map(([queue, left]) => ({ queue, left }))
  const rows = await s.query<ToldRow & (JsonRow | LargeRow)>(
    sql,
    s.nowText,
    request.worker,
    String(request.fence),
    String(request.starting),
    String(Math.max(0, request.max)),
    JSON.stringify(rooms),
    ...lanes,
    String(request.suspects === 'first'),
  )
  const told = rows[0] as ToldRow
  if (asRows) return { told, bodies: (rows as readonly LargeRow[]).filter((row) => row.ref !== null).map(toBody) }
  return { told, bodies: bodiesOf((rows[0] as JsonRow).jobs) }
}

async function answer(s: Session, request: ClaimRequest, { told, bodies }: Taken, before: Before): Promise<Claimed> {
  const base = {
    now: Number(told.now),
    suspectStreak: null,
    isQuarantine: false,
    lost: !told.alive,
    resumesInMs: told.resumes === null ? null : Number(told.resumes),
  }
  const waiting = told.suspects ? await waitingSuspects(s, request) : []
  if (waiting.length > 0 && bodies.length === 0 && request.suspects !== 'none') {
    const jobs = await claimSuspects(s, request, chooseSuspects(waiting, request.starting, request.rooms))
    const taken = new Set(jobs.map((job) => job.ref))
    const left = waiting.filter((each) => !taken.has(each.ref))
    return { ...base, jobs, isQuarantine: jobs.length > 0, suspectStreak: shortestStreak(left) }
  }
  const lanes = lanesOf(told.lanes)
  const jobs = claimedJobs(bodies, lanes, request.fence)
  before.starts.claimed(jobs.length >= request.max && !before.hasManyLanes ? lanes : undefined)
  if (bodies.length > 0) before.areLarge = areLarge(bodies)
  return { ...base, suspectStreak: shortestStreak(waiting), jobs }
}

function shortestStreak(suspects: readonly Suspect[]): number | null {
  return suspects.length === 0 ? null : Math.min(...suspects.map((each) => each.streak))
}

function areLarge(bodies: readonly Body[]): boolean {
  let characters = 0
  for (const [, , , , payload] of bodies) characters += payload?.length ?? 0
  return characters > bodies.length * LARGE
}

/** Suspects that a claim looks at. */
const SUSPECTS_MAX = 1_000

interface Suspect extends WaitingSuspect, Lane {}

async function waitingSuspects(s: Session, request: ClaimRequest): Promise<readonly Suspect[]> {
  const rows = await s.query<{ ref: unknown; lane: number; queue: string; name: string; streak: unknown }>(
    s.queries.waitingSuspects,
    s.nowText,
    request.worker,
    String(SUSPECTS_MAX),
  )
  return rows
    .map((row) => ({ ...row, ref: Number(row.ref), streak: Number(row.streak) }))
    .filter(
      ({ queue, name }) =>
        request.queues?.includes(queue) !== false &&
        request.names?.includes(name) !== false &&
        (request.rooms.get(queue) ?? 1) > 0,
    )
}

async function claimSuspects(s: Session, request: ClaimRequest, chosen: readonly Suspect[]): Promise<ClaimedJob[]> {
  const [row] = await s.query<JsonRow & { lanes: string | null }>(
    s.queries.claimSuspects,
    s.nowText,
    request.worker,
    String(request.fence),
    JSON.stringify(chosen.map(({ ref, lane, queue, name }) => ({ ref, lane, queue, name }))),
  )
  return claimedJobs(bodiesOf(row?.jobs ?? null), lanesOf(row?.lanes ?? null), request.fence)
}

interface ToldRow {
  readonly now: unknown
  readonly alive: boolean
  /** JSON of the lanes that were taken from; null when nothing was. */
  readonly lanes: string | null
  readonly suspects: boolean
  /** How many lanes it might take from. */
  readonly known: number
  readonly resumes: unknown
}

interface JsonRow {
  /** JSON of all bodies; null when nothing was taken. */
  readonly jobs: string | null
}

/** One body; of nulls when nothing was taken. */
interface LargeRow {
  readonly ref: unknown
  readonly id: string
  readonly lane: unknown
  readonly due_at: unknown
  readonly payload: string | null
  readonly rare: string | null
}

/** ref, id, lane, due_at, payload, and the columns that most jobs have nothing in; null when this one has not either. */
type Body = readonly [number, string, number, number, string | null, Rare | null]
type Rare = readonly [
  attempt: number,
  retries: number,
  crashes: number,
  streak: number,
  log: string | null,
  expiresAt: number | null,
  key: string | null,
  options: string | null,
  bytes: string | null,
  isParent: boolean | null,
  group: string | null,
]
const NOTHING_RARE: Rare = [0, 0, 0, 0, null, null, null, null, null, null, null]

function bodiesOf(jobs: string | null): Body[] {
  return jobs === null ? [] : (JSON.parse(jobs) as Body[])
}

function toBody({ ref, id, lane, due_at, payload, rare }: LargeRow): Body {
  return [Number(ref), id, Number(lane), Number(due_at), payload, rare === null ? null : (JSON.parse(rare) as Rare)]
}

/** A lane that was taken from, and how far. What its number means is told with every claim, and never remembered. */
interface TakenLane extends Lane {
  readonly last: number
}

function lanesOf(lanes: string | null): TakenLane[] {
  const given = JSON.parse(lanes ?? '[]') as [number, string, string, number][]
  return given.map(([lane, queue, name, last]) => ({ lane, queue, name, last }))
}

function claimedJobs(bodies: readonly Body[], lanes: readonly Lane[], fence: number): ClaimedJob[] {
  const byNumber = new Map(lanes.map((lane) => [lane.lane, lane]))
  return bodies.map((body) => toClaimedJob(body, byNumber.get(body[2]) as Lane, fence))
}

function toClaimedJob(body: Body, lane: Pick<Lane, 'queue' | 'name'>, fence: number): ClaimedJob {
  const [ref, id, , dueAt, payload, rare] = body
  const [attempt, retries, crashes, streak, log, expiresAt, key, options, bytes, isParent, group] = rare ?? NOTHING_RARE
  return {
    ref,
    fence,
    id,
    name: lane.name,
    queue: lane.queue,
    key,
    group,
    payload: encodedOf(payload, bytes) ?? '',
    options,
    dueAt,
    expiresAt,
    attempt,
    retries,
    crashes,
    streak,
    log,
    isParent: isParent === true,
  }
}

/** Which of these held jobs may begin. */
export async function confirmJobs(s: Session, held: readonly HeldJob[]): Promise<Confirmation> {
  const fences = [...new Set(held.map((job) => job.fence))]
  const [row] = await s.query<{ leases: string | null; paused: string | null }>(
    s.queries.confirmJobs,
    arrayOf(fences),
    s.nowText,
  )
  const leases = new Map(JSON.parse(row?.leases ?? '[]') as [number, number[]][])
  const pausedQueues = new Set(JSON.parse(row?.paused ?? '[]') as string[])
  const mine = new Set<number>()
  const paused = new Set<number>()
  for (const { ref, fence, queue } of held) {
    const gone = leases.get(fence)
    if (gone === undefined || gone.includes(ref)) continue
    if (pausedQueues.has(queue)) paused.add(ref)
    else mine.add(ref)
  }
  return { mine, paused }
}

export async function reportJobs(s: Session, reports: readonly Report[]): Promise<number[]> {
  if (reports.length === 0) return []
  const given = reports.map(({ ref, fence, startedAt, progress }) => ({ ref, fence, started_at: startedAt, progress }))
  const rows = await s.query<{ ref: unknown }>(s.queries.reportJobs, JSON.stringify(given))
  const known = new Set(rows.map((row) => Number(row.ref)))
  return reports.map((report) => report.ref).filter((ref) => !known.has(ref))
}

/**
 * The server may still be at work on a claim whose connection was lost, and commit it when we have looked already. So its
 * fence is taken first: a claim that is under way is waited for, and one that comes later finds the fence taken and fails.
 */
export async function voidClaims(s: Session, worker: string, fences: readonly number[]): Promise<LeasedJob[]> {
  await s.query(s.queries.voidClaims, worker, arrayOf(fences), s.nowText)
  const leased = await readLeases(s, worker)
  return leased.filter(({ fence }) => fences.includes(fence))
}

/** What a worker's leases hold. */
export async function readLeases(s: Session, worker: string): Promise<LeasedJob[]> {
  const leases = await s.query<LeaseRow>(s.queries.readLeases, worker)
  const jobs: LeasedJob[] = []
  for (const lease of leases) {
    const held = JSON.parse(lease.jobs) as [Body, number | null, string, string][]
    for (const [body, startedAt, queue, name] of held)
      jobs.push({
        ...toClaimedJob(body, { queue, name }, Number(lease.fence)),
        quarantined: Number(lease.quarantined),
        claimedAt: Number(lease.claimed_at),
        startedAt,
        isBlocking: lease.blocked_by !== null && body[0] === Number(lease.blocked_by),
      })
  }
  return jobs
}

interface LeaseRow {
  readonly fence: unknown
  readonly quarantined: unknown
  readonly claimed_at: unknown
  readonly blocked_by: unknown
  readonly jobs: string
}
