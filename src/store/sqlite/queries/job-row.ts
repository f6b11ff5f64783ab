/** A whole job, unfinished or ended. `from` names the jobs as `j` and the join with what follows. */
export function jobRow(from = 'millrace_jobs j\n    join'): string {
  return `
    select j.seq, j.id, n.name, n.queue, j.lane, j.priority, j.key, j.grp, j.payload, j.options, j.after, j.created_at,
           coalesce(l.state, h.state) as state,
           l.fence is not null as claimed,
           coalesce(l.streak, 0) as streak,
           coalesce(l.due_at, h.due_at) as due_at,
           coalesce(l.attempt, h.attempt) as attempt,
           coalesce(l.retries, h.retries) as retries,
           coalesce(l.crashes, h.crashes) as crashes,
           coalesce(l.started_at, h.started_at) as started_at,
           h.settled_at, l.expires_at,
           h.worker, h.result,
           coalesce(l.error, h.error) as error,
           coalesce(l.reason, h.reason) as reason,
           coalesce(l.log, h.log) as log,
           l.progress
    from ${from} millrace_lanes n on n.lane = j.lane
    left join millrace_live l on l.seq = j.seq
    left join millrace_history h on h.seq = j.seq`
}
