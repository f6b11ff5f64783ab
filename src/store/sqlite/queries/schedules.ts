import { plainLane } from './sql-fragments.js'

const schedule = `id, revision, spec, created_at, paused_at, next_at, last_at, open, fired`

/** Schedules and their ledgers. */
export const scheduleQueries = {
  readSchedule: `
    select ${schedule}
    from millrace_schedules
    where id = ?`,
  listSchedules: `
    select ${schedule}
    from millrace_schedules
    where id > ?
    order by id
    limit ?`,
  addSchedule: `
    insert into millrace_schedules (id, revision, spec, created_at, paused_at, next_at)
    values (?, 1, ?, ?, ?, ?)
    on conflict (id) do nothing
    returning 1 as written`,
  putSchedule: `
    update millrace_schedules
    set revision = revision + 1, spec = ?, created_at = ?, paused_at = ?, next_at = ?
    where id = ? and revision = ?
    returning 1 as written`,
  lockSchedule: `
    select ${schedule}
    from millrace_schedules
    where id = ? and revision = ?`,
  moveSchedule: `
    update millrace_schedules
    set revision = revision + 1, paused_at = ?, next_at = ?, last_at = ?, open = ?, fired = fired + 1
    where id = ?`,
  dropSchedule: `
    delete from millrace_schedules
    where id = ?
    returning 1 as dropped`,
  dropTicks: `
    delete from millrace_ticks
    where schedule = ?`,
  dueSchedules: `
    select ${schedule}
    from millrace_schedules
    where next_at <= ?
    order by next_at
    limit ?`,
  nextSchedule: `
    select (select min(next_at) from millrace_schedules where next_at > clock.now) as next, clock.now as now
    from (select ? as now) clock`,
  firedTicks: `
    select at, by_hand
    from millrace_ticks
    where schedule = ? and (at, by_hand) in (select value ->> 'at', value ->> 'by_hand' from json_each(?))
      and job is not null`,
  putTicks: `
    insert into millrace_ticks (schedule, at, by_hand, outcome, reason, job, fired_at)
    select ?, value ->> 'at', value ->> 'by_hand', value ->> 'outcome', value ->> 'reason', value ->> 'job', value ->> 'fired_at'
    from json_each(?)
    where true
    on conflict (schedule, at, by_hand) do update
    set outcome = excluded.outcome, reason = excluded.reason, job = excluded.job, fired_at = excluded.fired_at
    where millrace_ticks.job is null`,
  /** Keeps the tick at this offset and all newer ones. */
  trimTicks: `
    delete from millrace_ticks
    where schedule = ?1
      and at < (select at from millrace_ticks where schedule = ?1 order by at desc limit 1 offset ?2)`,
  readTicks: `
    select at, by_hand, outcome, reason, job, fired_at
    from millrace_ticks
    where schedule = ? and at < ?
    order by at desc, by_hand desc
    limit ?`,
  waitingDue: `
    select j.id, n.name, n.queue, l.state, l.due_at, j.options
    from millrace_live l
    join millrace_jobs j on j.seq = l.seq
    join millrace_lanes n on n.lane = j.lane
    where l.state in ('scheduled', 'retrying') and l.held is null and l.due_at <= ?
    order by l.due_at
    limit ?`,
  /** In the order of claims: the first jobs of each lane, and suspects, which no lane lists. */
  waitingBins: `
    select n.queue, cast((w.due_at - ?1) / ?2 as integer) as bin, count(*) as count
    from (
      select l.lane, l.due_at from millrace_live l
      where l.state in ('scheduled', 'retrying') and l.held is null and l.due_at <= ?3
      order by l.due_at
      limit ?4) w
    cross join millrace_lanes n on n.lane = ${plainLane('w.lane')}
    group by 1, 2`,
  readyDue: `
    with listed as (
      select l.seq, l.sort
      from millrace_lanes n
      cross join millrace_live l on l.seq in (
        select r.seq from millrace_live r
        where r.lane = n.lane and r.state = 'ready' and r.fence is null and r.streak < 2
        order by r.sort, r.seq
        limit ?1)
      union all
      select l.seq, l.sort from millrace_live l where l.state = 'ready' and l.fence is null and l.streak >= 2),
    first as (select seq from listed order by sort, seq limit ?1)
    select j.id, n.name, n.queue, l.state, l.due_at, j.options
    from first
    cross join millrace_live l on l.seq = first.seq
    join millrace_jobs j on j.seq = l.seq
    join millrace_lanes n on n.lane = j.lane`,
}
