import { TURN_SPAN } from '../../../../job/limits/turns.js'
import { plainLane } from '../sql-fragments.js'

const readyIn = (lanes: string): string =>
  `select l.due_at from millrace_live l where l.lane ${lanes} and l.state = 'ready' and l.fence is null and l.streak < 2`
const ofLane = readyIn('= n.lane')
const ofTurns = readyIn(`between -((n.lane + 1) * ${TURN_SPAN} - 1) and -(n.lane * ${TURN_SPAN})`)
const waitingIn = (state: string): string =>
  `select * from (select l.lane, l.state from millrace_live l where l.state = '${state}' limit ?1)`

/** Statistics of ended attempts, and error groups (`store/verbs/statistics.ts`). */
export const statisticsQueries = {
  countAttempts: `
    insert into millrace_stats_moves (queue, name, at, done, failed, retried, wait, run, failures)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  /** Buckets and unfolded rows in one snapshot: a fold of another process must not be seen in one of them only. */
  readStats: `
    select s.queue, s.name, s.at, s.done, s.failed, s.retried, case when ?6 then s.wait end as wait, case when ?7 then s.run end as run
    from json_each(?1) r
    cross join millrace_lanes n
    cross join millrace_stats s
      on s.queue = n.queue and s.name = n.name and s.span = r.value->>'spanMs' and s.at >= r.value->>'from' and s.at < r.value->>'to'
    where (?2 is null or n.queue = ?2) and (?3 is null or n.name = ?3)
    union all
    select queue, name, at, done, failed, retried, case when ?6 then wait end, case when ?7 then run end
    from millrace_stats_moves
    where (?2 is null or queue = ?2) and (?3 is null or name = ?3) and at >= ?4 and at < ?5`,
  firstStatMove: `
    select at, (select max(number) from millrace_stats_moves) - number + 1 as moves
    from millrace_stats_moves
    order by number
    limit 1`,
  /** One writer at a time is the rule of the file. */
  foldAlone: `select 1 as alone`,
  takeStatMoves: `
    delete from millrace_stats_moves
    where number in (select number from millrace_stats_moves order by number limit ?)
    returning queue, name, at, done, failed, retried, wait, run, failures`,
  readBuckets: `
    select s.queue, s.name, s.span, s.at, s.done, s.failed, s.retried, s.wait, s.run
    from json_each(?) k
    cross join millrace_stats s
      on s.queue = k.value->>'queue' and s.name = k.value->>'name' and s.span = k.value->>'span' and s.at = k.value->>'at'`,
  putBuckets: `
    insert or replace into millrace_stats (queue, name, span, at, done, failed, retried, wait, run)
    select value->>'queue', value->>'name', value->>'span', value->>'at', value->>'done', value->>'failed', value->>'retried',
           value->>'wait', value->>'run'
    from json_each(?)`,
  trimStats: `
    delete from millrace_stats
    where (queue, name, span, at) in (
      select s.queue, s.name, s.span, s.at
      from millrace_lanes n
      cross join millrace_stats s on s.queue = n.queue and s.name = n.name and s.span = ?1 and s.at < ?2)`,
  readDayFailures: `
    select f.queue, f.name, f.at, f.fingerprint, f.error, f.place, f.count, f.first_seen, f.last_seen, f.samples
    from json_each(?) k
    cross join millrace_failures f
      on f.queue = k.value->>'queue' and f.name = k.value->>'name' and f.at = k.value->>'at'`,
  putFailures: `
    insert or replace into millrace_failures
      (queue, name, at, fingerprint, error, place, count, first_seen, last_seen, samples)
    select value->>'queue', value->>'name', value->>'at', value->>'fingerprint', value->>'error', value->>'place',
           value->>'count', value->>'first_seen', value->>'last_seen', value->>'samples'
    from json_each(?)`,
  trimFailures: `
    delete from millrace_failures
    where (queue, name, at, fingerprint) in (
      select f.queue, f.name, f.at, f.fingerprint
      from millrace_lanes n
      cross join millrace_failures f on f.queue = n.queue and f.name = n.name and f.at < ?1)`,
  /** Ready jobs by lane, others by state, each up to a bound: no backlog makes it slow. */
  countQueues: `
    select n.queue, 'ready' as state,
           sum((select count(*) from (${ofLane} limit ?1)) + (select count(*) from (${ofTurns} limit ?1))
             + (select count(*) from millrace_live l where l.lane = n.lane and l.state = 'ready' and l.fence is null and l.streak >= 2)) as count,
           min(coalesce((${ofLane} order by l.sort limit 1), (${ofTurns} order by l.lane, l.sort limit 1))) as due_at
    from millrace_lanes n
    group by n.queue
    union all
    select n.queue, w.state, count(*), null
    from (${['scheduled', 'retrying', 'blocked', 'paused', 'parked'].map(waitingIn).join(' union all ')}) w
    cross join millrace_lanes n on n.lane = ${plainLane('w.lane')}
    group by n.queue, w.state
    union all
    -- What workers hold: it runs, or waits in advance for a slot.
    select n.queue, l.state, count(*), null
    from millrace_leases e
    cross join json_each(e.jobs) held
    cross join millrace_live l on l.seq = held.value and l.fence = e.fence
    cross join millrace_lanes n on n.lane = ${plainLane('l.lane')}
    where l.state = 'running'
    group by n.queue, l.state
    union all
    select n.queue, 'failed', sum(h.count), null
    from (
      select lane, count(*) as count
      from (select lane from millrace_history indexed by millrace_history_failed where state = 'failed' limit ?1)
      group by lane) h
    cross join millrace_lanes n on n.lane = h.lane
    group by n.queue`,
  readFailures: `
    select f.queue, f.name, f.at, f.fingerprint, f.error, f.place, f.count, f.first_seen, f.last_seen, f.samples,
           null as failures
    from millrace_lanes n
    cross join millrace_failures f on f.queue = n.queue and f.name = n.name and f.at >= ?3
    where (?1 is null or n.queue = ?1) and (?2 is null or n.name = ?2)
    union all
    select queue, name, at, '', '', '', 0, at, at, '[]', failures
    from millrace_stats_moves
    where failures is not null and (?1 is null or queue = ?1) and (?2 is null or name = ?2) and at >= ?3`,
  /** The same of one group. */
  readFailure: `
    select queue, name, at, fingerprint, error, place, count, first_seen, last_seen, samples, null as failures
    from millrace_failures
    where fingerprint = ?4 and at >= ?3 and (?1 is null or queue = ?1) and (?2 is null or name = ?2)
    union all
    select queue, name, at, '', '', '', 0, at, at, '[]', failures
    from millrace_stats_moves
    where failures is not null and (?1 is null or queue = ?1) and (?2 is null or name = ?2) and at >= ?3`,
  /** When these error groups were first seen. */
  firstSeen: `
    select given.value as fingerprint,
           (select f.first_seen from millrace_failures f where f.fingerprint = given.value order by f.at limit 1) as first_seen
    from json_each(?) given`,
}
