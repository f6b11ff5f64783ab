import { admit, gatesOf, mayEverHold } from '../../job/limits/limits.js'
import type { Admitted, Candidate, InUse, LimitedLane, QueueLimits } from '../../job/limits/limits.js'
import type { LimitedClaimed, LimitedClaimRequest } from '../limits.js'
import type { ClaimedJob, FailingLane } from '../store.js'
import { awaited } from './verb.js'
import type { Answer, Verb } from './verb.js'

/**
 * A lane with ready jobs that are claimed under limits: its job or its queue has some, or its jobs have keys.
 */
export interface FoundLane {
  readonly lane: number
  readonly queue: string
  readonly name: string
  readonly ofQueue: QueueLimits | undefined
  /** The turn that was served last. */
  readonly last: number | null
  /** Ready jobs without a key are claimed here too: the job or the queue has limits. */
  readonly isWhole: boolean
}

export interface FoundLanes {
  readonly now: number
  /** The worker is registered. */
  readonly alive: boolean
  /** Lanes whose attempts have failed lately. */
  readonly failing?: readonly FailingLane[] | undefined
  /** Of queues that are not paused. */
  readonly lanes: readonly FoundLane[]
}

/** A suspect of such a lane. */
export interface LimitedSuspect extends Candidate {
  readonly lane: number
  readonly streak: number
}

/** What was decided to be taken. */
export interface LimitedTaking {
  readonly request: LimitedClaimRequest
  readonly now: number
  readonly admitted: Admitted
  /** The number of suspects among the jobs. */
  readonly quarantined: number
}

/** The statements of a claim under limits; each store has its own. */
export interface LimitSteps {
  findLanes(request: LimitedClaimRequest): Answer<FoundLanes>
  /** Of these lanes: the next turns that have ready jobs, after the turn that was served last, then from the first one. */
  nextTurns(lanes: readonly FoundLane[], most: number): Answer<ReadonlyMap<number, readonly number[]>>
  /** The first ready jobs of each of these turns. */
  readTurns(turns: readonly number[], most: number): Answer<readonly Candidate[]>
  /** The job if it is ready. */
  readCandidate(ref: number): Answer<readonly Candidate[]>
  readSuspects(lanes: readonly FoundLane[]): Answer<readonly LimitedSuspect[]>
  readInUse(slots: readonly string[], rates: readonly string[], now: number): Answer<InUse>
  /** Rows of windows that end later than they can: the clock was set back since. They end at these times now. */
  shortenWindows(until: ReadonlyMap<string, number>): Answer<unknown>
  /** Takes those that are still ready into one lease, with their slots, starts and turns. */
  take(taking: LimitedTaking): Answer<readonly ClaimedJob[]>
}

/** What a claim would take. Reads only. */
export interface LimitedPlan {
  readonly found: FoundLanes
  readonly admitted: Admitted
  readonly quarantined: number
  readonly suspectStreak: number | null
  /** The windows that end too late, and when they have to end. */
  readonly tooLate: ReadonlyMap<string, number>
}

export function* planLimited(steps: LimitSteps, request: LimitedClaimRequest, found: FoundLanes): Verb<LimitedPlan> {
  const lanes = found.lanes.filter((lane) => mayTake(request, lane))
  if (!found.alive || lanes.length === 0) return { found, ...NOTHING, quarantined: 0, suspectStreak: null }
  if (request.only !== undefined) {
    const candidates = yield* awaited(steps.readCandidate(request.only.ref))
    const only = lanes.map((lane) => withLimits(lane, request, candidates))
    return { found, ...(yield* admitNow(steps, request, only, found.now)), quarantined: 0, suspectStreak: null }
  }
  const suspects = yield* awaited(steps.readSuspects(lanes))
  const isFirst = suspects.length > 0 && request.suspects === 'first'
  const others = isFirst ? [] : yield* candidatesOf(steps, request, lanes)
  const plan = yield* admitNow(steps, request, others, found.now)
  const isQuarantine = suspects.length > 0 && plan.admitted.chosen.length === 0 && request.suspects !== 'none'
  if (!isQuarantine) return { found, ...plan, quarantined: 0, suspectStreak: shortest(suspects) }
  const alone = yield* quarantineOne(steps, request, lanes, suspects, found.now)
  const [taken] = alone.admitted.chosen
  const left = suspects.filter(({ ref }) => ref !== taken?.candidate.ref)
  return { found, ...alone, quarantined: taken === undefined ? 0 : 1, suspectStreak: shortest(left) }
}

export function* takeLimited(steps: LimitSteps, request: LimitedClaimRequest, plan: LimitedPlan): Verb<LimitedClaimed> {
  const { found, admitted, quarantined, tooLate } = plan
  if (tooLate.size > 0) yield* awaited(steps.shortenWindows(tooLate))
  if (admitted.chosen.length === 0) return answerOf(plan, [])
  return answerOf(plan, yield* awaited(steps.take({ request, now: found.now, admitted, quarantined })))
}

export function answerOf(
  { found, admitted, quarantined, suspectStreak }: LimitedPlan,
  jobs: readonly ClaimedJob[],
): LimitedClaimed {
  return {
    now: found.now,
    jobs,
    starting: admitted.starting,
    suspectStreak,
    isQuarantine: quarantined > 0 && jobs.length > 0,
    lost: !found.alive,
    resumesInMs: admitted.opensAt === Infinity ? null : Math.max(0, admitted.opensAt - found.now),
    waitsForSlot: admitted.waitsForSlot,
    failing: found.failing,
  }
}

/** Whether the plan needs no write. */
export function isNothing({ admitted, tooLate }: LimitedPlan): boolean {
  return admitted.chosen.length === 0 && tooLate.size === 0
}

type Decided = Pick<LimitedPlan, 'admitted' | 'tooLate'>

const NOTHING: Decided = {
  admitted: { chosen: [], starting: 0, turns: new Map(), waitsForSlot: false, opensAt: Infinity },
  tooLate: new Map(),
}

function mayTake({ names, queues, rooms }: LimitedClaimRequest, { name, queue }: FoundLane): boolean {
  return names?.includes(name) !== false && queues?.includes(queue) !== false && (rooms.get(queue) ?? 1) > 0
}

function shortest(suspects: readonly LimitedSuspect[]): number | null {
  return suspects.length === 0 ? null : Math.min(...suspects.map(({ streak }) => streak))
}

/** How many candidates of a lane are worth reading: one more than may start, or may be held. */
function wantedOf(request: LimitedClaimRequest, lanes: readonly FoundLane[]): number {
  const mayHoldAny = lanes.some(({ name, ofQueue }) => mayEverHold(request.limits.get(name), ofQueue))
  return 1 + (mayHoldAny ? request.max : Math.min(request.max, request.starting))
}

/** The candidates of each lane, in the order of turns: the first job of each key, then the second of each, and so on. */
function* candidatesOf(
  steps: LimitSteps,
  request: LimitedClaimRequest,
  lanes: readonly FoundLane[],
): Verb<readonly LimitedLane[]> {
  const wanted = wantedOf(request, lanes)
  const turnsByLane = yield* awaited(steps.nextTurns(lanes, wanted))
  const turns = [...turnsByLane.values()].flat()
  if (turns.length === 0) return []
  const most = Math.min(wanted, Math.ceil((2 * wanted * lanes.length) / turns.length))
  const byTurn = new Map<number, Candidate[]>()
  for (const candidate of yield* awaited(steps.readTurns(turns, most))) {
    const known = byTurn.get(candidate.turn)
    if (known === undefined) byTurn.set(candidate.turn, [candidate])
    else known.push(candidate)
  }
  return lanes.map((lane) => {
    const lists = (turnsByLane.get(lane.lane) ?? []).map((turn) => byTurn.get(turn) ?? [])
    const deepest = Math.max(0, ...lists.map((list) => list.length))
    const candidates = Array.from({ length: deepest }, (_, round) => lists.flatMap((list) => list[round] ?? [])).flat()
    return withLimits(lane, request, candidates)
  })
}

function withLimits(lane: FoundLane, { limits }: LimitedClaimRequest, candidates: readonly Candidate[]): LimitedLane {
  return { ...lane, job: limits.get(lane.name), candidates }
}

function* admitNow(
  steps: LimitSteps,
  request: LimitedClaimRequest,
  lanes: readonly LimitedLane[],
  now: number,
): Verb<Decided> {
  if (lanes.length === 0) return NOTHING
  const slots = new Set<string>()
  const rates = new Map<string, number>()
  for (const lane of lanes)
    for (const candidate of lane.candidates) {
      const gates = gatesOf(lane, candidate)
      for (const { bucket } of gates.slots) slots.add(bucket)
      for (const { bucket, perMs } of gates.rates) rates.set(bucket, perMs)
    }
  const inUse = yield* awaited(steps.readInUse([...slots], [...rates.keys()], now))
  const tooLate = new Map<string, number>()
  for (const [bucket, perMs] of rates)
    if ((inUse.rates.get(bucket)?.lastsUntil ?? 0) > now + perMs) tooLate.set(bucket, now + perMs)
  return { admitted: admit(lanes, inUse, request, now), tooLate }
}

/** One suspect at a time: the first whose limits have room. */
function* quarantineOne(
  steps: LimitSteps,
  request: LimitedClaimRequest,
  lanes: readonly FoundLane[],
  suspects: readonly LimitedSuspect[],
  now: number,
): Verb<Decided> {
  const of = (lane: FoundLane): LimitedLane =>
    withLimits(
      lane,
      request,
      suspects.filter((suspect) => suspect.lane === lane.lane),
    )
  return yield* admitNow(steps, { ...request, max: 1, starting: 1 }, lanes.map(of), now)
}
