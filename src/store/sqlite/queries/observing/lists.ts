/** Pages of workers, groups and sequences. */
export const listQueries = {
  listWorkers: `
    select w.worker as id, w.host, w.pid, w.started_at as "startedAt", coalesce(w.beat_at, w.started_at) as "beatAt",
           w.lease_ms as "leaseMs", w.about,
           (select id from millrace_jobs where seq = w.blocked_by) as "blockedBy"
    from millrace_workers w
    where w.worker > ?
    order by w.worker
    limit ?`,
  listDeadWorkers: `
    select worker as id, host, pid, started_at as "startedAt", coalesce(beat_at, started_at) as "beatAt",
           lease_ms as "leaseMs", about, null as "blockedBy", died_at as "diedAt"
    from millrace_dead_workers
    where worker > ? and died_at >= ?
    order by worker
    limit ?`,
  /** The running jobs of these workers, by name and queue. */
  runningOf: `
    select e.worker, n.name as job, n.queue, count(*) as count, min(coalesce(l.started_at, e.claimed_at)) as since
    from json_each(?) given
    cross join millrace_leases e on e.worker = given.value
    cross join json_each(e.jobs) held
    cross join millrace_live l on l.seq = held.value and l.fence = e.fence and l.state = 'running'
    -- Not the lane of the live row, which may be that of a turn.
    cross join millrace_jobs j on j.seq = l.seq
    cross join millrace_lanes n on n.lane = j.lane
    group by e.worker, n.name, n.queue
    order by e.worker, count(*) desc, n.name, n.queue`,
  listGroups: `
    select grp from millrace_groups
    where grp > ?
    order by grp
    limit ?`,
  /** The newest first. Workflows have rows of the same table, which are passed over. */
  listSequences: `
    select w.seq as ref, j.id, j.key, j.created_at
    from millrace_workflows w
    cross join millrace_jobs j on j.seq = w.seq
    where w.seq < ? and j.shape = 'sequence'
    order by w.seq desc
    limit ?`,
}
