import { farthest, LANES_MAX, READY_MAX } from '../../find.js'
import type { Candidates, CountedPage, FindQuery, FoundPage } from '../../find.js'
import { fingerprintOfError } from '../../rows/fingerprint.js'
import { parentLabel } from '../../rows/parent-labels.js'
import type { JobRow } from '../../store.js'
import type { ListedBy, Way } from '../queries/find.js'
import { optionsJson } from '../queries/sql-fragments.js'
import { isCut } from './read.js'
import type { BoundedRow } from './read.js'
import { toJobRow } from './read.js'
import type { Session } from '../connection/session.js'
import { arrayOf } from '../connection/session.js'
import { rangeOf } from './find-by-time.js'
import type { RefRange } from './find-by-time.js'

/** Limit of the jobs that one page reads: a sparse filter must not occupy the server. */
const WINDOW_MAX = 2_000
/** Candidates that are read first: if most match, the others need not be read. */
const SLICE_MIN = 32

/**
 * One page: the candidates of the sparsest index, in order, filtered, up to the size limit of an answer
 * (`store/find.ts`).
 */
export async function findJobs(session: Session, query: FindQuery): Promise<FoundPage> {
  const lists = await listsOf(session, query)
  if (lists === undefined) return { rows: [], cursor: null }
  const { refs, scanned, last } = farthest(lists, query.order, WINDOW_MAX)
  const rows: JobRow[] = []
  for (let from = 0; from < refs.length;) {
    const left = query.limit - rows.length
    const to = from === 0 ? Math.max(left, SLICE_MIN) : refs.length
    const found = await match(session, query, refs.slice(from, to), left)
    rows.push(...found.map(toJobRow))
    if (rows.length === query.limit || isCut(found)) return { rows, cursor: (rows.at(-1) as JobRow).ref }
    from = to
  }
  return { rows, cursor: scanned < WINDOW_MAX ? null : last }
}

/** The same page, counted. */
export async function countJobs(session: Session, query: FindQuery): Promise<CountedPage> {
  const lists = await listsOf(session, query)
  if (lists === undefined) return { count: 0, cursor: null }
  const { refs, scanned, last } = farthest(lists, query.order, WINDOW_MAX)
  if (refs.length === 0) return { count: 0, cursor: null }
  const { conditions, values } = conditionsOf(query, 3)
  const sql = session.queries.countJobs(conditions)
  const [row] = await session.query<{ count: number }>(sql, String(query.limit), arrayOf(refs), ...values)
  const { count } = row as { count: number }
  return { count, cursor: count === query.limit || scanned < WINDOW_MAX ? null : last }
}

interface List extends Candidates {
  readonly refs: readonly number[]
}

/** The candidates by each filter that has an index; undefined when a filter certainly matches none. */
async function listsOf(session: Session, query: FindQuery): Promise<List[] | undefined> {
  if (query.states?.length === 0) return undefined
  const way: Way = query.order === 'newest' ? 'desc' : 'asc'
  const { lists, values } = filtersOf(query)
  const range = await rangeOf(session, query)
  const row = await list(session, query, way, range, lists, values)
  if (row.lanes === 0) return undefined
  const usable = lists
    .map((each, i) => ({ each, list: toList(row[String(i)] as string) }))
    .filter(({ each }) => each.by !== 'lanes' || (row.lanes as number) <= LANES_MAX)
    .filter(({ each }) => each.by !== 'states' || (row.ready ?? 0) <= READY_MAX)
  if (usable.length > 0) return usable.map((each) => each.list)
  const all = await list(session, query, way, range, [{ by: 'all' }], [])
  return [toList(all['0'] as string)]
}

interface ListRow {
  readonly [index: string]: unknown
  /** The number of lanes and of ready jobs, each counted up to one above its limit. */
  readonly lanes?: number
  readonly ready?: number
}

async function list(
  session: Session,
  { cursor }: FindQuery,
  way: Way,
  range: RefRange,
  lists: readonly ListedBy[],
  values: readonly string[],
): Promise<ListRow> {
  const given = [String(WINDOW_MAX), ...boundsOf(range, cursor, way), ...values]
  const strays = range.strays.filter((ref) => cursor === null || (way === 'asc' ? ref > cursor : ref < cursor))
  const text = session.queries.listJobs(lists, way, strays.length === 0 ? undefined : `$${given.length + 1}`)
  const [row] = await session.query<ListRow>(text, ...given, ...(strays.length === 0 ? [] : [arrayOf(strays)]))
  return row as ListRow
}

function toList(json: string): List {
  const [scanned, array] = JSON.parse(json) as [number, string | null]
  const refs = array === null ? [] : (JSON.parse(`[${array.slice(1, -1)}]`) as number[])
  return { scanned, refs, last: refs.at(-1) ?? null }
}

/** The lists of this filter, with the values that are bound from $4 on. */
function filtersOf(query: FindQuery): { lists: ListedBy[]; values: string[] } {
  const lists: ListedBy[] = []
  const values: string[] = []
  const bind = (value: string): string => `$${3 + values.push(value)}`
  if (query.group !== undefined) lists.push({ by: 'grp', value: bind(query.group) })
  if (query.key !== undefined) lists.push({ by: 'key', value: bind(query.key) })
  if (query.fingerprint !== undefined) lists.push({ by: 'failure', value: bind(query.fingerprint) })
  if (query.parent !== undefined) lists.push({ by: 'label', value: bind(parentLabel(query.parent)) })
  if (query.label !== undefined) lists.push({ by: 'label', value: bind(query.label) })
  if (query.states !== undefined) lists.push({ by: 'states', states: query.states })
  if (query.names !== undefined || query.queues !== undefined)
    lists.push({
      by: 'lanes',
      names: query.names === undefined ? undefined : bind(JSON.stringify(query.names)),
      queues: query.queues === undefined ? undefined : bind(JSON.stringify(query.queues)),
    })
  if (lists.length === 0) lists.push({ by: 'all' })
  return { lists, values }
}

/** The exclusive bounds of the page, apart from strays. */
function boundsOf({ lowest, beyond }: RefRange, cursor: number | null, way: Way): [string, string] {
  const [from, to] = way === 'asc' ? [lowest - 1n, beyond] : [beyond, lowest - 1n]
  if (cursor === null) return [String(from), String(to)]
  const at = BigInt(cursor)
  return [String((way === 'asc' ? at > from : at < from) ? at : from), String(to)]
}

function match(session: Session, query: FindQuery, refs: readonly number[], limit: number): Promise<BoundedRow[]> {
  const { conditions, values } = conditionsOf(query, 3)
  const sql = session.queries.findJobs(conditions, query.order === 'newest' ? 'desc' : 'asc')
  return session.query<BoundedRow>(sql, String(limit), arrayOf(refs), ...values)
}

/** The text depends only on which conditions there are; every value is bound. */
function conditionsOf(query: FindQuery, from: number): { conditions: string[]; values: string[] } {
  const conditions: string[] = []
  const values: string[] = []
  const add = (condition: (value: string) => string, value: string): void => {
    conditions.push(condition(`$${from + values.length}`))
    values.push(value)
  }
  const among = (column: string) => (value: string) =>
    `${column} in (select value from json_array_elements_text(${value}::text::json))`
  if (query.names !== undefined) add(among('name'), JSON.stringify(query.names))
  if (query.queues !== undefined) add(among('queue'), JSON.stringify(query.queues))
  if (query.states !== undefined) add(among('state'), JSON.stringify(query.states))
  if (query.label !== undefined)
    add(
      (value) =>
        `exists (select 1 from json_array_elements_text(coalesce(${optionsJson('options')}->'labels', '[]')) as label (value) where label.value = ${value})`,
      query.label,
    )
  if (query.fingerprint !== undefined) add((value) => `${fingerprintOfError('error')} = ${value}`, query.fingerprint)
  if (query.parent !== undefined) add((value) => `strpos(after, ${value}) > 0`, query.parent)
  if (query.key !== undefined) add((value) => `key = ${value}`, query.key)
  if (query.group !== undefined) add((value) => `grp = ${value}`, query.group)
  if (query.createdAfter !== undefined)
    add((value) => `created_at > ${value}::text::bigint`, String(query.createdAfter))
  if (query.createdBefore !== undefined)
    add((value) => `created_at < ${value}::text::bigint`, String(query.createdBefore))
  return { conditions, values }
}
