import { TURN_SPAN } from '../../../../job/limits/turns.js'
import { LOCK_CLASS, LOCK_SLOTS } from '../../numbers.js'
import { bodyOf, claimed, clock, hasEnded, isPaused, laneOf, leaseOf, s, sort } from '../sql-fragments.js'

const queueLimitsOf = (queue: string): string =>
  `lateral (select * from ${s}.queue_limits q where q.queue = ${queue} limit 1) q`

/** Whether the claim of a slot still has its job. */
const holdsSlot = `not s.ref = any(e.released) and not ${hasEnded('s.ref')}
        and (select j.ref from ${s}.jobs j where j.ref = s.ref) is not null`

/** Claims under limits and rates, and the limits of queues. */
export const limitQueries = {
  /**
   * The lanes that are claimed under limits, those of queues that are paused left out: of these names, of queues with
   * limits, and those that have ready jobs with keys. One row with nulls when there is none.
   */
  limitedLanes: `
    with recursive clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    filled as (
      (select r.lane as turn from ${s}.ready r where r.lane < 0 order by r.lane limit 1)
      union all
      select next.turn
      from filled f
      cross join lateral (
        select r.lane as turn
        from ${s}.ready r
        where r.lane > -(-f.turn / ${TURN_SPAN}) * ${TURN_SPAN} and r.lane < 0
        order by r.lane
        limit 1) next),
    found as materialized (
      select n.lane from ${s}.lanes n where n.name = any(array(select value from json_array_elements_text($3::text::json)))
      union
      select n.lane
      from (select queue from ${s}.queue_limits order by queue) q
      cross join lateral (select lane from ${s}.lanes n where n.queue = q.queue) n
      union
      select (-turn / ${TURN_SPAN})::integer from filled),
    lane as materialized (
      select n.lane, n.queue, n.name, q.max, q.rate_max, q.rate_per, t.last,
             q.queue is not null or n.name = any(array(select value from json_array_elements_text($3::text::json))) as whole,
             (select r.lane from ${s}.ready r where r.lane = n.lane order by r.lane, r.sort, r.ref limit 1) is not null
               or (select w.lane from ${s}.waiting w where w.lane = n.lane and w.state = 'ready' limit 1) is not null
               or n.lane = any(array(select (-turn / ${TURN_SPAN})::integer from filled)) as filled
      from clock, found f
      cross join ${laneOf('f.lane')}
      left join ${queueLimitsOf('n.queue')} on true
      left join lateral (select t.last from ${s}.turns t where t.lane = n.lane limit 1) t on true
      where not ${isPaused('n.queue')})
    select clock.now, (select w.worker from ${s}.workers w where w.worker = $2) is not null as alive,
           (select json_agg(json_build_array(n.queue, n.name))
            from (select lane from ${s}.outages order by lane) o cross join ${laneOf('o.lane')})::text as failing,
           (select json_agg(json_build_object('lane', lane, 'queue', queue, 'name', name, 'max', max, 'rateMax', rate_max,
              'ratePer', rate_per, 'last', last, 'whole', whole)) from lane where filled)::text as lanes
    from clock`,
  /** Claims of these jobs and queues, one after the other; in a fixed order, so that there is no deadlock. */
  lockLimits: `
    select count(pg_advisory_xact_lock(${LOCK_CLASS}, slot))
    from (
      select distinct (hashtextextended(value, 7) & ${LOCK_SLOTS - 1})::integer as slot
      from json_array_elements_text($1::text::json)
      order by 1) as sorted`,
  /** The next turns with ready jobs in each range of numbers, each found by one index lookup. */
  nextTurns: `
    select a.no, t.turn
    from json_to_recordset($1::text::json) as a (no integer, first bigint, last bigint)
    cross join lateral (
      with recursive filled as (
        (select r.lane as turn from ${s}.ready r where r.lane between a.first and a.last order by r.lane limit 1)
        union all
        select next.turn
        from filled f
        cross join lateral (
          select r.lane as turn from ${s}.ready r where r.lane > f.turn and r.lane <= a.last order by r.lane limit 1) next)
      select turn from filled limit $2::text::integer) t
    order by a.no, t.turn`,
  readTurns: `
    select r.ref, r.lane as turn, r.sort, j.rate_turn, j.weight
    from unnest($1::text::bigint[]) as t (turn)
    cross join lateral (
      select r.ref, r.lane, r.sort from ${s}.ready r where r.lane = t.turn order by r.sort, r.ref limit $2::text::integer) r
    cross join ${bodyOf('r.ref')}
    order by r.lane, r.sort, r.ref`,
  /** Suspects are in no lane of `ready`. */
  limitedSuspects: `
    select w.ref, j.turn, ${sort('j')} as sort, j.rate_turn, j.weight, w.lane, j.streak
    from unnest($1::text::integer[]) as a (lane)
    cross join lateral (
      select w.ref, w.lane from ${s}.waiting w where w.lane = a.lane and w.state = 'ready' limit $2::text::integer) w
    cross join ${bodyOf('w.ref')}
    order by j.streak, ${sort('j')}, w.ref`,
  /** A slot counts while its claim has the job. */
  limitsInUse: `
    select 'slots' as kind, s.bucket, count(*) as used, null::bigint as frees_at, null::bigint as lasts_until
    from json_array_elements_text($1::text::json) as a (bucket)
    cross join lateral (select s.bucket, s.ref, s.fence from ${s}.slots s where s.bucket = a.bucket) s
    cross join ${leaseOf('s.fence')}
    where ${holdsSlot}
    group by s.bucket
    union all
    select 'rates', w.bucket, sum(w.used)::bigint, min(w.until), max(w.until)
    from json_array_elements_text($2::text::json) as a (bucket)
    cross join lateral (
      select w.bucket, w.used, w.until from ${s}.windows w where w.bucket = a.bucket and w.until > $3::text::bigint) w
    group by w.bucket`,
  /**
   * Moves the chosen jobs that are still ready into one lease, with their slots and starts. $4: the jobs, in order; $6:
   * their slots; $7: their starts; $8: the turns that were served.
   */
  takeLimited: `
    with given as materialized (
      select a.no, a.ref, a.turn, a.sort
      from json_to_recordset($4::text::json) as a (no integer, ref bigint, turn bigint, sort bigint)),
    head as materialized (
      select r.at
      from given a
      cross join lateral (
        select r.ctid as at
        from ${s}.ready r
        where (r.lane, r.sort, r.ref) = (a.turn, a.sort, a.ref)
        limit 1
        for update skip locked) r),
    taken as (delete from ${s}.ready where ctid = any(array(select at from head)) returning ref),
    lease as (
      insert into ${s}.leases (fence, worker, quarantined, claimed_at, starting, refs)
      select $2::text::bigint, $1, 0, $3::text::bigint, $5::text::integer, array_agg(t.ref order by a.no)
      from taken t join given a on a.ref = t.ref
      having count(*) > 0),
    slotted as (
      insert into ${s}.slots (bucket, ref, fence)
      select a.bucket, a.ref, $2::text::bigint
      from taken t join json_to_recordset($6::text::json) as a (bucket text, ref bigint) on a.ref = t.ref
      on conflict (bucket, ref) do update set fence = excluded.fence),
    started as (
      insert into ${s}.windows (bucket, step, used, until)
      select a.bucket, a.step, sum(a.weight), max(a.until)
      from taken t
      join json_to_recordset($7::text::json) as a (bucket text, ref bigint, step bigint, weight bigint, until bigint) on a.ref = t.ref
      group by a.bucket, a.step
      on conflict (bucket, step) do update
      set used = windows.used + excluded.used, until = greatest(windows.until, excluded.until)),
    served as (
      insert into ${s}.turns (lane, last)
      select a.lane, a.last from json_to_recordset($8::text::json) as a (lane integer, last bigint)
      on conflict (lane) do update set last = excluded.last)
    select (select json_agg(${claimed} order by a.no)
            from taken t join given a on a.ref = t.ref cross join ${bodyOf('t.ref')})::text as jobs,
           (select json_agg(json_build_array(n.lane, n.queue, n.name, 0))
            from taken t cross join ${bodyOf('t.ref')} cross join ${laneOf('j.lane')})::text as lanes`,
  /** The same for one suspect, which is in `waiting`. */
  takeLimitedSuspect: `
    with head as materialized (
      select w.ref from ${s}.waiting w where w.ref = $4::text::bigint and w.state = 'ready' limit 1 for update skip locked),
    taken as (delete from ${s}.waiting where ref = any(array(select ref from head)) returning ref),
    lease as (
      insert into ${s}.leases (fence, worker, quarantined, claimed_at, starting, refs)
      select $2::text::bigint, $1, 1, $3::text::bigint, 1, array_agg(ref) from taken having count(*) > 0),
    slotted as (
      insert into ${s}.slots (bucket, ref, fence)
      select a.bucket, a.ref, $2::text::bigint
      from taken t join json_to_recordset($5::text::json) as a (bucket text, ref bigint) on a.ref = t.ref
      on conflict (bucket, ref) do update set fence = excluded.fence),
    started as (
      insert into ${s}.windows (bucket, step, used, until)
      select a.bucket, a.step, a.weight, a.until
      from taken t
      join json_to_recordset($6::text::json) as a (bucket text, ref bigint, step bigint, weight bigint, until bigint) on a.ref = t.ref
      on conflict (bucket, step) do update
      set used = windows.used + excluded.used, until = greatest(windows.until, excluded.until))
    select (select json_agg(${claimed}) from taken t cross join ${bodyOf('t.ref')})::text as jobs,
           (select json_agg(json_build_array(n.lane, n.queue, n.name, 0))
            from taken t cross join ${bodyOf('t.ref')} cross join ${laneOf('j.lane')})::text as lanes`,
  /** Slots and starts that no longer count. */
  dropSlots: `
    delete from ${s}.slots
    where (bucket, ref) in (
      select s.bucket, s.ref
      from (select bucket, ref, fence from ${s}.slots order by bucket, ref) s
      left join ${leaseOf('s.fence')} on true
      where e.fence is null or not (${holdsSlot}))`,
  dropWindows: `
    delete from ${s}.windows
    where ctid = any(array(
      select w.ctid from ${s}.windows w where w.until <= $1::text::bigint order by w.until limit 1000 for update skip locked))`,
  shortenWindows: `
    update ${s}.windows w
    set until = a.until
    from json_to_recordset($1::text::json) as a (bucket text, until bigint)
    where w.bucket = a.bucket and w.until > a.until`,
  putQueueLimits: `
    insert into ${s}.queue_limits (queue, max, rate_max, rate_per, set_at)
    values ($1, $2::text::bigint, $3::text::bigint, $4::text::bigint, $5::text::bigint)
    on conflict (queue) do update
    set max = excluded.max, rate_max = excluded.rate_max, rate_per = excluded.rate_per, set_at = excluded.set_at`,
  dropQueueLimits: `delete from ${s}.queue_limits where queue = $1`,
  readQueueLimits: `
    select queue, max, rate_max as "rateMax", rate_per as "ratePer" from ${s}.queue_limits order by queue`,
}
