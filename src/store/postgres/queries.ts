import { DAY_MS, LOCK_CLASS, LOCK_SLOTS, NUMBER_BITS, PRIORITY_STEP_MS } from './numbers.js'

/**
 * Every statement of the PostgreSQL store, named like the method that runs it. The store takes them as an argument, so that
 * a test can plant a wrong one and see that it is found.
 *
 * Where the two stores differ: here a verb is one statement wherever it can be, since each costs a round trip. A statement
 * that may run on a caller's handle takes one text, JSON of all it needs: whatever library it is, it can bind a text.
 * `now` is the database's clock; only a test passes one.
 */

export type Queries = ReturnType<typeof makeQueries>

const clock = `(extract(epoch from clock_timestamp()) * 1000)::bigint`
export const DATABASE_NOW = `select ${clock} as now`

/** `schema` is a quoted identifier, `channel` a plain word or more. */
export function makeQueries(schema: string, channel: string) {
  const s = schema
  const given = `given as materialized (
      select g, coalesce((g->>'now')::bigint, ${clock}) as now from (select $1::text::json as g) as json)`
  const newRef = `((now / ${DAY_MS}) << ${NUMBER_BITS}) | nextval('${s.replaceAll(`'`, `''`)}.job_number')`
  const sort = (table: string): string => `${table}.due_at - ${table}.priority::bigint * ${PRIORITY_STEP_MS}`
  const stands = `(r.lane, r.sort, r.ref) = (j.lane, ${sort('j')}, j.ref)`
  /*
   * The planner does not see that a ref is looked for in one partition only, and for a few refs would sometimes rather read
   * all of every day. So it is given no choice: one look for each ref.
   */
  const hasEnded = (ref: string): string => `((select h.ref from ${s}.history h where h.ref = ${ref}) is not null)`
  const bodyOf = (ref: string): string => `lateral (select * from ${s}.jobs j where j.ref = ${ref} limit 1) j`
  /**
   * A whole job, wherever it stands. By its limit history is looked into one job after the other, each in the partition of its
   * day: what the planner guesses of so many tables would sometimes have it read all of them.
   */
  const jobRow = `
    select j.ref, j.id, n.name, n.queue, j.lane, j.priority, j.key, j.payload, encode(j.bytes, 'base64') as bytes, j.options,
           j.created_at, j.due_at, j.expires_at, j.suspect,
           case
             when h.ref is not null then h.state
             when w.ref is not null then w.state
             when r.ref is not null then 'ready'
             when p.ref is not null or e.place <= e.starting then 'running'
             else 'ready'
           end as state,
           case when h.ref is not null then 'history' when w.ref is not null then 'waiting' when r.ref is not null then 'ready'
             else 'lease' end as place,
           e.fence,
           coalesce(h.attempt, j.attempt, case when h.state = 'done' then 1 else 0 end) as attempt,
           coalesce(h.retries, j.retries, 0) as retries,
           coalesce(h.crashes, j.crashes, 0) as crashes,
           coalesce(h.started_at, p.started_at, case when e.place <= e.starting then e.claimed_at end) as started_at,
           h.settled_at, h.worker, h.result, encode(h.result_bytes, 'base64') as result_bytes,
           case when h.ref is null then j.error else h.error end as error,
           case when h.ref is null then j.reason else h.reason end as reason,
           case when h.ref is null then j.log else h.log end as log,
           p.progress
    from ${s}.jobs j
    join ${s}.lanes n on n.lane = j.lane
    left join lateral (select * from ${s}.history h where h.ref = j.ref limit 1) h on true
    left join ${s}.waiting w on w.ref = j.ref
    left join ${s}.ready r on ${stands}
    left join lateral (
      select e.fence, e.claimed_at, e.starting, array_position(e.refs, j.ref) as place
      from ${s}.leases e
      where h.ref is null and w.ref is null and r.ref is null and j.ref = any(e.refs) and not j.ref = any(e.gone)
      limit 1) e on true
    left join ${s}.reports p on p.ref = j.ref and p.fence = e.fence`
  /** What a claim needs of a job. */
  const claimed = `json_build_array(j.ref, j.id, j.lane, j.due_at, j.payload,
      case when j.attempt is null and j.retries is null and j.crashes is null and j.expires_at is null and j.key is null
        and j.options is null and j.log is null and j.bytes is null and not j.suspect then null
      else json_build_array(coalesce(j.attempt, 0), coalesce(j.retries, 0), coalesce(j.crashes, 0), j.suspect, j.log,
        j.expires_at, j.key, j.options, encode(j.bytes, 'base64')) end)`
  const isPaused = (queue: string): string => `exists (
      select 1 from ${s}.pauses p where p.queue = ${queue} and (p.until is null or p.until > now))`

  const endPlain = (onConflict: string): string => `
      with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
      held as materialized (
        select e.fence, e.gone, e.asked from ${s}.leases e where e.fence = any($2::text::bigint[]) for share),
      ended as (
        insert into ${s}.history (ref, settled_at, started_at, keep_until, state, worker, result)
        select each.ref, now, each.started_at, now + $6::text::bigint, 'done', $7, each.result
        from clock, held
        join rows from (
          unnest($3::text::bigint[]), unnest($4::text::bigint[]), unnest($5::text::bigint[]), json_array_elements_text($8::text::json))
          as each (ref, fence, started_at, result) on each.fence = held.fence
        where not each.ref = any(held.gone) and not held.asked
        ${onConflict}
        returning ref),
      closed as (
        delete from ${s}.leases
        where fence = any($9::text::bigint[]) and (select count(*) from ended) = cardinality($3::text::bigint[]))
      select count(*)::integer as ended, case when count(*) < cardinality($3::text::bigint[]) then json_agg(ref)::text end as refs
      from ended`
  const historyColumns = `ref, settled_at, started_at, keep_until, state, attempt, retries, crashes, worker, result,
        result_bytes, error, reason, log`
  const historyValues = `ref, now, started_at, now + keep_ms, state, attempt, retries, crashes, worker, result,
        decode(bytes, 'base64'), error, reason, log`
  const historyGiven = `json_to_recordset(g->'ended') as a (
        ref bigint, started_at bigint, keep_ms bigint, state text, attempt integer, retries integer, crashes integer,
        worker text, result text, bytes text, error text, reason text, log text)`

  return {
    now: DATABASE_NOW,
    begin: `begin`,
    /**
     * Statements in one text. Nobody's lock holds up this connection for long: what waited goes to the end of the line. And a
     * process that is suspended, or cut off, within its transaction keeps nobody else waiting for longer than ten seconds.
     */
    beginBounded: `begin; set local lock_timeout = '250ms'; set local idle_in_transaction_session_timeout = '10s'`,
    /** A handler's: it may take its time, but a machine that is gone must not hold its locks for the system's two hours. */
    beginLent: `begin; set local tcp_keepalives_idle = 10; set local tcp_keepalives_interval = 5; set local tcp_keepalives_count = 3`,
    commit: `commit`,
    rollback: `rollback`,
    savepoint: `savepoint millrace`,
    release: `release savepoint millrace`,
    rollbackTo: `rollback to savepoint millrace`,
    listen: `listen "${channel}"`,
    notify: `select pg_notify('${channel}', $1)`,

    readLanes: `select lane, queue, name from ${s}.lanes where lane > $1::text::integer order by lane`,
    addLane: `
      insert into ${s}.lanes (queue, name)
      values ($1, $2)
      on conflict (queue, name) do nothing`,
    laneOf: `select lane from ${s}.lanes where queue = $1 and name = $2`,

    /**
     * Jobs that differ in nothing but id and payload: what a bulk mostly is. Those come as texts of their own, since each look
     * into a JSON reads all of it.
     */
    insertAlike: `
      with ${given},
      shared as materialized (
        select now, coalesce((g->>'at')::bigint, now + (g->>'in')::bigint) as due_at,
               coalesce((g->>'expiresAt')::bigint, now + (g->>'expiresIn')::bigint) as expires_at,
               (g->>'lane')::integer as lane, (g->>'priority')::integer as priority, g->>'options' as options
        from given),
      made as materialized (
        select ${newRef} as ref, each.id::uuid as id, each.payload, now, due_at, expires_at, lane, priority, options
        from shared, rows from (json_array_elements_text($2::text::json), json_array_elements_text($3::text::json)) as each (id, payload)),
      body as (
        insert into ${s}.jobs (ref, id, created_at, due_at, expires_at, lane, priority, payload, options)
        select ref, id, now, due_at, expires_at, lane, priority, payload, options from made),
      line as (insert into ${s}.ready (lane, sort, ref) select lane, ${sort('made')}, ref from made where due_at <= now),
      later as (
        insert into ${s}.waiting (ref, lane, state, due_at) select ref, lane, 'scheduled', due_at from made where due_at > now),
      expiring as (
        insert into ${s}.expiring (expires_at, ref) select expires_at, ref from made where expires_at is not null)
      select ready, due_in as "dueIn"
      from (
        select coalesce(bool_or(due_at <= now), false) as ready,
               min(least(case when due_at > now then due_at - now end, case when expires_at is not null then greatest(0, expires_at - now) end))::float8 as due_in
        from made) as told`,
    /** A single job that is due at once: what a request mostly enqueues, and waits for. */
    insertOne: `
      with made as (
        insert into ${s}.jobs (ref, id, created_at, due_at, lane, priority, payload, options)
        select ${newRef}, $2::text::uuid, now, now, $3::text::integer, $4::text::integer, $5, $6
        from (select coalesce($1::text::bigint, ${clock}) as now) as clock
        returning ref, lane, priority, due_at)
      insert into ${s}.ready (lane, sort, ref) select lane, ${sort('made')}, ref from made`,
    /** Jobs of any kind. Keys and places were asked for, and are taken here. */
    insertJobs: `
      with ${given},
      made as materialized (
        select ${newRef} as ref, each.*, given.now,
               coalesce(each.at, given.now + each."in") as due_at,
               coalesce(each."expiresAt", given.now + each."expiresIn") as expires_at
        from given, json_to_recordset($2::text::json) as each (
          id uuid, lane integer, name text, priority integer, key text, payload text, bytes text, options text,
          at bigint, "in" bigint, "expiresAt" bigint, "expiresIn" bigint, place text, until bigint)),
      body as (
        insert into ${s}.jobs (ref, id, created_at, due_at, expires_at, lane, priority, key, payload, bytes, options)
        select ref, id, now, due_at, expires_at, lane, priority, key, payload, decode(bytes, 'base64'), options from made),
      line as (insert into ${s}.ready (lane, sort, ref) select lane, ${sort('made')}, ref from made where due_at <= now),
      later as (
        insert into ${s}.waiting (ref, lane, state, due_at) select ref, lane, 'scheduled', due_at from made where due_at > now),
      expiring as (
        insert into ${s}.expiring (expires_at, ref) select expires_at, ref from made where expires_at is not null),
      keyed as (insert into ${s}.keys (name, key, ref) select name, key, ref from made where key is not null),
      placed as (
        insert into ${s}.uniques (name, key, ref, id, until)
        select name, place, ref, id, until from made where place is not null
        on conflict (name, key) do update set ref = excluded.ref, id = excluded.id, until = excluded.until)
      select ready, due_in as "dueIn"
      from (
        select coalesce(bool_or(due_at <= now), false) as ready,
               min(least(case when due_at > now then due_at - now end, case when expires_at is not null then greatest(0, expires_at - now) end))::float8 as due_in
        from made) as told`,
    /**
     * Until the end of the transaction nobody else asks for these; in one order, so that nobody waits in a ring.
     */
    lockNames: `
      select count(pg_advisory_xact_lock(${LOCK_CLASS}, slot))
      from (
        select distinct (hashtextextended(value, 7) & ${LOCK_SLOTS - 1})::integer as slot
        from json_array_elements_text($1::text::json)
        order by 1) as sorted`,
    /** Who holds the keys, and who has the places. */
    keyHolders: `
      select a.name as "askedName", a.key as "askedKey", k.ref
      from json_to_recordset($1::text::json) as a (name text, key text)
      join ${s}.keys k on k.name = a.name and k.key = a.key`,
    placeHolders: `
      select u.name, u.key, u.ref, u.id, u.until
      from json_to_recordset($1::text::json) as a (name text, key text)
      join ${s}.uniques u on u.name = a.name and u.key = a.key`,
    takeKey: `
      insert into ${s}.keys (name, key, ref)
      values ($1, $2, $3::text::bigint)
      on conflict (name, key) do nothing
      returning 1 as taken`,
    freeKeys: `
      delete from ${s}.keys k
      using json_to_recordset($1::text::json) as a (name text, key text, ref bigint)
      where k.name = a.name and k.key = a.key and k.ref = a.ref`,
    takePlace: `
      insert into ${s}.uniques (name, key, ref, id, until)
      values ($1, $2, $3::text::bigint, $4::text::uuid, $5::text::bigint)
      on conflict (name, key) do update set ref = excluded.ref, id = excluded.id, until = excluded.until`,
    /** Of jobs that are called off or deleted, while their rows are still there to say which place they have. */
    freePlaces: `
      delete from ${s}.uniques u
      using ${s}.jobs j, ${s}.lanes n
      where j.ref = any($1::text::bigint[]) and n.lane = j.lane and j.options is not null
        and u.name = n.name and u.key = j.options::json #>> '{unique,key}' and u.id = j.id`,
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
    holdsClaim: `
      select 1 as held
      from ${s}.leases e
      where e.fence = $2::text::bigint and $1::text::bigint = any(e.refs) and not $1::text::bigint = any(e.gone)
        and not ${hasEnded('$1::text::bigint')}`,

    readJobs: `${jobRow}
      where j.id = any(array(select value::uuid from json_array_elements_text($1::text::json)))`,
    readRefs: `${jobRow}
      where j.ref = any($1::text::bigint[])`,
    readKeyed: `${jobRow}
      where j.key = $1 and n.name = $2
      order by h.ref is null desc, j.ref desc
      limit 1`,
    findJobs: (conditions: readonly string[], order: 'asc' | 'desc'): string => `
      select * from (${jobRow}) as job
      ${conditions.length === 0 ? '' : `where ${conditions.join('\n        and ')}`}
      order by ref ${order}
      limit $1::text::integer`,
    refWindow: (order: 'asc' | 'desc'): string => `
      select max(ref) as last, min(ref) as first, count(*)::integer as looked
      from (
        select ref from ${s}.jobs
        where ref ${order === 'desc' ? '<' : '>'} $1::text::bigint
        order by ref ${order}
        limit $2::text::integer) as page`,

    takeReady: `
      delete from ${s}.ready where lane = $1::text::integer and sort = $2::text::bigint and ref = $3::text::bigint
      returning 1 as taken`,
    takeWaiting: `
      delete from ${s}.waiting where ref = $1::text::bigint and state = $2
      returning 1 as taken`,
    /** Taken from a lease under its lock, and only if it has not ended meanwhile. */
    lockLease: `select fence from ${s}.leases where fence = $1::text::bigint for update`,
    takeHeld: `
      update ${s}.leases e
      set gone = e.gone || $1::text::bigint
      where e.fence = $2::text::bigint and $1::text::bigint = any(e.refs) and not $1::text::bigint = any(e.gone)
        and not ${hasEnded('$1::text::bigint')}
        and not exists (select 1 from ${s}.reports p where p.ref = $1::text::bigint and p.fence = e.fence)
      returning 1 as taken`,
    takeHistory: `
      delete from ${s}.history where ref = $1::text::bigint
      returning 1 as taken`,
    /** A job that is made live again is no longer of the lease that ended it, should that still be open. */
    forgetLeases: `
      update ${s}.leases set gone = gone || $1::text::bigint
      where $1::text::bigint = any(refs) and not $1::text::bigint = any(gone)`,
    putReady: `
      insert into ${s}.ready (lane, sort, ref) values ($1::text::integer, $2::text::bigint, $3::text::bigint)`,
    putWaiting: `
      insert into ${s}.waiting (ref, lane, state, due_at)
      values ($1::text::bigint, $2::text::integer, $3, $4::text::bigint)`,
    putExpiring: `
      insert into ${s}.expiring (expires_at, ref) values ($1::text::bigint, $2::text::bigint)
      on conflict do nothing`,
    updateJob: `
      update ${s}.jobs j
      set due_at = a.due_at, expires_at = a.expires_at, lane = a.lane, priority = a.priority, attempt = a.attempt,
          retries = a.retries, crashes = a.crashes, suspect = a.suspect, payload = a.payload, bytes = decode(a.bytes, 'base64'),
          options = a.options, error = a.error, reason = a.reason, log = a.log
      from json_to_record($1::text::json) as a (
        ref bigint, due_at bigint, expires_at bigint, lane integer, priority integer, attempt integer, retries integer,
        crashes integer, suspect boolean, payload text, bytes text, options text, error text, reason text, log text)
      where j.ref = a.ref`,
    deleteJobs: `delete from ${s}.jobs where ref = any($1::text::bigint[])`,

    putWish: `
      insert into ${s}.wishes (ref, kind, reason, keep_ms, asked_at)
      values ($1::text::bigint, $2, $3, $4::text::bigint, coalesce($5::text::bigint, ${clock}))
      on conflict (ref) do update
      set kind = excluded.kind, reason = excluded.reason, keep_ms = excluded.keep_ms, asked_at = excluded.asked_at
      where wishes.kind <> excluded.kind`,
    /** On the lease itself, where those see it who waited for its lock: they would not see a new wish. */
    markAsked: `update ${s}.leases set asked = true where fence = $1::text::bigint and not asked`,
    dropWishes: `delete from ${s}.wishes where ref = any($1::text::bigint[])`,
    wishesOf: `
      select ref, kind, reason, keep_ms from ${s}.wishes where ref = any($1::text::bigint[])`,
    readWishes: `
      select w.ref, w.kind, w.reason, e.fence
      from ${s}.wishes w
      join ${s}.leases e on w.ref = any(e.refs) and not w.ref = any(e.gone)`,

    readPauses: `select queue, until, paused_at, coalesce($1::text::bigint, ${clock}) as now from ${s}.pauses`,
    putPause: `
      insert into ${s}.pauses (queue, until, paused_at)
      values ($1, $2::text::bigint, $3::text::bigint)
      on conflict (queue) do update set until = excluded.until, paused_at = excluded.paused_at`,
    dropPause: `
      delete from ${s}.pauses where queue = $1
      returning 1 as dropped`,
    /** Waits for the claims that began before a pause was written and do not see it; those after it do. */
    awaitClaims: `lock table ${s}.leases in share mode`,
    anyHeld: `
      select 1 as held
      from ${s}.leases e
      where cardinality(e.refs) > e.starting
      limit 1`,

    promoteJobs: `
      with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
      due as (
        select w.ref
        from ${s}.waiting w, clock
        where w.state in ('scheduled', 'retrying') and w.due_at <= now
        order by w.due_at
        limit $2::text::integer
        for update of w skip locked),
      taken as (delete from ${s}.waiting where ref = any(array(select ref from due)) returning ref),
      line as (
        insert into ${s}.ready (lane, sort, ref)
        select j.lane, ${sort('j')}, j.ref from taken cross join ${bodyOf('taken.ref')} where not j.suspect),
      aside as (
        insert into ${s}.waiting (ref, lane, state, due_at)
        select j.ref, j.lane, 'ready', j.due_at from taken cross join ${bodyOf('taken.ref')} where j.suspect)
      select (select count(*)::integer from taken) as promoted, now from clock`,
    nextTimes: `
      select (select min(due_at) from ${s}.waiting where state in ('scheduled', 'retrying')) as due,
             (select min(x.expires_at) from ${s}.expiring x
              join ${bodyOf('x.ref')} on j.expires_at = x.expires_at
              left join ${s}.ready r on ${stands}
              left join ${s}.waiting w on w.ref = j.ref and w.state <> 'parked'
              where r.ref is not null or w.ref is not null) as expiry`,
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
      gone as (delete from ${s}.history where ref = any(array(select ref from old)) returning ref),
      -- Only of those that were still there: one that was made live again meanwhile left history, and needs its row.
      jobs as (delete from ${s}.jobs where ref = any(array(select ref from gone)))
      select count(*)::integer as pruned from gone`,

    addWorker: `
      insert into ${s}.workers (worker, host, pid, started_at)
      values ($1, $2, $3::text::integer, coalesce($4::text::bigint, ${clock}))`,
    beat: `
      update ${s}.workers set beat = beat + 1 where worker = $1
      returning 1 as beat`,
    dropWorker: `delete from ${s}.workers where worker = $1`,
    endWorker: `
      delete from ${s}.workers where worker = $1 and beat = $2::text::bigint
      returning 1 as ended`,
    isWorker: `select 1 as listed from ${s}.workers where worker = $1`,
    readWorkers: `
      select worker, beat from ${s}.workers
      union all
      select distinct worker, null::bigint from ${s}.leases where worker not in (select worker from ${s}.workers)`,

    /** Takes the heads of the lanes out of the line and writes them into one lease. */
    claimJobs: `
      with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
      alive as materialized (select 1 from ${s}.workers where worker = $2),
      lane as materialized (
        select n.lane, n.queue, least($5::text::integer, coalesce(room.left, $5::text::integer)) as room,
               coalesce(start.sort, -9223372036854775808) as start
        from clock, alive, ${s}.lanes n
        left join json_to_recordset($6::text::json) as room (queue text, "left" integer) on room.queue = n.queue
        left join json_to_recordset($9::text::json) as start (lane integer, sort bigint) on start.lane = n.lane
        where ($7::text is null or n.name in (select value from json_array_elements_text($7::text::json)))
          and ($8::text is null or n.queue in (select value from json_array_elements_text($8::text::json)))
          and coalesce(room.left, 1) > 0
          and not ${isPaused('n.queue')}),
      suspect as materialized (
        select 1 from ${s}.waiting w join lane on lane.lane = w.lane where w.state = 'ready' limit 1),
      head as (
        select each.at, each.sort, each.ref, row_number() over (partition by lane.queue order by each.sort, each.ref) as number, lane.room
        from lane
        cross join lateral (
          select r.ctid as at, r.sort, r.ref
          from ${s}.ready r
          where r.lane = lane.lane and r.sort >= lane.start and not ($10::text::boolean and exists (select 1 from suspect))
          order by r.sort, r.ref
          limit lane.room
          for update skip locked) as each),
      chosen as (select at from head where number <= room order by sort, ref limit $5::text::integer),
      taken as (delete from ${s}.ready where ctid = any(array(select at from chosen)) returning lane, sort, ref),
      lease as (
        insert into ${s}.leases (fence, worker, alone, claimed_at, starting, refs)
        select $3::text::bigint, $2, false, now, $4::text::integer, array_agg(ref order by sort, ref)
        from taken, clock
        group by now)
      select clock.now, exists (select 1 from alive) as alive,
             (select json_agg(${claimed} order by t.sort, t.ref) from taken t cross join ${bodyOf('t.ref')})::text as jobs,
             (select json_agg(json_build_array(l.lane, l.last)) from (select lane, max(sort) as last from taken group by lane) l)::text as lasts,
             exists (select 1 from suspect) as suspects,
             (select min(p.until) - now from ${s}.pauses p where p.until > now) as resumes
      from clock`,
    claimSuspect: `
      with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
      head as (
        select w.ref
        from ${s}.waiting w
        cross join ${bodyOf('w.ref')}
        where w.state = 'ready' and w.lane in (select value::integer from json_array_elements_text($5::text::json))
        order by ${sort('j')}, j.ref
        limit 1
        for update of w skip locked),
      taken as (delete from ${s}.waiting where ref = any(array(select ref from head)) returning ref),
      lease as (
        insert into ${s}.leases (fence, worker, alone, claimed_at, starting, refs)
        select $3::text::bigint, $2, $4::text::boolean, now, 1, array_agg(ref) from taken, clock group by now)
      select now, (select json_agg(${claimed}) from taken t cross join ${bodyOf('t.ref')})::text as jobs from clock`,
    /** What a claim of suspects may look at. */
    suspectLanes: `
      with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now)
      select distinct n.lane, n.queue, n.name
      from clock, ${s}.waiting w
      join ${s}.lanes n on n.lane = w.lane
      where w.state = 'ready' and not ${isPaused('n.queue')} and exists (select 1 from ${s}.workers where worker = $2)`,
    confirmJobs: `
      with clock as materialized (select coalesce($2::text::bigint, ${clock}) as now)
      select (select json_agg(json_build_array(e.fence, e.gone)) from ${s}.leases e where e.fence = any($1::text::bigint[]))::text as leases,
             (select json_agg(p.queue) from ${s}.pauses p where p.until is null or p.until > now)::text as paused
      from clock`,
    reportJobs: `
      with reported as (
        insert into ${s}.reports (ref, fence, started_at, progress)
        select a.ref, a.fence, a.started_at, a.progress
        from json_to_recordset($1::text::json) as a (ref bigint, fence bigint, started_at bigint, progress text)
        join ${s}.leases e on e.fence = a.fence
        where a.ref = any(e.refs) and not a.ref = any(e.gone) and not ${hasEnded('a.ref')}
        on conflict (ref) do update
        set fence = excluded.fence, started_at = excluded.started_at, progress = coalesce(excluded.progress, reports.progress)
        returning ref)
      select ref from reported`,
    dropReports: `delete from ${s}.reports where ref = any($1::text::bigint[])`,

    /**
     * First runs that went well: nearly every end there is. Leases are closed only if none of them is left over. One that
     * has ended already is an error, which is dear and never happens; to be ready for it would be paid for by all.
     */
    endPlain: endPlain(''),
    /** In a transaction with others, where an error would undo those too. It takes a third longer. */
    endPlainAmong: endPlain('on conflict (ref) do nothing'),
    /** The same for jobs that are kept no longer than they live. */
    endForgotten: `
      with held as materialized (
        select e.fence, e.refs, e.gone, e.asked from ${s}.leases e where e.fence = any($1::text::bigint[]) for share),
      ended as (
        delete from ${s}.jobs j
        using held
        join rows from (unnest($2::text::bigint[]), unnest($3::text::bigint[])) as each (ref, fence) on each.fence = held.fence
        where j.ref = any($2::text::bigint[]) and j.ref = each.ref and not each.ref = any(held.gone) and not held.asked
        returning j.ref),
      closed as (
        delete from ${s}.leases
        where fence = any($4::text::bigint[]) and (select count(*) from ended) = cardinality($2::text::bigint[]))
      select count(*)::integer as ended, case when count(*) < cardinality($2::text::bigint[]) then json_agg(ref)::text end as refs
      from ended`,
    /** Locks leases, so that nobody ends, takes or rescues what they hold until this transaction is over. */
    lockLeases: `select fence from ${s}.leases where fence = any($1::text::bigint[]) order by fence for update`,
    /** Those that a transaction of a handler still shares are left for the next round. */
    lockLeasesOf: `select fence from ${s}.leases where worker = $1 order by fence for update skip locked`,
    /** Under the locks: which of these are still their claim's. */
    ownedJobs: `
      select a.ref, a.fence
      from json_to_recordset($1::text::json) as a (ref bigint, fence bigint)
      join ${s}.leases e on e.fence = a.fence
      where a.ref = any(e.refs) and not a.ref = any(e.gone) and not ${hasEnded('a.ref')}
        and (select j.ref from ${s}.jobs j where j.ref = a.ref) is not null`,
    /** Ends that were written before, by this very run: the answer was lost and they are told again. */
    writtenBefore: `
      select h.ref
      from json_to_recordset($1::text::json) as a (ref bigint, state text, worker text, started_at bigint)
      join ${s}.history h on h.ref = a.ref
      where h.state = a.state and h.worker = a.worker and h.started_at = a.started_at`,
    appendHistory: `
      with ${given}
      insert into ${s}.history (${historyColumns})
      select ${historyValues}
      from given, ${historyGiven}`,
    /** The same for one whose end somebody else may be writing: he is waited for. */
    endOne: `
      with ${given}
      insert into ${s}.history (${historyColumns})
      select ${historyValues}
      from given, ${historyGiven}
      on conflict (ref) do nothing
      returning ref`,
    forgetJob: `
      delete from ${s}.jobs where ref = $1::text::bigint
      returning ref`,
    shareLease: `
      select 1 as held
      from ${s}.leases e
      where e.fence = $2::text::bigint and $1::text::bigint = any(e.refs) and not $1::text::bigint = any(e.gone)
      for share`,
    giveBack: `
      with ${given},
      back as (
        update ${s}.jobs j
        set due_at = coalesce(now + a.delay_ms, j.due_at), attempt = a.attempt, retries = a.retries, crashes = a.crashes,
            suspect = a.suspect, error = a.error, reason = a.reason, log = a.log,
            expires_at = case when a.begun then null else j.expires_at end
        from given, json_to_recordset(g->'back') as a (
          ref bigint, state text, delay_ms bigint, attempt integer, retries integer, crashes integer, suspect boolean,
          error text, reason text, log text, begun boolean)
        where j.ref = any(array(select (one->>'ref')::bigint from given, json_array_elements(g->'back') as one)) and j.ref = a.ref
        returning j.ref, j.lane, j.priority, j.due_at, j.suspect, a.state),
      line as (
        insert into ${s}.ready (lane, sort, ref) select lane, ${sort('back')}, ref from back where state = 'ready' and not suspect),
      aside as (
        insert into ${s}.waiting (ref, lane, state, due_at)
        select ref, lane, state, due_at from back where state <> 'ready' or suspect)
      update ${s}.leases e
      set gone = e.gone || m.refs
      from (
        select fence, array_agg(ref) as refs
        from given, json_to_recordset(g->'back') as a (ref bigint, fence bigint)
        group by fence) as m
      where e.fence = m.fence`,
    closeLeases: `delete from ${s}.leases where fence = any($1::text::bigint[])`,
    /** Only leases that hold nothing: one taken after the rescuer looked still names its jobs, and the next round frees them. */
    dropLeases: `
      delete from ${s}.leases e
      where e.fence = any($1::text::bigint[]) and not exists (
        select 1
        from unnest(e.refs) as held (ref)
        cross join ${bodyOf('held.ref')}
        where not held.ref = any(e.gone) and not ${hasEnded('held.ref')})`,
    readLeases: `
      select e.fence, e.alone, e.claimed_at,
             json_agg(json_build_array(${claimed}, coalesce(p.started_at, case when held.place <= e.starting then e.claimed_at end))
               order by held.place)::text as jobs
      from ${s}.leases e
      cross join unnest(e.refs) with ordinality as held (ref, place)
      cross join ${bodyOf('held.ref')}
      left join ${s}.reports p on p.ref = held.ref and p.fence = e.fence
      where e.worker = $1 and not held.ref = any(e.gone) and not ${hasEnded('held.ref')}
      group by e.fence, e.alone, e.claimed_at`,
  }
}
