/**
 * Groups. A row in `millrace_groups` for each that was named, and in `millrace_group_counts` for each of its queues and states.
 * Both are written in the transaction that moves a member.
 */
export const sql = `
create table millrace_groups (
  grp text primary key,
  unfinished integer not null default 0,
  sealed_at integer,
  completed_at integer,
  when_done text,
  -- Since when it was seen to have no member left, for the prune.
  empty_since integer,
  check (completed_at is null or sealed_at is not null)
) strict, without rowid;

-- promoteJobs: the groups that are complete and were not told so
create index millrace_groups_open on millrace_groups (unfinished) where sealed_at is not null and completed_at is null;

create table millrace_group_counts (
  grp text not null,
  queue text not null,
  state text not null,
  members integer not null,
  primary key (grp, queue, state)
) strict, without rowid;

-- findJobs, pruneJobs: the members of a group
create index millrace_jobs_group on millrace_jobs (grp, seq) where grp is not null;
`
