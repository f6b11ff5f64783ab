import type { Ahead, RateUse, SlotUse } from '../../job/limits/latest-turn.js'
import { gatesOf } from '../../job/limits/limits.js'
import type { Candidate, JobLimits, LimitedLane, QueueLimits } from '../../job/limits/limits.js'
import { keyOfTurn } from '../../job/limits/turns.js'
import { WHY_AHEAD_MAX, WHY_HOLDERS_MAX } from '../observing/why.js'
import type { JobRow } from '../store.js'
import { numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

/** What a claim under limits would meet at these ready jobs. */
interface Asked {
  readonly jobs: readonly JobRow[]
  readonly limits: ReadonlyMap<string, JobLimits>
  readonly queues: ReadonlyMap<string, { readonly limits: QueueLimits }>
  readonly now: number
}

export interface Bounds {
  readonly limits: readonly SlotUse[]
  readonly rates: readonly RateUse[]
}

/** The limits and rates of each job, what is in use of them, and what comes before it. By ref; a job without any is left out. */
export function* readBounds(
  session: VerbSession,
  { jobs, limits, queues, now }: Asked,
): Verb<ReadonlyMap<number, Bounds>> {
  const bounds = new Map<number, Bounds>()
  const bounded = jobs.filter(
    ({ name, queue }) => limits.has(name) || Object.keys(queues.get(queue)?.limits ?? {}).length > 0,
  )
  if (bounded.length === 0) return bounds
  const rows = yield* awaited(session.rows<StoredTurn>('whyTurns', session.list(bounded.map(({ ref }) => ref))))
  for (const stored of rows) {
    const candidate = candidateOf(stored)
    const job = bounded.find(({ ref }) => ref === candidate.ref) as JobRow
    const lane = {
      lane: numberOf(stored.lane),
      queue: job.queue,
      name: job.name,
      job: limits.get(job.name),
      ofQueue: queues.get(job.queue)?.limits,
      candidates: [candidate],
    }
    bounds.set(job.ref, yield* boundsOf(session, lane, candidate, now))
  }
  return bounds
}

function* boundsOf(session: VerbSession, lane: LimitedLane, candidate: Candidate, now: number): Verb<Bounds> {
  const { slots, rates } = gatesOf(lane, candidate)
  const [limits, used]: [SlotUse[], RateUse[]] = [[], []]
  for (const { bucket, max } of slots) {
    const holders = yield* awaited(session.rows<{ id: string }>('whySlots', bucket))
    const ids = holders.slice(0, WHY_HOLDERS_MAX).map(({ id }) => id)
    const ahead = yield* readAhead(session, lane, candidate, bucket)
    limits.push({ of: nameOf(bucket), max, inFlight: holders.length, holders: ids, ahead })
  }
  for (const { bucket, max, perMs, weight } of rates) {
    const rows = yield* awaited(session.rows<{ used: Numeric; until: Numeric }>('whyStarts', bucket, now))
    const starts = rows.map((row) => ({ used: numberOf(row.used), until: numberOf(row.until) }))
    used.push({
      of: nameOf(bucket),
      max,
      perMs,
      weight,
      starts,
      ahead: yield* readAhead(session, lane, candidate, bucket),
    })
  }
  return { limits, rates: used }
}

/** A key is stored as a number, so its text is not known here. */
function nameOf(bucket: string): string {
  const [of, key] = bucket.split('\n')
  return key === undefined ? (of as string) : `${of} for its key`
}

/**
 * The ready jobs that come before it. Of its own turn those before it; of other turns under the same bucket all, since each may
 * be served first.
 */
function* readAhead(
  session: VerbSession,
  { name, queue }: LimitedLane,
  candidate: Candidate,
  bucket: string,
): Verb<Ahead> {
  const { ref, turn, sort } = candidate
  const key = keyOfTurn(turn)
  const isOwnKey = key !== null && bucket.endsWith(`\n${key}`)
  const scope = bucket.startsWith('queue ') ? ([null, queue] as const) : ([name, null] as const)
  const [row] = yield* awaited(
    session.rows<{ jobs: Numeric; heaviest: Numeric | null }>(
      'whyAhead',
      ...scope,
      isOwnKey ? key : null,
      turn,
      sort,
      ref,
      WHY_AHEAD_MAX + 1,
    ),
  )
  const jobs = numberOf(row?.jobs ?? 0)
  const isAll = jobs <= WHY_AHEAD_MAX
  return { jobs: Math.min(jobs, WHY_AHEAD_MAX), heaviest: numberOf(row?.heaviest ?? 1), isAll }
}

interface StoredTurn {
  readonly ref: Numeric
  readonly lane: Numeric
  readonly turn: Numeric
  readonly sort: Numeric
  readonly rateTurn: Numeric | null
  readonly weight: Numeric | null
}

function candidateOf({ ref, turn, sort, rateTurn, weight }: StoredTurn): Candidate {
  return {
    ref: numberOf(ref),
    turn: numberOf(turn),
    sort: numberOf(sort),
    rateTurn: numberOrNull(rateTurn),
    weight: numberOrNull(weight),
  }
}
