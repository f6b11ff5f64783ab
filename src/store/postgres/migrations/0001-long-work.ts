/**
 * Long work: jobs that keep a log of what they did, one row for each answer. A sequence is one; a row of its log is an
 * item. These tables have no partitions: such a job outlives the day it was enqueued on.
 */
export const longWork = (schema: string): readonly string[] => [
  // The log. `no` is null while an operation is open: a sleep, a wait or a call, or an item or a step whose attempts have
  // failed. A sequence's address is its index, nine digits.
  `create table ${schema}.steps (
    number bigint generated always as identity primary key,
    ref bigint not null,
    run integer not null,
    address text collate "C" not null,
    kind text not null,
    no integer,
    since integer not null default 0,
    attempt integer not null default 0,
    called_at bigint not null,
    answered_at bigint,
    until bigint,
    value text,
    bytes bytea,
    error text,
    -- JSON: the lines that were logged, why a result was not kept, the job that was called.
    note text,
    check ((no is null) = (answered_at is null))
  )`,
  // appendStep, claimJobs, readOutput: the log of a run in order, and its last row
  `create unique index steps_address on ${schema}.steps (ref, run, address)`,
  // What a job with a log has beside its place. `run` counts its resets and restarts; `waits` is a JSON array of what it
  // waits for: "!start" until a caller starts a sequence, "event:name" and "call:id" while a workflow is suspended.
  // `wake_at`: a suspended workflow that is blocked waits for this time too. `paused_from`: the state of a suspended workflow
  // before it was paused. `last_fence`: the claim that suspended it, until the next claim has read its log. `forget_from`: the
  // answer that a retry forgets, with what was called after it. `next_no`: the least number for the next answer.
  `create table ${schema}.workflows (
    ref bigint primary key,
    run integer not null default 0,
    waits text,
    wake_at bigint,
    paused_from text,
    last_fence bigint,
    deadline_at bigint,
    forget_from integer,
    next_no integer not null default 0,
    retried_at bigint
  ) with (fillfactor = 50)`,
  // promoteJobs: blocked workflows that wait for a time
  `create index workflows_wake on ${schema}.workflows (wake_at) where wake_at is not null and paused_from is null`,
  // What is sent to a workflow: events, the ends of called jobs, a cancel. `name`: of the event, or the id of the called job.
  // A taken row with an id stays, without its payload, so that an event of that id is not written again.
  `create table ${schema}.inbox (
    number bigint generated always as identity primary key,
    ref bigint not null,
    kind text not null check (kind in ('event', 'call', 'cancel')),
    name text,
    id text,
    payload text,
    bytes bytea,
    error text,
    sent_at bigint not null,
    taken boolean not null default false
  )`,
  // readLogs, readInboxes, settleJobs: what is not taken
  `create index inbox_open on ${schema}.inbox (ref, number) where not taken`,
  // sendEvent: an event of an id is written once; and to find all rows of a deleted job
  `create unique index inbox_id on ${schema}.inbox (ref, id) where id is not null`,
  // The items of a sequence. A list is written before the job of its sequence exists, so it has that job's id.
  `create table ${schema}.lists (
    list bigint generated always as identity primary key,
    id uuid not null unique,
    total integer not null,
    made_at bigint not null
  )`,
  `create table ${schema}.items (
    number bigint generated always as identity primary key,
    list bigint not null,
    idx integer not null,
    payload text,
    bytes bytea,
    check ((payload is null) <> (bytes is null))
  )`,
  // claimJobs, appendStep: the next items; and to find those of a list that is removed
  `create unique index items_idx on ${schema}.items (list, idx)`,
  // sweepRows: rows that no job needs any more: the log of an earlier run or of a deleted job, the inbox of a deleted job, a
  // list without a sequence. They are deleted in slices.
  `create table ${schema}.leftovers (
    number bigint generated always as identity primary key,
    ref bigint,
    run integer,
    list bigint,
    is_deleted boolean not null default false,
    due_at bigint not null
  )`,
  // sweepRows: leftovers that are due
  `create index leftovers_due on ${schema}.leftovers (due_at)`,
  // dropLeftover: the leftover of a list, when its sequence is inserted
  `create index leftovers_list on ${schema}.leftovers (list) where ref is null`,
  // dropDay: the jobs of a day that have a log
  `create index jobs_shape on ${schema}.jobs (ref) where shape is not null`,
  `create function ${schema}.leave_long_work() returns trigger
    language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
    as '
begin
  insert into ${schema.replaceAll("'", "''")}.leftovers (ref, run, list, is_deleted, due_at)
  values (
    old.ref,
    coalesce((select run from ${schema.replaceAll("'", "''")}.workflows where ref = old.ref), 0),
    (select list from ${schema.replaceAll("'", "''")}.lists where id = old.id),
    true,
    0);
  return null;
end'`,
  `create trigger jobs_long_work_deleted after delete on ${schema}.jobs
    for each row when (old.shape is not null) execute function ${schema}.leave_long_work()`,
]
