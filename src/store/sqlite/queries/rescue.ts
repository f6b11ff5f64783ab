/** The rows that a dead worker leaves. */
export const rescueQueries = {
  readLeases: `
    select fence, quarantined, claimed_at, jobs,
           (select w.blocked_by from millrace_workers w where w.worker = e.worker) as blocked_by
    from millrace_leases e
    where worker = ?`,
  markBlocking: `
    update millrace_workers set blocked_by = ?
    where worker = ?`,
  endWorker: `
    delete from millrace_workers
    where worker = ? and beat = ?`,
}
