/**
 * Limits, rates and outages. A slot is bound to a claim: it counts while the job is under that fence, so the
 * transaction that ends the claim, a rescue too, frees it without a write to this table.
 */
export const sql = `
-- claimLimited: one row for each (limit, job) that a claim took. A row whose job is under another fence counts no more.
create table millrace_slots (
  bucket text not null,
  seq integer not null,
  fence integer not null,
  primary key (bucket, seq)
) strict, without rowid;

-- claimLimited: what was started under a rate, in steps of a part of its window. A row counts until its last start has
-- left the window.
create table millrace_windows (
  bucket text not null,
  step integer not null,
  used integer not null,
  until integer not null,
  primary key (bucket, step)
) strict, without rowid;

-- claimLimited: rows that no longer count
create index millrace_windows_until on millrace_windows (until);

-- claimLimited: the turn that was served last in each lane
create table millrace_turns (
  lane integer primary key,
  last integer not null
) strict;

-- The limits of queues, as the last mill that started with them set them.
create table millrace_queue_limits (
  queue text primary key,
  max integer,
  rate_max integer,
  rate_per integer,
  set_at integer not null
) strict, without rowid;

-- A lane whose attempts fail. counting: the last ones failed. closed: its due retries are held and probed. opening: an
-- attempt succeeded, and the held retries are released.
create table millrace_outages (
  lane integer primary key,
  state text not null check (state in ('counting', 'closed', 'opening')),
  failures integer not null,
  since integer,
  probe_at integer
) strict;
`
