import type { Encoded } from '../../../job/rules/outcome.js'
import type { State } from '../../../job/rules/states.js'
import type { JobRow } from '../../store.js'
import { numberOf, numberOrNull } from '../connection/executor.js'

/** A job with where it stands. */
export interface Standing extends JobRow {
  readonly lane: number
  readonly place: 'ready' | 'waiting' | 'lease' | 'history'
  /** Of the lease that has it. */
  readonly fence: number | null
  /** Of the row that was read: another one, when somebody has written it since. */
  readonly version: string
}

/** Numbers may come as texts: a caller's library decides that. */
type Numeric = number | string | bigint

export interface StoredRow {
  readonly ref: Numeric
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly lane: Numeric
  readonly priority: Numeric
  readonly key: string | null
  readonly grp: string | null
  readonly payload: string | null
  readonly bytes: string | null
  readonly options: string | null
  readonly after: string | null
  readonly created_at: Numeric
  readonly due_at: Numeric
  readonly expires_at: Numeric | null
  readonly streak: Numeric
  readonly state: State
  readonly place: Standing['place']
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

export function toStanding(row: StoredRow): Standing {
  return {
    ref: numberOf(row.ref),
    id: row.id,
    name: row.name,
    queue: row.queue,
    lane: numberOf(row.lane),
    priority: numberOf(row.priority),
    key: row.key,
    group: row.grp,
    payload: encodedOf(row.payload, row.bytes) ?? '',
    options: row.options,
    after: row.after === null ? [] : (JSON.parse(row.after) as string[]),
    createdAt: numberOf(row.created_at),
    state: row.state,
    place: row.place,
    fence: numberOrNull(row.fence),
    claimed: row.place === 'lease',
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
  const { lane: _lane, place: _place, fence: _fence, version: _version, ...job } = toStanding(row)
  return job
}

/** Bytes travel as base64, since every library can carry a text. */
export function encodedOf(text: string | null, bytes: string | null): Encoded | null {
  if (text !== null) return text
  return bytes === null ? null : new Uint8Array(Buffer.from(bytes, 'base64'))
}

export function toColumns(value: Encoded | null): { readonly text: string | null; readonly bytes: string | null } {
  if (value === null || typeof value === 'string') return { text: value, bytes: null }
  return { text: null, bytes: Buffer.from(value).toString('base64') }
}
