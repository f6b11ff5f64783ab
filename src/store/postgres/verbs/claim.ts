import { chooseSuspects } from '../../../job/rules/quarantine.js'
import type { WaitingSuspect } from '../../../job/rules/quarantine.js'
import type { World } from '../../../world/world.js'
import type { Confirmation, HeldJob } from '../../queues.js'
import type { Claimed, ClaimedJob, ClaimRequest, FailingLane, LeasedJob, Report } from '../../store.js'
import type { Lane } from './lanes.js'
import { encodedOf } from './read.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'
import { withPositions } from './sequences.js'

/** Above this average length, payloads are returned as rows instead of JSON. */
const LARGE = 1_024

/**
 * Claims jobs: deletes the first rows of the lanes from `ready` and inserts them into one lease. The scan begins after
 * the rows that were claimed before (`ClaimCursors`), since every claim would walk again over index entries that are
 * dead but cannot be removed yet.
 */
export async function claimJobs(session: Session, request: ClaimRequest, before: LastClaim): Promise<Claimed> {
  const claimed = await takeJobs(session, request, before)
  return { ...claimed, jobs: await withPositions(session, claimed.jobs) }
}

async function takeJobs(session: Session, request: ClaimRequest, before: LastClaim): Promise<Claimed> {
  if (before.hasManyLanes) return answer(session, request, await takeFromFilled(session, request, before), before)
  const from = before.cursors.take()
  const taken = await takeByName(session, request, from, before.areLarge)
  before.hasManyLanes = taken.facts.known > MANY_LANES
  if (from === NOWHERE || taken.bodies.length > 0) return answer(session, request, taken, before)
  // No job after the cursors: there may be jobs before them.
  return answer(session, request, await takeByName(session, request, NOWHERE, before.areLarge), before)
}

const NOWHERE = '[]'
/** With more lanes than this, a claim first looks up those that have jobs, instead of trying each. */
const MANY_LANES = 32

/** The jobs that one statement claimed, and its other columns. */
interface Taken {
  readonly facts: FactsRow
  readonly bodies: readonly Body[]
}

function takeByName(session: Session, request: ClaimRequest, starts: string, asRows: boolean): Promise<Taken> {
  const { names, queues } = request
  const which = [names, queues].map((list) => (list === undefined ? null : JSON.stringify(list)))
  return take(
    session,
    asRows ? session.queries.claimJobsByRow : session.queries.claimJobs,
    request,
    [...which, starts],
    asRows,
  )
}

/**
 * Claims from the lanes that have jobs at the moment; a lane that gets its first job meanwhile causes a hint of its
 * own.
 */
async function takeFromFilled(session: Session, request: ClaimRequest, before: LastClaim): Promise<Taken> {
  const { lanes, until } = firstLanes(await filledLanes(session, request, before), request)
  const given = JSON.stringify(lanes.map(({ lane, queue, name }) => ({ lane, queue, name })))
  const sql = before.areLarge ? session.queries.claimFromLanesByRow : session.queries.claimFromLanes
  return take(session, sql, request, [given, until, NOWHERE], before.areLarge)
}

async function take(
  session: Session,
  sql: string,
  request: ClaimRequest,
  lanes: readonly (string | null)[],
  asRows: boolean,
): Promise<Taken> {
  const rooms = [...request.rooms].map(([queue, left]) => ({ queue, left }))
  const rows = await session.query<FactsRow & (JsonRow | LargeRow)>(
    sql,
    session.nowText,
    request.worker,
    String(request.fence),
    String(request.starting),
    String(Math.max(0, request.max)),
    JSON.stringify(rooms),
    ...lanes,
    String(request.suspects === 'first'),
    request.except === undefined ? null : JSON.stringify(request.except),
  )
  const facts = rows[0] as FactsRow
  if (asRows) return { facts, bodies: (rows as readonly LargeRow[]).filter((row) => row.ref !== null).map(toBody) }
  return { facts, bodies: bodiesOf((rows[0] as JsonRow).jobs) }
}

async function answer(
  session: Session,
  request: ClaimRequest,
  { facts, bodies }: Taken,
  before: LastClaim,
): Promise<Claimed> {
  const base = {
    now: Number(facts.now),
    suspectStreak: null,
    isQuarantine: false,
    lost: !facts.alive,
    resumesInMs: facts.resumes === null ? null : Number(facts.resumes),
    ...(facts.limited ? { limited: true } : {}),
    ...(facts.failing === null ? {} : { failing: failingOf(facts.failing) }),
  }
  const waiting = facts.suspects ? await waitingSuspects(session, request) : []
  if (waiting.length > 0 && bodies.length === 0 && request.suspects !== 'none') {
    const jobs = await claimSuspects(session, request, chooseSuspects(waiting, request.starting, request.rooms))
    const taken = new Set(jobs.map((job) => job.ref))
    const left = waiting.filter((each) => !taken.has(each.ref))
    return { ...base, jobs, isQuarantine: jobs.length > 0, suspectStreak: shortestStreak(left) }
  }
  const lanes = lanesOf(facts.lanes)
  const jobs = claimedJobs(bodies, lanes, request.fence)
  before.cursors.claimed(jobs.length >= request.max && !before.hasManyLanes ? lanes : undefined)
  if (bodies.length > 0) before.areLarge = areLarge(bodies)
  return { ...base, suspectStreak: shortestStreak(waiting), jobs }
}

export function failingOf(failing: string): FailingLane[] {
  return (JSON.parse(failing) as [string, string][]).map(([queue, name]) => ({ queue, name }))
}

function shortestStreak(suspects: readonly Suspect[]): number | null {
  return suspects.length === 0 ? null : Math.min(...suspects.map((each) => each.streak))
}

function areLarge(bodies: readonly Body[]): boolean {
  let characters = 0
  for (const [, , , , payload] of bodies) characters += payload?.length ?? 0
  return characters > bodies.length * LARGE
}

/** Limit of the suspects that a claim reads. */
const SUSPECTS_MAX = 1_000

interface Suspect extends WaitingSuspect, Lane {}

async function waitingSuspects(session: Session, request: ClaimRequest): Promise<readonly Suspect[]> {
  const rows = await session.query<{ ref: unknown; lane: number; queue: string; name: string; streak: unknown }>(
    session.queries.waitingSuspects,
    session.nowText,
    request.worker,
    String(SUSPECTS_MAX),
  )
  return rows
    .map((row) => ({ ...row, ref: Number(row.ref), streak: Number(row.streak) }))
    .filter(
      ({ queue, name }) =>
        request.queues?.includes(queue) !== false &&
        request.names?.includes(name) !== false &&
        request.except?.includes(name) !== true &&
        (request.rooms.get(queue) ?? 1) > 0,
    )
}

async function claimSuspects(
  session: Session,
  request: ClaimRequest,
  chosen: readonly Suspect[],
): Promise<ClaimedJob[]> {
  const [row] = await session.query<JsonRow & { lanes: string | null }>(
    session.queries.claimSuspects,
    session.nowText,
    request.worker,
    String(request.fence),
    JSON.stringify(chosen.map(({ ref, lane, queue, name }) => ({ ref, lane, queue, name }))),
  )
  return claimedJobs(bodiesOf(row?.jobs ?? null), lanesOf(row?.lanes ?? null), request.fence)
}

interface FactsRow {
  readonly now: unknown
  readonly alive: boolean
  /** JSON of the lanes of the claimed jobs; null without any. */
  readonly lanes: string | null
  readonly suspects: boolean
  /** The number of lanes that the claim considered. */
  readonly known: number
  readonly resumes: unknown
  readonly limited: boolean
  /** JSON of the lanes whose attempts fail; null without any. */
  readonly failing: string | null
}

interface JsonRow {
  /** JSON of all jobs; null when none was claimed. */
  readonly jobs: string | null
}

/** One job; all null when none was claimed. */
interface LargeRow {
  readonly ref: unknown
  readonly id: string
  readonly lane: unknown
  readonly due_at: unknown
  readonly payload: string | null
  readonly rare: string | null
}

/** ref, id, lane, due_at, payload, and the columns that are null for most jobs; null when all of them are. */
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

export function bodiesOf(jobs: string | null): Body[] {
  return jobs === null ? [] : (JSON.parse(jobs) as Body[])
}

function toBody({ ref, id, lane, due_at, payload, rare }: LargeRow): Body {
  return [Number(ref), id, Number(lane), Number(due_at), payload, rare === null ? null : (JSON.parse(rare) as Rare)]
}

/**
 * A lane with claimed jobs, and the `sort` of the last one. Its queue and name are returned by every claim, and are
 * never cached.
 */
interface TakenLane extends Lane {
  readonly last: number
}

export function lanesOf(lanes: string | null): TakenLane[] {
  const given = JSON.parse(lanes ?? '[]') as [number, string, string, number][]
  return given.map(([lane, queue, name, last]) => ({ lane, queue, name, last }))
}

export function claimedJobs(bodies: readonly Body[], lanes: readonly Lane[], fence: number): ClaimedJob[] {
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
export async function confirmJobs(session: Session, held: readonly HeldJob[]): Promise<Confirmation> {
  const fences = [...new Set(held.map((job) => job.fence))]
  const row = await session.one<{ leases: string | null; paused: string | null }>(
    session.queries.confirmJobs,
    arrayOf(fences),
    session.nowText,
  )
  const leases = new Map(JSON.parse(row.leases ?? '[]') as [number, number[]][])
  const pausedQueues = new Set(JSON.parse(row.paused ?? '[]') as string[])
  const mine = new Set<number>()
  const paused = new Set<number>()
  for (const { ref, fence, queue } of held) {
    const released = leases.get(fence)
    if (released === undefined || released.includes(ref)) continue
    if (pausedQueues.has(queue)) paused.add(ref)
    else mine.add(ref)
  }
  return { mine, paused }
}

export async function reportJobs(session: Session, reports: readonly Report[]): Promise<number[]> {
  if (reports.length === 0) return []
  const given = reports.map(({ ref, fence, startedAt, progress }) => ({ ref, fence, started_at: startedAt, progress }))
  const rows = await session.query<{ ref: unknown }>(session.queries.reportJobs, JSON.stringify(given))
  const known = new Set(rows.map((row) => Number(row.ref)))
  return reports.map((report) => report.ref).filter((ref) => !known.has(ref))
}

/**
 * The server may still run a claim whose connection was lost, and commit it after the leases were read. So the fence is
 * inserted first: this waits for a claim in flight, and a later one conflicts with the fence and fails.
 */
export async function voidClaims(session: Session, worker: string, fences: readonly number[]): Promise<LeasedJob[]> {
  await session.query(session.queries.voidClaims, worker, arrayOf(fences), session.nowText)
  const leased = await readLeases(session, worker)
  return leased.filter(({ fence }) => fences.includes(fence))
}

/** The jobs in a worker's leases. */
export async function readLeases(session: Session, worker: string): Promise<LeasedJob[]> {
  const leases = await session.query<LeaseRow>(session.queries.readLeases, worker)
  const jobs: LeasedJob[] = []
  for (const lease of leases) {
    const held = JSON.parse(lease.jobs) as [Body, number | null, string, string, string | null][]
    for (const [body, startedAt, queue, name, progress] of held)
      jobs.push({
        ...toClaimedJob(body, { queue, name }, Number(lease.fence)),
        quarantined: Number(lease.quarantined),
        claimedAt: Number(lease.claimed_at),
        startedAt,
        progress,
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

/**
 * After a pause was written: waits for claims in flight, and returns whether any worker holds jobs in advance, or a
 * sequence, of which it may begin the next item. Within a transaction.
 */
export async function heldAfterPause(session: Session): Promise<boolean> {
  await session.query(session.queries.awaitClaims)
  const held = await session.query(session.queries.anyHeld)
  return held.length > 0
}

/** Lanes with jobs per lookup. */
const FILLED_AT_ONCE = 500

/** A lane with ready jobs; `sort` is null if it has only suspects. */
interface FilledLane extends Lane {
  readonly sort: unknown
  /** Whether its queue is paused. */
  readonly paused: boolean
}

/** The lanes with jobs that this claim may take, each with the sort key of its first one. */
async function filledLanes(session: Session, request: ClaimRequest, before: LastClaim): Promise<FilledLane[]> {
  const names = request.names === undefined ? undefined : before.setOf(request.names)
  const queues = request.queues === undefined ? undefined : new Set(request.queues)
  const lanes: FilledLane[] = []
  const may = ({ name, queue, paused }: FilledLane): boolean =>
    !paused &&
    request.except?.includes(name) !== true &&
    names?.has(name) !== false &&
    queues?.has(queue) !== false &&
    request.rooms.get(queue) !== 0
  for (let after = 0; ;) {
    const given = [String(after), String(FILLED_AT_ONCE), session.nowText] as const
    const rows = await session.query<FilledLane>(session.queries.filledLanes, ...given)
    lanes.push(...rows.filter(may))
    const filled = rows.filter(({ sort }) => sort !== null)
    if (filled.length < FILLED_AT_ONCE) return lanes
    after = Math.max(...filled.map(({ lane }) => Number(lane)))
  }
}

/** After every job. */
const BEYOND = '9223372036854775807'

/**
 * The lanes whose first jobs sort lowest: twice as many as the jobs to claim, since other workers claim from them too,
 * and no more of a queue than it has room for. `until` is the `sort` of the first job of the last lane: later jobs are
 * not among the first.
 */
function firstLanes(
  lanes: readonly FilledLane[],
  { max, rooms }: ClaimRequest,
): { readonly lanes: readonly Lane[]; readonly until: string } {
  const left = new Map([...rooms].map(([queue, room]) => [queue, 2 * room]))
  const first = lanes.filter(({ sort }) => sort === null)
  const filled = lanes.filter(({ sort }) => sort !== null)
  let taken = 0
  for (const lane of filled.toSorted((one, other) => Number(one.sort) - Number(other.sort))) {
    const room = left.get(lane.queue)
    if (room === 0) continue
    if (room !== undefined) left.set(lane.queue, room - 1)
    first.push(lane)
    taken += 1
    if (taken >= 2 * max) return { lanes: first, until: String(lane.sort) }
  }
  return { lanes: first, until: BEYOND }
}

/** After this time a claim begins at the head of its lanes again, whatever the last one found. */
const SWEEP_MS = 1_000

/**
 * Where in each lane the next claim begins: after the last job of a claim that was full. Jobs may be inserted before
 * that (with a priority, or released), so the cursors are dropped on a hint that a job became ready, and every second.
 */
class ClaimCursors {
  readonly #world: World
  #lasts = new Map<number, number>()
  #since = 0

  constructor(world: World) {
    this.#world = world
  }

  /** As JSON; an empty list when the next claim begins at the head. */
  take(): string {
    if (this.#lasts.size === 0 || this.#world.clock.monotonic() - this.#since > SWEEP_MS) {
      this.forget()
      return '[]'
    }
    return JSON.stringify([...this.#lasts].map(([lane, sort]) => ({ lane, sort })))
  }

  /** The last job of each lane of a full claim; undefined when it was not full. */
  claimed(lasts: readonly { readonly lane: number; readonly last: number }[] | undefined): void {
    if (lasts === undefined) return this.forget()
    if (this.#lasts.size === 0) this.#since = this.#world.clock.monotonic()
    for (const { lane, last } of lasts) this.#lasts.set(lane, last)
  }

  forget(): void {
    if (this.#lasts.size > 0) this.#lasts = new Map()
  }
}

/** What the next claim needs to know of the last one. */
export class LastClaim {
  readonly cursors: ClaimCursors
  areLarge = false
  /** There are many lanes that its worker may claim from. Lanes are never deleted. */
  hasManyLanes = false
  #names: { readonly list: readonly string[]; readonly set: ReadonlySet<string> } | undefined

  constructor(world: World) {
    this.cursors = new ClaimCursors(world)
  }

  /** A worker passes the same list with every claim until another job is registered, so its set is made once. */
  setOf(list: readonly string[]): ReadonlySet<string> {
    if (this.#names?.list !== list) this.#names = { list, set: new Set(list) }
    return this.#names.set
  }
}
