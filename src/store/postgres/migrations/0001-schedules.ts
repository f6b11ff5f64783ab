/**
 * Schedules, and the ledger of their ticks: each tick is a row with a primary key, so that it can be written only once.
 */
export const schedules = (schema: string): readonly string[] => [
  `create table ${schema}.schedules (
    -- Compared as bytes, so that pages do not depend on the database's locale.
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
  // dueSchedules: schedules that are due, and the next one
  `create index schedules_next on ${schema}.schedules (next_at) where next_at is not null`,
  // fireTicks: at most one job for each instant of a rule. A run requested by a person (by_hand) may share its instant.
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
