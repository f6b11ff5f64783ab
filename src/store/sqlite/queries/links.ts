/** The statements of links between jobs; part of `queries`. */
export const linkQueries = {
  parentsById: `
    select j.id, n.name, j.key, coalesce(l.state, h.state) as state
    from json_each(?) e
    cross join millrace_jobs j on j.id = e.value
    join millrace_lanes n on n.lane = j.lane
    left join millrace_live l on l.seq = j.seq
    left join millrace_history h on h.seq = j.seq`,
  /** The links of many jobs at once: parent, child, policy, and how long to keep. */
  addLinks: `
    insert into millrace_links (parent, child, on_failure, keep_ms)
    select e.value ->> 0, j.seq, e.value ->> 2, e.value ->> 3
    from json_each(?) e
    cross join millrace_jobs j on j.id = e.value ->> 1
    where true
    on conflict (parent, child) do update set on_failure = excluded.on_failure, keep_ms = excluded.keep_ms`,
  putAfter: `
    update millrace_jobs
    set after = e.parents
    from (select value ->> 0 as job, value ->> 1 as parents from json_each(?)) e
    where id = e.job`,
  labelParents: `
    insert or ignore into millrace_labels (seq, label)
    select j.seq, char(1) || parent.value
    from json_each(?) e
    cross join millrace_jobs j on j.id = e.value ->> 0
    cross join json_each(e.value ->> 1) parent`,
  /** Only waiting jobs: a paused job stays paused, and becomes blocked when it is resumed. */
  blockJobs: `
    update millrace_live
    set state = 'blocked'
    where seq in (select j.seq from json_each(?) e cross join millrace_jobs j on j.id = e.value) and fence is null and state <> 'paused'`,
  /** Group members among the jobs that are about to be blocked. */
  blockedMembers: `
    select j.grp as grp, n.queue, l.state
    from json_each(?) e
    cross join millrace_jobs j on j.id = e.value
    join millrace_lanes n on n.lane = j.lane
    join millrace_live l on l.seq = j.seq
    where j.grp is not null and l.fence is null and l.state not in ('paused', 'blocked')`,
  anyLink: `
    select 1
    from millrace_links
    limit 1`,
  hasLinks: `
    select 1
    from millrace_links
    where child = ?
    limit 1`,
  dropLinks: `
    delete from millrace_links
    where child = ?`,
  /** Writes to-dos for ended jobs that have children. */
  noteEnds: `
    insert into millrace_link_todos (parent, what)
    select e.value ->> 0, e.value ->> 1
    from json_each(?) e
    where exists (select 1 from millrace_links where parent = e.value ->> 0)`,
  /** Writes to-dos for jobs that are about to be deleted. */
  noteGone: `
    insert into millrace_link_todos (parent, what)
    select j.id, case when h.state = 'done' then 'done' else 'gone' end
    from json_each(?) e
    cross join millrace_jobs j on j.seq = e.value
    left join millrace_history h on h.seq = j.seq
    where exists (select 1 from millrace_links where parent = j.id)`,
  anyTodo: `
    select 1
    from millrace_link_todos
    limit 1`,
  nextTodos: `
    select number, parent, what, ended_at, result, error
    from millrace_link_todos
    order by number
    limit ?`,
  dropTodo: `
    delete from millrace_link_todos
    where number = ?`,
  movedLinks: `
    select k.child, k.on_failure, k.keep_ms, j.id, n.name, n.queue, l.state
    from millrace_links k
    join millrace_jobs j on j.seq = k.child
    join millrace_lanes n on n.lane = j.lane
    left join millrace_live l on l.seq = k.child
    where k.parent = ? and k.on_failure in (select value from json_each(?))
    limit ?`,
  resolveLinks: `
    delete from millrace_links
    where parent = ? and child in (select value from json_each(?))`,
  /** Jobs without an open link wait for their due time, which has usually passed. */
  freeJobs: `
    update millrace_live
    set state = case when error is null then 'scheduled' else 'retrying' end
    where seq in (select value from json_each(?)) and state = 'blocked'
      and not exists (select 1 from millrace_links where child = seq)`,
  /** Group members among the jobs that are about to be unblocked. */
  freedMembers: `
    select j.grp as grp, n.queue, case when l.error is null then 'scheduled' else 'retrying' end as state
    from json_each(?) e
    cross join millrace_jobs j on j.seq = e.value
    join millrace_lanes n on n.lane = j.lane
    join millrace_live l on l.seq = j.seq
    where j.grp is not null and l.state = 'blocked' and not exists (select 1 from millrace_links where child = l.seq)`,
  /** Every open link above these jobs. */
  linksAbove: `
    with recursive up (child, parent) as (
      select j.id, k.parent
      from json_each(?) e
      cross join millrace_jobs j on j.id = e.value
      join millrace_links k on k.child = j.seq
      union
      select j.id, k.parent
      from up
      join millrace_jobs j on j.id = up.parent
      join millrace_links k on k.child = j.seq)
    select child, parent from up`,
}
