/** What holds the jobs of all queues; `countQueues` counts them. */
export const queueListQueries = {
  queuePauses: `select queue, until, paused_at from millrace_pauses`,
  queueOutages: `
    select n.queue, n.name, o.state, o.since,
           (select count(*) from millrace_live l where l.held = o.lane) as waiting
    from millrace_outages o
    join millrace_lanes n on n.lane = o.lane
    where o.state <> 'counting'
    order by n.queue, n.name`,
}
