import {
  s,
  clock,
  sort,
  hasEnded,
  bodyOf,
  claimed,
  isLimited,
  isPaused,
  leaseOf,
  rare,
  laneOf,
} from './sql-fragments.js'

/**
 * The lanes of the worker's names and queues. Used while there are few lanes
 * (MANY_LANES in verbs/claim.ts).
 */
const lanesByName = {
  from: `${s}.lanes n`,
  which: `($7::text is null or n.name in (select value from json_array_elements_text($7::text::json)))
        and ($8::text is null or n.queue in (select value from json_array_elements_text($8::text::json)))
        and `,
  until: `9223372036854775807`,
}

/**
 * A list of lanes that were read before: $7 has each with its queue and name then, and $8 is the highest `sort` that
 * may be claimed. Used once there are many lanes.
 */
const lanesByList = {
  from: `json_to_recordset($7::text::json) as a (lane integer, queue text, name text)
      cross join lateral (
        select n.* from ${s}.lanes n where n.lane = a.lane and n.queue = a.queue and n.name = a.name limit 1) n`,
  which: '',
  until: `$8::text::bigint`,
}

/** Deletes the first rows of the lanes from `ready` and inserts one lease with them. */
const taking = ({
  from,
  which,
  until,
}: typeof lanesByName): string => `with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    alive as materialized (select 1 from ${s}.workers where worker = $2),
    lane as materialized (
      select n.lane, n.queue, n.name, least($5::text::integer, coalesce(room.left, $5::text::integer)) as room, ${until} as until,
             coalesce(start.sort, -9223372036854775808) as start
      from clock, alive, ${from}
      left join json_to_recordset($6::text::json) as room (queue text, "left" integer) on room.queue = n.queue
      left join json_to_recordset($9::text::json) as start (lane integer, sort bigint) on start.lane = n.lane
      where ${which}coalesce(room.left, 1) > 0
        and not ${isPaused('n.queue')} and not ${isLimited('n.queue')}
        and ($11::text is null or n.name not in (select value from json_array_elements_text($11::text::json)))),
    suspect as materialized (
      select 1 from ${s}.waiting w join lane on lane.lane = w.lane where w.state = 'ready' limit 1),
    head as (
      select each.at, each.sort, each.ref, row_number() over (partition by lane.queue order by each.sort, each.ref) as number, lane.room
      from lane
      cross join lateral (
        select r.ctid as at, r.sort, r.ref
        from ${s}.ready r
        where r.lane = lane.lane and r.sort between lane.start and lane.until and not ($10::text::boolean and exists (select 1 from suspect))
        order by r.sort, r.ref
        limit lane.room
        for update skip locked) as each),
    chosen as (select at from head where number <= room order by sort, ref limit $5::text::integer),
    taken as (delete from ${s}.ready where ctid = any(array(select at from chosen)) returning lane, sort, ref),
    lease as (
      insert into ${s}.leases (fence, worker, quarantined, claimed_at, starting, refs)
      select $3::text::bigint, $2, 0, now, $4::text::integer, array_agg(ref order by sort, ref)
      from taken, clock
      group by now)`

/** The columns of a claim beside its jobs. */
const claimFacts = `clock.now, exists (select 1 from alive) as alive,
           (select json_agg(json_build_array(lane.lane, lane.queue, lane.name, l.last))
            from (select lane, max(sort) as last from taken group by lane) l join lane on lane.lane = l.lane)::text as lanes,
           exists (select 1 from suspect) as suspects, (select count(*)::integer from lane) as known,
           (select p.until from ${s}.pauses p where p.until > (select now from clock) order by p.until limit 1) - clock.now as resumes,
           (select q.queue from ${s}.queue_limits q order by q.queue limit 1) is not null
             or (select r.lane from ${s}.ready r where r.lane < 0 order by r.lane limit 1) is not null as limited,
           (select json_agg(json_build_array(n.queue, n.name))
            from (select lane from ${s}.outages order by lane) o cross join ${laneOf('o.lane')})::text as failing`

/** `= any(array)` makes one index scan per partition; a join was 50 % slower. */
const isTaken = `j.ref = any(array(select ref from taken))`

const asJson = (lanes: typeof lanesByName): string => `
    ${taking(lanes)}
    select ${claimFacts},
           (select json_agg(${claimed} order by ${sort('j')}, j.ref) from ${s}.jobs j where ${isTaken})::text as jobs
    from clock`

/**
 * The same with one row per job, used once payloads are large: to encode a large payload as JSON and decode it takes
 * longer than all the rest.
 */
const asRows = (lanes: typeof lanesByName): string => `
    ${taking(lanes)}
    select ${claimFacts}, j.ref, j.id, j.lane, j.due_at, j.payload, (${rare})::text as rare
    from clock
    left join ${s}.jobs j on ${isTaken}
    order by ${sort('j')}, j.ref`

/** Claims and their leases. */
export const claimQueries = {
  claimJobs: asJson(lanesByName),
  claimJobsByRow: asRows(lanesByName),
  claimFromLanes: asJson(lanesByList),
  claimFromLanesByRow: asRows(lanesByList),
  /** Inserts an empty lease for each fence, so that a late claim with this fence conflicts. */
  voidClaims: `
    insert into ${s}.leases (fence, worker, quarantined, claimed_at, starting, refs)
    select fence, $1, 0, coalesce($3::text::bigint, ${clock}), 0, '{}'
    from unnest($2::text::bigint[]) as fence
    on conflict (fence) do nothing`,
  /** The suspects that a claim may choose from. Run only when a claim reported that there are some. */
  waitingSuspects: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    suspect as materialized (
      select ref, lane from ${s}.waiting where state = 'ready' order by lane limit $3::text::integer)
    select w.ref, n.lane, n.queue, n.name, j.streak
    from clock, suspect w
    cross join ${bodyOf('w.ref')}
    cross join lateral (select * from ${s}.lanes n where n.lane = w.lane limit 1) n
    where not ${isPaused('n.queue')} and not ${isLimited('n.queue')} and exists (select 1 from ${s}.workers where worker = $2)
    order by j.streak, ${sort('j')}, j.ref`,
  /** Claims those of the chosen suspects that are still waiting into one quarantine. */
  claimSuspects: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    head as (
      select w.ref
      from clock, json_to_recordset($4::text::json) as a (ref bigint, lane integer, queue text, name text)
      cross join lateral (
        select * from ${s}.lanes n where n.lane = a.lane and n.queue = a.queue and n.name = a.name limit 1) n
      cross join lateral (
        select w.ref from ${s}.waiting w where w.ref = a.ref and w.state = 'ready' limit 1 for update skip locked) w
      where not ${isPaused('n.queue')} and not ${isLimited('n.queue')}),
    taken as (delete from ${s}.waiting where ref = any(array(select ref from head)) returning ref),
    lease as (
      insert into ${s}.leases (fence, worker, quarantined, claimed_at, starting, refs)
      select $3::text::bigint, $2, count(*), now, count(*), array_agg(ref) from taken, clock group by now)
    select (select json_agg(${claimed} order by ${sort('j')}, j.ref) from taken t cross join ${bodyOf('t.ref')})::text as jobs,
           (select json_agg(json_build_array(n.lane, n.queue, n.name, 0))
            from taken t cross join ${bodyOf('t.ref')} cross join ${laneOf('j.lane')})::text as lanes`,
  endQuarantine: `update ${s}.leases set quarantined = 0 where fence = $1::text::bigint and worker = $2`,
  confirmJobs: `
    with clock as materialized (select coalesce($2::text::bigint, ${clock}) as now)
    select (select json_agg(json_build_array(e.fence, e.released)) from ${s}.leases e where e.fence = any($1::text::bigint[]))::text as leases,
           (select json_agg(p.queue)
            from (
              select queue from ${s}.pauses where until is null
              union all
              select queue from ${s}.pauses where until > (select now from clock)) p)::text as paused`,
  reportJobs: `
    with reported as (
      insert into ${s}.reports (ref, fence, started_at, progress)
      select a.ref, a.fence, a.started_at, a.progress
      from json_to_recordset($1::text::json) as a (ref bigint, fence bigint, started_at bigint, progress text)
      cross join ${leaseOf('a.fence')}
      where a.ref = any(e.refs) and not a.ref = any(e.released) and not ${hasEnded('a.ref')}
      on conflict (ref) do update
      set fence = excluded.fence, started_at = excluded.started_at, progress = coalesce(excluded.progress, reports.progress)
      returning ref)
    select ref from reported`,
  dropReports: `delete from ${s}.reports where ref = any($1::text::bigint[])`,
}
