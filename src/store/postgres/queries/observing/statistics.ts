import { TURN_SPAN } from '../../../../job/limits/turns.js'
import { bodyOf, clock, countedAttempts, hasEnded, laneOf, s, SCHEMA_TEXT } from '../sql-fragments.js'

const bucketColumns = `queue text, name text, span bigint, at bigint, done bigint, failed bigint, retried bigint, wait text, run text`

const bound = `limit $1::text::integer`
const readyIn = (lanes: string): string =>
  `select r.ref from ${s}.ready r where r.lane ${lanes} order by r.lane, r.sort, r.ref`
const ofLane = readyIn('= n.lane')
const ofTurns = readyIn(`between -((n.lane + 1)::bigint * ${TURN_SPAN} - 1) and -(n.lane::bigint * ${TURN_SPAN})`)
const waitingIn = (state: string): string =>
  `(select w.lane, w.state from ${s}.waiting w where w.state = '${state}' order by w.state, w.ref ${bound})`
/** The ranges of a window: minutes, hours, days, hours, minutes. It tells the planner that they are few. */
const RANGES_MAX = 5
/** Claimed jobs that are read: with more, the planner would take the statement for a costly one. */
const RUNNING_MAX = 2_000

/** Statistics of ended attempts, and error groups (`store/verbs/statistics.ts`). */
export const statisticsQueries = {
  countAttempts: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now)
    ${countedAttempts('$2')}`,
  /** Buckets and unfolded rows in one snapshot: a fold of another process must not be seen in one of them only. */
  readStats: `
    select b.queue, b.name, b.at, b.done, b.failed, b.retried, case when $6::text::boolean then b.wait end as wait,
           case when $7::text::boolean then b.run end as run
    from (
      select * from json_to_recordset($1::text::json) as r ("spanMs" bigint, "from" bigint, "to" bigint)
      limit ${RANGES_MAX}) r
    cross join (
      select n.queue, n.name from ${s}.lanes n
      where ($2::text is null or n.queue = $2) and ($3::text is null or n.name = $3)
      order by n.queue, n.name) n
    cross join lateral (
      select * from ${s}.stats b
      where b.queue = n.queue and b.name = n.name and b.span = r."spanMs" and b.at >= r."from" and b.at < r."to"
      order by b.at) b
    union all
    select m.queue, m.name, m.at, m.done, m.failed, m.retried, case when $6::text::boolean then m.wait end,
           case when $7::text::boolean then m.run end
    from (
      select * from ${s}.stats_moves m where m.number > 0 order by m.number) m
    where ($2::text is null or m.queue = $2) and ($3::text is null or m.name = $3)
      and m.at >= $4::text::bigint and m.at < $5::text::bigint`,
  firstStatMove: `
    select m.at, (select max(l.number) from ${s}.stats_moves l) - m.number + 1 as moves
    from ${s}.stats_moves m
    order by m.number
    limit 1`,
  /** One process at a time folds; the others do not wait for it. */
  foldAlone: `
    select 1 as alone where pg_try_advisory_xact_lock(hashtextextended('millrace statistics ${SCHEMA_TEXT}', 7))`,
  takeStatMoves: `
    delete from ${s}.stats_moves
    where number = any(array(select m.number from ${s}.stats_moves m order by m.number limit $1::text::integer))
    returning queue, name, at, done, failed, retried, wait, run, failures`,
  readBuckets: `
    select b.*
    from json_to_recordset($1::text::json) as k (queue text, name text, span bigint, at bigint)
    cross join lateral (
      select b.queue, b.name, b.span, b.at, b.done, b.failed, b.retried, b.wait, b.run
      from ${s}.stats b
      where b.queue = k.queue and b.name = k.name and b.span = k.span and b.at = k.at
      limit 1) b`,
  putBuckets: `
    insert into ${s}.stats (queue, name, span, at, done, failed, retried, wait, run)
    select a.queue, a.name, a.span, a.at, a.done, a.failed, a.retried, a.wait, a.run
    from json_to_recordset($1::text::json) as a (${bucketColumns})
    on conflict (queue, name, span, at) do update
    set done = excluded.done, failed = excluded.failed, retried = excluded.retried, wait = excluded.wait, run = excluded.run`,
  trimStats: `
    with over as materialized (
      select b.at_row
      from (select n.queue, n.name from ${s}.lanes n order by n.queue, n.name) n
      cross join lateral (
        select b.ctid as at_row from ${s}.stats b
        where b.queue = n.queue and b.name = n.name and b.span = $1::text::bigint and b.at < $2::text::bigint
        order by b.at) b)
    delete from ${s}.stats where ctid = any(array(select at_row from over))`,
  readDayFailures: `
    select f.*
    from json_to_recordset($1::text::json) as k (queue text, name text, at bigint)
    cross join lateral (
      select f.queue, f.name, f.at, f.fingerprint, f.error, f.place, f.count, f.first_seen, f.last_seen, f.samples
      from ${s}.failures f
      where f.queue = k.queue and f.name = k.name and f.at = k.at
      order by f.fingerprint) f`,
  putFailures: `
    insert into ${s}.failures (queue, name, at, fingerprint, error, place, count, first_seen, last_seen, samples)
    select a.queue, a.name, a.at, a.fingerprint, a.error, a.place, a.count, a.first_seen, a.last_seen, a.samples
    from json_to_recordset($1::text::json) as a (
      queue text, name text, at bigint, fingerprint text, error text, place text, count bigint, first_seen bigint, last_seen bigint,
      samples text)
    on conflict (queue, name, at, fingerprint) do update
    set count = excluded.count, first_seen = excluded.first_seen, last_seen = excluded.last_seen, samples = excluded.samples`,
  trimFailures: `
    with over as materialized (
      select f.at_row
      from (select n.queue, n.name from ${s}.lanes n order by n.queue, n.name) n
      cross join lateral (
        select f.ctid as at_row from ${s}.failures f
        where f.queue = n.queue and f.name = n.name and f.at < $1::text::bigint
        order by f.at) f)
    delete from ${s}.failures where ctid = any(array(select at_row from over))`,
  /** Ready jobs by lane, others by state, each up to a bound: no backlog makes it slow. */
  countQueues: `
    select n.queue, 'ready' as state, sum(r.count)::bigint as count, min(j.due_at) as due_at
    from (select n.lane, n.queue from ${s}.lanes n order by n.lane) n
    cross join lateral (
      select (select count(*) from (${ofLane} ${bound}) as r) + (select count(*) from (${ofTurns} ${bound}) as r)
             + (select count(*) from ${s}.waiting w where w.lane = n.lane and w.state = 'ready') as count,
             coalesce((${ofLane} limit 1), (${ofTurns} limit 1)) as first) r
    left join ${bodyOf('r.first')} on true
    group by n.queue
    union all
    select n.queue, w.state, count(*), null
    from (${['scheduled', 'retrying', 'blocked', 'paused', 'parked'].map(waitingIn).join(' union all ')}) w
    cross join ${laneOf('w.lane')}
    group by n.queue, w.state
    union all
    select n.queue, 'running', count(*), null
    from (
      select e.fence, e.starting, held.ref, held.position
      from (select * from ${s}.leases order by fence) e
      cross join unnest(e.refs) with ordinality as held (ref, position)
      where not held.ref = any(e.released)
      limit ${RUNNING_MAX}) e
    left join lateral (
      select p.started_at from ${s}.reports p where p.ref = e.ref and p.fence = e.fence limit 1) p on true
    cross join ${bodyOf('e.ref')}
    cross join ${laneOf('j.lane')}
    where not ${hasEnded('e.ref')} and (e.position <= e.starting or p.started_at is not null)
    group by n.queue
    union all
    select n.queue, 'failed', sum(h.count)::bigint, null
    from (
      select h.lane, count(*) as count
      from (select h.lane from ${s}.history h where h.state = 'failed' order by h.lane ${bound}) h
      group by h.lane) h
    cross join ${laneOf('h.lane')}
    group by n.queue`,
  readFailures: `
    select f.queue, f.name, f.at, f.fingerprint, f.error, f.place, f.count, f.first_seen, f.last_seen, f.samples,
           null::text as failures
    from (
      select n.queue, n.name from ${s}.lanes n
      where ($1::text is null or n.queue = $1) and ($2::text is null or n.name = $2)
      order by n.queue, n.name) n
    cross join lateral (
      select * from ${s}.failures f
      where f.queue = n.queue and f.name = n.name and f.at >= $3::text::bigint
      order by f.at) f
    union all
    select m.queue, m.name, m.at, '', '', '', 0, m.at, m.at, '[]', m.failures
    from (select * from ${s}.stats_moves m where m.number > 0 order by m.number) m
    where m.failures is not null and ($1::text is null or m.queue = $1) and ($2::text is null or m.name = $2)
      and m.at >= $3::text::bigint`,
  /** The same of one group. */
  readFailure: `
    select f.queue, f.name, f.at, f.fingerprint, f.error, f.place, f.count, f.first_seen, f.last_seen, f.samples,
           null::text as failures
    from (
      select * from ${s}.failures f
      where f.fingerprint = $4 and f.at >= $3::text::bigint
        and ($1::text is null or f.queue = $1) and ($2::text is null or f.name = $2)
      order by f.fingerprint, f.at) f
    union all
    select m.queue, m.name, m.at, '', '', '', 0, m.at, m.at, '[]', m.failures
    from (select * from ${s}.stats_moves m where m.number > 0 order by m.number) m
    where m.failures is not null and ($1::text is null or m.queue = $1) and ($2::text is null or m.name = $2)
      and m.at >= $3::text::bigint`,
  /** When these error groups were first seen. */
  firstSeen: `
    select k.fingerprint, k.first_seen
    from json_array_elements_text($1::text::json) as given (fingerprint)
    cross join lateral (
      select f.fingerprint, f.first_seen from ${s}.failures f
      where f.fingerprint = given.fingerprint
      order by f.at
      limit 1) k`,
}
