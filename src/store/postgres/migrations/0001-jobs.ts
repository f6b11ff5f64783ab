import { DAY_MS } from '../numbers.js'
import { fingerprintOfError } from '../../rows/fingerprint.js'
import { optionsJson } from '../queries/sql-fragments.js'

/**
 * A job has one row in `jobs`, with what the caller gave at enqueue and what its failed attempts left. While it exists,
 * a row for it is in exactly one of: `ready` (queue order of each lane), `waiting` (not due, blocked, paused, parked,
 * or a suspect), the `refs` of one lease (a worker has claimed it), `history` (it ended). A claim deletes rows of
 * `ready` and inserts one lease; a settlement inserts into `history`. A job that succeeds at its first attempt is never
 * updated.
 *
 * `ref` combines the day of the enqueue and a number: `jobs` and `history` have one partition per day, and a whole day
 * is dropped at once.
 * The order in `ready` is `due_at - priority * step`. `due_at` in `jobs` is always current, so the row of `ready` can
 * be found from it.
 * Times are milliseconds since 1970.
 */
export const jobs = (schema: string): readonly string[] => [
  `create sequence ${schema}.job_number`,
  // Tells this database from another, so that a caller's transaction on the wrong database is refused.
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
    -- Null means 0 and takes no space, as for nearly every job.
    attempt integer,
    retries integer,
    crashes integer,
    -- Consecutive crashes while the job was in flight: from 2 on it is a suspect and not in the table ready.
    streak integer,
    key text,
    payload text,
    bytes bytea,
    options text,
    error text,
    reason text,
    log text,
    -- Ids of the jobs it comes after, as JSON; null for nearly all.
    after text,
    -- The job has children: its end must insert a to-do. Null is false.
    is_parent boolean,
    grp text,
    -- A job that keeps a log; null for a plain one.
    shape text check (shape in ('workflow', 'sequence')),
    -- The number of its limit key; null for a job without one. While it is ready, its lane in the table ready is that of
    -- its turn (job/limits/turns.ts).
    turn bigint,
    -- The number of its rate key where that differs from the limit key, and what a start uses of its rate; null: 1.
    rate_turn bigint,
    weight integer,
    check ((payload is null) <> (bytes is null))
  ) partition by range (ref)`,
  // Partitions of days are created ahead (days.ts). Default partition: rows without a partition for their day, and rows
  // kept longer than it.
  `create table ${schema}.jobs_rest partition of ${schema}.jobs default`,
  // readJobs
  `create index jobs_id on ${schema}.jobs (id)`,
  // readKeyed: the newest job of a key, finished or not
  `create index jobs_key on ${schema}.jobs (key, ref) where key is not null`,
  // findJobs: the jobs of a queue or a name
  `create index jobs_lane on ${schema}.jobs (lane, ref)`,
  // The labels of jobs that have any; and the ids of their parents, each behind a control character, which no label has.
  // Statements that insert jobs insert them; triggers keep them current on update and delete.
  `create table ${schema}.labels (
    ref bigint not null,
    label text not null,
    primary key (ref, label)
  ) partition by range (ref)`,
  `create table ${schema}.labels_rest partition of ${schema}.labels default`,
  // findJobs: the jobs of a label, the children of a job
  `create index labels_label on ${schema}.labels (label, ref)`,
  `create function ${schema}.replace_labels() returns trigger
    language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
    as '
begin
  delete from ${schema.replaceAll("'", "''")}.labels where ref = old.ref and (tg_op = ''DELETE'' or left(label, 1) <> chr(1));
  if tg_op = ''UPDATE'' then
    insert into ${schema.replaceAll("'", "''")}.labels (ref, label)
    select distinct new.ref, value from json_array_elements_text(${optionsJson('new.options').replaceAll("'", "''")}->''labels'') as label (value);
  end if;
  return null;
end'`,
  `create trigger jobs_labels_deleted after delete on ${schema}.jobs
    for each row when (old.options like '%"labels"%' or old.after is not null) execute function ${schema}.replace_labels()`,
  `create trigger jobs_labels_changed after update of options on ${schema}.jobs
    for each row when (old.options is distinct from new.options) execute function ${schema}.replace_labels()`,
  // claimJobs: the jobs that may be claimed, in order, by lane
  `create table ${schema}.ready (
    lane bigint not null,
    sort bigint not null,
    ref bigint not null,
    primary key (lane, sort, ref)
  ) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000)`,
  // All other unfinished jobs that no worker has claimed. A suspect has state ready and is here instead of in `ready`.
  `create table ${schema}.waiting (
    ref bigint primary key,
    lane integer not null,
    state text not null check (state in ('ready', 'scheduled', 'retrying', 'blocked', 'paused', 'parked')),
    due_at bigint not null,
    -- As in jobs, so that promoteJobs can count.
    grp text,
    -- A retry that is due and waits for the end of an outage: true while it is held, false once it is the probe.
    held boolean check (held is null or state = 'retrying')
  )`,
  // promoteJobs: jobs that wait for a time
  `create index waiting_due on ${schema}.waiting (due_at) where state in ('scheduled', 'retrying') and held is not true`,
  // promoteJobs: the retries that an outage holds
  `create index waiting_held on ${schema}.waiting (lane, ref) where held`,
  // findJobs: by state
  `create index waiting_state on ${schema}.waiting (state, ref)`,
  // claimJobs: suspects, nearly always none
  `create index waiting_suspect on ${schema}.waiting (lane) where state = 'ready'`,
  // promoteJobs: jobs that must begin by a time. A row stays after its job has ended, and is swept once its time has
  // passed.
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
    -- Null: the first attempt, and no crash.
    attempt integer,
    retries integer,
    crashes integer,
    worker text,
    result text,
    result_bytes bytea,
    error text,
    reason text,
    log text,
    -- Only of a failed job: its lane.
    lane integer
  ) partition by range (ref)`,
  `create table ${schema}.history_rest partition of ${schema}.history default`,
  // findJobs: failed and cancelled jobs
  `create index history_not_done on ${schema}.history (state, ref) where state <> 'done'`,
  // countQueues: failed jobs by lane
  `create index history_failed on ${schema}.history (lane) where state = 'failed'`,
  // findJobs: the jobs of an error group, by the fingerprint in their error (job/statistics/failure.ts)
  ...['jobs', 'history'].map(
    (table) =>
      `create index ${table}_failure on ${schema}.${table} (${fingerprintOfError('error')}, ref) where error is not null`,
  ),
  // pruneJobs: jobs kept for less than a day. Others are dropped with their day, so settling
  // them does not write to this index.
  `create index history_keep on ${schema}.history (keep_until) where keep_until - settled_at < ${DAY_MS}`,
  // pruneJobs: rows of the default partition are never dropped with a day
  `create index history_rest_keep on ${schema}.history_rest (keep_until) where keep_until is not null`,
  // dropDay: jobs that became unfinished again shortly before their day is dropped
  `create table ${schema}.revived (ref bigint primary key)`,
  // insertJobs: at most one unfinished job per (job, key), and one more that is blocked until that one ends. The holder
  // has the row with the highest turn. Each row is deleted when its own job ends, so neither job waits for a
  // transaction that locks the other's row.
  `create table ${schema}.keys (
    name text not null,
    key text not null,
    turn integer not null default 0,
    ref bigint not null,
    primary key (name, key, turn)
  )`,
  // insertJobs: the unique slots. The newest job of a (job, unique value), and when its window ends. A settlement does
  // not write here: a row counts while its window lasts or its job is unfinished.
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
    beat_at bigint,
    blocked_by bigint,
    -- JSON: what the worker says about itself.
    about text
  ) with (fillfactor = 50)`,
  // listWorkers: workers that were declared dead, for ten minutes
  `create table ${schema}.dead_workers (
    worker text primary key,
    host text not null,
    pid integer not null,
    lease_ms bigint,
    started_at bigint not null,
    beat_at bigint,
    about text,
    died_at bigint not null
  )`,
  // endWorker: rows whose time is over
  `create index dead_workers_died on ${schema}.dead_workers (died_at)`,
  // One row per claim. The first \`starting\` of its jobs have run since the claim; the rest are held until reported.
  // \`quarantined\`: how many suspects the claim took into quarantine; 0 for other claims, and after the quarantine.
  // \`released\`: jobs that the worker released or that were taken away; jobs that ended are in history.
  // \`has_request\`: one of its jobs has a row in \`requests\`, or has got a child since the claim, so that the
  // settlement must not skip the locks.
  `create table ${schema}.leases (
    fence bigint primary key,
    worker text not null,
    quarantined integer not null,
    claimed_at bigint not null,
    starting integer not null,
    refs bigint[] not null,
    released bigint[] not null default '{}',
    has_request boolean not null default false
  )`,
  // Not compressed: compression took as long as the rest of the insert, for a row that lives a moment.
  `alter table ${schema}.leases alter column refs set storage external`,
  // readLeases: a worker's leases
  `create index leases_worker on ${schema}.leases (worker)`,
  // reportJobs: held jobs that have begun, and the progress of jobs
  `create table ${schema}.reports (
    ref bigint primary key,
    fence bigint not null,
    started_at bigint not null,
    progress text
  )`,
  // Requested changes of running jobs. The transaction that ends the claim applies and deletes the row.
  `create table ${schema}.requests (
    ref bigint primary key,
    kind text not null check (kind in ('cancel', 'pause')),
    reason text not null,
    keep_ms bigint,
    requested_at bigint not null
  )`,
  // voidReceipt, readReceipt: a call that writes inserts its receipt in the same transaction (receipts.ts).
  // \`is_void\`: the call
  // must no longer be written. The call deletes its row once its reply came; the sweep deletes the others after an
  // hour.
  `create table ${schema}.receipts (
    id uuid primary key,
    at bigint not null default (extract(epoch from clock_timestamp()) * 1000)::bigint,
    is_void boolean not null default false,
    answer text
  ) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000)`,
  // One row per paused queue; \`until\` null means until it is resumed.
  `create table ${schema}.pauses (
    queue text primary key,
    until bigint,
    paused_at bigint not null
  )`,
  // claimJobs, confirmJobs: which pauses have ended, and when the next one ends
  `create index pauses_until on ${schema}.pauses (until)`,
]
