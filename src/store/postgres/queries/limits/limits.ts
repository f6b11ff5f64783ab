import { HOLD_FROM_FREE } from '../../../../job/limits/limits.js'
import { TURN_SPAN } from '../../../../job/limits/turns.js'
import { bodyOf, claimed, clock, hasEnded, isPaused, laneOf, leaseOf, readyOf, s, sort } from '../sql-fragments.js'

/**
 * The rows of a CTE by way of arrays. The planner takes these for a few rows, as they are; its estimates for a recursive CTE
 * would make the statement look so dear that a server with JIT compiles it.
 */
const listOf = (cte: string, ...columns: readonly string[]): string =>
  `unnest(${columns.map((column) => `array(select ${column} from ${cte})`).join(', ')})`

const queueLimitsOf = (queue: string): string =>
  `lateral (select * from ${s}.queue_limits q where q.queue = ${queue} limit 1) q`

/** Whether the claim of a slot still has its job. */
const holdsSlot = `not s.ref = any(e.released) and not ${hasEnded('s.ref')}
        and (select j.ref from ${s}.jobs j where j.ref = s.ref) is not null`

/** Claims under limits and rates, and the limits of queues. */
export const limitQueries = {
  /**
   * All that a claim under limits decides from, in one statement. The lanes that are claimed under limits, those of queues that
   * are paused or have no room left out: of the names in $3, of queues with limits, and those that have ready jobs with keys. Of
   * each, the next turns and their first jobs: $5 of them, or $6 where jobs may be held in advance ($4: names whose jobs never
   * are). What is in use of the buckets of these jobs. How many claims there were of these jobs and queues: `takeLimited` refuses
   * when there was another one since.
   */
  readLimited: `
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
             n.lane = any(array(select (-turn / ${TURN_SPAN})::integer from filled)) as keyed,
             (select r.lane from ${s}.ready r where r.lane = n.lane order by r.lane, r.sort, r.ref limit 1) is not null as plain,
             (select w.lane from ${s}.waiting w where w.lane = n.lane and w.state = 'ready' limit 1) is not null as suspects,
             case
               when q.rate_max is not null or q.max < ${HOLD_FROM_FREE}
                 or n.name = any(array(select value from json_array_elements_text($4::text::json)))
               then $5::text::integer
               else $6::text::integer
             end as wanted,
             (select m.max from json_to_recordset($10::text::json) as m (name text, max bigint) where m.name = n.name limit 1) as job_max
      from clock, unnest(array(select lane from found)) as f (lane)
      cross join ${laneOf('f.lane')}
      left join ${queueLimitsOf('n.queue')} on true
      left join lateral (select t.last from ${s}.turns t where t.lane = n.lane limit 1) t on true
      where not ${isPaused('n.queue')}
        and ($7::text is null or n.name = any(array(select value from json_array_elements_text($7::text::json))))
        and ($8::text is null or n.queue = any(array(select value from json_array_elements_text($8::text::json))))
        and not n.queue = any(array(select value from json_array_elements_text($9::text::json)))),
    turn as materialized (
      select l.lane, l.wanted, t.part, t.turn
      from ${listOf('lane', 'lane', 'wanted', 'last', 'keyed', 'whole and plain')} as l (lane, wanted, last, keyed, plain)
      cross join lateral (
        -- The rotation: the turns after the last one, then the jobs without a key, then the turns up to the last one.
        select r.part, t.turn
        from (
          select 0 as part, case when l.last < 0 then l.last + 1 else -(l.lane::bigint * ${TURN_SPAN} + ${TURN_SPAN - 1}) end as first,
                 -(l.lane::bigint * ${TURN_SPAN}) as last
          where l.keyed
          union all
          select 1, l.lane, l.lane where l.plain
          union all
          select 2, -(l.lane::bigint * ${TURN_SPAN} + ${TURN_SPAN - 1}), l.last where l.keyed and l.last < 0) r
        cross join lateral (
          with recursive next as (
            (select e.lane as turn from ${s}.ready e where e.lane between r.first and r.last order by e.lane limit 1)
            union all
            select after.lane
            from next n
            cross join lateral (
              select e.lane from ${s}.ready e where e.lane > n.turn and e.lane <= r.last order by e.lane limit 1) after)
          select turn from next limit l.wanted) t
        order by r.part, t.turn
        limit l.wanted) t),
    head as materialized (
      select t.lane, t.part, t.turn, r.ref, r.sort
      from ${listOf('turn', 'lane', 'wanted', 'part', 'turn')} as t (lane, wanted, part, turn)
      cross join lateral (
        select r.ref, r.sort
        from ${s}.ready r
        where r.lane = t.turn
        order by r.sort, r.ref
        limit least(t.wanted, (2 * t.wanted - 1) / (select count(*) from turn other where other.lane = t.lane) + 1)) r),
    candidate as materialized (
      select h.lane, h.part, h.turn, h.ref, h.sort, j.rate_turn, j.weight
      from ${listOf('head', 'lane', 'part', 'turn', 'ref', 'sort')} as h (lane, part, turn, ref, sort)
      cross join ${bodyOf('h.ref')}),
    bucket as materialized (
      select bucket, max(max) as max
      from (
        select 'queue ' || queue as bucket, max from lane where plain or keyed
        union all
        select 'job ' || name, job_max from lane where plain or keyed
        union all
        select 'job ' || l.name || e'\n' || key, l.job_max
        from (
          select lane, mod(-turn, ${TURN_SPAN}) as key from candidate where turn < 0
          union
          select lane, rate_turn from candidate where rate_turn is not null) c
        join lane l on l.lane = c.lane) b
      group by bucket)
    select clock.now, (select w.worker from ${s}.workers w where w.worker = $2) is not null as alive,
           (select json_agg(json_build_array(n.queue, n.name))
            from (select lane from ${s}.outages order by lane) o cross join ${laneOf('o.lane')})::text as failing,
           (select json_agg(json_build_object('lane', lane, 'queue', queue, 'name', name, 'max', max, 'rateMax', rate_max,
              'ratePer', rate_per, 'last', last, 'whole', whole, 'suspects', suspects))
            from lane where plain or suspects or keyed)::text as lanes,
           (select json_agg(json_build_array(lane, turn, ref, sort, rate_turn, weight) order by lane, part, turn, sort, ref)
            from candidate)::text as candidates,
           -- Far below the limit the stored rows are counted, some of which may not count any more: each row that is looked at
           -- costs three lookups.
           (select json_agg(json_build_array(b.bucket,
              case when u.stored + $6::text::integer <= b.max then u.stored else (
                select count(*)
                from (select s.ref, s.fence from ${s}.slots s where s.bucket = b.bucket) s
                cross join ${leaseOf('s.fence')}
                where ${holdsSlot}) end,
              u.stored))
            from bucket b
            cross join lateral (select count(*) as stored from ${s}.slots s where s.bucket = b.bucket) u
            where u.stored > 0)::text as slots,
           (select json_agg(json_build_array(b.bucket, u.used, u.frees_at, u.lasts_until))
            from bucket b
            cross join lateral (
              select sum(w.used)::bigint as used, min(w.until) as frees_at, max(w.until) as lasts_until
              from ${s}.windows w
              where w.bucket = b.bucket and w.until > (select now from clock)) u
            where u.used is not null)::text as rates,
           (select json_agg(json_build_array(c.scope, c.version))
            from (
              select 'job ' || name as scope from lane where plain or suspects or keyed
              union
              select 'queue ' || queue from lane where plain or suspects or keyed) a
            cross join lateral (
              select c.scope, c.version from ${s}.limit_claims c where c.scope = a.scope limit 1) c)::text as versions
    from clock`,
  /**
   * Counts a claim of these jobs and queues, and locks the rows: claims run one after the other until this one has ended. They
   * come in one order, so that there is no deadlock.
   */
  lockLimits: `
    insert into ${s}.limit_claims (scope, version)
    select a.value, 1
    from json_array_elements_text($1::text::json) as a
    on conflict (scope) do update set version = limit_claims.version + 1
    returning scope, version`,
  /** One job, if it is ready. */
  readCandidate: `
    select r.ref, r.lane as turn, r.sort, j.rate_turn, j.weight
    from ${bodyOf('$1::text::bigint')}
    cross join ${readyOf('j')}`,
  /** Suspects are in no lane of `ready`. */
  limitedSuspects: `
    select w.ref, j.turn, ${sort('j')} as sort, j.rate_turn, j.weight, w.lane, j.streak
    from unnest($1::text::integer[]) as a (lane)
    cross join lateral (
      select w.ref, w.lane from ${s}.waiting w where w.lane = a.lane and w.state = 'ready' limit $2::text::integer) w
    cross join ${bodyOf('w.ref')}
    order by j.streak, ${sort('j')}, w.ref`,
  /** The same of the buckets of suspects. A slot counts while its claim has the job. */
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
   * their slots; $7: their starts; $8: the turns that were served; $9: how many claims of these jobs and queues there were when
   * it was read what is in use. It takes nothing when there was another one since. It waits for one that is under way, and
   * then has the new version of its rows.
   */
  takeLimited: `
    with expected as materialized (
      select a.scope, a.version from json_to_recordset($9::text::json) as a (scope text, version bigint)),
    held as materialized (
      select c.scope
      from expected a
      cross join lateral (
        select c.scope from ${s}.limit_claims c where c.scope = a.scope and c.version = a.version limit 1 for update) c),
    counted as (
      update ${s}.limit_claims c
      set version = c.version + 1
      where c.scope = any(array(select scope from held))
        and (select count(*) from held) = (select count(*) from expected)),
    given as materialized (
      select a.no, a.ref, a.turn, a.sort
      from json_to_recordset($4::text::json) as a (no integer, ref bigint, turn bigint, sort bigint)
      where (select count(*) from held) = (select count(*) from expected)),
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
      select a.lane, a.last
      from json_to_recordset($8::text::json) as a (lane integer, last bigint)
      where (select count(*) from given) > 0
      on conflict (lane) do update set last = excluded.last)
    select (select count(*) from held) < (select count(*) from expected) as refused,
           (select json_agg(${claimed} order by a.no)
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
    delete from ${s}.slots d
    using (
      select s.bucket, s.ref, s.fence
      from (select bucket, ref, fence from ${s}.slots order by bucket, ref) s
      left join ${leaseOf('s.fence')} on true
      where e.fence is null or not (${holdsSlot})) s
    where d.bucket = s.bucket and d.ref = s.ref and d.fence = s.fence`,
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
