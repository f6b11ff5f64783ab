import { bodyOf, hasEnded, laneOf, s } from '../sql-fragments.js'

/** The most claimed jobs that one page of workers reads: with more, the planner would take the statement for a costly one. */
const RUNNING_MAX = 2_000

/** Pages of workers, groups and sequences. */
export const listQueries = {
  listWorkers: `
    select w.worker as id, w.host, w.pid, w.started_at as "startedAt", coalesce(w.beat_at, w.started_at) as "beatAt",
           w.lease_ms as "leaseMs", w.about, j.id::text as "blockedBy"
    from (select * from ${s}.workers where worker > $1 order by worker limit $2::text::integer) w
    left join ${bodyOf('w.blocked_by')} on true
    order by w.worker`,
  listDeadWorkers: `
    select worker as id, host, pid, started_at as "startedAt", coalesce(beat_at, started_at) as "beatAt",
           lease_ms as "leaseMs", about, null as "blockedBy", died_at as "diedAt"
    from ${s}.dead_workers
    where worker > $1 and died_at >= $2::text::bigint
    order by worker
    limit $3::text::integer`,
  /** The running jobs of these workers, by name and queue. */
  runningOf: `
    with held as materialized (
      select e.worker, e.fence, e.claimed_at, e.starting, held.ref, held.position
      from (
        select * from ${s}.leases
        where worker = any(array(select value from json_array_elements_text($1::text::json)))
        order by fence) e
      cross join unnest(e.refs) with ordinality as held (ref, position)
      where not held.ref = any(e.released)
      limit ${RUNNING_MAX})
    select e.worker, n.name as job, n.queue, count(*) as count, min(coalesce(p.started_at, e.claimed_at)) as since
    from held e
    left join lateral (
      select p.started_at from ${s}.reports p where p.ref = e.ref and p.fence = e.fence limit 1) p on true
    cross join ${bodyOf('e.ref')}
    cross join ${laneOf('j.lane')}
    where not ${hasEnded('e.ref')} and (e.position <= e.starting or p.started_at is not null)
    group by e.worker, n.name, n.queue
    order by e.worker, count(*) desc, n.name, n.queue`,
  listGroups: `select grp from ${s}.groups where grp > $1 order by grp limit $2::text::integer`,
  /** The newest first. Workflows have rows of the same table, which are passed over. */
  listSequences: `
    select w.ref, j.id::text as id, j.key, j.created_at
    from (select ref from ${s}.workflows where ref < $1::text::bigint order by ref desc) w
    cross join lateral (select * from ${s}.jobs j where j.ref = w.ref and j.shape = 'sequence' limit 1) j
    order by w.ref desc
    limit $2::text::integer`,
}
