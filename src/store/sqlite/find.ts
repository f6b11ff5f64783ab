import { isFinal } from '../../job/states.js'
import type { State } from '../../job/states.js'
import { farthest, LANES_MAX, READY_MAX } from '../find.js'
import type { Candidates, FindQuery, FoundPage } from '../find.js'
import type { SqliteValue } from './driver.js'
import type { Way } from './queries/find.js'
import { toJobRow } from './read.js'
import type { StoredRow } from './read.js'
import type { Session } from './session.js'

/** How many jobs one page looks at, at the most: a sparse filter must not hold the event loop. */
const WINDOW_MAX = 5_000

/** One page: the candidates of the sparsest index, in order, filtered (`store/find.ts`). */
export function findJobs(session: Session, query: FindQuery): FoundPage {
  const lists = listsOf(session, query)
  if (lists === undefined) return { rows: [], cursor: null }
  const { refs, looked, last } = farthest(lists, query.order, WINDOW_MAX)
  const { conditions, values } = conditionsOf(query)
  const sql = session.queries.findJobs(conditions)
  const found = session.statement(sql).all(refs, ...values, query.limit) as StoredRow[]
  const rows = found.map(toJobRow)
  if (found.length === query.limit) return { rows, cursor: (found.at(-1) as StoredRow).seq }
  return { rows, cursor: looked < WINDOW_MAX ? null : last }
}

interface List extends Candidates {
  /** JSON of their numbers. */
  readonly refs: string
}

/** The candidates by each filter that has an index; undefined when one of them has none for certain. */
function listsOf(session: Session, query: FindQuery): List[] | undefined {
  const { queries } = session
  const way: Way = query.order === 'newest' ? 'desc' : 'asc'
  const cursor = query.cursor ?? (way === 'desc' ? Number.MAX_SAFE_INTEGER : -1)
  const lists: List[] = []
  const list = (sql: string, ...values: readonly SqliteValue[]): unknown =>
    lists.push(session.statement(sql).get(WINDOW_MAX, cursor, ...values) as List)
  if (query.group !== undefined) list(queries.listMembers(way), query.group)
  if (query.key !== undefined) list(queries.listKeyed(way), query.key)
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

/** The lanes that names and queues leave; undefined when neither is asked for. */
function lanesOf(session: Session, { names, queues }: FindQuery): number[] | undefined {
  if (names === undefined && queues === undefined) return undefined
  const [known, wanted] = [names && new Set(names), queues && new Set(queues)]
  const lanes: number[] = []
  for (const { lane, name, queue } of session.lanes.all())
    if (known?.has(name) !== false && wanted?.has(queue) !== false) lanes.push(lane)
  return lanes
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
  if (query.group !== undefined) add('j.grp = ?', query.group)
  if (query.createdAfter !== undefined) add('j.created_at > ?', query.createdAfter)
  if (query.createdBefore !== undefined) add('j.created_at < ?', query.createdBefore)
  return { conditions, values }
}
