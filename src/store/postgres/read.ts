import type { FindQuery, FoundPage } from '../find.js'
import type { JobRow } from '../store.js'
import type { Standing, StoredRow } from './rows.js'
import { toJobRow, toStanding } from './rows.js'
import type { Session } from './session.js'
import { arrayOf } from './session.js'

/** How many jobs one page looks at, at the most: a sparse filter must not hold the server. */
const SCAN_MAX = 5_000
const BEYOND = '9223372036854775807'

export async function readJobs(s: Session, ids: readonly string[]): Promise<(JobRow | undefined)[]> {
  const byId = new Map<string, JobRow>()
  for (let asked = ids; asked.length > 0; asked = asked.filter((id) => !byId.has(id))) {
    const rows = await s.query<BoundedRow>(s.queries.readJobs, JSON.stringify(asked))
    for (const row of rows) byId.set(row.id, toJobRow(row))
    if (!isCut(rows)) break
  }
  return ids.map((id) => byId.get(id))
}

/** A row of an answer that holds only so many bytes. */
interface BoundedRow extends StoredRow {
  /** How many there would have been. */
  readonly matched: unknown
}

function isCut(rows: readonly BoundedRow[]): boolean {
  return rows.length < Number(rows[0]?.matched ?? 0)
}

export async function readKeyed(s: Session, name: string, key: string): Promise<JobRow | undefined> {
  const [row] = await s.query<StoredRow>(s.queries.readKeyed, key, name)
  return row === undefined ? undefined : toJobRow(row)
}

/** Jobs with where they stand, for those who are about to move them. */
export async function readStanding(s: Session, refs: readonly number[]): Promise<Map<number, Standing>> {
  if (refs.length === 0) return new Map()
  const rows = await s.query<StoredRow>(s.queries.readRefs, arrayOf(refs))
  return new Map(rows.map((row) => [Number(row.ref), toStanding(row)]))
}

export async function readById(s: Session, id: string): Promise<Standing | undefined> {
  const [row] = await s.query<StoredRow>(s.queries.readJobs, JSON.stringify([id]))
  return row === undefined ? undefined : toStanding(row)
}

/** As many of them as one answer holds. */
export async function readManyById(s: Session, ids: readonly string[]): Promise<Map<string, Standing>> {
  const rows = await s.query<StoredRow>(s.queries.readJobs, JSON.stringify(ids))
  return new Map(rows.map((row) => [row.id, toStanding(row)]))
}

/** One page: a window of at most SCAN_MAX jobs, in order, filtered, as far as one answer holds them. */
export async function findJobs(s: Session, query: FindQuery): Promise<FoundPage> {
  const newest = query.order === 'newest'
  const order = newest ? 'desc' : 'asc'
  const start = query.cursor === null ? (newest ? BEYOND : '-1') : String(query.cursor)
  const [window] =
    query.group === undefined
      ? await s.query<Window>(s.queries.refWindow(order), start, String(SCAN_MAX))
      : await s.query<Window>(s.queries.groupWindow(order), start, String(SCAN_MAX), query.group)
  const looked = Number(window?.looked ?? 0)
  if (window === undefined || looked === 0) return { rows: [], cursor: null }
  const [first, last] = [String(window.first), String(window.last)]
  const { conditions, values } = conditionsOf(query, 4)
  const sql = s.queries.findJobs(['ref between $2::text::bigint and $3::text::bigint', ...conditions], order)
  const found = await s.query<BoundedRow>(sql, String(query.limit), first, last, ...values)
  const full = found.length === query.limit || isCut(found)
  const lastSeen = full ? Number(found.at(-1)?.ref) : Number(newest ? first : last)
  return { rows: found.map(toJobRow), cursor: !full && looked < SCAN_MAX ? null : lastSeen }
}

interface Window {
  readonly first: unknown
  readonly last: unknown
  readonly looked: unknown
}

/** Only which conditions there are changes the text; every value is bound. */
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
        `exists (select 1 from json_array_elements_text(coalesce(options::json->'labels', '[]')) as label (value) where label.value = ${value})`,
      query.label,
    )
  if (query.key !== undefined) add((value) => `key = ${value}`, query.key)
  if (query.group !== undefined) add((value) => `grp = ${value}`, query.group)
  if (query.createdAfter !== undefined)
    add((value) => `created_at > ${value}::text::bigint`, String(query.createdAfter))
  if (query.createdBefore !== undefined)
    add((value) => `created_at < ${value}::text::bigint`, String(query.createdBefore))
  return { conditions, values }
}
