import { laneOf, s } from '../sql-fragments.js'

/** What holds the jobs of all queues; `countQueues` counts them. */
export const queueListQueries = {
  queuePauses: `select queue, until, paused_at from (select * from ${s}.pauses order by queue) p`,
  queueOutages: `
    select n.queue, n.name, o.state, o.since,
           (select count(*) from ${s}.waiting w where w.lane = o.lane and w.held) as waiting
    from (select * from ${s}.outages order by lane) o
    cross join ${laneOf('o.lane')}
    where o.state <> 'counting'
    order by n.queue, n.name`,
}
