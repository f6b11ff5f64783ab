import type { Encoded } from '../../../job/rules/outcome.js'
import type { State } from '../../../job/rules/states.js'
import type { JobTurn } from '../../../job/limits/turns.js'
import type { JobRow } from '../../store.js'
import { toEncoded } from '../connection/driver.js'
import type { Session } from '../connection/session.js'

export function readJobs(session: Session, ids: readonly string[]): (JobRow | undefined)[] {
  const rows = session.statement(session.queries.readJobs).all(JSON.stringify(ids)) as StoredRow[]
  const byId = new Map(rows.map((row) => [row.id, toJobRow(row)]))
  return ids.map((id) => byId.get(id))
}

export function readKeyed(session: Session, name: string, key: string): JobRow | undefined {
  const row = session.statement(session.queries.readKeyed).get(key, name) as StoredRow | undefined
  return row === undefined ? undefined : toJobRow(row)
}

/** The job with its lane, read by the transaction that is about to change it. */
export function readForChange(
  session: Session,
  id: string,
): (JobRow & { readonly lane: number; readonly jobTurn: JobTurn }) | undefined {
  const row = session.statement(session.queries.changeTarget).get(id) as StoredRow | undefined
  return row === undefined ? undefined : { ...toJobRow(row), lane: row.lane, jobTurn: jobTurnOf(row) }
}

function jobTurnOf({ turn, rate_turn, weight }: StoredRow): JobTurn {
  return { limit: turn, rate: rate_turn, weight }
}

export interface StoredRow {
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly lane: number
  readonly turn: number | null
  readonly rate_turn: number | null
  readonly weight: number | null
  readonly priority: number
  readonly key: string | null
  readonly grp: string | null
  readonly payload: Encoded
  readonly options: string | null
  readonly shape: JobRow['shape']
  readonly after: string | null
  readonly created_at: number
  readonly state: State
  readonly claimed: number
  readonly streak: number
  readonly due_at: number
  readonly attempt: number
  readonly retries: number
  readonly crashes: number
  readonly started_at: number | null
  readonly settled_at: number | null
  readonly expires_at: number | null
  readonly worker: string | null
  readonly result: Encoded | null
  readonly error: string | null
  readonly reason: string | null
  readonly log: string | null
  readonly progress: string | null
}

export function toJobRow(row: StoredRow): JobRow {
  return {
    ref: row.seq,
    id: row.id,
    name: row.name,
    queue: row.queue,
    priority: row.priority,
    key: row.key,
    group: row.grp,
    payload: toEncoded(row.payload),
    options: row.options,
    shape: row.shape,
    after: row.after === null ? [] : (JSON.parse(row.after) as string[]),
    createdAt: row.created_at,
    state: row.state,
    claimed: row.claimed === 1,
    streak: row.streak,
    dueAt: row.due_at,
    attempt: row.attempt,
    retries: row.retries,
    crashes: row.crashes,
    startedAt: row.started_at,
    settledAt: row.settled_at,
    expiresAt: row.expires_at,
    worker: row.worker,
    result: row.result === null ? null : toEncoded(row.result),
    error: row.error,
    reason: row.reason,
    log: row.log,
    progress: row.progress,
  }
}
