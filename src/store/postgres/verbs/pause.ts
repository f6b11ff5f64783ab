import { LeaseLostError } from '../../../errors.js'
import { decidePause, isPaused } from '../../../job/rules/queue-pause.js'
import { instant } from '../../ordering.js'
import type { PausedQueue, QueueChange, StandingPause } from '../../queues.js'
import type { Session } from '../connection/session.js'
import { textOf } from '../connection/session.js'

/** Pauses a queue, or lets it run when what is asked for is over already. Within a transaction. */
export async function pauseQueue(s: Session, change: QueueChange): Promise<PausedQueue> {
  const { queue, under } = change
  if (under !== undefined) {
    const held = await s.query(s.queries.holdsClaim, String(under.ref), String(under.fence))
    if (held.length === 0) throw new LeaseLostError('ctx.queue.pauseUntil()')
  }
  const now = await s.now()
  const standing = await readPause(s, queue)
  const asked = { until: change.until === null ? Infinity : instant(change.until, now) }
  const decided = decidePause(
    standing === undefined ? undefined : { until: standing.until ?? Infinity },
    asked,
    under === undefined ? 'person' : 'handler',
    now,
  )
  if (decided === undefined) {
    await resumeQueue(s, queue)
    return { pause: undefined, held: false }
  }
  const until = decided.until === Infinity ? null : decided.until
  const pausedAt = standing?.pausedAt ?? now
  await s.query(s.queries.putPause, queue, textOf(until), String(pausedAt))
  s.note({ requested: true })
  return { pause: { pausedAt, until }, held: true }
}

/** When a pause is written: waits for the claims under way. Whether any worker holds jobs in advance. Within a transaction. */
export async function heldAfterPause(s: Session): Promise<boolean> {
  await s.query(s.queries.awaitClaims)
  const held = await s.query(s.queries.anyHeld)
  return held.length > 0
}

export async function resumeQueue(s: Session, queue: string): Promise<boolean> {
  const dropped = await s.query(s.queries.dropPause, queue)
  if (dropped.length > 0) s.note({ ready: true })
  return dropped.length > 0
}

export async function readPause(s: Session, queue: string): Promise<StandingPause | undefined> {
  const rows = await s.query<PauseRow>(s.queries.readPauses, s.nowText)
  const row = rows.find((each) => each.queue === queue)
  if (row === undefined) return undefined
  const until = row.until === null ? null : Number(row.until)
  return isPaused({ until: until ?? Infinity }, Number(row.now))
    ? { pausedAt: Number(row.paused_at), until }
    : undefined
}

interface PauseRow {
  readonly queue: string
  readonly until: unknown
  readonly paused_at: unknown
  readonly now: unknown
}
