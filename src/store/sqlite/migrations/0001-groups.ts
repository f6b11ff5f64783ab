/**
 * Groups. `millrace_groups` has a row for each named group, and `millrace_group_counts` one for each of its queues and
 * states. The transaction that moves a member writes both.
 */
export const sql = `
create table millrace_groups (
  grp text primary key,
  unfinished integer not null default 0,
  sealed_at integer,
  completed_at integer,
  when_done text,
  -- When the group was first seen without members, for the prune.
  empty_since integer,
  check (completed_at is null or sealed_at is not null)
) strict, without rowid;

-- promoteJobs: complete groups whose whenDone job is not enqueued yet
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
