/**
 * Long work: jobs that keep a log of what they did, one row for each answer. A sequence is one; a row of its log is an
 * item. The tables have a rowid and a unique index: the log of one job is not clustered, because large results would be
 * moved with it.
 */
export const sql = `
-- The log. \`no\` is null while an operation is open: an item whose attempts have failed. A sequence's address is its
-- index, nine digits.
create table millrace_steps (
  number integer primary key,
  seq integer not null,
  run integer not null,
  address text not null,
  kind text not null,
  no integer,
  since integer not null default 0,
  attempt integer not null default 0,
  called_at integer not null,
  answered_at integer,
  until integer,
  value any,
  error text,
  -- JSON: the lines that were logged, and why a result was not kept.
  note text,
  check ((no is null) = (answered_at is null))
) strict;

-- appendStep, claimJobs, readOutput: the log of a run in order, and its last row
create unique index millrace_steps_address on millrace_steps (seq, run, address);

-- What a job with a log has beside its place. \`run\` counts its resets; \`waits\` is a JSON array of what it waits for:
-- "!start" until a caller starts it.
create table millrace_workflows (
  seq integer primary key,
  run integer not null default 0,
  waits text
) strict;

-- The items of a sequence. A list is written before the job of its sequence exists, so it has that job's id.
create table millrace_lists (
  list integer primary key,
  id text not null unique,
  total integer not null,
  made_at integer not null
) strict;

create table millrace_items (
  number integer primary key,
  list integer not null,
  idx integer not null,
  payload any not null
) strict;

-- claimJobs, appendStep: the next items; and to find those of a list that is removed
create unique index millrace_items_idx on millrace_items (list, idx);

-- sweepRows: rows that no job needs any more: the log of a run before a reset or of a deleted job, a list without a
-- sequence. They are deleted in slices.
create table millrace_leftovers (
  number integer primary key,
  seq integer,
  run integer,
  list integer,
  due_at integer not null
) strict;

-- sweepRows: leftovers that are due
create index millrace_leftovers_due on millrace_leftovers (due_at);

-- dropLeftover: the leftover of a list, when its sequence is inserted
create index millrace_leftovers_list on millrace_leftovers (list) where seq is null;

-- The number of a deleted job is given to a new one. A new sequence begins at the run after that of the old log, so it
-- never reads an old row.
create trigger millrace_jobs_long_work after delete on millrace_jobs when old.shape is not null begin
  insert into millrace_leftovers (seq, run, list, due_at)
  values (
    old.seq,
    coalesce((select run from millrace_workflows where seq = old.seq), 0),
    (select list from millrace_lists where id = old.id),
    0);
end;
`
