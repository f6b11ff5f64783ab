import { isFinal } from '../../../job/rules/states.js'
import type { State } from '../../../job/rules/states.js'
import { farthest, LANES_MAX, READY_MAX } from '../../find.js'
import type { Candidates, CountedPage, FindQuery, FoundPage } from '../../find.js'
import { fingerprintOfError } from '../../rows/fingerprint.js'
import { parentLabel } from '../../rows/parent-labels.js'
import type { JobRow } from '../../store.js'
import { ALL, rangesOf } from './find-by-time.js'
import type { NumberRange } from './find-by-time.js'
import type { SqliteValue } from '../connection/driver.js'
import type { Way } from '../queries/find.js'
import { toJobRow } from './read.js'
import type { StoredRow } from './read.js'
import type { Session } from '../connection/session.js'

/** The most jobs that one page reads: a sparse filter must not block the event loop. */
const WINDOW_MAX = 5_000

/**
 * One page: the candidates of the sparsest index, in order, filtered (`store/find.ts`), within the numbers that the
 * times allow.
 */
export function findJobs(session: Session, query: FindQuery): FoundPage {
  const rows: JobRow[] = []
  const cursor = walk(session, query, (refs) => {
    rows.push(...match(session, query, refs, query.limit - rows.length))
    return rows.length === query.limit
  })
  return { rows, cursor: rows.length === query.limit ? (rows.at(-1) as JobRow).ref : cursor }
}

/** The number of matches on the same page. */
export function countJobs(session: Session, query: FindQuery): CountedPage {
  const { conditions, values } = conditionsOf(query)
  const statement = session.statement(session.queries.countJobs(conditions))
  let count = 0
  const cursor = walk(session, query, (refs) => {
    count += (statement.get(refs, ...values, query.limit - count) as { count: number }).count
    return count === query.limit
  })
  return { count, cursor: count === query.limit ? null : cursor }
}

/** Receives the candidates of a page; true when the page is full. */
type Take = (refs: string) => boolean

function walk(session: Session, query: FindQuery, take: Take): number | null {
  if (query.createdAfter === undefined && query.createdBefore === undefined)
    return walkWithin(session, query, [ALL], take)
  return inOneSnapshot(session, () => walkWithin(session, query, rangesOf(session, query), take))
}

/**
 * Another process may write between two statements. A savepoint works also when the connection is in a transaction
 * already.
 */
function inOneSnapshot<T>(session: Session, read: () => T): T {
  session.statement(session.queries.beginSnapshot).run()
  try {
    const value = read()
    session.statement(session.queries.endSnapshot).run()
    return value
  } catch (error) {
    try {
      session.statement(session.queries.endSnapshot).run()
    } catch {
      // SQLite has ended the transaction itself: the original error is thrown.
    }
    throw error
  }
}

/**
 * Reads the ranges one after the other, until the page is full or has read enough. Returns where the next page begins.
 */
function walkWithin(session: Session, query: FindQuery, ranges: readonly NumberRange[], take: Take): number | null {
  let scanned = 0
  for (const range of inOrder(query, ranges)) {
    if (scanned >= WINDOW_MAX) return range.cursor
    const lists = listsOf(session, query, range)
    if (lists === undefined) break
    const list = farthest(lists, query.order, WINDOW_MAX)
    if (take(list.refs)) return null
    if (list.scanned === WINDOW_MAX) return list.last
    scanned += list.scanned
  }
  return null
}

/** A part of a range to read: the numbers between these two, in the order of the page. */
interface Walk {
  readonly cursor: number
  readonly beyond: number
}

/** The ranges after the cursor. */
function inOrder({ order, cursor }: FindQuery, ranges: readonly NumberRange[]): Walk[] {
  if (order === 'oldest')
    return ranges
      .map(({ first, last }) => ({ cursor: Math.max(first - 1, cursor ?? -1), beyond: last + 1 }))
      .filter((walk) => walk.beyond - walk.cursor > 1)
  return ranges
    .map(({ first, last }) => ({ cursor: Math.min(last + 1, cursor ?? Infinity), beyond: first - 1 }))
    .filter((walk) => walk.cursor - walk.beyond > 1)
    .reverse()
}

function match(session: Session, query: FindQuery, refs: string, limit: number): JobRow[] {
  const { conditions, values } = conditionsOf(query)
  const sql = session.queries.findJobs(conditions)
  return (session.statement(sql).all(refs, ...values, limit) as StoredRow[]).map(toJobRow)
}

interface List extends Candidates {
  /** Their numbers as JSON. */
  readonly refs: string
}

/** The candidates of each filter that has an index; undefined when one of them certainly has no match. */
function listsOf(session: Session, query: FindQuery, { cursor, beyond }: Walk): List[] | undefined {
  if (query.states?.length === 0) return undefined
  const { queries } = session
  const way: Way = query.order === 'newest' ? 'desc' : 'asc'
  const lists: List[] = []
  const list = (sql: string, ...values: readonly SqliteValue[]): unknown =>
    lists.push(session.statement(sql).get(WINDOW_MAX, cursor, beyond, ...values) as List)
  if (query.group !== undefined) list(queries.listMembers(way), query.group)
  if (query.key !== undefined) list(queries.listKeyed(way), query.key)
  if (query.fingerprint !== undefined) list(queries.listFailures(way), query.fingerprint, query.fingerprint)
  if (query.parent !== undefined) list(queries.listLabelled(way), parentLabel(query.parent))
  if (query.label !== undefined) list(queries.listLabelled(way), query.label)
  if (query.states !== undefined) list(statesList(session, query.states, way))
  const lanes = lanesOf(session, query)
  if (lanes?.length === 0) return undefined
  if (lanes !== undefined && lanes.length <= LANES_MAX) list(queries.listLanes(lanes.length, way), ...lanes)
  if (lists.length === 0) list(queries.listAll(way))
  return lists
}

function statesList(session: Session, given: readonly State[], way: Way): string {
  const states = [...new Set(given)]
  if (!states.includes('ready') || countReady(session) <= READY_MAX) return session.queries.listStates(states, way)
  return states.some(isFinal) ? session.queries.listAll(way) : session.queries.listLive(way)
}

function countReady(session: Session): number {
  return (session.statement(session.queries.countReady).get() as { ready: number }).ready
}

/** The lanes that match the names and queues; undefined when the filter has neither. */
function lanesOf(session: Session, { names, queues }: FindQuery): number[] | undefined {
  if (names === undefined && queues === undefined) return undefined
  const [known, wanted] = [names && new Set(names), queues && new Set(queues)]
  const lanes: number[] = []
  for (const { lane, name, queue } of session.lanes.all())
    if (known?.has(name) !== false && wanted?.has(queue) !== false) lanes.push(lane)
  return lanes
}

/** Only the set of conditions changes the text; every value is bound. */
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
  if (query.fingerprint !== undefined) add(`${fingerprintOfError('coalesce(l.error, h.error)')} = ?`, query.fingerprint)
  if (query.parent !== undefined) add('exists (select 1 from json_each(j.after) where value = ?)', query.parent)
  if (query.key !== undefined) add('j.key = ?', query.key)
  if (query.group !== undefined) add('j.grp = ?', query.group)
  if (query.createdAfter !== undefined) add('j.created_at > ?', query.createdAfter)
  if (query.createdBefore !== undefined) add('j.created_at < ?', query.createdBefore)
  return { conditions, values }
}
