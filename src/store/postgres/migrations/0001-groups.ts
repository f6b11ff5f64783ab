/**
 * Groups. A change of a member's state appends rows to `group_moves`: an update of a count would serialise all
 * transactions that settle members of one group. The process that promotes jobs adds the rows up into `group_counts`;
 * the counts of a group are the sum of both tables.
 */
export const groups = (schema: string): readonly string[] => [
  `create table ${schema}.groups (
    grp text primary key,
    sealed_at bigint,
    completed_at bigint,
    when_done text,
    -- Since when the group was seen without members; read by the prune.
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
  // readGroup: rows that are not added up yet
  `create index group_moves_group on ${schema}.group_moves (grp)`,
  // findJobs, pruneJobs: the members of a group
  `create index jobs_group on ${schema}.jobs (grp, ref) where grp is not null`,
]
