/** Lanes, and which of them have ready jobs. */
export const laneQueries = {
  newLanes: `
    select lane as lane, queue as queue, name as name
    from millrace_lanes
    where lane > ?`,
  addLane: `
    insert into millrace_lanes (queue, name)
    values (?, ?)
    on conflict (queue, name) do nothing`,
  /** Whether any job is ready, for any worker. */
  anyReady: `
    select 1 from millrace_live indexed by millrace_live_ready
    where state = 'ready' and fence is null and streak < 2
    union all
    select 1 from millrace_live indexed by millrace_live_suspect
    where state = 'ready' and fence is null and streak >= 2
    limit 1`,
  /** The next lanes that have ready jobs, each found by one index lookup, however many jobs it has. */
  filledLanes: `
    with recursive filled (lane) as (
      select min(lane)
      from millrace_live indexed by millrace_live_ready
      where lane >= ? and state = 'ready' and fence is null and streak < 2
      union all
      select (
        select min(l.lane)
        from millrace_live l indexed by millrace_live_ready
        where l.lane > filled.lane and l.state = 'ready' and l.fence is null and l.streak < 2)
      from filled
      where filled.lane is not null
      limit ?)
    select lane from filled where lane is not null`,
}
