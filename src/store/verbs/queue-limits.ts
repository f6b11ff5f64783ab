import type { QueueLimits } from '../../job/limits/limits.js'
import { numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import type { QueueLimitsChange } from '../limits.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

export interface QueueLimitsRow {
  readonly queue: string
  readonly max: Numeric | null
  readonly rateMax: Numeric | null
  readonly ratePer: Numeric | null
}

/** The limits of queues, by queue. */
export function limitsOfRows(rows: readonly QueueLimitsRow[]): Map<string, QueueLimits> {
  return new Map(rows.map((row) => [row.queue, limitsOf(row)]))
}

function limitsOf(row: QueueLimitsRow): QueueLimits {
  const [max, rateMax, perMs] = [row.max, row.rateMax, row.ratePer].map(numberOrNull)
  return {
    ...(max == null ? {} : { limit: { max } }),
    ...(rateMax == null || perMs == null ? {} : { rate: { max: rateMax, perMs } }),
  }
}

/** Stores the limits of these queues; those of other queues stay as they are. */
export function* putQueueLimits(session: VerbSession, changes: readonly QueueLimitsChange[]): Verb<null> {
  const now = yield* awaited(session.now())
  for (const { queue, limits } of changes)
    if (limits === null) yield* awaited(session.run('dropQueueLimits', queue))
    else {
      const { limit, rate } = limits
      const row = [limit?.max ?? null, rate?.max ?? null, rate?.perMs ?? null, now] as const
      yield* awaited(session.run('putQueueLimits', queue, ...row))
    }
  // Another limit may let waiting jobs start.
  session.note({ ready: true })
  return null
}

export function* readQueueLimits(session: VerbSession, queue: string): Verb<QueueLimits> {
  const rows = yield* awaited(session.rows<QueueLimitsRow>('readQueueLimits'))
  return limitsOfRows(rows).get(queue) ?? {}
}
