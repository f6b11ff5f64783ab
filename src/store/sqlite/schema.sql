CREATE INDEX millrace_audit_keep on millrace_audit (keep_until) where keep_until is not null;

CREATE INDEX millrace_failures_fingerprint on millrace_failures (fingerprint, at);

CREATE INDEX millrace_groups_open on millrace_groups (unfinished) where sealed_at is not null and completed_at is null;

CREATE INDEX millrace_history_failed on millrace_history (lane) where state = 'failed';

CREATE INDEX millrace_history_failure on millrace_history (substr(error, 17, 16), seq) where error is not null;

CREATE INDEX millrace_history_keep on millrace_history (keep_until) where keep_until is not null;

CREATE INDEX millrace_history_not_done on millrace_history (state, seq) where state <> 'done';

CREATE UNIQUE INDEX millrace_inbox_id on millrace_inbox (job, id) where id is not null;

CREATE INDEX millrace_inbox_open on millrace_inbox (job, number) where taken = 0;

CREATE UNIQUE INDEX millrace_items_idx on millrace_items (list, idx);

CREATE INDEX millrace_jobs_group on millrace_jobs (grp, seq) where grp is not null;

CREATE INDEX millrace_jobs_key on millrace_jobs (key, seq) where key is not null;

CREATE INDEX millrace_jobs_lane on millrace_jobs (lane, seq);

CREATE INDEX millrace_labels_label on millrace_labels (label, seq);

CREATE INDEX millrace_leases_worker on millrace_leases (worker);

CREATE INDEX millrace_leftovers_due on millrace_leftovers (due_at);

CREATE INDEX millrace_leftovers_list on millrace_leftovers (list) where seq is null;

CREATE INDEX millrace_leftovers_seq on millrace_leftovers (seq) where seq is not null;

CREATE INDEX millrace_links_child on millrace_links (child);

CREATE INDEX millrace_live_due on millrace_live (due_at) where state in ('scheduled', 'retrying') and held is null;

CREATE INDEX millrace_live_expires on millrace_live (expires_at) where expires_at is not null and fence is null and state <> 'parked';

CREATE INDEX millrace_live_failure on millrace_live (substr(error, 17, 16), seq) where error is not null;

CREATE INDEX millrace_live_held on millrace_live (held, seq) where held is not null;

CREATE INDEX millrace_live_ready on millrace_live (lane, sort) where state = 'ready' and fence is null and streak < 2;

CREATE INDEX millrace_live_suspect on millrace_live (lane, streak, sort) where state = 'ready' and fence is null and streak >= 2;

CREATE INDEX millrace_live_waiting on millrace_live (state, seq) where state <> 'ready' and state <> 'running';

CREATE INDEX millrace_schedules_next on millrace_schedules (next_at) where next_at is not null;

CREATE UNIQUE INDEX millrace_steps_address on millrace_steps (seq, run, address);

CREATE INDEX millrace_windows_until on millrace_windows (until);

CREATE INDEX millrace_workflows_wake on millrace_workflows (wake_at) where wake_at is not null and paused_from is null;

CREATE TABLE millrace_audit (
  number integer primary key,
  at integer not null,
  actor text not null,
  role text,
  verb text not null,
  -- 'job 0198…', 'queue mail'.
  target text not null,
  count integer not null,
  before text,
  after text,
  reason text,
  keep_until integer
) strict;

CREATE TABLE millrace_changes (
  -- The newest row is never deleted, so that no number is given twice.
  number integer primary key,
  id text not null,
  lane integer not null,
  state text not null,
  at integer not null
) strict;

CREATE TABLE millrace_clock_steps (
  seq integer primary key
) strict;

CREATE TABLE millrace_consumers (
  consumer text primary key,
  -- Who reads now: a later reader takes the consumer from it.
  reader text not null,
  -- The number of the last change that was read.
  position integer not null
) strict, without rowid;

CREATE TABLE millrace_dead_workers (
  worker text primary key,
  host text not null,
  pid integer not null,
  lease_ms integer,
  started_at integer not null,
  beat_at integer,
  about text,
  died_at integer not null
) strict, without rowid;

CREATE TABLE millrace_failures (
  queue text not null,
  name text not null,
  -- The day.
  at integer not null,
  fingerprint text not null,
  error text not null,
  place text not null,
  count integer not null,
  first_seen integer not null,
  last_seen integer not null,
  samples text not null,
  primary key (queue, name, at, fingerprint)
) strict, without rowid;

CREATE TABLE millrace_group_counts (
  grp text not null,
  queue text not null,
  state text not null,
  members integer not null,
  primary key (grp, queue, state)
) strict, without rowid;

CREATE TABLE millrace_groups (
  grp text primary key,
  unfinished integer not null default 0,
  sealed_at integer,
  completed_at integer,
  when_done text,
  -- When the group was first seen without members, for the prune.
  empty_since integer,
  check (completed_at is null or sealed_at is not null)
) strict, without rowid;

CREATE TABLE millrace_history (
  seq integer primary key,
  state text not null check (state = 'done' or state = 'failed' or state = 'cancelled'),
  due_at integer not null,
  attempt integer not null,
  retries integer not null,
  crashes integer not null,
  started_at integer,
  settled_at integer not null,
  keep_until integer,
  worker text,
  result any,
  error text,
  reason text,
  log text,
  -- Only of a failed job: its lane.
  lane integer
) strict;

CREATE TABLE millrace_inbox (
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

CREATE TABLE millrace_items (
  number integer primary key,
  list integer not null,
  idx integer not null,
  payload any not null
) strict;

CREATE TABLE millrace_jobs (
  seq integer primary key,
  id text not null unique,
  lane integer not null,
  priority integer not null,
  key text,
  payload any not null,
  options text,
  created_at integer not null,
  -- The ids of its parents, as JSON; null for nearly all jobs.
  after text,
  grp text,
  -- A job that keeps a log; null for a plain one.
  shape text check (shape in ('workflow', 'sequence')),
  -- The number of its limit key; null for a job without one. While it is ready, its lane in millrace_live is that of its
  -- turn (job/limits/turns.ts).
  turn integer,
  -- The number of its rate key where that differs from the limit key, and what a start uses of its rate; null: 1.
  rate_turn integer,
  weight integer
) strict;

CREATE TABLE millrace_keys (
  name text not null,
  key text not null,
  turn integer not null default 0,
  seq integer not null,
  primary key (name, key, turn)
) strict, without rowid;

CREATE TABLE millrace_labels (
  seq integer not null,
  label text not null,
  primary key (seq, label)
) strict, without rowid;

CREATE TABLE millrace_lanes (
  lane integer primary key,
  queue text not null,
  name text not null,
  unique (queue, name)
) strict;

CREATE TABLE millrace_leases (
  fence integer primary key,
  worker text not null,
  quarantined integer not null,
  claimed_at integer not null,
  jobs text not null
) strict;

CREATE TABLE millrace_leftovers (
  number integer primary key,
  seq integer,
  run integer,
  list integer,
  job text,
  due_at integer not null
) strict;

CREATE TABLE millrace_link_todos (
  number integer primary key,
  parent text not null,
  what text not null check (what in ('done', 'failed', 'cancelled', 'parked', 'gone', 'recheck')),
  ended_at integer,
  result any,
  error text
) strict;

CREATE TABLE millrace_links (
  parent text not null,
  child integer not null,
  on_failure text not null check (on_failure in ('wait', 'cancel', 'run', 'run-if-parked', 'wake')),
  keep_ms integer,
  primary key (parent, child)
) strict, without rowid;

CREATE TABLE millrace_lists (
  list integer primary key,
  id text not null unique,
  total integer not null,
  made_at integer not null
) strict;

CREATE TABLE millrace_live (
  seq integer primary key,
  lane integer not null,
  -- Spelled out, the most frequent first: for a list of more than two values, SQLite probes a temporary table for every
  -- row.
  state text not null check (
    state = 'ready' or state = 'running' or state = 'scheduled' or state = 'retrying' or state = 'blocked'
      or state = 'paused' or state = 'parked'),
  sort integer not null,
  due_at integer not null,
  attempt integer not null default 0 check (attempt >= 0),
  retries integer not null default 0 check (retries >= 0),
  crashes integer not null default 0 check (crashes >= 0),
  -- Consecutive crashes while it was in flight. From 2 on the job is a suspect, and no lane index lists it.
  streak integer not null default 0 check (streak >= 0),
  fence integer,
  started_at integer,
  expires_at integer,
  error text,
  reason text,
  log text,
  progress text,
  -- A retry that is due and waits for the end of an outage.
  held integer check (held is null or state = 'retrying'),
  check (fence is not null or state <> 'running'),
  check (fence is null or state in ('ready', 'running'))
) strict;

CREATE TABLE millrace_migrations (
  version integer primary key,
  name text not null,
  applied_at integer not null
) strict;

CREATE TABLE millrace_outages (
  lane integer primary key,
  state text not null check (state in ('counting', 'closed', 'opening')),
  failures integer not null,
  since integer,
  probe_at integer
) strict;

CREATE TABLE millrace_pauses (
  queue text primary key,
  until integer,
  paused_at integer not null
) strict, without rowid;

CREATE TABLE millrace_queue_limits (
  queue text primary key,
  max integer,
  rate_max integer,
  rate_per integer,
  set_at integer not null
) strict, without rowid;

CREATE TABLE millrace_requests (
  seq integer primary key,
  kind text not null check (kind in ('cancel', 'pause')),
  reason text not null,
  keep_ms integer,
  requested_at integer not null
) strict;

CREATE TABLE millrace_schedules (
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

CREATE TABLE millrace_slots (
  bucket text not null,
  seq integer not null,
  fence integer not null,
  primary key (bucket, seq)
) strict, without rowid;

CREATE TABLE millrace_stats (
  queue text not null,
  name text not null,
  -- The length of the bucket in ms.
  span integer not null,
  at integer not null,
  done integer not null,
  failed integer not null,
  retried integer not null,
  wait text,
  run text,
  primary key (queue, name, span, at)
) strict, without rowid;

CREATE TABLE millrace_stats_moves (
  number integer primary key,
  queue text not null,
  name text not null,
  at integer not null,
  done integer not null,
  failed integer not null,
  retried integer not null,
  wait text,
  run text,
  failures text
) strict;

CREATE TABLE millrace_steps (
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

CREATE TABLE millrace_ticks (
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

CREATE TABLE millrace_turns (
  lane integer primary key,
  last integer not null
) strict;

CREATE TABLE millrace_uniques (
  name text not null,
  key text not null,
  seq integer not null,
  id text not null,
  until integer,
  primary key (name, key)
) strict, without rowid;

CREATE TABLE millrace_windows (
  bucket text not null,
  step integer not null,
  used integer not null,
  until integer not null,
  primary key (bucket, step)
) strict, without rowid;

CREATE TABLE millrace_workers (
  worker text primary key,
  beat integer not null default 0,
  host text not null,
  pid integer not null,
  -- The machine and the start time of the process, opaque; null where they cannot be read.
  identity text,
  -- How long the worker may be silent before it is declared dead: processes may have different leases.
  lease_ms integer,
  started_at integer not null,
  beat_at integer,
  -- JSON: what the worker says about itself.
  about text,
  -- The job whose handler blocked the event loop until the worker stopped its heartbeat.
  blocked_by integer
) strict, without rowid;

CREATE TABLE millrace_workflows (
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

CREATE TRIGGER millrace_jobs_long_work after delete on millrace_jobs when old.shape is not null begin
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
