import { DAY_MS } from '../queries/numbers.js'
import { optionsJson } from '../queries/sql-fragments.js'

/**
 * A job is written once (`jobs`: what was given at enqueue, and what its failures left) and stands in exactly one place: in
 * `ready` (a line for each lane), in `waiting` (for a time, or aside), in the list of one lease (a worker has it), or in
 * `history` (it ended). To claim is to take narrow rows out of the line and to write one lease; to end is to append to
 * history. A job that succeeds is never updated.
 *
 * `ref` is the day of the enqueue and a number, in one: `jobs` and `history` have a partition for each day, and a day is
 * dropped whole.
 * A job stands in the line at `due_at - priority * step`; `due_at` is kept true in `jobs`, so the place can be worked out.
 * Times are milliseconds since 1970.
 */
export const jobs = (schema: string): readonly string[] => [
  `create sequence ${schema}.job_number`,
  // By which a transaction on another database is told from one on this.
  `create table ${schema}.identity (token text primary key)`,
  `insert into ${schema}.identity values (gen_random_uuid()::text)`,
  `create table ${schema}.lanes (
    lane integer generated always as identity primary key,
    queue text not null,
    name text not null,
    unique (queue, name)
  )`,
  // findJobs: the lanes of a name
  `create index lanes_name on ${schema}.lanes (name)`,
  `create table ${schema}.jobs (
    ref bigint primary key,
    id uuid not null,
    created_at bigint not null,
    due_at bigint not null,
    expires_at bigint,
    lane integer not null,
    priority integer not null,
    -- Null, as they are for nearly every job, takes no space; it means 0.
    attempt integer,
    retries integer,
    crashes integer,
    -- Crashes in a row that it was in flight at: from 2 on it is a suspect, out of the line.
    streak integer,
    key text,
    payload text,
    bytes bytea,
    options text,
    error text,
    reason text,
    log text,
    -- Ids of the jobs it came after, as JSON; null for nearly all.
    after text,
    -- It has children: its end must leave a to-do. Null is false.
    is_parent boolean,
    grp text,
    check ((payload is null) <> (bytes is null))
  ) partition by range (ref)`,
  // Days are made ahead (days.ts). What no day is there for, and what outlives its day, is here.
  `create table ${schema}.jobs_rest partition of ${schema}.jobs default`,
  // readJobs
  `create index jobs_id on ${schema}.jobs (id)`,
  // readKeyed: the newest job of a key, finished or not
  `create index jobs_key on ${schema}.jobs (key, ref) where key is not null`,
  // findJobs: the jobs of a queue or a name
  `create index jobs_lane on ${schema}.jobs (lane, ref)`,
  // The labels of jobs that have any. Statements that insert jobs write them; the triggers do the rest.
  `create table ${schema}.labels (
    ref bigint not null,
    label text not null,
    primary key (ref, label)
  ) partition by range (ref)`,
  `create table ${schema}.labels_rest partition of ${schema}.labels default`,
  // findJobs: the jobs of a label
  `create index labels_label on ${schema}.labels (label, ref)`,
  `create function ${schema}.replace_labels() returns trigger
    language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
    as '
begin
  delete from ${schema.replaceAll("'", "''")}.labels where ref = old.ref;
  if tg_op = ''UPDATE'' then
    insert into ${schema.replaceAll("'", "''")}.labels (ref, label)
    select distinct new.ref, value from json_array_elements_text(${optionsJson('new.options').replaceAll("'", "''")}->''labels'') as label (value);
  end if;
  return null;
end'`,
  `create trigger jobs_labels_deleted after delete on ${schema}.jobs
    for each row when (old.options like '%"labels"%') execute function ${schema}.replace_labels()`,
  `create trigger jobs_labels_changed after update of options on ${schema}.jobs
    for each row when (old.options is distinct from new.options) execute function ${schema}.replace_labels()`,
  // claimJobs: what may be taken, in order, by lane
  `create table ${schema}.ready (
    lane integer not null,
    sort bigint not null,
    ref bigint not null,
    primary key (lane, sort, ref)
  ) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000)`,
  // Everything else that is unfinished and that no worker has. Suspects are ready and stand here, out of the line.
  `create table ${schema}.waiting (
    ref bigint primary key,
    lane integer not null,
    state text not null check (state in ('ready', 'scheduled', 'retrying', 'blocked', 'paused', 'parked')),
    due_at bigint not null,
    -- As in jobs, for promoteJobs to count.
    grp text
  )`,
  // promoteJobs: what waits for a time
  `create index waiting_due on ${schema}.waiting (due_at) where state in ('scheduled', 'retrying')`,
  // findJobs: by state
  `create index waiting_state on ${schema}.waiting (state, ref)`,
  // claimJobs: suspects, nearly always none
  `create index waiting_suspect on ${schema}.waiting (lane) where state = 'ready'`,
  // promoteJobs: what must begin by a time. A row outlives its job and is swept then.
  `create table ${schema}.expiring (
    expires_at bigint not null,
    ref bigint not null,
    primary key (expires_at, ref)
  )`,
  `create table ${schema}.history (
    ref bigint primary key,
    settled_at bigint not null,
    started_at bigint,
    keep_until bigint,
    state text not null check (state in ('done', 'failed', 'cancelled')),
    -- Null: the first try, and no crash.
    attempt integer,
    retries integer,
    crashes integer,
    worker text,
    result text,
    result_bytes bytea,
    error text,
    reason text,
    log text
  ) partition by range (ref)`,
  `create table ${schema}.history_rest partition of ${schema}.history default`,
  // findJobs: ends that did not go well
  `create index history_unwell on ${schema}.history (state, ref) where state <> 'done'`,
  // pruneJobs: what is kept for less than a day. Longer ones go with their day, and their ends pay for no index.
  `create index history_keep on ${schema}.history (keep_until) where keep_until - settled_at < ${DAY_MS}`,
  // pruneJobs: here nothing goes with its day
  `create index history_rest_keep on ${schema}.history_rest (keep_until) where keep_until is not null`,
  // dropDay: jobs that were made live again when their day was nearly over with
  `create table ${schema}.revived (ref bigint primary key)`,
  // insertJobs: at most one unfinished job per (job, key), and one more that is blocked until that one ends. The holder is the row
  // of the highest turn. Each row goes when its own job ends, so neither job waits for a transaction that has the other's row.
  `create table ${schema}.keys (
    name text not null,
    key text not null,
    turn integer not null default 0,
    ref bigint not null,
    primary key (name, key, turn)
  )`,
  // insertJobs: the newest job of a (job, unique value), and until when its window runs. Nothing is written here when a job ends:
  // a row counts while its window runs or its job is unfinished.
  `create table ${schema}.uniques (
    name text not null,
    key text not null,
    ref bigint not null,
    id uuid not null,
    until bigint,
    primary key (name, key)
  )`,
  // \`identity\`: the machine and the start time of the process, opaque; null where they cannot be read.
  `create table ${schema}.workers (
    worker text primary key,
    beat bigint not null default 0,
    host text not null,
    pid integer not null,
    identity text,
    lease_ms bigint,
    started_at bigint not null,
    blocked_by bigint
  ) with (fillfactor = 50)`,
  // One row a claim. The first \`starting\` of its jobs ran from the claim on, the rest is held until it is reported.
  // \`quarantined\`: how many suspects it took into quarantine; 0 for all other claims, and when the quarantine is over.
  // \`gone\`: those that went back or were taken away; those that ended are in history. \`asked\`: something is
  // wished of one of them.
  `create table ${schema}.leases (
    fence bigint primary key,
    worker text not null,
    quarantined integer not null,
    claimed_at bigint not null,
    starting integer not null,
    refs bigint[] not null,
    gone bigint[] not null default '{}',
    asked boolean not null default false
  )`,
  // Not compressed: that took as long as the rest of the lease, for a row that lives a moment.
  `alter table ${schema}.leases alter column refs set storage external`,
  // readLeases: a worker's leases
  `create index leases_worker on ${schema}.leases (worker)`,
  // reportJobs: held jobs that have begun, and how far jobs have come
  `create table ${schema}.reports (
    ref bigint primary key,
    fence bigint not null,
    started_at bigint not null,
    progress text
  )`,
  // What is wanted of a job that runs. A row lives as long as that claim: whatever settles the job honours and removes it.
  `create table ${schema}.requests (
    ref bigint primary key,
    kind text not null check (kind in ('cancel', 'pause')),
    reason text not null,
    keep_ms bigint,
    asked_at bigint not null
  )`,
  // settleReceipt: a call that wrote has a row here from the same transaction (receipts.ts). \`is_void\`: it must not be written
  // any more. The call deletes its row once its reply came; what is left is swept after an hour.
  `create table ${schema}.receipts (
    id uuid primary key,
    at bigint not null default (extract(epoch from clock_timestamp()) * 1000)::bigint,
    is_void boolean not null default false,
    answer text
  ) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000)`,
  // One row for each queue that is paused; \`until\` is null until a person resumes it.
  `create table ${schema}.pauses (
    queue text primary key,
    until bigint,
    paused_at bigint not null
  )`,
  // claimJobs, confirmJobs: which pauses are over, and when the next one is
  `create index pauses_until on ${schema}.pauses (until)`,
]
