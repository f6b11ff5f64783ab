import type { State } from '../../../job/rules/states.js'
import { fingerprintOfError } from '../../rows/fingerprint.js'
import { READY_MAX } from '../../find.js'
import { jobRow } from './sql-fragments.js'

/** The direction of a page. */
export type Way = 'asc' | 'desc'

const behind = (way: Way, column = 'seq'): string => {
  const [from, to] = way === 'asc' ? ['>', '<'] : ['<', '>']
  return `${column} ${from} (select cursor from given) and ${column} ${to} (select beyond from given)`
}

/**
 * The first rows of an index after the cursor, in order. `indexed by` makes the statement fail if the index does not
 * fit: no table is scanned.
 */
const listed = (table: string, index: string, which: string) => (way: Way) =>
  `
      select seq from (
        select seq
        from ${table}${index === '' ? '' : ` indexed by ${index}`}
        where ${which === '' ? '' : `${which} and `}${behind(way)}
        order by seq ${way}
        limit (select most from given))`

const isReady = `state = 'ready' and fence is null and streak < 2`

/** All jobs that leases list. Some have ended or were released; the read of the job shows that. */
const leased = (way: Way): string => `
      select e.value as seq
      from millrace_leases, json_each(millrace_leases.jobs) e
      where ${behind(way, 'e.value')}`

const waiting = (state: State) =>
  listed('millrace_live', 'millrace_live_waiting', `state = '${state}' and state <> 'ready' and state <> 'running'`)
const notDone = (state: State) =>
  listed('millrace_history', 'millrace_history_not_done', `state = '${state}' and state <> 'done'`)

/** The candidates of each state. */
const ofState: Record<State, (way: Way) => string> = {
  ready: (way) => `
      select seq from millrace_live indexed by millrace_live_ready
      where ${isReady} and ${behind(way)}
      union all
      select seq from millrace_live indexed by millrace_live_suspect
      where state = 'ready' and fence is null and streak >= 2 and ${behind(way)}
      union all ${leased(way)}`,
  running: leased,
  scheduled: waiting('scheduled'),
  retrying: waiting('retrying'),
  blocked: waiting('blocked'),
  paused: waiting('paused'),
  parked: waiting('parked'),
  // Most of the history: it is scanned in order.
  done: listed('millrace_history', '', ''),
  failed: notDone('failed'),
  cancelled: notDone('cancelled'),
}

/** The first `most` of all these after the cursor, as one JSON array, without duplicates. */
const first = (parts: readonly string[], way: Way): string => `
    with given (most, cursor, beyond) as (values (?, ?, ?))
    select json_group_array(seq) as refs, count(*) as scanned, ${way === 'asc' ? 'max' : 'min'}(seq) as last
    from (
      select ${parts.length > 1 || parts[0]?.includes('millrace_leases') ? 'distinct ' : ''}seq
      from (${parts.join('\n      union all')})
      order by seq ${way}
      limit (select most from given))`

export const findQueries = {
  /**
   * Candidates for findJobs, by index. The parameters are the number of candidates, the two numbers between which they
   * are, and the values.
   */
  listAll: (way: Way): string => first([listed('millrace_jobs', '', '')(way)], way),
  listLive: (way: Way): string => first([listed('millrace_live', '', '')(way)], way),
  listMembers: (way: Way): string => first([listed('millrace_jobs', 'millrace_jobs_group', 'grp = ?')(way)], way),
  listKeyed: (way: Way): string => first([listed('millrace_jobs', 'millrace_jobs_key', 'key = ?')(way)], way),
  listFailures: (way: Way): string =>
    first(
      ['live', 'history'].map((table) =>
        listed(
          `millrace_${table}`,
          `millrace_${table}_failure`,
          `${fingerprintOfError('error')} = ? and error is not null`,
        )(way),
      ),
      way,
    ),
  listLabelled: (way: Way): string =>
    first([listed('millrace_labels', 'millrace_labels_label', 'label = ?')(way)], way),
  listLanes: (lanes: number, way: Way): string =>
    first(
      Array.from({ length: lanes }, () => listed('millrace_jobs', 'millrace_jobs_lane', 'lane = ?')(way)),
      way,
    ),
  listStates: (states: readonly State[], way: Way): string =>
    first(
      states.map((state) => ofState[state](way)),
      way,
    ),
  /** Whether more jobs are ready than are worth sorting. */
  countReady: `
    select count(*) as ready
    from (select 1 from millrace_live indexed by millrace_live_ready where ${isReady} limit ${READY_MAX + 1})`,
  /** The matching jobs among the candidates, in their order. It stops at the limit: nothing is sorted. */
  findJobs: (conditions: readonly string[]): string => `
    ${jobRow('json_each(?) each\n    cross join millrace_jobs j on j.seq = each.value\n    cross join')}
    ${conditions.length === 0 ? '' : `where ${conditions.join('\n      and ')}`}
    limit ?`,
  countJobs: (conditions: readonly string[]): string => `
    select count(*) as count
    from (
      select 1
      from json_each(?) each
      cross join millrace_jobs j on j.seq = each.value
      cross join millrace_lanes n on n.lane = j.lane
      left join millrace_live l on l.seq = j.seq
      left join millrace_history h on h.seq = j.seq
      ${conditions.length === 0 ? '' : `where ${conditions.join('\n        and ')}`}
      limit ?)`,
}
