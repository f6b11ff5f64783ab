/**
 * Schedules (`millrace_schedules`), and the ledger of their ticks: each tick is one row, so that it can be written only
 * once.
 */
export const schedules = `
create table millrace_schedules (
  id text primary key,
  revision integer not null,
  spec text not null,
  created_at integer not null,
  paused_at integer,
  next_at integer,
  last_at integer,
  -- Its newest jobs that may be unfinished, as a JSON array of ids.
  open text not null default '[]',
  fired integer not null default 0,
  check (paused_at is null or next_at is null)
) strict;

-- dueSchedules: due schedules, and the next one
create index millrace_schedules_next on millrace_schedules (next_at) where next_at is not null;

-- fireTicks: at most one job for each instant of a rule. A tick that a caller requested may share its instant.
create table millrace_ticks (
  schedule text not null,
  at integer not null,
  by_hand integer not null check (by_hand in (0, 1)),
  outcome text not null,
  reason text,
  job text,
  fired_at integer not null,
  primary key (schedule, at, by_hand),
  check ((job is null) = (outcome = 'skipped'))
) strict, without rowid;
`
