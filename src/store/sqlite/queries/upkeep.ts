/** Jobs that become due or expire. */
export const upkeepQueries = {
  promoteJobs: `
    update millrace_live
    set state = 'ready'
    where seq in (
      select seq
      from millrace_live
      where state in ('scheduled', 'retrying') and held is null and due_at <= ?
      order by due_at
      limit ?)`,
  nextDue: `
    select min(due) as due
    from (
      select min(due_at) as due
      from millrace_live
      where state in ('scheduled', 'retrying') and held is null
      union all
      select min(o.probe_at)
      from millrace_outages o
      where o.state = 'closed' and exists (select 1 from millrace_live l where l.held = o.lane))`,
  expiredJobs: `
    select j.id, n.name, n.queue, l.state
    from millrace_live l
    join millrace_jobs j on j.seq = l.seq
    join millrace_lanes n on n.lane = j.lane
    where l.expires_at <= ? and l.fence is null and l.state <> 'parked'
    limit ?`,
  nextExpiry: `
    select min(expires_at) as due
    from millrace_live
    where expires_at is not null and fence is null and state <> 'parked'`,
}
