/** Statements that delete finished jobs and free unique slots, and release free pages. */
export const pruneQueries = {
  oldJobs: `
    select seq
    from millrace_history
    where keep_until <= ?
    order by keep_until
    limit ?`,
  nextPrune: `
    select min(keep_until) as due
    from millrace_history
    where keep_until is not null`,
  pruneHistoryRun: `
    delete from millrace_history
    where seq between ? and ?`,
  pruneJobsRun: `
    delete from millrace_jobs
    where seq between ? and ?`,
  pruneHistory: `
    delete from millrace_history
    where seq in (select value from json_each(?))`,
  pruneJobs: `
    delete from millrace_jobs
    where seq in (select value from json_each(?))`,
  anySlot: `
    select 1
    from millrace_uniques
    limit 1`,
  nextSlots: `
    select u.name, u.key, u.id, (u.until is null or u.until <= ?) and l.seq is null as over
    from millrace_uniques u
    left join millrace_jobs j on j.seq = u.seq and j.id = u.id
    left join millrace_live l on l.seq = j.seq
    where (u.name, u.key) > (?, ?)
    order by u.name, u.key
    limit ?`,
  sweepSlot: `
    delete from millrace_uniques
    where name = ? and key = ? and id = ?`,
  readPages: `
    select (select freelist_count from pragma_freelist_count) as free,
           (select page_count from pragma_page_count) as pages,
           (select auto_vacuum from pragma_auto_vacuum) as mode`,
  freePages: (pages: number): string => `pragma incremental_vacuum(${pages})`,
}
