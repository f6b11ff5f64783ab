import type { Encoded } from '../../../job/rules/outcome.js'
import type { State } from '../../../job/rules/states.js'
import { numberOf, numberOrNull } from '../../rows/columns.js'
import type { Numeric } from '../../rows/columns.js'
import type { JobTurn } from '../../../job/limits/turns.js'
import type { JobRow } from '../../store.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'

export async function readJobs(session: Session, ids: readonly string[]): Promise<(JobRow | undefined)[]> {
  const byId = new Map<string, JobRow>()
  for (let missing = ids; missing.length > 0; missing = missing.filter((id) => !byId.has(id))) {
    const rows = await session.query<BoundedRow>(session.queries.readJobs, JSON.stringify(missing))
    for (const row of rows) byId.set(row.id, toJobRow(row))
    if (!isCut(rows)) break
  }
  return ids.map((id) => byId.get(id))
}

/** A row of an answer with a size limit. */
export interface BoundedRow extends StoredRow {
  /** The number of matches without the size limit. */
  readonly matched: unknown
}

export function isCut(rows: readonly BoundedRow[]): boolean {
  return rows.length < Number(rows[0]?.matched ?? 0)
}

export async function readKeyed(session: Session, name: string, key: string): Promise<JobRow | undefined> {
  const [row] = await session.query<StoredRow>(session.queries.readKeyed, key, name)
  return row === undefined ? undefined : toJobRow(row)
}

/** Jobs with the tables that they are in, for a verb that is about to move them. */
export async function readStored(session: Session, refs: readonly number[]): Promise<Map<number, StoredJob>> {
  if (refs.length === 0) return new Map()
  const rows = await session.query<StoredRow>(session.queries.readRefs, arrayOf(refs))
  return new Map(rows.map((row) => [Number(row.ref), toStoredJob(row)]))
}

export async function readById(session: Session, id: string): Promise<StoredJob | undefined> {
  const [row] = await session.query<StoredRow>(session.queries.readJobs, JSON.stringify([id]))
  return row === undefined ? undefined : toStoredJob(row)
}

/** As many of the jobs as fit into one answer. */
export async function readManyById(session: Session, ids: readonly string[]): Promise<Map<string, StoredJob>> {
  const rows = await session.query<StoredRow>(session.queries.readJobs, JSON.stringify(ids))
  return new Map(rows.map((row) => [row.id, toStoredJob(row)]))
}

/** A job with the table that it is in. */
export interface StoredJob extends JobRow {
  readonly lane: number
  readonly jobTurn: JobTurn
  /** The table. */
  readonly table: 'ready' | 'waiting' | 'lease' | 'history'
  /** The fence of its lease. */
  readonly fence: number | null
  /** The version of the row that was read: it differs once the row was written again. */
  readonly version: string
}

export interface StoredRow {
  readonly ref: Numeric
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly lane: Numeric
  readonly turn: Numeric | null
  readonly rate_turn: Numeric | null
  readonly weight: Numeric | null
  readonly priority: Numeric
  readonly key: string | null
  readonly grp: string | null
  readonly payload: string | null
  readonly bytes: string | null
  readonly options: string | null
  readonly shape: JobRow['shape']
  readonly after: string | null
  readonly created_at: Numeric
  readonly due_at: Numeric
  readonly expires_at: Numeric | null
  readonly streak: Numeric
  readonly state: State
  readonly stored_in: StoredJob['table']
  readonly fence: Numeric | null
  readonly attempt: Numeric
  readonly retries: Numeric
  readonly crashes: Numeric
  readonly started_at: Numeric | null
  readonly settled_at: Numeric | null
  readonly worker: string | null
  readonly result: string | null
  readonly result_bytes: string | null
  readonly error: string | null
  readonly reason: string | null
  readonly log: string | null
  readonly progress: string | null
  readonly version: string
}

export function toStoredJob(row: StoredRow): StoredJob {
  return {
    ref: numberOf(row.ref),
    id: row.id,
    name: row.name,
    queue: row.queue,
    lane: numberOf(row.lane),
    jobTurn: { limit: numberOrNull(row.turn), rate: numberOrNull(row.rate_turn), weight: numberOrNull(row.weight) },
    priority: numberOf(row.priority),
    key: row.key,
    group: row.grp,
    payload: encodedOf(row.payload, row.bytes) ?? '',
    options: row.options,
    shape: row.shape,
    after: row.after === null ? [] : (JSON.parse(row.after) as string[]),
    createdAt: numberOf(row.created_at),
    state: row.state,
    table: row.stored_in,
    fence: numberOrNull(row.fence),
    claimed: row.stored_in === 'lease',
    streak: numberOf(row.streak),
    dueAt: numberOf(row.due_at),
    attempt: numberOf(row.attempt),
    retries: numberOf(row.retries),
    crashes: numberOf(row.crashes),
    startedAt: numberOrNull(row.started_at),
    settledAt: numberOrNull(row.settled_at),
    expiresAt: numberOrNull(row.expires_at),
    worker: row.worker,
    result: encodedOf(row.result, row.result_bytes),
    error: row.error,
    reason: row.reason,
    log: row.log,
    progress: row.progress,
    version: row.version,
  }
}

export function toJobRow(row: StoredRow): JobRow {
  const { lane: _lane, jobTurn: _jobTurn, table: _table, fence: _fence, version: _version, ...job } = toStoredJob(row)
  return job
}

/** Bytes are sent as base64, since every library can send a text. */
export function encodedOf(text: string | null, bytes: string | null): Encoded | null {
  if (text !== null) return text
  return bytes === null ? null : new Uint8Array(Buffer.from(bytes, 'base64'))
}

export function toColumns(value: Encoded | null): { readonly text: string | null; readonly bytes: string | null } {
  if (value === null || typeof value === 'string') return { text: value, bytes: null }
  return { text: null, bytes: Buffer.from(value).toString('base64') }
}
