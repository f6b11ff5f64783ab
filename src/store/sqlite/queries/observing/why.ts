/** Why jobs are not running. */
export const whyQueries = {
  /** The open links of blocked jobs. */
  whyParents: `
    select k.child, j.id, n.name as job, coalesce(l.state, h.state) as state
    from json_each(?) given
    cross join millrace_links k on k.child = given.value
    cross join millrace_jobs j on j.id = k.parent
    cross join millrace_lanes n on n.lane = j.lane
    left join millrace_live l on l.seq = j.seq
    left join millrace_history h on h.seq = j.seq
    order by k.child, j.seq
    limit ?`,
  whyHolders: `
    select l.seq as ref, e.worker
    from json_each(?) given
    cross join millrace_live l on l.seq = given.value
    cross join millrace_leases e on e.fence = l.fence`,
  whyWaits: `
    select w.seq as ref, w.waits, w.wake_at as wakeAt
    from json_each(?) given
    cross join millrace_workflows w on w.seq = given.value`,
}
