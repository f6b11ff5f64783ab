import {
  DAY_MS,
  floorTo,
  HOUR_MS,
  HOURS_KEPT_MS,
  MINUTE_MS,
  MINUTES_KEPT_MS,
  SPANS,
  windowOf,
} from '../../job/statistics/buckets.js'
import type { Window } from '../../job/statistics/buckets.js'
import { fingerprintOf } from '../../job/statistics/failure.js'
import { Sketch } from '../../job/statistics/sketch.js'
import {
  FAILURE_GROUPS_MAX,
  FAILURES_KEPT_DAYS,
  QUEUE_COUNT_MAX,
  STATS_FOLD_MAX,
  STATS_MOVES_MAX,
} from '../observing/statistics.js'
import type {
  BucketRow,
  FailureGroup,
  FailuresQuery,
  QueueCount,
  Statistics,
  StatisticsQuery,
} from '../observing/statistics.js'
import { SAMPLES_MAX } from '../rows/attempt-counts.js'
import type { FailureSample, GroupedFailure } from '../rows/attempt-counts.js'
import { numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

/*
 * Statistics of ended attempts (docs/decisions/statistics.md). A settlement appends what it counts to `stats_moves`, in
 * its own transaction. Upkeep folds those rows into the buckets: of a minute, an hour and a day at once. A read adds up
 * buckets and unfolded rows, in one statement and so in one snapshot.
 */

/** The buckets that cover a window, and the unfolded rows within it. */
export function* readStatistics(session: VerbSession, query: StatisticsQuery): Verb<Statistics> {
  const now = yield* awaited(session.now())
  const window = windowIn(query.window, now)
  const rows = yield* awaited(
    session.rows<StoredBucket>(
      'readStats',
      JSON.stringify(window.ranges),
      query.queue ?? null,
      query.name ?? null,
      window.from,
      window.to,
      query.times?.includes('wait') !== false,
      query.times?.includes('run') !== false,
    ),
  )
  return { now, window, rows: rows.map(toBucket) }
}

function windowIn(window: StatisticsQuery['window'], now: number): Window {
  if ('spanMs' in window) return { from: window.from, to: window.to, ranges: [window] }
  const to = window.at ?? now
  return windowOf(to - window.lastMs, to, now)
}

/** The jobs of each queue by state, counted by index up to a bound. */
export function* countQueues(session: VerbSession): Verb<QueueCount[]> {
  const rows = yield* awaited(session.rows<StoredCount>('countQueues', QUEUE_COUNT_MAX + 1))
  const found = new Map<string, number>()
  for (const { state, count } of rows) found.set(state, (found.get(state) ?? 0) + numberOf(count))
  return rows.map(({ queue, state, count, due_at }) => {
    const isMore = (state === 'ready' ? numberOf(count) : (found.get(state) ?? 0)) > QUEUE_COUNT_MAX
    return { queue, state, count: Math.min(QUEUE_COUNT_MAX, numberOf(count)), isMore, dueAt: numberOrNull(due_at) }
  })
}

interface StoredCount {
  readonly queue: string
  readonly state: QueueCount['state']
  readonly count: Numeric
  readonly due_at: Numeric | null
}

/** Whether a fold would do anything: there are rows of a minute that is over, or too many. */
export function* isFoldDue(session: VerbSession, now: number): Verb<boolean> {
  const [first] = yield* awaited(session.rows<{ readonly at: Numeric; readonly moves: Numeric }>('firstStatMove'))
  if (first === undefined) return false
  return numberOf(first.at) < floorTo(now, MINUTE_MS) || numberOf(first.moves) > STATS_MOVES_MAX
}

/** Folds rows into buckets; returns whether there may be more. One process at a time, because buckets are read and rewritten. */
export function* foldStatistics(session: VerbSession): Verb<boolean> {
  const alone = yield* awaited(session.rows<object>('foldAlone'))
  if (alone.length === 0) return false
  const moves = yield* awaited(session.rows<StoredMove>('takeStatMoves', STATS_FOLD_MAX))
  yield* foldBuckets(session, moves)
  yield* foldFailures(session, moves)
  return moves.length === STATS_FOLD_MAX
}

/** Deletes buckets that are read no longer: the longer ones have their counts. */
export function* trimStatistics(session: VerbSession, now: number): Verb<void> {
  yield* awaited(session.run('trimStats', MINUTE_MS, floorTo(now - MINUTES_KEPT_MS, HOUR_MS)))
  yield* awaited(session.run('trimStats', HOUR_MS, floorTo(now - HOURS_KEPT_MS, DAY_MS)))
  yield* awaited(session.run('trimFailures', floorTo(now - FAILURES_KEPT_DAYS * DAY_MS, DAY_MS)))
}

function* foldBuckets(session: VerbSession, moves: readonly StoredMove[]): Verb<void> {
  const buckets = new Map<string, Bucket>()
  for (const move of moves)
    for (const span of SPANS) bucketOf(buckets, { ...move, span, at: floorTo(numberOf(move.at), span) }).add(move)
  if (buckets.size === 0) return
  const keys = [...buckets.values()].map(({ key }) => key)
  const known = yield* awaited(
    session.rows<StoredBucket & { readonly span: Numeric }>('readBuckets', JSON.stringify(keys)),
  )
  for (const row of known) bucketOf(buckets, { ...row, span: numberOf(row.span), at: numberOf(row.at) }).add(row)
  yield* awaited(session.run('putBuckets', JSON.stringify([...buckets.values()].map((each) => each.row()))))
}

interface BucketKey {
  readonly queue: string
  readonly name: string
  readonly span: number
  readonly at: number
}

function bucketOf(buckets: Map<string, Bucket>, { queue, name, span, at }: BucketKey): Bucket {
  const key = `${queue}\n${name}\n${span}\n${at}`
  const bucket = buckets.get(key) ?? new Bucket({ queue, name, span, at })
  buckets.set(key, bucket)
  return bucket
}

class Bucket {
  done = 0
  failed = 0
  retried = 0
  readonly wait = new Sketch()
  readonly run = new Sketch()
  readonly key: BucketKey

  constructor(key: BucketKey) {
    this.key = key
  }

  add(row: Omit<StoredBucket, 'queue' | 'name' | 'at'>): void {
    this.done += numberOf(row.done)
    this.failed += numberOf(row.failed)
    this.retried += numberOf(row.retried)
    this.wait.addWritten(row.wait)
    this.run.addWritten(row.run)
  }

  row(): object {
    const { done, failed, retried } = this
    return { ...this.key, done, failed, retried, wait: this.wait.write(), run: this.run.write() }
  }
}

interface StoredBucket {
  readonly queue: string
  readonly name: string
  readonly at: Numeric
  readonly done: Numeric
  readonly failed: Numeric
  readonly retried: Numeric
  readonly wait: string | null
  readonly run: string | null
}

interface StoredMove extends StoredBucket {
  readonly failures: string | null
}

function toBucket({ queue, name, at, done, failed, retried, wait, run }: StoredBucket): BucketRow {
  return {
    queue,
    name,
    at: numberOf(at),
    done: numberOf(done),
    failed: numberOf(failed),
    retried: numberOf(retried),
    wait,
    run,
  }
}

/*
 * Error groups: a row for each lane, day and fingerprint. The number of groups of a lane and day is bounded, because the
 * class of an error may be made of anything.
 */

function* foldFailures(session: VerbSession, moves: readonly StoredMove[]): Verb<void> {
  const failing = moves.filter((move) => move.failures !== null)
  if (failing.length === 0) return
  const lanes = new Map(
    failing.map(({ queue, name, at }) => {
      const day = floorTo(numberOf(at), DAY_MS)
      return [`${queue}\n${name}\n${day}`, { queue, name, at: day }]
    }),
  )
  const known = yield* awaited(session.rows<StoredFailures>('readDayFailures', JSON.stringify([...lanes.values()])))
  const groups = new FailureGroups()
  for (const row of known) groups.addStored(row)
  for (const move of failing) groups.addMove(session, move)
  yield* awaited(session.run('putFailures', JSON.stringify(groups.changed())))
}

interface StoredFailures {
  readonly fingerprint: string
  readonly queue: string
  readonly name: string
  readonly at: Numeric
  readonly error: string
  readonly place: string
  readonly count: Numeric
  readonly first_seen: Numeric
  readonly last_seen: Numeric
  readonly samples: string
}

interface DayFailures {
  readonly fingerprint: string
  readonly queue: string
  readonly name: string
  readonly at: number
  readonly error: string
  readonly place: string
  readonly count: number
  readonly first_seen: number
  readonly last_seen: number
  readonly samples: string
}

/** The class of the group that stands for those past the bound. */
const OTHER = '(other errors)'

class FailureGroups {
  readonly #rows = new Map<string, DayFailures>()
  /** The number of groups of each lane and day. */
  readonly #sizes = new Map<string, number>()
  readonly #changed = new Set<string>()

  addStored(row: StoredFailures): void {
    this.#put({
      ...row,
      at: numberOf(row.at),
      count: numberOf(row.count),
      first_seen: numberOf(row.first_seen),
      last_seen: numberOf(row.last_seen),
    })
  }

  addMove(session: VerbSession, move: StoredMove): void {
    const at = numberOf(move.at)
    for (const failure of JSON.parse(move.failures ?? '[]') as GroupedFailure[])
      this.#add(
        { ...move, at },
        {
          ...failure,
          error: session.storable(failure.error) ?? '',
          place: session.storable(failure.place) ?? '',
        },
      )
  }

  changed(): DayFailures[] {
    return [...this.#changed].map((key) => this.#rows.get(key) as DayFailures)
  }

  #add(
    { queue, name, at }: Pick<StoredMove, 'queue' | 'name'> & { readonly at: number },
    failure: GroupedFailure,
  ): void {
    const day = floorTo(at, DAY_MS)
    const lane = `${queue}\n${name}\n${day}`
    const isKnown = this.#rows.has(`${lane}\n${failure.fingerprint}`)
    const isFull = (this.#sizes.get(lane) ?? 0) >= FAILURE_GROUPS_MAX
    const group = isKnown || !isFull ? failure : { ...failure, ...otherOf(name) }
    const before = this.#rows.get(`${lane}\n${group.fingerprint}`)
    const samples = failure.samples.map((sample) => ({ ...sample, at }))
    this.#changed.add(
      this.#put({
        fingerprint: group.fingerprint,
        queue,
        name,
        at: day,
        error: group.error,
        place: group.place,
        count: (before?.count ?? 0) + failure.count,
        first_seen: Math.min(before?.first_seen ?? at, at),
        last_seen: Math.max(before?.last_seen ?? at, at),
        samples: JSON.stringify(newestOf([...samplesOf(before?.samples), ...samples])),
      }),
    )
  }

  #put(row: DayFailures): string {
    const lane = `${row.queue}\n${row.name}\n${row.at}`
    const key = `${lane}\n${row.fingerprint}`
    if (!this.#rows.has(key)) this.#sizes.set(lane, (this.#sizes.get(lane) ?? 0) + 1)
    this.#rows.set(key, row)
    return key
  }
}

function otherOf(name: string): Pick<GroupedFailure, 'fingerprint' | 'error' | 'place'> {
  return { fingerprint: fingerprintOf(name, OTHER, ''), error: OTHER, place: '' }
}

type DatedSample = FailureSample & { readonly at: number }

function samplesOf(written: string | undefined): DatedSample[] {
  return written === undefined ? [] : (JSON.parse(written) as DatedSample[])
}

function newestOf(samples: readonly DatedSample[]): DatedSample[] {
  return samples.toSorted((a, b) => a.at - b.at).slice(-SAMPLES_MAX)
}

/** The error groups with a failure within the window, the latest first. */
export function* readFailures(
  session: VerbSession,
  { window, queue, name, fingerprint }: FailuresQuery,
): Verb<FailureGroup[]> {
  const now = yield* awaited(session.now())
  const from = floorTo(Math.max(0, (window.at ?? now) - window.lastMs), DAY_MS)
  const lane = [queue ?? null, name ?? null, from] as const
  const rows =
    fingerprint === undefined
      ? yield* awaited(session.rows<ReadFailures>('readFailures', ...lane))
      : yield* awaited(session.rows<ReadFailures>('readFailure', ...lane, fingerprint))
  const groups = new Map<string, FailureGroup>()
  for (const group of rows.flatMap(groupsOf).filter((each) => (fingerprint ?? each.fingerprint) === each.fingerprint))
    groups.set(group.fingerprint, merged(groups.get(group.fingerprint), group))
  yield* addFirstSeen(session, groups)
  return [...groups.values()].toSorted((a, b) => b.lastSeen - a.lastSeen || (a.fingerprint < b.fingerprint ? -1 : 1))
}

/** A group may have been seen before the window. */
function* addFirstSeen(session: VerbSession, groups: Map<string, FailureGroup>): Verb<void> {
  if (groups.size === 0) return
  const firsts = yield* awaited(
    session.rows<{ readonly fingerprint: string; readonly first_seen: Numeric | null }>(
      'firstSeen',
      JSON.stringify([...groups.keys()]),
    ),
  )
  for (const { fingerprint, first_seen } of firsts) {
    const group = groups.get(fingerprint)
    if (group !== undefined && first_seen !== null)
      groups.set(fingerprint, { ...group, firstSeen: Math.min(group.firstSeen, numberOf(first_seen)) })
  }
}

/** A row of a day, or an unfolded row, which has `failures`. */
interface ReadFailures extends StoredFailures {
  readonly failures: string | null
}

function groupsOf(row: ReadFailures): FailureGroup[] {
  const { name } = row
  if (row.failures === null) {
    const { fingerprint, error, place, samples } = row
    const firstSeen = numberOf(row.first_seen)
    const lastSeen = numberOf(row.last_seen)
    return [
      { fingerprint, name, error, place, count: numberOf(row.count), firstSeen, lastSeen, samples: samplesOf(samples) },
    ]
  }
  const at = numberOf(row.at)
  return (JSON.parse(row.failures) as GroupedFailure[]).map(({ samples, ...failure }) => ({
    ...failure,
    name,
    firstSeen: at,
    lastSeen: at,
    samples: samples.map((sample) => ({ ...sample, at })),
  }))
}

function merged(before: FailureGroup | undefined, group: FailureGroup): FailureGroup {
  if (before === undefined) return group
  return {
    ...group,
    count: before.count + group.count,
    firstSeen: Math.min(before.firstSeen, group.firstSeen),
    lastSeen: Math.max(before.lastSeen, group.lastSeen),
    samples: newestOf([...before.samples, ...group.samples]),
  }
}
