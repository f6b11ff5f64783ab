import { LeaseLostError } from '../../../errors.js'
import { decidePause, isPaused } from '../../../job/rules/queue-pause.js'
import { instant } from '../../ordering.js'
import type { PausedQueue, QueueChange, StandingPause } from '../../queues.js'
import type { Session } from '../connection/session.js'

/** Pauses a queue within the current transaction, or lets it run when what is asked for is over already. */
export function pauseQueue(session: Session, change: QueueChange, now: number): PausedQueue {
  const { queue, under } = change
  if (under !== undefined && session.statement(session.queries.holdsClaim).get(under.ref, under.fence) === undefined)
    throw new LeaseLostError('ctx.queue.pauseUntil()')
  const standing = readPause(session, queue, now)
  const asked = { until: change.until === null ? Infinity : instant(change.until, now) }
  const decided = decidePause(
    standing === undefined ? undefined : { until: standing.until ?? Infinity },
    asked,
    under === undefined ? 'person' : 'handler',
    now,
  )
  if (decided === undefined) {
    resumeQueue(session, queue)
    return { pause: undefined, held: false }
  }
  const until = decided.until === Infinity ? null : decided.until
  const pausedAt = standing?.pausedAt ?? now
  session.statement(session.queries.putPause).run(queue, until, pausedAt)
  session.noteAsked()
  const held = session.statement(session.queries.anyHeld).get() !== undefined
  return { pause: { pausedAt, until }, held }
}

export function resumeQueue(session: Session, queue: string): boolean {
  const resumed = Number(session.statement(session.queries.dropPause).run(queue).changes) > 0
  if (resumed) session.noteReady()
  return resumed
}

export function readPause(session: Session, queue: string, now: number): StandingPause | undefined {
  const standing = readPauses(session).get(queue)
  return standing !== undefined && isPaused({ until: standing.until ?? Infinity }, now) ? standing : undefined
}

/** What a claim must not take, what it may take again, and when to come again. */
export interface PausedNow {
  readonly queues: ReadonlySet<string>
  /** Queues whose pause is written still and over. */
  readonly over: readonly string[]
  readonly resumesInMs: number | null
}

export function pausedNow(session: Session, now: number): PausedNow {
  const pauses = readPauses(session)
  if (pauses.size === 0) return NONE_PAUSED
  const queues = new Set<string>()
  const over: string[] = []
  let nextAt = Infinity
  for (const [queue, { until }] of pauses)
    if (isPaused({ until: until ?? Infinity }, now)) {
      queues.add(queue)
      nextAt = Math.min(nextAt, until ?? Infinity)
    } else over.push(queue)
  return { queues, over, resumesInMs: nextAt === Infinity ? null : nextAt - now }
}

const NONE_PAUSED: PausedNow = { queues: new Set(), over: [], resumesInMs: null }

/** Every queue with a pause written for it, over or not. */
export function readPauses(session: Session): Map<string, StandingPause> {
  const rows = session.statement(session.queries.readPauses).all() as PauseRow[]
  return new Map(rows.map((row) => [row.queue, { pausedAt: row.paused_at, until: row.until }]))
}

interface PauseRow {
  readonly queue: string
  readonly until: number | null
  readonly paused_at: number
}
