import { clock, isLane, isLimited, isPaused, s } from './sql-fragments.js'

/** Lanes, and which of them have ready jobs. */
export const laneQueries = {
  readLanes: `
    select n.lane, n.queue, n.name
    from json_to_recordset($1::text::json) as a (queue text, name text)
    cross join lateral (select * from ${s}.lanes n where n.queue = a.queue and n.name = a.name limit 1) n`,
  /** In a fixed order, so that there is no deadlock. */
  addLanes: `
    insert into ${s}.lanes (queue, name)
    select queue, name
    from json_to_recordset($1::text::json) as a (queue text, name text)
    order by queue, name
    on conflict (queue, name) do nothing`,
  checkLane: `select 1 as there where ${isLane('$1::text::integer', '$2', '$3', '$4::text::boolean')}`,
  /**
   * The next lanes with jobs, after lane $1, each with the `sort` of its first job; and the lanes of suspects. Each
   * lane costs one index lookup, however many jobs it has.
   */
  filledLanes: `
    with recursive clock as materialized (select coalesce($3::text::bigint, ${clock}) as now),
    filled as (
      (select r.lane, r.sort from ${s}.ready r where r.lane > $1::text::integer order by r.lane, r.sort, r.ref limit 1)
      union all
      select next.lane, next.sort
      from filled f
      cross join lateral (
        select r.lane, r.sort from ${s}.ready r where r.lane > f.lane order by r.lane, r.sort, r.ref limit 1) next)
    select n.lane, n.queue, n.name, each.sort, (${isPaused('n.queue')} or ${isLimited('n.queue')}) as paused
    from clock, (
      (select lane, sort from filled limit $2::text::integer)
      union all
      (select distinct w.lane, null::bigint from ${s}.waiting w where w.state = 'ready' and $1 = '0')) as each
    cross join lateral (select * from ${s}.lanes n where n.lane = each.lane limit 1) n`,
}
