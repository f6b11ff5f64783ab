import { isPaused } from '../../../job/rules/queue-pause.js'
import type { Session } from '../connection/session.js'

/** What a claim has to know before it reads jobs. */
export interface ClaimNotes {
  readonly paused: ReadonlySet<string>
  /** Queues whose pause is over but still has a row. */
  readonly over: readonly string[]
  /** Time until a paused queue resumes; null when none is paused until a time. */
  readonly resumesInMs: number | null
  /** Queues with limits: only `claimLimited` takes their jobs. */
  readonly limited: ReadonlySet<string>
  /** Jobs with keys are ready. */
  readonly hasTurns: boolean
  /** The lanes whose attempts fail. */
  readonly failing: readonly number[]
}

export function claimNotesOf(session: Session, now: number): ClaimNotes {
  const rows = session.statement(session.queries.claimNotes).all() as NoteRow[]
  if (rows.length === 0) return NO_NOTES
  const [paused, limited] = [new Set<string>(), new Set<string>()]
  const over: string[] = []
  const failing: number[] = []
  let [hasTurns, nextAt] = [false, Infinity]
  for (const { kind, queue, until, at } of rows)
    if (kind === 'limits') limited.add(queue as string)
    else if (kind === 'fails') failing.push(at as number)
    else if (kind === 'turns') hasTurns = true
    else if (isPaused({ until: until ?? Infinity }, now)) {
      paused.add(queue as string)
      nextAt = Math.min(nextAt, until ?? Infinity)
    } else over.push(queue as string)
  return { paused, over, resumesInMs: nextAt === Infinity ? null : nextAt - now, limited, hasTurns, failing }
}

interface NoteRow {
  readonly kind: 'pause' | 'limits' | 'fails' | 'turns'
  readonly queue: string | null
  readonly until: number | null
  /** When the queue was paused; the lane that fails. */
  readonly at: number | null
}

const NO_NOTES: ClaimNotes = {
  paused: new Set(),
  over: [],
  resumesInMs: null,
  limited: new Set(),
  hasTurns: false,
  failing: [],
}
