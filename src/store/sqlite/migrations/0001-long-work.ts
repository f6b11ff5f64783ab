/**
 * Long work: jobs that keep a log of what they did, one row for each answer. A sequence is one; a row of its log is an
 * item. The tables have a rowid and a unique index: the log of one job is not clustered, because large results would be
 * moved with it.
 */
export const sql = `
-- The log. \`no\` is null while an operation is open: a sleep, a wait or a call, or an item or a step whose attempts have
-- failed. A sequence's address is its index, nine digits.
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
  -- JSON: the lines that were logged, why a result was not kept, the job that was called.
  note text,
  check ((no is null) = (answered_at is null))
) strict;

-- appendStep, claimJobs, readOutput: the log of a run in order, and its last row
create unique index millrace_steps_address on millrace_steps (seq, run, address);

-- What a job with a log has beside its place. \`run\` counts its resets and restarts; \`waits\` is a JSON array of what it
-- waits for: "!start" until a caller starts a sequence, "event:name" and "call:id" while a workflow is suspended.
-- \`wake_at\`: a suspended workflow that is blocked waits for this time too. \`paused_from\`: the state of a suspended workflow
-- before it was paused. \`last_fence\`: the claim that suspended it, until the next claim has read its log. \`forget_from\`: the
-- answer that a retry forgets, with what was called after it. \`next_no\`: the least number for the next answer. \`first_run\`:
-- the run that users see as 0, where the number was that of a deleted job.
create table millrace_workflows (
  seq integer primary key,
  run integer not null default 0,
  first_run integer not null default 0,
  waits text,
  wake_at integer,
  paused_from text,
  last_fence integer,
  deadline_at integer,
  forget_from integer,
  next_no integer not null default 0,
  retried_at integer
) strict;

-- promoteJobs: blocked workflows that wait for a time
create index millrace_workflows_wake on millrace_workflows (wake_at) where wake_at is not null and paused_from is null;

-- What is sent to a workflow: events, the ends of called jobs, a cancel. \`name\`: of the event, or the id of the called job.
-- A taken row with an id stays, without its payload, so that an event of that id is not written again. The job is named by
-- its id, because its number is given to another job when it is deleted, and these rows are removed later.
create table millrace_inbox (
  number integer primary key,
  job text not null,
  kind text not null check (kind in ('event', 'call', 'cancel')),
  name text,
  id text,
  payload any,
  error text,
  sent_at integer not null,
  taken integer not null default 0 check (taken in (0, 1))
) strict;

-- readLogs, readInboxes, settleJobs: what is not taken
create index millrace_inbox_open on millrace_inbox (job, number) where taken = 0;

-- sendEvent: an event of an id is written once; and to find all rows of a deleted job
create unique index millrace_inbox_id on millrace_inbox (job, id) where id is not null;

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

-- sweepRows: rows that no job needs any more: the log of an earlier run or of a deleted job, the inbox of a deleted job
-- (\`job\`), a list without a sequence. They are deleted in slices.
create table millrace_leftovers (
  number integer primary key,
  seq integer,
  run integer,
  list integer,
  job text,
  due_at integer not null
) strict;

-- sweepRows: leftovers that are due
create index millrace_leftovers_due on millrace_leftovers (due_at);

-- dropLeftover: the leftover of a list, when its sequence is inserted
create index millrace_leftovers_list on millrace_leftovers (list) where seq is null;

-- sweepRows: whether another leftover has rows of the same number
create index millrace_leftovers_seq on millrace_leftovers (seq) where seq is not null;

-- The number of a deleted job is given to a new one. A new job with a log begins at the run after that of the old log, so
-- it never reads an old row.
create trigger millrace_jobs_long_work after delete on millrace_jobs when old.shape is not null begin
  insert into millrace_leftovers (seq, run, list, job, due_at)
  values (
    old.seq,
    coalesce((select run from millrace_workflows where seq = old.seq), 0),
    (select list from millrace_lists where id = old.id),
    old.id,
    0);
  insert into millrace_workflows (seq, run, first_run) values (old.seq, 1, 1)
  on conflict (seq) do update set run = run + 1, first_run = run + 1, waits = null, wake_at = null, paused_from = null, last_fence = null,
    deadline_at = null, forget_from = null, next_no = 0, retried_at = null;
end;
`
