import type { Candidate, InUse } from '../../../job/limits/limits.js'
import { startsOf, stepOf } from '../../../job/limits/limits.js'
import { turnsOfLane } from '../../../job/limits/turns.js'
import { RetryNotStarted } from '../../limits.js'
import type { LimitedClaimed, LimitedClaimRequest, RetriedJob } from '../../limits.js'
import type { ClaimedJob } from '../../store.js'
import { limitsOfRows } from '../../verbs/queue-limits.js'
import type { QueueLimitsRow } from '../../verbs/queue-limits.js'
import { answerOf, isNothing, planLimited, takeLimited } from '../../verbs/limits.js'
import type {
  FoundLane,
  FoundLanes,
  LimitedPlan,
  LimitedSuspect,
  LimitedTaking,
  LimitSteps,
} from '../../verbs/limits.js'
import { runVerb } from '../../verbs/verb.js'
import type { Session } from '../connection/session.js'
import { changeJob } from './change.js'
import { mark, readBodies } from './claim.js'
import { claimNotesOf } from './claim-notes.js'

/** Claims under limits, within the current transaction. */
export function claimLimited(session: Session, request: LimitedClaimRequest, now: number): LimitedClaimed {
  const steps = new SqliteLimits(session, now)
  return runVerb(takeLimited(steps, request, planOf(steps, request)))
}

/** Retries a job and claims it, or neither. */
export function claimRetried(
  session: Session,
  request: LimitedClaimRequest,
  { change }: RetriedJob,
  now: number,
): LimitedClaimed {
  if (changeJob(session, change, now) === 'stale') throw new RetryNotStarted('stale')
  const claimed = claimLimited(session, request, now)
  if (claimed.jobs.length === 0 && !claimed.lost) throw new RetryNotStarted('held')
  return claimed
}

/** The result of a claim that would take nothing, by reading alone; undefined when the claim must write. */
export function nothingLimited(
  session: Session,
  request: LimitedClaimRequest,
  now: number,
): LimitedClaimed | undefined {
  const plan = planOf(new SqliteLimits(session, now), request)
  return plan.found.alive && isNothing(plan) ? answerOf(plan, []) : undefined
}

function planOf(steps: SqliteLimits, request: LimitedClaimRequest): LimitedPlan {
  return runVerb(planLimited(steps, request, steps.findLanes(request)))
}

/** The most suspects of one lane that a claim reads. */
const SUSPECTS_MAX = 1_000

/** The steps of `store/verbs/limits.ts`. SQLite has one writer at a time, so what a claim read still holds when it writes. */
class SqliteLimits implements LimitSteps {
  readonly #session: Session
  readonly #now: number
  /** The lanes that have ready jobs with keys. */
  #withTurns: ReadonlySet<number> = new Set()

  constructor(session: Session, now: number) {
    this.#session = session
    this.#now = now
  }

  findLanes(request: LimitedClaimRequest): FoundLanes {
    const session = this.#session
    const alive = session.statement(session.queries.isWorker).get(request.worker) !== undefined
    const { paused, hasTurns, failing } = claimNotesOf(session, this.#now)
    const limits = this.#queueLimits()
    if (hasTurns) this.#withTurns = this.#lanesWithTurns()
    const lanes = [...session.lanes.all()].flatMap((lane) => {
      const isWhole = request.limits.has(lane.name) || limits.has(lane.queue)
      if (paused.has(lane.queue) || (!isWhole && !this.#withTurns.has(lane.lane))) return []
      return [{ ...lane, isWhole, ofQueue: limits.get(lane.queue) }]
    })
    const last = this.#lastTurns(lanes.map(({ lane }) => lane))
    return {
      now: this.#now,
      alive,
      failing: failing.length === 0 ? undefined : failing.map((lane) => session.lanes.get(lane)),
      lanes: lanes.map((lane) => ({ ...lane, last: last.get(lane.lane) ?? null })),
    }
  }

  nextTurns(lanes: readonly FoundLane[], most: number): Map<number, readonly number[]> {
    return new Map(lanes.map((lane) => [lane.lane, this.#nextOf(lane, most)]))
  }

  readTurns(turns: readonly number[], most: number): Candidate[] {
    const statement = this.#session.statement(this.#session.queries.readTurn)
    return turns.flatMap((turn) => statement.all(turn, most) as Candidate[])
  }

  readCandidate(ref: number): Candidate[] {
    return this.#session.statement(this.#session.queries.readCandidate).all(ref) as Candidate[]
  }

  readSuspects(lanes: readonly FoundLane[]): LimitedSuspect[] {
    const { anySuspect, limitedSuspects } = this.#session.queries
    if (this.#session.statement(anySuspect).get() === undefined) return []
    const statement = this.#session.statement(limitedSuspects)
    const found = lanes.flatMap(({ lane, isWhole }) => {
      const { first, last } = turnsOfLane(lane)
      const keyed = statement.all(first, last, SUSPECTS_MAX) as LimitedSuspect[]
      return isWhole ? [...keyed, ...(statement.all(lane, lane, SUSPECTS_MAX) as LimitedSuspect[])] : keyed
    })
    return found.toSorted((a, b) => a.streak - b.streak || a.sort - b.sort || a.ref - b.ref)
  }

  readInUse(slots: readonly string[], rates: readonly string[], now: number): InUse {
    const { slotsInUse, windowsInUse } = this.#session.queries
    const taken = slots.length === 0 ? [] : this.#session.statement(slotsInUse).all(JSON.stringify(slots))
    const started = rates.length === 0 ? [] : this.#session.statement(windowsInUse).all(JSON.stringify(rates), now)
    return {
      slots: new Map((taken as { bucket: string; used: number }[]).map(({ bucket, used }) => [bucket, used])),
      rates: new Map((started as WindowRow[]).map(({ bucket, ...window }) => [bucket, window])),
    }
  }

  shortenWindows(until: ReadonlyMap<string, number>): void {
    const statement = this.#session.statement(this.#session.queries.shortenWindows)
    for (const [bucket, at] of until) statement.run(bucket, at)
  }

  take({ request, now, admitted, quarantined }: LimitedTaking): readonly ClaimedJob[] {
    const { queries } = this.#session
    const refs = admitted.chosen.map(({ candidate }) => candidate.ref)
    mark(this.#session, { ...request, starting: admitted.starting }, refs, quarantined, now)
    const slots = admitted.chosen.flatMap(({ candidate, gates }) =>
      gates.slots.map(({ bucket }) => [bucket, candidate.ref]),
    )
    this.#session.statement(queries.dropSlots).run()
    if (slots.length > 0) this.#session.statement(queries.takeSlots).run(request.fence, JSON.stringify(slots))
    this.#useWindows(admitted, now)
    for (const [lane, turn] of admitted.turns) this.#session.statement(queries.putTurn).run(lane, turn)
    return readBodies(this.#session, refs, request.fence)
  }

  #useWindows({ chosen }: LimitedTaking['admitted'], now: number): void {
    const { dropWindows, useWindow } = this.#session.queries
    const starts = startsOf(chosen)
    if (starts.size === 0) return
    this.#session.statement(dropWindows).run(now)
    for (const [bucket, { perMs, weight }] of starts)
      this.#session.statement(useWindow).run(bucket, stepOf(now, perMs), weight, now + perMs)
  }

  /** The rotation: the turns after the last one, then the jobs without a key, then the turns up to the last one. */
  #nextOf({ lane, isWhole, last }: FoundLane, most: number): readonly number[] {
    if (!this.#withTurns.has(lane)) return [lane]
    const { first, last: highest } = turnsOfLane(lane)
    const itself = isWhole ? [lane] : []
    if (last === null || last >= 0) return [...this.#turnsBetween(first, highest, most), ...itself]
    const after = this.#turnsBetween(last + 1, highest, most)
    const before = after.length >= most ? [] : this.#turnsBetween(first, last, most - after.length)
    return [...after, ...itself, ...before]
  }

  #turnsBetween(first: number, last: number, most: number): number[] {
    if (first > last) return []
    const rows = this.#session.statement(this.#session.queries.nextTurns).all(first, last, most) as { turn: number }[]
    return rows.map(({ turn }) => turn)
  }

  #queueLimits(): ReturnType<typeof limitsOfRows> {
    return limitsOfRows(this.#session.statement(this.#session.queries.readQueueLimits).all() as QueueLimitsRow[])
  }

  #lanesWithTurns(): Set<number> {
    const { lanesWithTurns, suspectTurns } = this.#session.queries
    const rows = [lanesWithTurns, suspectTurns].flatMap(
      (sql) => this.#session.statement(sql).all() as { lane: number }[],
    )
    return new Set(rows.map(({ lane }) => lane))
  }

  #lastTurns(lanes: readonly number[]): Map<number, number> {
    if (lanes.length === 0) return new Map()
    const rows = this.#session.statement(this.#session.queries.lastTurns).all(JSON.stringify(lanes))
    return new Map((rows as { lane: number; last: number }[]).map(({ lane, last }) => [lane, last]))
  }
}

interface WindowRow {
  readonly bucket: string
  readonly used: number
  readonly freesAt: number
  readonly lastsUntil: number
}
