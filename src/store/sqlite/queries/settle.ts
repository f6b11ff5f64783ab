import { PRIORITY_STEP_MS } from '../../rows/ordering.js'
import { byRows, claimedColumns } from './sql-fragments.js'

/** Settlements of claimed jobs, and the leases of dead workers. */
export const settleQueries = {
  ownedJobs: `
    select seq as seq
    from millrace_live
    where fence = ? and seq in (select value from json_each(?))`,
  endJobs: `
    delete from millrace_live
    where fence = ? and seq in (select value from json_each(?))`,
  endRun: `
    delete from millrace_live
    where seq between ? and ? and fence = ?`,
  appendHistory: `
    insert into millrace_history
      (seq, state, due_at, attempt, retries, crashes, started_at, settled_at, keep_until, worker, result, error, reason, log, lane)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
      case when ?2 = 'failed' then (select lane from millrace_jobs where seq = ?1) end)`,
  /** The most frequent end, a completed first attempt: values that all rows share are bound once. */
  appendDone: byRows(
    (rows) => `
    with batch (settled_at, keep_until, worker) as (values (?, ?, ?))
    insert into millrace_history
      (seq, state, due_at, attempt, retries, crashes, started_at, settled_at, keep_until, worker, result)
    select each.column1, 'done', each.column2, 1, 0, 0, each.column3, settled_at, keep_until, worker, each.column4
    from batch, (values ${Array(rows).fill('(?, ?, ?, ?)').join(', ')}) as each`,
  ),
  /** The same for consecutive rows without a result: their values are in the live rows already. */
  appendDoneRun: `
    insert into millrace_history
      (seq, state, due_at, attempt, retries, crashes, started_at, settled_at, keep_until, worker)
    select seq, 'done', due_at, 1, 0, 0, ?, ?, ?, ?
    from millrace_live
    where seq between ? and ? and fence = ?`,
  requeueJob: `
    update millrace_live
    set state = ?, due_at = coalesce(?, due_at),
        sort = coalesce(?, due_at) - (select priority from millrace_jobs where seq = millrace_live.seq) * ${PRIORITY_STEP_MS},
        attempt = ?, retries = ?, crashes = ?, streak = ?, fence = null, started_at = null,
        error = ?, reason = ?, log = ?, progress = null, held = null, expires_at = case when ? then null else expires_at end
    where seq = ? and fence = ?`,
  closeLease: `
    delete from millrace_leases
    where fence = ?`,
  /**
   * Only leases that hold no job: a lease taken after the rescuer's read still lists its jobs, and the next round
   * rescues them.
   */
  dropLeases: `
    delete from millrace_leases
    where worker = ?
      and not exists (
        select 1
        from json_each(millrace_leases.jobs) held
        join millrace_live l on l.seq = held.value
        where l.fence = millrace_leases.fence)`,
  readLeases: `
    select fence, quarantined, claimed_at, jobs,
           (select w.blocked_by from millrace_workers w where w.worker = e.worker) as blocked_by
    from millrace_leases e
    where worker = ?`,
  leasedBodies: `
    select ${claimedColumns()}, j.lane, l.started_at, l.progress
    from json_each(?) e
    cross join millrace_live l on l.seq = e.value
    cross join millrace_jobs j on j.seq = l.seq
    where l.fence = ?`,
}
