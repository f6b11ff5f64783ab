import type { Candidate, InUse } from '../../../job/limits/limits.js'
import { stepOf } from '../../../job/limits/limits.js'
import { laneOfTurn, turnsOfLane } from '../../../job/limits/turns.js'
import { numberOf, numberOrNull } from '../../rows/columns.js'
import type { Numeric } from '../../rows/columns.js'
import type { LimitedClaimed, LimitedClaimRequest } from '../../limits.js'
import type { ClaimedJob } from '../../store.js'
import { limitsOfRows } from '../../verbs/queue-limits.js'
import { answerOf, planLimited, takeLimited } from '../../verbs/limits.js'
import type { FoundLane, FoundLanes, LimitedSuspect, LimitedTaking, LimitSteps } from '../../verbs/limits.js'
import { awaitVerb } from '../../verbs/verb.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'
import { bodiesOf, claimedJobs, failingOf, lanesOf } from './claim.js'
import { withPositions } from './sequences.js'

type Run = <T>(work: (session: Session) => Promise<T>) => Promise<T>

/**
 * Claims under limits. A first read finds whether there is anything to claim, without a lock. Then claims of the same
 * jobs and queues run one after the other: each statement after the lock sees what the claims before it wrote.
 */
export async function claimLimited(request: LimitedClaimRequest, plain: Run, whole: Run): Promise<LimitedClaimed> {
  const found = await plain((session) => new PostgresLimits(session).findLanes(request))
  if (!found.alive || found.lanes.length === 0) return nothing(found)
  return whole(async (session) => {
    const steps = new PostgresLimits(session)
    await steps.lock(found.lanes)
    const current = await steps.findLanes(request)
    const plan = await awaitVerb(planLimited(steps, request, onlyLocked(current, found)))
    const claimed = await awaitVerb(takeLimited(steps, request, plan))
    return { ...claimed, jobs: await withPositions(session, claimed.jobs) }
  })
}

/** A lane that came to have jobs meanwhile is not locked: its hint causes another claim. */
function onlyLocked(current: FoundLanes, { lanes }: FoundLanes): FoundLanes {
  const locked = new Set(lanes.map(({ lane }) => lane))
  return { ...current, lanes: current.lanes.filter(({ lane }) => locked.has(lane)) }
}

function nothing(found: FoundLanes): LimitedClaimed {
  const admitted = { chosen: [], starting: 0, turns: new Map(), waitsForSlot: false, opensAt: Infinity }
  return answerOf({ found, admitted, quarantined: 0, suspectStreak: null, tooLate: new Map() }, [])
}

/** The most suspects of one lane that a claim reads. */
const SUSPECTS_MAX = 1_000

/** The steps of `store/verbs/limits.ts`. */
class PostgresLimits implements LimitSteps {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  async lock(lanes: readonly FoundLane[]): Promise<void> {
    const scopes = lanes.flatMap(({ name, queue }) => [`limit job ${name}`, `limit queue ${queue}`])
    await this.#session.query(this.#session.queries.lockLimits, JSON.stringify([...new Set(scopes)]))
  }

  async findLanes({ worker, limits }: LimitedClaimRequest): Promise<FoundLanes> {
    const names = JSON.stringify([...limits.keys()])
    const [row] = await this.#session.query<FoundRow>(
      this.#session.queries.limitedLanes,
      this.#session.nowText,
      worker,
      names,
    )
    const lanes = JSON.parse(row?.lanes ?? '[]') as LaneRow[]
    const queues = limitsOfRows(lanes)
    return {
      now: numberOf(row?.now),
      alive: row?.alive === true,
      failing: row?.failing == null ? undefined : failingOf(row.failing),
      lanes: lanes.map(({ lane, queue, name, last, whole }) => {
        const ofQueue = queues.get(queue)
        const isLimited = ofQueue !== undefined && Object.keys(ofQueue).length > 0
        return { lane, queue, name, last, isWhole: whole, ofQueue: isLimited ? ofQueue : undefined }
      }),
    }
  }

  async nextTurns(lanes: readonly FoundLane[], most: number): Promise<Map<number, readonly number[]>> {
    const ranges = lanes.flatMap((lane) => rotationOf(lane).map((range) => ({ ...range, lane: lane.lane })))
    const given = JSON.stringify(ranges.map(({ first, last }, no) => ({ no, first, last })))
    const rows = await this.#session.query<{ no: Numeric; turn: Numeric }>(
      this.#session.queries.nextTurns,
      given,
      String(most),
    )
    const turns = new Map<number, number[]>(lanes.map(({ lane }) => [lane, []]))
    for (const { no, turn } of rows) {
      const range = ranges[numberOf(no)]
      if (range !== undefined) turns.get(range.lane)?.push(numberOf(turn))
    }
    return turns
  }

  async readTurns(turns: readonly number[], most: number): Promise<Candidate[]> {
    const rows = await this.#session.query<CandidateRow>(this.#session.queries.readTurns, arrayOf(turns), String(most))
    return rows.map((row) => candidateOf(row, numberOf(row.turn)))
  }

  async readSuspects(lanes: readonly FoundLane[]): Promise<LimitedSuspect[]> {
    // Where the job has no limit, the claim without limits takes its suspects.
    const whole = lanes.filter(({ isWhole }) => isWhole).map(({ lane }) => lane)
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
    const inUse = { slots: new Map<string, number>(), rates: new Map<string, WindowInUse>() }
    if (slots.length + rates.length === 0) return inUse
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
    if (slots.length > 0) await this.#session.query(queries.dropSlots)
    if (starts.length > 0) await this.#session.query(queries.dropWindows, String(now))
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
          )
    return claimedJobs(bodiesOf(row?.jobs ?? null), lanesOf(row?.lanes ?? null), request.fence)
  }
}

/** The rotation: the turns after the last one, then the jobs without a key, then the turns up to the last one. */
function rotationOf({ lane, isWhole, last }: FoundLane): { readonly first: number; readonly last: number }[] {
  const { first, last: highest } = turnsOfLane(lane)
  const itself = isWhole ? [{ first: lane, last: lane }] : []
  if (last === null || last >= 0) return [{ first, last: highest }, ...itself]
  return [{ first: last + 1, last: highest }, ...itself, { first, last }]
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
  /** JSON of the lanes; null without any. */
  readonly lanes: string | null
}

interface LaneRow {
  readonly lane: number
  readonly queue: string
  readonly name: string
  readonly max: number | null
  readonly rateMax: number | null
  readonly ratePer: number | null
  readonly last: number | null
  readonly whole: boolean
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
  readonly jobs: string | null
  readonly lanes: string | null
}
