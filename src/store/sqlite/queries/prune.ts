/** Statements that delete finished jobs, and release free pages. */
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

  deleteHistory: `
    delete from millrace_history
    where seq = ?`,
  deleteJob: `
    delete from millrace_jobs
    where seq = ?`,

  readPages: `
    select (select freelist_count from pragma_freelist_count) as free,
           (select page_count from pragma_page_count) as pages,
           (select auto_vacuum from pragma_auto_vacuum) as mode`,
  freePages: (pages: number): string => `pragma incremental_vacuum(${pages})`,
}
