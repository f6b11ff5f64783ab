import type { State } from '../../../job/rules/states.js'
import { LANES_MAX, READY_MAX } from '../../find.js'
import { fingerprintOfError } from '../../rows/fingerprint.js'
import { bounded } from './read.js'
import { jobRow, s } from './sql-fragments.js'

/** The order of a page. */
export type Way = 'asc' | 'desc'

/** After the cursor, and within the refs that can match. Both bounds are exclusive. */
const bounds = (way: Way): string =>
  way === 'asc'
    ? 'ref > $2::text::bigint and ref < $3::text::bigint'
    : 'ref < $2::text::bigint and ref > $3::text::bigint'

/**
 * The first $1 entries of an index after the cursor, in order. Row comparison and the order by both columns leave the
 * planner only that index: with `state = … order by ref` it could scan the primary key, and does so while the tables
 * are empty. The other bound is compared outside: up to PostgreSQL 17 a row comparison ends a scan only by its first
 * column, so a scan for a few refs would continue to the end of the state.
 */
const listed = (table: string, column: string, value: string, which: string) => (way: Way) => {
  const [from, to, end] = way === 'asc' ? ['>', '<', '9223372036854775807'] : ['<', '>', '-1']
  return `
        select ref
        from (
          select t.ref
          from ${s}.${table} t
          where ${which}(${column}, t.ref) ${from} (${value}, $2::text::bigint)
            and (${column}, t.ref) ${to} (${value}, ${end}::bigint)
          order by ${column} ${way}, t.ref ${way}
          limit $1::text::integer) as t
        where t.ref ${to} $3::text::bigint`
}

/** The first $1 rows of a partitioned table after the cursor. */
const walked = (table: string) => (way: Way) =>
  `
        select ref
        from ${s}.${table}
        where ${bounds(way)}
        order by ref ${way}
        limit $1::text::integer`

/** All refs of all leases. Some have ended or were released; that is checked when the job is read. */
const leased = (way: Way): string => `
        select ref
        from (select e.refs from ${s}.leases e order by e.fence) as e
        cross join unnest(e.refs) as held (ref)
        where ${bounds(way)}`

const waiting = (state: State) => listed('waiting', 't.state', `'${state}'`, '')
const notDone = (state: State) => listed('history', 't.state', `'${state}'`, `t.state <> 'done' and `)

/** Where the candidates of a state are read. */
const ofState: Record<State, readonly ((way: Way) => string)[]> = {
  // In one snapshot with `readyCount`: a truncated list is not used.
  ready: [
    (way) => `
        select ref
        from (select ref from ${s}.ready order by lane, sort, ref limit ${READY_MAX + 1}) as r
        where ${bounds(way)}`,
    waiting('ready'),
    leased,
  ],
  running: [leased],
  scheduled: [waiting('scheduled')],
  retrying: [waiting('retrying')],
  blocked: [waiting('blocked')],
  paused: [waiting('paused')],
  parked: [waiting('parked')],
  // Most of history is done, so it is scanned by primary key.
  done: [walked('history')],
  failed: [notDone('failed')],
  cancelled: [notDone('cancelled')],
}

/** The first $1 of all these, as one array; a job that two of them list is listed once. */
const firstOf = (parts: readonly string[], way: Way): string => `(
      select json_build_array(count(*), array_agg(ref order by ref ${way})::text)
      from (
        select distinct ref
        from (${parts.map((part) => `(${part})`).join('\n        union all ')}) as listed
        order by ref ${way}
        limit $1::text::integer) as list)::text`

/** An array of refs outside the bounds that are candidates too. */
const stray = (refs: string): string => `select ref from unnest(${refs}::text::bigint[]) as stray (ref)`

const readyCount = `(select count(*)::integer from (select 1 from ${s}.ready order by lane, sort, ref limit ${READY_MAX + 1}) as r)`

/** What a list is by: a column, with the placeholder of its value. */
export type ListedBy =
  | { readonly by: 'all' }
  | { readonly by: 'grp' | 'key' | 'label' | 'failure'; readonly value: string }
  | { readonly by: 'states'; readonly states: readonly State[] }
  /** JSON arrays of names and of queues. */
  | { readonly by: 'lanes'; readonly names: string | undefined; readonly queues: string | undefined }

function listOf(list: ListedBy, way: Way, strays: string | undefined): string {
  const first = (parts: readonly string[]): string =>
    firstOf(strays === undefined ? parts : [...parts, stray(strays)], way)
  switch (list.by) {
    case 'all':
      return first([walked('jobs')(way)])
    case 'grp':
    case 'key':
      return first([listed('jobs', `t.${list.by}`, list.value, `t.${list.by} is not null and `)(way)])
    case 'failure':
      return first(
        ['jobs', 'history'].map((table) =>
          listed(table, fingerprintOfError('t.error'), list.value, 't.error is not null and ')(way),
        ),
      )
    case 'label':
      return first([listed('labels', 't.label', list.value, '')(way)])
    case 'states':
      return first([...new Set(list.states.flatMap((state) => ofState[state]))].map((part) => part(way)))
    case 'lanes':
      return first([
        `select each.ref from lane cross join lateral (${listed('jobs', 't.lane', 'lane.lane', '')(way)}) as each`,
      ])
    default:
      return list satisfies never
  }
}

const among = (column: string, json: string | undefined): string =>
  json === undefined
    ? ''
    : `and n.${column} = any(array(select value from json_array_elements_text(${json}::text::json)))`

export const findQueries = {
  /**
   * Candidates for findJobs, one column per list: JSON of their number, and an array of refs. $1 is the limit, $2 the
   * cursor, $3 the other bound; `strays` is the placeholder of refs that are added to each list.
   */
  listJobs: (lists: readonly ListedBy[], way: Way, strays?: string): string => {
    const lanes = lists.find((list) => list.by === 'lanes')
    const lane =
      lanes === undefined
        ? ''
        : `
    with lane as materialized (
      select n.lane from ${s}.lanes n
      where true ${among('name', lanes.names)} ${among('queue', lanes.queues)}
      order by n.lane
      limit ${LANES_MAX + 1})`
    const columns = lists.map((list, i) => `${listOf(list, way, strays)} as "${i}"`)
    if (lanes !== undefined) columns.push(`(select count(*)::integer from lane) as lanes`)
    if (lists.some((list) => list.by === 'states' && list.states.includes('ready')))
      columns.push(`${readyCount} as ready`)
    return `${lane}
    select ${columns.join(',\n      ')}`
  },
  /** Those of the candidates that match. */
  findJobs: (conditions: readonly string[], way: Way): string =>
    bounded(
      `select found.*
    from unnest($2::text::bigint[]) as each (ref)
    cross join lateral (${jobRow} where j.ref = each.ref limit 1) as found
    ${conditions.length === 0 ? '' : `where ${conditions.join('\n        and ')}`}
    order by found.ref ${way}
    limit $1::text::integer`,
      way,
    ),
  countJobs: (conditions: readonly string[]): string => `
    select count(*)::integer as count
    from (
      select 1
      from unnest($2::text::bigint[]) as each (ref)
      cross join lateral (${jobRow} where j.ref = each.ref limit 1) as found
      ${conditions.length === 0 ? '' : `where ${conditions.join('\n        and ')}`}
      limit $1::text::integer) as matching`,
}
