/**
 * Groups. A move of a member is a row appended to `group_moves`: to update a count would make all who end members of one group
 * stand in one line. The process that promotes jobs adds the moves up into `group_counts`; the counts of a group are the sum of both.
 */
export const groups = (schema: string): readonly string[] => [
  `create table ${schema}.groups (
    grp text primary key,
    sealed_at bigint,
    completed_at bigint,
    when_done text,
    -- Since when it was seen to have no member left, for the prune.
    empty_since bigint,
    check (completed_at is null or sealed_at is not null)
  )`,
  `create table ${schema}.group_counts (
    grp text not null,
    queue text not null,
    state text not null,
    members bigint not null,
    primary key (grp, queue, state)
  ) with (fillfactor = 50)`,
  `create table ${schema}.group_moves (
    grp text not null,
    queue text not null,
    state text not null,
    members integer not null
  ) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000)`,
  // readGroup: what was not added up yet
  `create index group_moves_group on ${schema}.group_moves (grp)`,
  // findJobs, pruneJobs: the members of a group
  `create index jobs_group on ${schema}.jobs (grp, ref) where grp is not null`,
]
