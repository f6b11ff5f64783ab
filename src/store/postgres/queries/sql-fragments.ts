import { TURN_SPAN } from '../../../job/limits/turns.js'
import { PRIORITY_STEP_MS } from '../../rows/ordering.js'
import { DAY_MS, NUMBER_BITS } from '../numbers.js'

/*
 * Parts that statements share. A statement is a constant; the names of schema and channel are filled in when a database
 * is opened (`makeQueries`).
 */

/** Placeholder of the schema as an identifier. */
export const s = '\u0001schema\u0001'
/** The same within an SQL string. */
export const SCHEMA_TEXT = '\u0001schema text\u0001'
/**
 * Options as JSON that the server can parse. A title or `meta` may contain NUL and lone surrogates, which JSON can
 * escape and the server cannot represent as text: their escapes are replaced by others of the same length. Names
 * contain none of them.
 */
export const optionsJson = (column: string): string =>
  `regexp_replace(${column}, '\\\\u(0000|d[89a-f][0-9a-f]{2})', '\\\\u0001', 'gi')::json`
export const CHANNEL = '\u0001channel\u0001'

export const clock = `(extract(epoch from clock_timestamp()) * 1000)::bigint`
export const DATABASE_NOW = `select ${clock} as now`
export const given = `given as materialized (
    select g, coalesce((g->>'now')::bigint, ${clock}) as now from (select $1::text::json as g) as json)`
export const newRef = `((now / ${DAY_MS}) << ${NUMBER_BITS}) | nextval('${SCHEMA_TEXT}.job_number')`
export const sort = (table: string): string => `${table}.due_at - ${table}.priority::bigint * ${PRIORITY_STEP_MS}`
/** The lane of a job in `ready`: that of its turn, if it has one (job/limits/turns.ts). */
export const turnLane = (lane: string, turn: string): string =>
  `coalesce(-(${lane}::bigint * ${TURN_SPAN} + ${turn}), ${lane})`
/** Whether a row of `ready` is that of a job. */
export const isReadyRowOf = (ready: string, job: string): string =>
  `${ready}.lane = ${turnLane(`${job}.lane`, `${job}.turn`)} and ${ready}.sort = ${sort(job)} and ${ready}.ref = ${job}.ref`
/*
 * The planner does not see that a ref is in one partition only, and for a few refs would sometimes scan all of every
 * day. So it is given no choice: one lookup per ref.
 */
export const hasEnded = (ref: string): string => `((select h.ref from ${s}.history h where h.ref = ${ref}) is not null)`
export const bodyOf = (ref: string): string => `lateral (select * from ${s}.jobs j where j.ref = ${ref} limit 1) j`
export const laneOf = (lane: string): string => `lateral (select * from ${s}.lanes n where n.lane = ${lane} limit 1) n`
export const leaseOf = (fence: string): string =>
  `lateral (select * from ${s}.leases e where e.fence = ${fence} limit 1) e`
export const hasChildren = (ref: string, schema = s): string =>
  `((select l.parent from ${schema}.links l where l.parent = ${ref} limit 1) is not null)`
export const waitingOf = (ref: string): string =>
  `lateral (select w.* from ${s}.waiting w where w.ref = ${ref} limit 1) w`
export const readyOf = (job: string): string => `lateral (
    select r.* from ${s}.ready r where ${isReadyRowOf('r', job)} limit 1) r`
/**
 * A whole job in any state. The limit makes history be read one job after the other, each in the partition of its day:
 * with its estimates for so many tables the planner would sometimes scan all of them.
 */
export const jobRowFrom = (jobs: string): string => `
  select j.ref, j.id::text as id, n.name, n.queue, j.lane, j.turn, j.rate_turn, j.weight, j.priority, j.key, j.grp, j.payload, encode(j.bytes, 'base64') as bytes, j.options,
         j.shape, j.after, j.created_at, j.due_at, j.expires_at, coalesce(j.streak, 0) as streak,
         case
           when h.ref is not null then h.state
           when w.ref is not null then w.state
           when r.ref is not null then 'ready'
           when p.ref is not null or e.position <= e.starting then 'running'
           else 'ready'
         end as state,
         case when h.ref is not null then 'history' when w.ref is not null then 'waiting' when r.ref is not null then 'ready'
           else 'lease' end as stored_in,
         e.fence,
         coalesce(h.attempt, j.attempt, case when h.state = 'done' then 1 else 0 end) as attempt,
         coalesce(h.retries, j.retries, 0) as retries,
         coalesce(h.crashes, j.crashes, 0) as crashes,
         coalesce(h.started_at, p.started_at, case when e.position <= e.starting then e.claimed_at end) as started_at,
         h.settled_at, coalesce(h.worker, e.worker) as worker, h.result, encode(h.result_bytes, 'base64') as result_bytes,
         case when h.ref is null then j.error else h.error end as error,
         case when h.ref is null then j.reason else h.reason end as reason,
         case when h.ref is null then j.log else h.log end as log,
         p.progress, coalesce(h.version, j.xmin::text) as version
  from ${jobs} j
  cross join ${laneOf('j.lane')}
  left join lateral (select h.*, h.xmin::text as version from ${s}.history h where h.ref = j.ref limit 1) h on true
  left join ${waitingOf('j.ref')} on true
  left join ${readyOf('j')} on true
  left join lateral (
    select e.fence, e.worker, e.claimed_at, e.starting, array_position(e.refs, j.ref) as position
    from ${s}.leases e
    where h.ref is null and w.ref is null and r.ref is null and j.ref = any(e.refs) and not j.ref = any(e.released)
    order by e.fence
    limit 1) e on true
  left join lateral (
    select p.ref, p.started_at, p.progress from ${s}.reports p where p.ref = j.ref and p.fence = e.fence limit 1) p on true`
export const jobRow = jobRowFrom(`${s}.jobs`)
/** The columns that are null for most jobs; null when all of them are. */
export const rare = `case when j.attempt is null and j.retries is null and j.crashes is null and j.expires_at is null and j.key is null
      and j.options is null and j.log is null and j.bytes is null and j.is_parent is null and j.grp is null and j.streak is null then null
    else json_build_array(coalesce(j.attempt, 0), coalesce(j.retries, 0), coalesce(j.crashes, 0), coalesce(j.streak, 0), j.log,
      j.expires_at, j.key, j.options, encode(j.bytes, 'base64'), j.is_parent, j.grp) end`
/** What a claim needs of a job. */
export const claimed = `json_build_array(j.ref, j.id, j.lane, j.due_at, j.payload, ${rare})`
/** Inserts a to-do for each ended job that has children. */
export const noteParents = `noted as (
      insert into ${s}.link_todos (parent, what)
      select e.ref, e.state from ended e where ${hasChildren('e.ref')}
      returning 1)`
/**
 * Whether the number of a lane still means the lane that the statement was written for (lanes.ts). `again`: the lane
 * was read just now, while this transaction had a lock on the table; a transaction that keeps its first snapshot cannot
 * see a newer lane.
 */
export const isLane = (lane: string, queue: string, name: string, again: string): string => `(
      (select n.lane from ${s}.lanes n where n.lane = ${lane} and n.queue = ${queue} and n.name = ${name}) is not null
      or (${again} and current_setting('transaction_isolation') <> 'read committed'))`
export const isPaused = (queue: string): string => `(
    (select p.queue from ${s}.pauses p where p.queue = ${queue} and (p.until is null or p.until > now)) is not null)`

/** Only `claimLimited` takes jobs of a queue with limits. */
export const isLimited = (queue: string): string => `(
    (select q.queue from ${s}.queue_limits q where q.queue = ${queue}) is not null)`

/** The rows of `stats_moves` that a settlement appends, of a JSON parameter; `clock` has the time. */
export const countedAttempts = (given: string): string => `
      insert into ${s}.stats_moves (queue, name, at, done, failed, retried, wait, run, failures)
      select a.queue, a.name, now, a.done, a.failed, a.retried, a.wait, a.run, a.failures
      from clock, json_to_recordset(${given}::text::json) as a (
        queue text, name text, done bigint, failed bigint, retried bigint, wait text, run text, failures text)`
/** Of all leases of the batch: none is gone, and none of the jobs was released or has a request. */
const allHeld = `(
        select count(*) from held h where not h.has_request and not h.released && $3::text::bigint[]) = cardinality($2::text::bigint[])`
/**
 * Ends first attempts that succeeded, and counts them. `isWhole`: all of them or none, because the counts are those of all
 * of them; in a transaction the caller counts the rest.
 */
export const endPlain = (isWhole: boolean): string => `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    held as materialized (
      select e.fence, e.released, e.has_request from ${s}.leases e where e.fence = any($2::text::bigint[]) for share),
    ended as (
      insert into ${s}.history (ref, settled_at, started_at, keep_until, state, worker, result)
      select each.ref, now, each.started_at, now + $6::text::bigint, 'done', $7, each.result
      from clock, held
      join rows from (
        unnest($3::text::bigint[]), unnest($4::text::bigint[]), unnest($5::text::bigint[]), json_array_elements_text($8::text::json))
        as each (ref, fence, started_at, result) on each.fence = held.fence
      where ${isWhole ? allHeld : 'not each.ref = any(held.released) and not held.has_request'}
      ${isWhole ? '' : 'on conflict (ref) do nothing'}
      returning ref),
    closed as (
      delete from ${s}.leases
      where fence = any($9::text::bigint[]) and (select count(*) from ended) = cardinality($3::text::bigint[])),
    counted as (${countedAttempts('$10')}
      where (select count(*) from ended) = cardinality($3::text::bigint[]))
    select count(*)::integer as ended, case when count(*) < cardinality($3::text::bigint[]) then json_agg(ref)::text end as refs
    from ended`
export const historyColumns = `ref, settled_at, started_at, keep_until, state, attempt, retries, crashes, worker, result,
      result_bytes, error, reason, log, lane`
export const historyValues = `ref, now, started_at, now + keep_ms, state, attempt, retries, crashes, worker, result,
      decode(bytes, 'base64'), error, reason, log,
      case when state = 'failed' then (select j.lane from ${s}.jobs j where j.ref = a.ref) end`
export const historyGiven = `json_to_recordset(g->'ended') as a (
      ref bigint, started_at bigint, keep_ms bigint, state text, attempt integer, retries integer, crashes integer,
      worker text, result text, bytes text, error text, reason text, log text)`
/** Deletes the jobs listed in `over` with their ends, and inserts a to-do for each that has children. */
export const forgetting = (
  schema: string,
  over: string,
): string => `-- Skips locked rows: those of a retry, and of a transaction that inserts a child of a failed job.
    locked as materialized (
      select h.ref, h.state from ${schema}.history h where h.ref = any(array(select ref from ${over})) for update skip locked),
    ${forgettingLocked(schema, 'locked')}`
/** From the lowest to the highest ref of a CTE `bounds`: the server skips the partitions outside. */
export const withinBounds = `between (select first from bounds) and (select last from bounds)`
/**
 * The same for ends that this statement has locked: rows of (ref, state). The bounds exclude partitions without any of
 * them.
 */
export const forgettingLocked = (
  schema: string,
  locked: string,
): string => `bounds as materialized (select min(ref) as first, max(ref) as last from ${locked}),
    free as materialized (
      select j.ref, j.id from ${schema}.jobs j
      where j.ref ${withinBounds} and j.ref = any(array(select ref from ${locked}))
      for update skip locked),
    -- First the jobs that have children, nearly always none: in a join the planner would look for children once for
    -- each pair.
    parents as materialized (
      select f.ref, f.id from free f
      where (select l.parent from ${schema}.links l where l.parent ${withinBounds} limit 1) is not null and ${hasChildren('f.ref', schema)}),
    noted as (
      insert into ${schema}.link_todos (parent, id, what)
      select p.ref, p.id, case when k.state = 'done' then 'done' else 'gone' end
      from parents p join ${locked} k on k.ref = p.ref
      returning 1),
    gone as (
      delete from ${schema}.history h where h.ref ${withinBounds} and h.ref = any(array(select ref from free)) returning h.ref),
    -- Only jobs whose end was deleted here: a job that became unfinished again meanwhile has left history, and needs
    -- its row.
    jobs as (delete from ${schema}.jobs j where j.ref ${withinBounds} and j.ref = any(array(select ref from gone)))`
