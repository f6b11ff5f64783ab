import { bodyOf, clock, laneOf, readyOf, s, sort, turnLane, waitingOf } from './sql-fragments.js'

/** How many entries of `expiring` are read to find the next one that counts. */
const EXPIRING_SCAN = 100

/** Jobs that become due or expire. */
export const upkeepQueries = {
  promoteJobs: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    due as (
      select w.ref
      from ${s}.waiting w
      where w.state in ('scheduled', 'retrying') and w.held is not true and w.due_at <= (select now from clock)
        -- Retries of a lane that an outage has closed are left for holdRetries.
        and (w.state <> 'retrying' or w.held is not null or (select o.lane from ${s}.outages o where o.lane = w.lane and o.state = 'closed') is null)
      order by w.due_at
      limit $2::text::integer
      for update of w skip locked),
    taken as (delete from ${s}.waiting where ref = any(array(select ref from due)) returning ref, lane, state, grp),
    counted as (
      insert into ${s}.group_moves (grp, queue, state, members)
      select t.grp, n.queue, each.state, sum(each.members)
      from taken t
      cross join ${laneOf('t.lane')}
      cross join lateral (values (t.state, -1), ('ready', 1)) as each (state, members)
      where t.grp is not null
      group by 1, 2, 3),
    to_ready as (
      insert into ${s}.ready (lane, sort, ref)
      select ${turnLane('j.lane', 'j.turn')}, ${sort('j')}, j.ref from taken cross join ${bodyOf('taken.ref')} where coalesce(j.streak, 0) < 2),
    to_waiting as (
      insert into ${s}.waiting (ref, lane, state, due_at, grp)
      select j.ref, j.lane, 'ready', j.due_at, j.grp from taken cross join ${bodyOf('taken.ref')} where j.streak >= 2)
    select (select count(*)::integer from taken) as promoted, now from clock`,
  /**
   * When the next job is due. Entries of ended jobs stay in `expiring` until their time: of the next few entries the
   * first one of an unfinished job counts, or the last one if there is none. So the answer may be too early, and the
   * number of rows read is bounded.
   */
  nextTimes: `
    select least(
             (select due_at from ${s}.waiting where state in ('scheduled', 'retrying') and held is not true order by due_at limit 1),
             (select min(o.probe_at)
              from (select lane, probe_at, state from ${s}.outages order by lane) o
              where o.state = 'closed' and (select w.ref from ${s}.waiting w where w.lane = o.lane and w.held limit 1) is not null)) as due,
           (select o.lane from (select lane, state from ${s}.outages order by lane) o where o.state = 'closed' limit 1) is not null as closed,
           (select expires_at from ${s}.expiring order by expires_at limit 1) <= $1::text::bigint as over,
           (select case when bool_or(live) then min(expires_at) filter (where live)
                        when count(*) = ${EXPIRING_SCAN} then max(expires_at) end
            from (
              select x.expires_at, r.ref is not null or w.state <> 'parked' as live
              from (
                select expires_at, ref from ${s}.expiring
                where expires_at > $1::text::bigint
                order by expires_at, ref
                limit ${EXPIRING_SCAN}) x
              left join ${bodyOf('x.ref')} on j.expires_at = x.expires_at
              left join ${readyOf('j')} on true
              left join ${waitingOf('j.ref')} on true) as scanned) as expiry,
           (select wake_at from ${s}.workflows
            where wake_at is not null and paused_from is null
            order by wake_at
            limit 1) as wake,
           (select number from ${s}.link_todos order by number limit 1) is not null as todo,
           (select grp from ${s}.group_moves order by grp limit 1) is not null as moved`,
  expiredJobs: `
    select j.id, n.name, n.queue, coalesce(w.state, 'ready') as state
    from (
      select expires_at, ref from ${s}.expiring where expires_at <= $1::text::bigint order by expires_at, ref) x
    cross join ${bodyOf('x.ref')}
    cross join ${laneOf('j.lane')}
    left join ${readyOf('j')} on true
    left join ${waitingOf('j.ref')} on true
    where j.expires_at = x.expires_at and (r.ref is not null or w.state <> 'parked')
    limit $2::text::integer`,
}
