/**
 * Statistics of ended attempts (store/verbs/statistics.ts): what settlements append, the buckets that it is folded into,
 * and error groups by day. Queue and name are texts: counts outlive everything else.
 */
export const statistics = `
create table millrace_stats_moves (
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

create table millrace_stats (
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

create table millrace_failures (
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

-- readFailures: when an error group was first seen
create index millrace_failures_fingerprint on millrace_failures (fingerprint, at);
`
