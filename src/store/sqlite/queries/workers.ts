/** Workers, their beats, and which of them block their event loop. */
export const workerQueries = {
  addWorker: `
    insert into millrace_workers (worker, host, pid, identity, lease_ms, about, started_at)
    values (?, ?, ?, ?, ?, ?, ?)`,
  /** By the clock of the machine: the thread that beats has no other. */
  beat: `
    update millrace_workers
    set beat = beat + 1, beat_at = cast((julianday('now') - 2440587.5) * 86400000 as integer)
    where worker = ?`,
  reportWorker: `
    update millrace_workers set about = ?
    where worker = ?`,
  markBlocking: `
    update millrace_workers set blocked_by = ?
    where worker = ?`,
  dropWorker: `
    delete from millrace_workers
    where worker = ?`,
  /** Before `endWorker`. Rows whose time is over are deleted by the next death. */
  keepDeadWorker: `
    insert into millrace_dead_workers (worker, host, pid, lease_ms, started_at, beat_at, about, died_at)
    select worker, host, pid, lease_ms, started_at, beat_at, about, ?
    from millrace_workers
    where worker = ? and beat = ?`,
  dropDeadWorkers: `
    delete from millrace_dead_workers
    where died_at < ?`,
  endWorker: `
    delete from millrace_workers
    where worker = ? and beat = ?`,
  isWorker: `
    select 1
    from millrace_workers
    where worker = ?`,
  readWorkers: `
    select worker, beat, pid, identity, lease_ms as "leaseMs"
    from millrace_workers
    union all
    select distinct worker, null, null, null, null
    from millrace_leases
    where worker not in (select worker from millrace_workers)`,
}
