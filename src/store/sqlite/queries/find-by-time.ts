/** Statements that record the numbers at which the clock was set back, and search for times between them. */
export const clockStepQueries = {
  lastCreated: `
    select seq, created_at
    from millrace_jobs
    order by seq desc
    limit 1`,
  addClockStep: `
    insert into millrace_clock_steps (seq)
    values (?)
    on conflict (seq) do nothing`,
  clockSteps: `
    select seq
    from millrace_clock_steps
    order by seq
    limit ?`,
  firstCreated: `
    select seq, created_at
    from millrace_jobs
    where seq between ? and ?
    order by seq
    limit 1`,
  lastCreatedWithin: `
    select seq, created_at
    from millrace_jobs
    where seq between ? and ?
    order by seq desc
    limit 1`,
  anyOldClockStep: `
    select 1 as there
    from millrace_clock_steps
    where seq <= coalesce((select min(seq) from millrace_jobs), 9223372036854775807)
    limit 1`,
  dropOldClockSteps: `
    delete from millrace_clock_steps
    where seq <= coalesce((select min(seq) from millrace_jobs), 9223372036854775807)`,
}
