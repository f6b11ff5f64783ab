/**
 * Statistics of ended attempts (store/verbs/statistics.ts). A settlement appends rows to `stats_moves`: an update of a
 * bucket would serialise all settlements of a lane. Upkeep folds them into `stats`, and into `failures`, the error
 * groups by day. Queue and name are texts: counts outlive everything else.
 */
export const statistics = (schema: string): readonly string[] => [
  `create table ${schema}.stats_moves (
    number bigint generated always as identity primary key,
    queue text not null,
    name text not null,
    at bigint not null,
    done bigint not null,
    failed bigint not null,
    retried bigint not null,
    wait text,
    run text,
    failures text
  ) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000)`,
  `create table ${schema}.stats (
    queue text not null,
    name text not null,
    -- The length of the bucket in ms.
    span bigint not null,
    at bigint not null,
    done bigint not null,
    failed bigint not null,
    retried bigint not null,
    wait text,
    run text,
    primary key (queue, name, span, at)
  ) with (fillfactor = 70)`,
  `create table ${schema}.failures (
    queue text not null,
    name text not null,
    -- The day.
    at bigint not null,
    fingerprint text not null,
    error text not null,
    place text not null,
    count bigint not null,
    first_seen bigint not null,
    last_seen bigint not null,
    samples text not null,
    primary key (queue, name, at, fingerprint)
  ) with (fillfactor = 70)`,
  // readFailures: when an error group was first seen
  `create index failures_fingerprint on ${schema}.failures (fingerprint, at)`,
]
