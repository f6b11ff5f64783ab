import { DAY_MS } from '../numbers.js'
import { s, clock, sort, stands, hasEnded, bodyOf, forgetting } from './words.js'

/** What time brings. */
export const upkeepQueries = {
  sweepPlaces: `
    with looked as materialized (
      select u.name, u.key, u.xmin as version,
             (u.until is null or u.until <= coalesce($1::text::bigint, ${clock}))
             and (j.ref is null or ${hasEnded('u.ref')}) as over
      from ${s}.uniques u
      left join ${bodyOf('u.ref')} on j.id = u.id
      where (u.name, u.key) > ($2, $3)
      order by u.name, u.key
      limit $4::text::integer),
    chosen as (select * from looked where over order by name, key limit $5::text::integer),
    swept as (
      delete from ${s}.uniques u using chosen c
      -- As it was seen: a job that was made live again took its place anew.
      where u.name = c.name and u.key = c.key and u.xmin = c.version
      returning 1)
    select (select count(*)::integer from swept) as swept, (select count(*)::integer from looked) as looked,
           (select json_build_array(name, key) from looked order by name desc, key desc limit 1) as last,
           (select json_build_array(name, key) from chosen order by name desc, key desc limit 1) as chosen`,
  promoteJobs: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    due as (
      select w.ref
      from ${s}.waiting w, clock
      where w.state in ('scheduled', 'retrying') and w.due_at <= now
      order by w.due_at
      limit $2::text::integer
      for update of w skip locked),
    taken as (delete from ${s}.waiting where ref = any(array(select ref from due)) returning ref, lane, state, grp),
    counted as (
      insert into ${s}.group_moves (grp, queue, state, members)
      select t.grp, n.queue, each.state, sum(each.members)
      from taken t
      join ${s}.lanes n on n.lane = t.lane
      cross join lateral (values (t.state, -1), ('ready', 1)) as each (state, members)
      where t.grp is not null
      group by 1, 2, 3),
    line as (
      insert into ${s}.ready (lane, sort, ref)
      select j.lane, ${sort('j')}, j.ref from taken cross join ${bodyOf('taken.ref')} where not j.suspect),
    aside as (
      insert into ${s}.waiting (ref, lane, state, due_at, grp)
      select j.ref, j.lane, 'ready', j.due_at, j.grp from taken cross join ${bodyOf('taken.ref')} where j.suspect)
    select (select count(*)::integer from taken) as promoted, now from clock`,
  nextTimes: `
    select (select min(due_at) from ${s}.waiting where state in ('scheduled', 'retrying')) as due,
           (select min(x.expires_at) from ${s}.expiring x
            join ${bodyOf('x.ref')} on j.expires_at = x.expires_at
            left join ${s}.ready r on ${stands}
            left join ${s}.waiting w on w.ref = j.ref and w.state <> 'parked'
            where r.ref is not null or w.ref is not null) as expiry,
           exists (select 1 from ${s}.link_todos) as todo,
           exists (select 1 from ${s}.group_moves) as moved`,
  expiredJobs: `
    select j.id, n.name, n.queue, coalesce(w.state, 'ready') as state
    from ${s}.expiring x
    join ${bodyOf('x.ref')} on j.expires_at = x.expires_at
    join ${s}.lanes n on n.lane = j.lane
    left join ${s}.ready r on ${stands}
    left join ${s}.waiting w on w.ref = j.ref and w.state <> 'parked'
    where x.expires_at <= $1::text::bigint and (r.ref is not null or w.ref is not null)
    limit $2::text::integer`,
  sweepExpiring: `
    delete from ${s}.expiring x
    where x.expires_at <= $1::text::bigint
      and (
        select j.ref from ${s}.jobs j
        where j.ref = x.ref and j.expires_at = x.expires_at and not ${hasEnded('j.ref')}) is null`,
  /** What was kept for less than a day, and what of the rest is kept no longer. All else goes with its day. */
  pruneJobs: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    old as materialized (
      select ref from (
        (select ref, keep_until from ${s}.history
         where keep_until <= (select now from clock) and keep_until - settled_at < ${DAY_MS}
         order by keep_until
         limit $2::text::integer)
        union
        (select ref, keep_until from ${s}.history_rest
         where keep_until <= (select now from clock) and keep_until is not null
         order by keep_until
         limit $2::text::integer)) as over
      order by keep_until
      limit $2::text::integer),
    ${forgetting(s, 'old')}
    select count(*)::integer as pruned, (select count(*)::integer from noted) as told from gone`,
}
