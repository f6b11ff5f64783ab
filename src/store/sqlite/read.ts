import type { Encoded } from '../../job/outcome.js'
import type { State } from '../../job/states.js'
import { isFinal } from '../../job/states.js'
import type { FindQuery, FoundPage } from '../find.js'
import type { JobRow } from '../store.js'
import type { SqliteValue } from './driver.js'
import { toEncoded } from './driver.js'
import type { Session } from './session.js'

/** How many jobs one page looks at, at the most: a sparse filter must not hold the event loop. */
const SCAN_MAX = 5_000

export function readJobs(session: Session, ids: readonly string[]): (JobRow | undefined)[] {
  const rows = session.statement(session.queries.readJobs).all(JSON.stringify(ids)) as StoredRow[]
  const byId = new Map(rows.map((row) => [row.id, toJobRow(row)]))
  return ids.map((id) => byId.get(id))
}

export function readKeyed(session: Session, name: string, key: string): JobRow | undefined {
  const row = session.statement(session.queries.readKeyed).get(key, name) as StoredRow | undefined
  return row === undefined ? undefined : toJobRow(row)
}

/** The job with its lane, within the transaction that is about to change it. */
export function readForChange(session: Session, id: string): (JobRow & { readonly lane: number }) | undefined {
  const row = session.statement(session.queries.changeTarget).get(id) as StoredRow | undefined
  return row === undefined ? undefined : { ...toJobRow(row), lane: row.lane }
}

/** One page: a window of at most SCAN_MAX jobs, in order, filtered. */
export function findJobs(session: Session, query: FindQuery): FoundPage {
  if (query.group !== undefined) return findMembers(session, query, query.group)
  const bounds = session.statement(session.queries.seqBounds).get() as { first: number | null; last: number | null }
  if (bounds.first === null || bounds.last === null) return { rows: [], cursor: null }
  const newest = query.order === 'newest'
  const start = newest
    ? Math.min(bounds.last, (query.cursor ?? Infinity) - 1)
    : Math.max(bounds.first, (query.cursor ?? -Infinity) + 1)
  const end = newest ? Math.max(bounds.first, start - SCAN_MAX + 1) : Math.min(bounds.last, start + SCAN_MAX - 1)
  const { conditions, values } = conditionsOf(query)
  const sql = session.queries.findJobs(['j.seq between ? and ?', ...conditions], newest ? 'desc' : 'asc')
  const found = session
    .statement(sql)
    .all(Math.min(start, end), Math.max(start, end), ...values, query.limit) as StoredRow[]
  const full = found.length === query.limit
  const lastSeen = full ? (found[found.length - 1] as StoredRow).seq : end
  const isOver = newest ? lastSeen <= bounds.first : lastSeen >= bounds.last
  return { rows: found.map(toJobRow), cursor: isOver ? null : lastSeen }
}

/** The same for the members of a group, who may be few and far between: their index says where. */
function findMembers(session: Session, query: FindQuery, group: string): FoundPage {
  const order = query.order === 'newest' ? 'desc' : 'asc'
  const start = query.cursor ?? (order === 'desc' ? Number.MAX_SAFE_INTEGER : -1)
  const window = session.statement(session.queries.groupWindow(order)).get(group, start, SCAN_MAX) as {
    first: number | null
    last: number | null
    looked: number
  }
  if (window.first === null || window.last === null) return { rows: [], cursor: null }
  const { conditions, values } = conditionsOf(query)
  const sql = session.queries.findJobs(['j.grp = ?', 'j.seq between ? and ?', ...conditions], order)
  const found = session.statement(sql).all(group, window.first, window.last, ...values, query.limit) as StoredRow[]
  const full = found.length === query.limit
  const lastSeen = full ? (found[found.length - 1] as StoredRow).seq : order === 'desc' ? window.first : window.last
  return { rows: found.map(toJobRow), cursor: !full && window.looked < SCAN_MAX ? null : lastSeen }
}

/** Only which conditions there are changes the text; every value is bound. */
function conditionsOf(query: FindQuery): { conditions: string[]; values: SqliteValue[] } {
  const conditions: string[] = []
  const values: SqliteValue[] = []
  const add = (condition: string, value: SqliteValue): void => {
    conditions.push(condition)
    values.push(value)
  }
  if (query.names !== undefined) add('n.name in (select value from json_each(?))', JSON.stringify(query.names))
  if (query.queues !== undefined) add('n.queue in (select value from json_each(?))', JSON.stringify(query.queues))
  if (query.states !== undefined) {
    const states = JSON.stringify(query.states)
    // Named by table, so that a search for one kind of state does not read the rows of the other.
    if (!query.states.some(isFinal)) add('l.state in (select value from json_each(?))', states)
    else if (query.states.every(isFinal)) add('h.state in (select value from json_each(?))', states)
    else add('coalesce(l.state, h.state) in (select value from json_each(?))', states)
  }
  if (query.label !== undefined)
    add("exists (select 1 from json_each(j.options, '$.labels') where value = ?)", query.label)
  if (query.key !== undefined) add('j.key = ?', query.key)
  if (query.createdAfter !== undefined) add('j.created_at > ?', query.createdAfter)
  if (query.createdBefore !== undefined) add('j.created_at < ?', query.createdBefore)
  return { conditions, values }
}

interface StoredRow {
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly lane: number
  readonly priority: number
  readonly key: string | null
  readonly grp: string | null
  readonly payload: Encoded
  readonly options: string | null
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

function toJobRow(row: StoredRow): JobRow {
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
