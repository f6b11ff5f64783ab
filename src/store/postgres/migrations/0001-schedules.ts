/** What recurs (`schedules`), and the ledger of its ticks: a tick is a row of its own, so that it can be written only once. */
export const schedules = (schema: string): readonly string[] => [
  `create table ${schema}.schedules (
    -- Compared as bytes: a page of them ends where the next begins, whatever the database's locale.
    id text collate "C" primary key,
    revision bigint not null,
    spec text not null,
    created_at bigint not null,
    paused_at bigint,
    next_at bigint,
    last_at bigint,
    -- Its newest jobs that may be unfinished, as a JSON array of ids.
    open text not null default '[]',
    fired bigint not null default 0,
    check (paused_at is null or next_at is null)
  ) with (fillfactor = 50)`,
  // dueSchedules: what has come due, and what comes next
  `create index schedules_next on ${schema}.schedules (next_at) where next_at is not null`,
  // fireTicks: at most one job for each instant of a rule. A run that a person asked for may share its instant.
  `create table ${schema}.ticks (
    schedule text collate "C" not null,
    at bigint not null,
    by_hand boolean not null,
    outcome text not null,
    reason text,
    job uuid,
    fired_at bigint not null,
    primary key (schedule, at, by_hand),
    check ((job is null) = (outcome = 'skipped'))
  )`,
]
