import type { Candidate, InUse } from '../../../job/limits/limits.js'
import { mayEverHold, stepOf } from '../../../job/limits/limits.js'
import { laneOfTurn } from '../../../job/limits/turns.js'
import { numberOf, numberOrNull } from '../../rows/columns.js'
import type { Numeric } from '../../rows/columns.js'
import { RetryNotStarted } from '../../limits.js'
import type { LimitedClaimed, LimitedClaimRequest, RetriedJob } from '../../limits.js'
import type { ClaimedJob } from '../../store.js'
import { limitsOfRows } from '../../verbs/queue-limits.js'
import { answerOf, isNothing, planLimited, takeLimited } from '../../verbs/limits.js'
import type {
  FoundLane,
  FoundLanes,
  LimitedPlan,
  LimitedSuspect,
  LimitedTaking,
  LimitSteps,
} from '../../verbs/limits.js'
import { awaitVerb } from '../../verbs/verb.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'
import { changeJob } from './change.js'
import { bodiesOf, claimedJobs, failingOf, lanesOf } from './claim.js'
import { withPositions } from './sequences.js'

type Run = <T>(work: (session: Session) => Promise<T>) => Promise<T>

/**
 * Claims under limits: one statement reads all that the claim decides from, and one takes the jobs. Each commits by itself.
 * The second refuses when another claim of the same jobs or queues took some in between; then this one is made again under
 * locks, where the others wait for it.
 */
export class LimitedClaims {
  readonly #plain: Run
  readonly #whole: Run
  readonly #sweep = new Sweep()

  constructor(plain: Run, whole: Run) {
    this.#plain = plain
    this.#whole = whole
  }

  async claim(request: LimitedClaimRequest): Promise<LimitedClaimed> {
    const { only } = request
    if (only !== undefined) return this.#whole((session) => claimRetried(session, request, only))
    const { steps, plan, claimed } = await this.#plain((session) => claimUnlocked(session, request))
    const done = claimed ?? (await this.#whole((session) => claimLocked(session, request, plan.found)))
    await this.#sweep.after(steps, plan, done.jobs.length, this.#plain)
    return done
  }
}

interface Unlocked {
  readonly steps: PostgresLimits
  readonly plan: LimitedPlan
  /** Undefined when it must be made under locks. */
  readonly claimed: LimitedClaimed | undefined
}

async function claimUnlocked(session: Session, request: LimitedClaimRequest): Promise<Unlocked> {
  const steps = new PostgresLimits(session)
  const found = await steps.findLanes(request)
  const plan = await awaitVerb(planLimited(steps, request, found))
  if (isNothing(plan)) return { steps, plan, claimed: answerOf(plan, []) }
  if (plan.tooLate.size > 0 || plan.quarantined > 0 || !steps.expect(plan)) return { steps, plan, claimed: undefined }
  const taken = await awaitVerb(takeLimited(steps, request, plan))
  const claimed = steps.wasRefused ? undefined : await withItems(session, taken)
  return { steps, plan, claimed }
}

async function claimLocked(
  session: Session,
  request: LimitedClaimRequest,
  before: FoundLanes,
): Promise<LimitedClaimed> {
  const steps = new PostgresLimits(session)
  await session.query(session.queries.lockLimits, JSON.stringify(scopesOf(before.lanes)))
  const current = await steps.findLanes(request)
  const plan = await awaitVerb(planLimited(steps, request, onlyLocked(current, before)))
  steps.expect(plan)
  return withItems(session, await awaitVerb(takeLimited(steps, request, plan)))
}

/** Retries a job and claims it, or neither. Within a transaction. */
async function claimRetried(
  session: Session,
  request: LimitedClaimRequest,
  { name, queue, change }: RetriedJob,
): Promise<LimitedClaimed> {
  if ((await changeJob(session, change)) === 'stale') throw new RetryNotStarted('stale')
  await session.query(session.queries.lockLimits, JSON.stringify(scopesOf([{ name, queue }])))
  const steps = new PostgresLimits(session)
  const plan = await awaitVerb(planLimited(steps, request, await steps.findLanes(request)))
  steps.expect(plan)
  const claimed = await withItems(session, await awaitVerb(takeLimited(steps, request, plan)))
  if (claimed.jobs.length === 0 && !claimed.lost) throw new RetryNotStarted('held')
  return claimed
}

async function withItems(session: Session, claimed: LimitedClaimed): Promise<LimitedClaimed> {
  return { ...claimed, jobs: await withPositions(session, claimed.jobs) }
}

/** A lane that came to have jobs meanwhile is not locked: its hint causes another claim. */
function onlyLocked(current: FoundLanes, { lanes }: FoundLanes): FoundLanes {
  const locked = new Set(lanes.map(({ lane }) => lane))
  return { ...current, lanes: current.lanes.filter(({ lane }) => locked.has(lane)) }
}

/** What claims of these lanes count against each other, in the order in which every claim locks it. */
function scopesOf(lanes: readonly Pick<FoundLane, 'name' | 'queue'>[]): string[] {
  return [...new Set(lanes.flatMap(({ name, queue }) => [`job ${name}`, `queue ${queue}`]))].toSorted()
}

/** After this many starts were written, those that have left their windows are deleted. */
const SWEEP_STARTS = 200
/** After this many slots were written, or when this many of those that were read count no more, the latter are deleted. */
const SWEEP_SLOTS = 1_000
const SWEEP_DEAD = 200

/** Deletes slots and starts that do not count any more: seldom, since a claim would pay for looking at all of them. */
class Sweep {
  #slots = 0
  #starts = 0

  async after(steps: PostgresLimits, { admitted, found }: LimitedPlan, taken: number, run: Run): Promise<void> {
    if (taken === 0) return
    this.#slots += admitted.chosen.reduce((sum, { gates }) => sum + gates.slots.length, 0)
    this.#starts += admitted.chosen.reduce((sum, { gates }) => sum + gates.rates.length, 0)
    const areMostDead = steps.deadSlots >= SWEEP_DEAD && steps.deadSlots >= steps.storedSlots / 2
    const [slots, starts] = [this.#slots >= SWEEP_SLOTS || areMostDead, this.#starts >= SWEEP_STARTS]
    if (slots) this.#slots = 0
    if (starts) this.#starts = 0
    if (slots) await run((session) => session.query(session.queries.dropSlots))
    if (starts) await run((session) => session.query(session.queries.dropWindows, String(found.now)))
  }
}

/** The most suspects of one lane that a claim reads. */
const SUSPECTS_MAX = 1_000

/** The steps of `store/verbs/limits.ts`. */
class PostgresLimits implements LimitSteps {
  readonly #session: Session
  readonly #turns = new Map<number, number[]>()
  readonly #candidates = new Map<number, Candidate[]>()
  readonly #inUse = { slots: new Map<string, number>(), rates: new Map<string, WindowInUse>() }
  #versions: ReadonlyMap<string, number> = new Map()
  #withSuspects: ReadonlySet<number> = new Set()
  #expected: readonly { readonly scope: string; readonly version: number }[] = []
  #isOneJob = false
  #storedSlots = 0
  #deadSlots = 0
  #wasRefused = false

  constructor(session: Session) {
    this.#session = session
  }

  /** The claim before this one took jobs after `findLanes` had read. */
  get wasRefused(): boolean {
    return this.#wasRefused
  }

  /** The rows of slots of the buckets that were read. */
  get storedSlots(): number {
    return this.#storedSlots
  }

  /** Those of them that are known to count no more. */
  get deadSlots(): number {
    return this.#deadSlots
  }

  async findLanes(request: LimitedClaimRequest): Promise<FoundLanes> {
    const row = await this.#session.one<FoundRow>(
      this.#session.queries.readLimited,
      this.#session.nowText,
      request.worker,
      ...givenOf(request),
    )
    const lanes = JSON.parse(row.lanes ?? '[]') as LaneRow[]
    const queues = limitsOfRows(lanes)
    this.#read(row, lanes)
    return {
      now: numberOf(row.now),
      alive: row.alive,
      failing: row.failing == null ? undefined : failingOf(row.failing),
      lanes: lanes.map(({ lane, queue, name, last, whole }) => {
        const ofQueue = queues.get(queue)
        const isLimited = ofQueue !== undefined && Object.keys(ofQueue).length > 0
        return { lane, queue, name, last, isWhole: whole, ofQueue: isLimited ? ofQueue : undefined }
      }),
    }
  }

  #read({ candidates, slots, rates, versions }: FoundRow, lanes: readonly LaneRow[]): void {
    for (const [lane, turn, ref, sort, rateTurn, weight] of JSON.parse(candidates ?? '[]') as CandidateTuple[]) {
      const turns = this.#turns.get(lane)
      if (turns === undefined) this.#turns.set(lane, [turn])
      else if (turns.at(-1) !== turn) turns.push(turn)
      const known = this.#candidates.get(turn)
      const candidate = { ref, turn, sort, rateTurn, weight }
      if (known === undefined) this.#candidates.set(turn, [candidate])
      else known.push(candidate)
    }
    for (const [bucket, used, stored] of JSON.parse(slots ?? '[]') as [string, number, number][]) {
      this.#inUse.slots.set(bucket, used)
      this.#storedSlots += stored
      this.#deadSlots += stored - used
    }
    for (const [bucket, used, freesAt, lastsUntil] of JSON.parse(rates ?? '[]') as [string, number, number, number][])
      this.#inUse.rates.set(bucket, { used, freesAt, lastsUntil })
    this.#versions = new Map(JSON.parse(versions ?? '[]') as [string, number][])
    this.#withSuspects = new Set(lanes.filter(({ suspects }) => suspects).map(({ lane }) => lane))
  }

  /** The next turns were read with the lanes. */
  nextTurns(lanes: readonly FoundLane[]): Map<number, readonly number[]> {
    return new Map(lanes.map(({ lane }) => [lane, this.#turns.get(lane) ?? []]))
  }

  readTurns(turns: readonly number[]): Candidate[] {
    return turns.flatMap((turn) => this.#candidates.get(turn) ?? [])
  }

  /** The claims that `take` expects to have been the last. False when a job or a queue is claimed under limits for the first time. */
  expect({ admitted }: Pick<LimitedPlan, 'admitted'>): boolean {
    const scopes = scopesOf(admitted.chosen.map(({ lane }) => lane))
    this.#expected = scopes.flatMap((scope) => {
      const version = this.#versions.get(scope)
      return version === undefined ? [] : [{ scope, version }]
    })
    return this.#expected.length === scopes.length
  }

  async readCandidate(ref: number): Promise<Candidate[]> {
    const rows = await this.#session.query<CandidateRow>(this.#session.queries.readCandidate, String(ref))
    this.#isOneJob = true
    return rows.map((row) => candidateOf(row, numberOf(row.turn)))
  }

  async readSuspects(lanes: readonly FoundLane[]): Promise<LimitedSuspect[]> {
    // Where the job has no limit, the claim without limits takes its suspects.
    const whole = lanes.filter(({ lane, isWhole }) => isWhole && this.#withSuspects.has(lane)).map(({ lane }) => lane)
    if (whole.length === 0) return []
    const rows = await this.#session.query<SuspectRow>(
      this.#session.queries.limitedSuspects,
      arrayOf(whole),
      String(SUSPECTS_MAX),
    )
    return rows.map((row) => {
      const lane = numberOf(row.lane)
      return { ...candidateOf(row, laneOfTurn(lane, numberOrNull(row.turn))), lane, streak: numberOf(row.streak) }
    })
  }

  async readInUse(slots: readonly string[], rates: readonly string[], now: number): Promise<InUse> {
    // The lanes were read with what is in use of the buckets of their jobs; those of suspects and of one certain job may be others.
    const areOthers = this.#withSuspects.size > 0 || this.#isOneJob
    if (!areOthers || slots.length + rates.length === 0) return this.#inUse
    const inUse = { slots: new Map<string, number>(), rates: new Map<string, WindowInUse>() }
    const given = [JSON.stringify(slots), JSON.stringify(rates), String(now)] as const
    for (const row of await this.#session.query<InUseRow>(this.#session.queries.limitsInUse, ...given)) {
      const used = numberOf(row.used)
      if (row.kind === 'slots') inUse.slots.set(row.bucket, used)
      else
        inUse.rates.set(row.bucket, {
          used,
          freesAt: numberOf(row.frees_at),
          lastsUntil: numberOf(row.lasts_until),
        })
    }
    return inUse
  }

  async shortenWindows(until: ReadonlyMap<string, number>): Promise<void> {
    const given = [...until].map(([bucket, at]) => ({ bucket, until: at }))
    await this.#session.query(this.#session.queries.shortenWindows, JSON.stringify(given))
  }

  async take(taking: LimitedTaking): Promise<readonly ClaimedJob[]> {
    const { request, now, admitted, quarantined } = taking
    const { queries } = this.#session
    const slots = admitted.chosen.flatMap(({ candidate: { ref }, gates }) =>
      gates.slots.map(({ bucket }) => ({ bucket, ref })),
    )
    const starts = admitted.chosen.flatMap(({ candidate: { ref }, gates }) =>
      gates.rates.map(({ bucket, perMs, weight }) => ({
        bucket,
        ref,
        step: stepOf(now, perMs),
        weight,
        until: now + perMs,
      })),
    )
    const shared = [request.worker, String(request.fence), String(now)] as const
    const [rowsOfSlots, rowsOfStarts] = [JSON.stringify(slots), JSON.stringify(starts)]
    const [row] =
      quarantined > 0
        ? await this.#session.query<TakenRow>(
            queries.takeLimitedSuspect,
            ...shared,
            String(admitted.chosen[0]?.candidate.ref),
            rowsOfSlots,
            rowsOfStarts,
          )
        : await this.#session.query<TakenRow>(
            queries.takeLimited,
            ...shared,
            JSON.stringify(admitted.chosen.map(({ candidate: { ref, turn, sort } }, no) => ({ no, ref, turn, sort }))),
            String(admitted.starting),
            rowsOfSlots,
            rowsOfStarts,
            JSON.stringify([...admitted.turns].map(([lane, last]) => ({ lane, last }))),
            JSON.stringify(this.#expected),
          )
    this.#wasRefused = row?.refused === true
    return claimedJobs(bodiesOf(row?.jobs ?? null), lanesOf(row?.lanes ?? null), request.fence)
  }
}

/** The parameters of the statement: limits, how much to read, and which lanes are claimed. */
function givenOf({ limits, names, queues, rooms, starting, max }: LimitedClaimRequest): (string | null)[] {
  const neverHeld = [...limits].filter(([, each]) => !mayEverHold(each, undefined)).map(([name]) => name)
  const limitsByName = [...limits].map(([name, { limit }]) => ({ name, max: limit?.max ?? null }))
  const full = [...rooms].filter(([, left]) => left <= 0).map(([queue]) => queue)
  return [
    JSON.stringify([...limits.keys()]),
    JSON.stringify(neverHeld),
    // One more than can be taken: whether another job waits, and for what, is part of the answer.
    String(1 + Math.min(max, starting)),
    String(1 + max),
    names === undefined ? null : JSON.stringify(names),
    queues === undefined ? null : JSON.stringify(queues),
    JSON.stringify(full),
    JSON.stringify(limitsByName),
  ]
}

function candidateOf({ ref, sort, rate_turn, weight }: CandidateRow, turn: number): Candidate {
  const [rateTurn, uses] = [numberOrNull(rate_turn), numberOrNull(weight)]
  return { ref: numberOf(ref), turn, sort: numberOf(sort), rateTurn, weight: uses }
}

interface FoundRow {
  readonly now: Numeric
  readonly alive: boolean
  /** JSON of the lanes whose attempts fail; null without any. */
  readonly failing: string | null
  /** JSON of each of these; null without any. */
  readonly lanes: string | null
  readonly candidates: string | null
  readonly slots: string | null
  readonly rates: string | null
  readonly versions: string | null
}

type CandidateTuple = readonly [
  lane: number,
  turn: number,
  ref: number,
  sort: number,
  rateTurn: number | null,
  weight: number | null,
]

interface LaneRow {
  readonly lane: number
  readonly queue: string
  readonly name: string
  readonly max: number | null
  readonly rateMax: number | null
  readonly ratePer: number | null
  readonly last: number | null
  readonly whole: boolean
  /** There may be suspects. */
  readonly suspects: boolean
}

interface CandidateRow {
  readonly ref: Numeric
  readonly turn: Numeric | null
  readonly sort: Numeric
  readonly rate_turn: Numeric | null
  readonly weight: Numeric | null
}

interface SuspectRow extends CandidateRow {
  readonly lane: Numeric
  readonly streak: Numeric
}

interface WindowInUse {
  readonly used: number
  readonly freesAt: number
  readonly lastsUntil: number
}

interface InUseRow {
  readonly kind: 'slots' | 'rates'
  readonly bucket: string
  readonly used: Numeric
  readonly frees_at: Numeric | null
  readonly lasts_until: Numeric | null
}

interface TakenRow {
  /** Another claim took jobs since the lanes were read: nothing was taken. */
  readonly refused?: boolean
  readonly jobs: string | null
  readonly lanes: string | null
}
