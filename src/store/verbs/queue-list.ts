import { isPaused } from '../../job/rules/queue-pause.js'
import type { QueueOutage } from '../limits.js'
import type { QueueCount } from '../observing/statistics.js'
import type { QueueCounts, QueueListed } from '../queues.js'
import { numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import { limitsOfRows } from './queue-limits.js'
import type { QueueLimitsRow } from './queue-limits.js'
import { countQueues } from './statistics.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

/** The most queues that are listed. */
const QUEUES_MAX = 1_000

/** The queues by name, with the counts of their jobs, each up to its bound, and what holds them. */
export function* listQueues(session: VerbSession): Verb<readonly QueueListed[]> {
  const counted = yield* countQueues(session)
  const now = yield* awaited(session.now())
  const limits = limitsOfRows(yield* awaited(session.rows<QueueLimitsRow>('readQueueLimits')))
  const pauses = yield* awaited(session.rows<StoredPause>('queuePauses'))
  const outages = yield* awaited(session.rows<StoredOutage>('queueOutages'))
  const names = [...new Set(counted.map(({ queue }) => queue))].toSorted().slice(0, QUEUES_MAX)
  return names.map((name) => ({
    name,
    ...tally(counted.filter(({ queue }) => queue === name)),
    pause: pauseOf(
      pauses.find(({ queue }) => queue === name),
      now,
    ),
    limits: limits.get(name) ?? {},
    outages: outages.filter(({ queue }) => queue === name).map(toOutage),
  }))
}

function tally(counted: readonly QueueCount[]): Pick<QueueListed, 'counts' | 'isExact' | 'oldestDueAt'> {
  const counts: { -readonly [state in keyof QueueCounts]: number } = { ...NONE }
  for (const { state, count } of counted) counts[state] += count
  const due = counted.flatMap(({ dueAt }) => (dueAt === null ? [] : [dueAt]))
  return {
    counts,
    isExact: !counted.some(({ isMore }) => isMore),
    oldestDueAt: due.length === 0 ? null : Math.min(...due),
  }
}

const NONE: QueueCounts = {
  ready: 0,
  running: 0,
  scheduled: 0,
  retrying: 0,
  blocked: 0,
  paused: 0,
  parked: 0,
  failed: 0,
}

function pauseOf(row: StoredPause | undefined, now: number): QueueListed['pause'] {
  const until = numberOrNull(row?.until)
  if (row === undefined || !isPaused({ until: until ?? Infinity }, now)) return undefined
  return { pausedAt: numberOf(row.paused_at), until }
}

function toOutage({ name, state, since, waiting }: StoredOutage): QueueOutage {
  return { name, state, since: numberOf(since), waiting: numberOf(waiting) }
}

interface StoredPause {
  readonly queue: string
  readonly until: Numeric | null
  readonly paused_at: Numeric
}

interface StoredOutage {
  readonly queue: string
  readonly name: string
  readonly state: QueueOutage['state']
  readonly since: Numeric
  readonly waiting: Numeric
}
