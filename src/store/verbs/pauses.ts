import { LeaseLostError } from '../../errors.js'
import { decidePause, isPaused } from '../../job/rules/queue-pause.js'
import { numberOf, numberOrNull } from '../rows/columns.js'
import type { Numeric } from '../rows/columns.js'
import { instant } from '../rows/ordering.js'
import type { PausedQueue, QueueChange, CurrentPause } from '../queues.js'
import type { AuditNote } from '../../job/command-options.js'
import { entryOf, iso, writeAudit } from './audit.js'
import { awaited } from './verb.js'
import type { Verb, VerbSession } from './verb.js'

/**
 * Pauses a queue, or resumes it when the requested pause is over already. Afterwards each store reads which jobs
 * workers hold.
 */
export function* pauseQueue(session: VerbSession, change: QueueChange): Verb<PausedQueue> {
  const { queue, claim } = change
  if (claim !== undefined && (yield* awaited(session.rows('holdsClaim', claim.ref, claim.fence))).length === 0)
    throw new LeaseLostError('ctx.queue.pauseUntil()')
  const now = yield* awaited(session.now())
  const before = yield* readPause(session, queue)
  const decided = decidePause(
    before === undefined ? undefined : { until: before.until ?? Infinity },
    { until: change.until === null ? Infinity : instant(change.until, now) },
    claim === undefined ? 'person' : 'handler',
    now,
  )
  if (decided === undefined) {
    yield* resumeQueue(session, queue, change.audit)
    return { pause: undefined, held: false }
  }
  const until = decided.until === Infinity ? null : decided.until
  const pausedAt = before?.pausedAt ?? now
  yield* awaited(session.run('putPause', queue, until, pausedAt))
  session.note({ requested: true })
  const pause = { pausedAt, until }
  yield* writeAudit(session, entryOf(change.audit, `queue ${queue}`, textOf(before), textOf(pause)))
  return { pause, held: true }
}

export function* resumeQueue(session: VerbSession, queue: string, audit?: AuditNote): Verb<boolean> {
  const before = audit === undefined ? undefined : yield* readPause(session, queue)
  const dropped = yield* awaited(session.rows('dropPause', queue))
  if (dropped.length === 0) return false
  session.note({ ready: true })
  yield* writeAudit(session, entryOf(audit, `queue ${queue}`, textOf(before), textOf(undefined)))
  return true
}

function textOf(pause: CurrentPause | undefined): string {
  if (pause === undefined) return 'open'
  return pause.until === null ? 'paused' : `paused until ${iso(pause.until)}`
}

export function* readPause(session: VerbSession, queue: string): Verb<CurrentPause | undefined> {
  const [row] = yield* awaited(session.rows<StoredPause>('readPause', session.givenNow, queue))
  if (row === undefined) return undefined
  const until = numberOrNull(row.until)
  return isPaused({ until: until ?? Infinity }, numberOf(row.now))
    ? { pausedAt: numberOf(row.paused_at), until }
    : undefined
}

interface StoredPause {
  readonly until: Numeric | null
  readonly paused_at: Numeric
  readonly now: Numeric
}
