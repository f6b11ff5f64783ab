import { fingerprintOfError } from '../../rows/fingerprint.js'

const fingerprint = fingerprintOfError('error')

/**
 * A job's body is written once (`millrace_jobs`: what was given at enqueue). The job also has exactly one row in one of
 * two tables: `millrace_live` while it is unfinished, `millrace_history` once it ended. Only narrow rows move; a
 * payload is never written twice. Times are milliseconds since 1970.
 */
export const sql = `
create table millrace_lanes (
  lane integer primary key,
  queue text not null,
  name text not null,
  unique (queue, name)
) strict;

create table millrace_jobs (
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

-- readKeyed: the newest job of a key, finished or not
create index millrace_jobs_key on millrace_jobs (key, seq) where key is not null;
-- findJobs: the jobs of a queue or a name
create index millrace_jobs_lane on millrace_jobs (lane, seq);

-- findJobs by time: the first numbers after the clock was set back. Between two of them created_at never decreases.
create table millrace_clock_steps (
  seq integer primary key
) strict;

-- The labels of jobs that have any; and the ids of their parents, each behind a control character, which no label has.
create table millrace_labels (
  seq integer not null,
  label text not null,
  primary key (seq, label)
) strict, without rowid;

-- findJobs: the jobs of a label, the children of a job
create index millrace_labels_label on millrace_labels (label, seq);

create table millrace_live (
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

-- claimJobs: claimable jobs, in order, by lane
create index millrace_live_ready on millrace_live (lane, sort) where state = 'ready' and fence is null and streak < 2;
-- claimJobs: suspects, nearly always none
create index millrace_live_suspect on millrace_live (lane, streak, sort) where state = 'ready' and fence is null and streak >= 2;
-- promoteJobs: jobs that wait for a time
create index millrace_live_due on millrace_live (due_at) where state in ('scheduled', 'retrying') and held is null;
-- promoteJobs: the retries that an outage holds, by their plain lane
create index millrace_live_held on millrace_live (held, seq) where held is not null;
-- promoteJobs: jobs that must start by a time
create index millrace_live_expires on millrace_live (expires_at) where expires_at is not null and fence is null and state <> 'parked';

-- findJobs: unfinished jobs that no worker may claim now. Ready and running jobs, which change most, have no entry.
create index millrace_live_waiting on millrace_live (state, seq) where state <> 'ready' and state <> 'running';

create table millrace_history (
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

-- countQueues: failed jobs by lane
create index millrace_history_failed on millrace_history (lane) where state = 'failed';
-- pruneJobs: jobs whose keep time is over
create index millrace_history_keep on millrace_history (keep_until) where keep_until is not null;
-- findJobs: failed and cancelled jobs
create index millrace_history_not_done on millrace_history (state, seq) where state <> 'done';
-- findJobs: the jobs of an error group, by the fingerprint in their error (job/statistics/failure.ts)
create index millrace_live_failure on millrace_live (${fingerprint}, seq) where error is not null;
create index millrace_history_failure on millrace_history (${fingerprint}, seq) where error is not null;

-- insertJobs: at most one unfinished job per (job, key), and one successor that is blocked until that job ends. The
-- holder is the row with the highest turn. Each row is deleted when its own job ends, so neither job writes the other's
-- row.
create table millrace_keys (
  name text not null,
  key text not null,
  turn integer not null default 0,
  seq integer not null,
  primary key (name, key, turn)
) strict, without rowid;

-- insertJobs: the newest job of a (job, unique value), and when its window ends. The end of a job writes nothing here:
-- a row counts while its window is open or its job is live. The numbers of deleted jobs are reused, so the id is kept
-- too.
create table millrace_uniques (
  name text not null,
  key text not null,
  seq integer not null,
  id text not null,
  until integer,
  primary key (name, key)
) strict, without rowid;

create table millrace_workers (
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

-- listWorkers: workers that were declared dead, for ten minutes
create table millrace_dead_workers (
  worker text primary key,
  host text not null,
  pid integer not null,
  lease_ms integer,
  started_at integer not null,
  beat_at integer,
  about text,
  died_at integer not null
) strict, without rowid;

-- One row per claim. \`jobs\` lists the claimed jobs; only a job's own fence says whether the claim still holds it.
-- \`quarantined\`: the number of suspects it took into quarantine; 0 for all other claims, and when the quarantine is
-- over.
create table millrace_leases (
  fence integer primary key,
  worker text not null,
  quarantined integer not null,
  claimed_at integer not null,
  jobs text not null
) strict;

-- Pending requests of running jobs. A row lives as long as the claim: the transaction that settles the job applies and
-- deletes it.
create table millrace_requests (
  seq integer primary key,
  kind text not null check (kind in ('cancel', 'pause')),
  reason text not null,
  keep_ms integer,
  requested_at integer not null
) strict;

-- One row for each paused queue; \`until\` is null when only a caller can resume it.
create table millrace_pauses (
  queue text primary key,
  until integer,
  paused_at integer not null
) strict, without rowid;

-- readLeases: a worker's leases
create index millrace_leases_worker on millrace_leases (worker);
`
