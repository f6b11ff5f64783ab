import { s, clock, laneOf } from './sql-fragments.js'

const schedule = `id, revision, spec, created_at, paused_at, next_at, last_at, open, fired`
/** A subquery, evaluated once: a volatile function could not be compared with an index. */
const now = `(select coalesce($1::text::bigint, ${clock}))`

/** Schedules and their ledger. */
export const scheduleQueries = {
  readSchedule: `select ${schedule} from ${s}.schedules where id = $1`,
  listSchedules: `select ${schedule} from ${s}.schedules where id > $1 order by id limit $2::text::integer`,
  addSchedule: `
    insert into ${s}.schedules (id, revision, spec, created_at, paused_at, next_at)
    values ($1, 1, $2, $3::text::bigint, $4::text::bigint, $5::text::bigint)
    on conflict (id) do nothing
    returning 1 as written`,
  putSchedule: `
    update ${s}.schedules
    set revision = revision + 1, spec = $1, created_at = $2::text::bigint, paused_at = $3::text::bigint, next_at = $4::text::bigint
    where id = $5 and revision = $6::text::bigint
    returning 1 as written`,
  /** Skips a schedule that another transaction has locked: that one fires it, and this one would only find it stale. */
  lockSchedule: `
    select ${schedule} from ${s}.schedules
    where id = $1 and revision = $2::text::bigint
    for update skip locked`,
  moveSchedule: `
    update ${s}.schedules
    set revision = revision + 1, paused_at = $1::text::bigint, next_at = $2::text::bigint, last_at = $3::text::bigint,
        open = $4, fired = fired + 1
    where id = $5`,
  /**
   * The schedule is deleted first, and its ticks by another statement: a transaction that waited for a firing sees that
   * one's ticks only in a new snapshot.
   */
  dropSchedule: `delete from ${s}.schedules where id = $1 returning 1 as dropped`,
  dropTicks: `delete from ${s}.ticks where schedule = $1`,
  dueSchedules: `
    select ${schedule}, ${now} as now
    from ${s}.schedules
    where next_at <= ${now}
    order by next_at
    limit $2::text::integer`,
  nextSchedule: `
    select (select next_at from ${s}.schedules where next_at > ${now} order by next_at limit 1) as next, ${now} as now`,
  firedTicks: `
    select t.at, t.by_hand
    from json_to_recordset($2::text::json) as a (at bigint, by_hand boolean)
    cross join lateral (
      select t.at, t.by_hand, t.job from ${s}.ticks t
      where t.schedule = $1 and t.at = a.at and t.by_hand = a.by_hand
      limit 1) t
    where t.job is not null`,
  putTicks: `
    insert into ${s}.ticks (schedule, at, by_hand, outcome, reason, job, fired_at)
    select $1, a.at, a.by_hand, a.outcome, a.reason, a.job, a.fired_at
    from json_to_recordset($2::text::json) as a (
      at bigint, by_hand boolean, outcome text, reason text, job uuid, fired_at bigint)
    on conflict (schedule, at, by_hand) do update
    set outcome = excluded.outcome, reason = excluded.reason, job = excluded.job, fired_at = excluded.fired_at
    where ticks.job is null`,
  /** Keeps the tick at this offset and all newer ones. */
  trimTicks: `
    delete from ${s}.ticks
    where schedule = $1
      and at < (select at from ${s}.ticks where schedule = $1 order by at desc limit 1 offset $2::text::integer)`,
  readTicks: `
    select at, by_hand, outcome, reason, job, fired_at
    from ${s}.ticks
    where schedule = $1 and at < $2::text::bigint
    order by at desc, by_hand desc
    limit $3::text::integer`,
  waitingDue: `
    with w as materialized (
      select ref, state, due_at from ${s}.waiting
      where state in ('scheduled', 'retrying') and held is not true and due_at <= $1::text::bigint
      order by due_at
      limit $2::text::integer)
    select j.id, n.name, n.queue, w.state, w.due_at, j.options
    from w
    join ${s}.jobs j on j.ref = any(array(select ref from w)) and j.ref = w.ref
    cross join ${laneOf('j.lane')}`,
  /** In the order of claims: the first jobs of each lane, and suspects, which no lane lists. */
  waitingBins: `
    select n.queue, floor((w.due_at - $1::text::bigint)::float8 / $2::text::bigint) as bin, count(*) as count
    from (
      select lane, due_at from ${s}.waiting
      where state in ('scheduled', 'retrying') and held is not true and due_at <= $3::text::bigint
      order by due_at
      limit $4::text::integer) w
    cross join ${laneOf('w.lane')}
    group by 1, 2`,
  readyDue: `
    select j.id, n.name, n.queue, 'ready' as state, j.due_at, j.options
    from ${s}.jobs j
    cross join ${laneOf('j.lane')}
    where j.ref = any(array(
      (select r.ref
       from ${s}.lanes n
       cross join lateral (
         select ref, sort from ${s}.ready where lane = n.lane order by sort, ref limit $1::text::integer) r
       order by r.sort, r.ref
       limit $1::text::integer)
      union all
      (select ref from ${s}.waiting where state = 'ready' order by lane limit $1::text::integer)))`,
}
