/**
 * Limits, rates and outages. A slot is bound to a claim: it counts while the claim has the job, so the transaction that
 * ends the claim, a rescue too, frees it without a write to this table.
 */
export const limits = (schema: string): readonly string[] => [
  // claimLimited: one row for each (limit, job) that a claim took. A row whose claim no longer has the job counts no more.
  `create table ${schema}.slots (
    bucket text not null,
    ref bigint not null,
    fence bigint not null,
    primary key (bucket, ref)
  ) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000)`,
  // claimLimited: what was started under a rate, in steps of a part of its window. A row counts until its last start has
  // left the window.
  `create table ${schema}.windows (
    bucket text not null,
    step bigint not null,
    used bigint not null,
    until bigint not null,
    primary key (bucket, step)
  ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000)`,
  // claimLimited: rows that no longer count
  `create index windows_until on ${schema}.windows (until)`,
  // claimLimited: how many claims there were of a job or a queue with limits. A claim that read what is in use before another
  // one took jobs finds a higher number, and takes none.
  `create table ${schema}.limit_claims (
    scope text primary key,
    version bigint not null
  ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000)`,
  // claimLimited: the turn that was served last in each lane
  `create table ${schema}.turns (
    lane integer primary key,
    last bigint not null
  ) with (fillfactor = 50)`,
  // The limits of queues, as the last mill that started with them set them.
  `create table ${schema}.queue_limits (
    queue text primary key,
    max bigint,
    rate_max bigint,
    rate_per bigint,
    set_at bigint not null
  )`,
  // A lane whose attempts fail. counting: the last ones failed. closed: its due retries are held and probed. opening: an
  // attempt succeeded, and the held retries are released.
  `create table ${schema}.outages (
    lane integer primary key,
    state text not null check (state in ('counting', 'closed', 'opening')),
    failures bigint not null,
    since bigint,
    probe_at bigint
  ) with (fillfactor = 50)`,
]
