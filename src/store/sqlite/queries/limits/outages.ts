/** Outages: lanes whose attempts fail, and their held retries. */
export const outageQueries = {
  addOutage: `
    insert into millrace_outages (lane, state, failures)
    select lane, 'counting', 0 from millrace_lanes where queue = ? and name = ?
    on conflict (lane) do nothing`,
  lockOutage: `
    select o.lane, o.state, o.failures, o.since, o.probe_at
    from millrace_lanes n
    cross join millrace_outages o on o.lane = n.lane
    where n.queue = ? and n.name = ?`,
  putOutage: `
    insert into millrace_outages (lane, state, failures, since, probe_at)
    values (?, ?, ?, ?, ?)
    on conflict (lane) do update
    set state = excluded.state, failures = excluded.failures, since = excluded.since, probe_at = excluded.probe_at`,
  dropOutage: `
    delete from millrace_outages
    where lane = ?`,
  closedOutages: `
    select lane, state, failures, since, probe_at
    from millrace_outages
    where state = 'closed'
    order by lane`,
  holdRetries: `
    update millrace_live
    set held = (select j.lane from millrace_jobs j where j.seq = millrace_live.seq)
    where seq in (
      select l.seq
      from millrace_live l indexed by millrace_live_due
      cross join millrace_jobs j on j.seq = l.seq
      where l.state in ('scheduled', 'retrying') and l.held is null and l.due_at <= ? and l.state = 'retrying'
        and j.lane in (select lane from millrace_outages where state = 'closed')
      order by l.due_at
      limit ?)`,
  heldRange: `
    select min(seq) as first, max(seq) as last
    from millrace_live
    where held = ?`,
  takeProbe: `
    update millrace_outages
    set probe_at = ?3
    where lane = ?1 and probe_at <= ?2
    returning 1 as taken`,
  releaseProbe: `
    update millrace_live
    set held = null
    where seq = (select seq from millrace_live where held = ? and seq >= ? order by seq limit 1)`,
  releaseHeld: `
    update millrace_live
    set held = null
    where seq in (select seq from millrace_live where held = ? order by seq limit ?)
    returning 1 as released`,
  someHeld: `
    select 1 as held
    from millrace_live
    where held = ?
    limit 1`,
  readOutages: `
    select n.name, o.state, o.since, (select count(*) from millrace_live l where l.held = o.lane) as waiting
    from millrace_outages o
    join millrace_lanes n on n.lane = o.lane
    where n.queue = ? and o.state <> 'counting'
    order by n.name`,
}
