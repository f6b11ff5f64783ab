import { DEAD_KEPT_MS } from '../../workers.js'
import { clock, s } from './sql-fragments.js'

/** Workers, their beats, and which of them block their event loop. */
export const workerQueries = {
  addWorker: `
    insert into ${s}.workers (worker, host, pid, identity, lease_ms, started_at, about)
    values ($1, $2, $3::text::integer, $4, $5::text::bigint, coalesce($6::text::bigint, ${clock}), $7)`,
  beat: `
    update ${s}.workers set beat = beat + 1, beat_at = ${clock} where worker = $1
    returning 1 as beat`,
  reportWorker: `update ${s}.workers set about = $2 where worker = $1`,
  markBlocking: `update ${s}.workers set blocked_by = $1::text::bigint where worker = $2`,
  /** Also deletes its empty leases (`voidClaims`). */
  dropWorker: `
    with dropped as (delete from ${s}.workers where worker = $1)
    delete from ${s}.leases where worker = $1 and refs = '{}'`,
  /** The row is kept for ten minutes; rows whose time is over are deleted by the next death. */
  endWorker: `
    with clock as materialized (select coalesce($3::text::bigint, ${clock}) as now),
    ended as (delete from ${s}.workers where worker = $1 and beat = $2::text::bigint returning *),
    kept as (
      insert into ${s}.dead_workers (worker, host, pid, lease_ms, started_at, beat_at, about, died_at)
      select worker, host, pid, lease_ms, started_at, beat_at, about, now from ended, clock),
    over as (delete from ${s}.dead_workers where died_at < (select now from clock) - ${DEAD_KEPT_MS})
    select 1 as ended from ended`,
  /** Blocks the worker's beats while its jobs are rescued. */
  lockWorker: `select 1 as locked from ${s}.workers where worker = $1 and beat = $2::text::bigint for update`,
  isWorker: `select 1 as listed from ${s}.workers where worker = $1`,
  readWorkers: `
    (select worker, beat, pid, identity, lease_ms as "leaseMs" from ${s}.workers order by worker)
    union all
    (select l.worker, null::bigint, null::integer, null::text, null::bigint
     from (select distinct worker from ${s}.leases) l
     where (select w.worker from ${s}.workers w where w.worker = l.worker) is null)`,
}
