import { s } from '../sql-fragments.js'

/** What the server says that an operator should know. */
export const healthQueries = {
  /** The session whose transaction has been open the longest, for at least $1 ms. Sessions of other roles may be hidden. */
  oldestTransaction: `
    select a.pid, coalesce(nullif(a.application_name, ''), a.backend_type) as application, a.usename::text as role,
           coalesce(a.state, '') as state, (extract(epoch from a.xact_start) * 1000)::bigint as since
    from pg_stat_activity a
    where a.backend_xmin is not null and a.pid <> pg_backend_pid()
      and a.xact_start < clock_timestamp() - make_interval(secs => $1::text::double precision / 1000)
    order by a.xact_start
    limit 1`,
  /** The number of the last migration; null where its table is empty. */
  schemaVersion: `select m.version from ${s}.migrations m order by m.version desc limit 1`,
  /** Settings of this session that slow down every statement. */
  harmfulSettings: `select current_setting('autovacuum') as autovacuum, current_setting('jit') as jit`,
  /** The replication slot without a receiver that keeps the most WAL, more than $1 bytes. */
  idleSlot: `
    select s.slot_name::text as slot, pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::bigint as bytes
    from pg_replication_slots s
    where not s.active and s.restart_lsn is not null
      and pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) > $1::text::bigint
    order by s.restart_lsn
    limit 1`,
}
