/** The statements about groups. They are run by `groups.ts` alone. */
export const groupQueries = {
  readGroup: `
    select sealed_at, completed_at, empty_since
    from millrace_groups
    where grp = ?`,
  addGroup: `
    insert into millrace_groups (grp)
    values (?)
    on conflict (grp) do nothing`,
  /** It has members again. */
  keepGroup: `
    update millrace_groups
    set empty_since = null
    where grp = ? and empty_since is not null`,
  isMember: `
    select 1
    from millrace_jobs
    where seq = ? and grp = ?`,
  sealGroup: `
    update millrace_groups
    set sealed_at = ?, when_done = ?
    where grp = ? and sealed_at is null`,
  countMembers: `
    insert into millrace_group_counts (grp, queue, state, members)
    values (?, ?, ?, ?)
    on conflict (grp, queue, state) do update set members = members + excluded.members`,
  countUnfinished: `
    update millrace_groups
    set unfinished = unfinished + ?
    where grp = ?`,
  readCounts: `
    select queue as queue, state as state, members as members
    from millrace_group_counts
    where grp = ? and members <> 0`,
  /** Asked of what workers have in hand, and so bounded by that. */
  runningMembers: `
    select n.queue as queue, count(*) as members
    from millrace_leases e, json_each(e.jobs) held
    cross join millrace_live l on l.seq = held.value
    cross join millrace_jobs j on j.seq = l.seq
    cross join millrace_lanes n on n.lane = j.lane
    where l.fence = e.fence and l.state = 'running' and j.grp = ?
    group by n.queue`,

  anyGroup: `
    select 1
    from millrace_groups
    limit 1`,
  /** What promoteJobs would promote, where members may be among them: with what is to be counted. */
  dueMembers: `
    select l.seq as seq, l.state as state, j.grp as grp, n.queue as queue
    from millrace_live l
    cross join millrace_jobs j on j.seq = l.seq
    cross join millrace_lanes n on n.lane = j.lane
    where l.state in ('scheduled', 'retrying') and l.due_at <= ?
    order by l.due_at
    limit ?`,
  promoteThese: `
    update millrace_live
    set state = 'ready'
    where seq in (select value from json_each(?))`,
  /** Sealed, and nobody is unfinished: nearly always none. */
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
