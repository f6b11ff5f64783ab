/** The statements about groups. Only `groups.ts` runs them. */
export const groupQueries = {
  /** Named as on PostgreSQL, where it locks the rows in share mode; here the transaction has the only write lock. */
  shareGroups: `
    select grp, sealed_at, completed_at, empty_since
    from millrace_groups
    where grp in (select value from json_each(?))
    order by grp`,
  addGroups: `
    insert into millrace_groups (grp)
    select value
    from json_each(?)
    where true
    on conflict (grp) do nothing`,
  /** Clears `empty_since`: the groups have members again. */
  keepGroups: `
    update millrace_groups
    set empty_since = null
    where grp in (select value from json_each(?)) and empty_since is not null`,
  isMember: `
    select 1
    from millrace_jobs
    where seq = ? and grp = ?`,
  sealGroup: `
    update millrace_groups
    set sealed_at = ?, when_done = ?
    where grp = ? and sealed_at is null
    returning 1 as sealed`,
  countMembers: `
    insert into millrace_group_counts (grp, queue, state, members)
    values (?, ?, ?, ?)
    on conflict (grp, queue, state) do update set members = members + excluded.members`,
  countUnfinished: `
    update millrace_groups
    set unfinished = unfinished + ?
    where grp = ?`,
  /** Running members are counted in the leases, so the work is bounded by what workers hold. */
  readGroup: `
    select sealed_at as sealed, completed_at as completed, 0 as moves,
           (select json_group_array(json_object('queue', queue, 'state', state, 'members', members))
            from millrace_group_counts c
            where c.grp = g.grp and members <> 0) as counts,
           (select json_group_array(json_object('queue', queue, 'members', members))
            from (
              select n.queue as queue, count(*) as members
              from millrace_leases e, json_each(e.jobs) held
              cross join millrace_live l on l.seq = held.value
              cross join millrace_jobs j on j.seq = l.seq
              cross join millrace_lanes n on n.lane = j.lane
              where l.fence = e.fence and l.state = 'running' and j.grp = g.grp
              group by n.queue)) as running
    from millrace_groups g
    where grp = ?`,

  anyGroup: `
    select 1
    from millrace_groups
    limit 1`,
  /** The jobs that promoteJobs would promote, with the columns that the group counts need. */
  dueMembers: `
    select l.seq as seq, l.state as state, j.grp as grp, n.queue as queue
    from millrace_live l
    cross join millrace_jobs j on j.seq = l.seq
    cross join millrace_lanes n on n.lane = j.lane
    where l.state in ('scheduled', 'retrying') and l.held is null and l.due_at <= ?
    order by l.due_at
    limit ?`,
  promoteThese: `
    update millrace_live
    set state = 'ready'
    where seq in (select value from json_each(?))`,
  /** Sealed, with no unfinished member: nearly always none. */
  completeGroups: `
    select grp as grp, when_done as when_done
    from millrace_groups
    where sealed_at is not null and completed_at is null and unfinished = 0
    limit ?`,
  completeGroup: `
    update millrace_groups
    set completed_at = ?, when_done = null
    where grp = ? and completed_at is null`,

  nextGroups: `
    select g.grp as grp, g.empty_since as empty_since,
           exists (select 1 from millrace_jobs j where j.grp = g.grp) as lives
    from millrace_groups g
    where g.grp > ?
    order by g.grp
    limit ?`,
  markEmpty: `
    update millrace_groups
    set empty_since = ?
    where grp = ?`,
  forgetGroup: `
    delete from millrace_groups
    where grp = ? and (sealed_at is null or completed_at is not null)`,
  forgetCounts: `
    delete from millrace_group_counts
    where grp = ? and grp not in (select grp from millrace_groups)`,
}
