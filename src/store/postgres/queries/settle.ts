import {
  clock,
  countedAttempts,
  s,
  given,
  sort,
  hasEnded,
  leaseOf,
  bodyOf,
  claimed,
  endPlain,
  historyColumns,
  historyValues,
  historyGiven,
  noteParents,
  laneOf,
  turnLane,
} from './sql-fragments.js'

/** Settlements of claimed jobs. */
export const settleQueries = {
  /**
   * First attempts that succeeded: nearly all settlements. Leases are closed only if all their jobs ended here. A job
   * that has already ended raises an error, which is expensive and never happens; to guard against it would slow every
   * settlement.
   */
  endPlain: endPlain(true),
  /** In a transaction with other settlements, which an error would undo too. It takes a third longer. */
  endPlainAmong: endPlain(false),
  /** The same for jobs that are deleted when they end. The bounds exclude partitions without any of them. */
  endForgotten: `
    with clock as materialized (select coalesce($7::text::bigint, ${clock}) as now),
    held as materialized (
      select e.fence, e.refs, e.released, e.has_request from ${s}.leases e where e.fence = any($1::text::bigint[]) for share),
    mine as materialized (
      select each.ref
      from held
      join rows from (unnest($2::text::bigint[]), unnest($3::text::bigint[])) as each (ref, fence) on each.fence = held.fence
      where not each.ref = any(held.released) and not held.has_request),
    -- A transaction that inserts a child of one of them has locked its row: such a job is left to the general
    -- settlement, which waits.
    free as materialized (
      select j.ref
      from ${s}.jobs j
      where j.ref between $5::text::bigint and $6::text::bigint and j.ref = any(array(select ref from mine)) and j.is_parent is not true
      for update skip locked),
    ended as (
      delete from ${s}.jobs j
      where j.ref between $5::text::bigint and $6::text::bigint and j.ref = any(array(select ref from free))
        -- All of them or none: the counts are those of all of them.
        and (select count(*) from free) = cardinality($2::text::bigint[])
      returning j.ref, 'done'::text as state),
    ${noteParents},
    closed as (
      delete from ${s}.leases
      where fence = any($4::text::bigint[]) and (select count(*) from ended) = cardinality($2::text::bigint[])),
    counted as (${countedAttempts('$8')}
      where (select count(*) from ended) = cardinality($2::text::bigint[]))
    select count(*)::integer as ended, case when count(*) < cardinality($2::text::bigint[]) then json_agg(ref)::text end as refs,
           (select count(*)::integer from noted) as parents
    from ended`,
  /** Locks leases, so that no other process settles, takes or rescues their jobs until this transaction ends. */
  lockLeases: `select fence from ${s}.leases where fence = any($1::text::bigint[]) order by fence for update`,
  /** Skips leases that a handler's transaction still shares; the next round rescues them. */
  lockLeasesOf: `select fence from ${s}.leases where worker = $1 order by fence for update skip locked`,
  /** Under the locks: which of these jobs still belong to their claim. */
  ownedJobs: `
    select a.ref, a.fence
    from json_to_recordset($1::text::json) as a (ref bigint, fence bigint)
    cross join ${leaseOf('a.fence')}
    where a.ref = any(e.refs) and not a.ref = any(e.released) and not ${hasEnded('a.ref')}
      and (select j.ref from ${s}.jobs j where j.ref = a.ref) is not null`,
  /** Ends that this attempt has written before: the reply was lost, and the worker settles again. */
  writtenBefore: `
    select h.ref
    from json_to_recordset($1::text::json) as a (ref bigint, state text, worker text, started_at bigint)
    cross join lateral (select * from ${s}.history h where h.ref = a.ref limit 1) h
    where h.state = a.state and h.worker = a.worker and h.started_at = a.started_at`,
  appendHistory: `
    with ${given},
    ended as (
      insert into ${s}.history (${historyColumns})
      select ${historyValues}
      from given, ${historyGiven}
      returning ref, state),
    -- A job that ended waits for no parent.
    unlinked as (delete from ${s}.links where child = any(array(select ref from ended))),
    ${noteParents}
    select (select count(*)::integer from noted) as parents`,
  /** The same for one job whose end another transaction may be writing: waits for it. */
  endOne: `
    with ${given},
    ended as (
      insert into ${s}.history (${historyColumns})
      select ${historyValues}
      from given, ${historyGiven}
      on conflict (ref) do nothing
      returning ref, state),
    ${noteParents}
    select ref, (select count(*)::integer from noted) as parents from ended`,
  forgetJob: `
    with ended as (
      delete from ${s}.jobs where ref = $1::text::bigint
      returning ref, 'done'::text as state),
    ${noteParents}
    select ref, (select count(*)::integer from noted) as parents from ended`,
  shareLease: `
    select 1 as held
    from ${s}.leases e
    where e.fence = $2::text::bigint and $1::text::bigint = any(e.refs) and not $1::text::bigint = any(e.released)
    for share`,
  requeueJobs: `
    with ${given},
    back as (
      update ${s}.jobs j
      set due_at = coalesce(a.due_at, now + a.delay_ms, j.due_at), attempt = a.attempt, retries = a.retries, crashes = a.crashes,
          streak = a.streak, error = a.error, reason = a.reason, log = a.log,
          expires_at = case when a.begun then null else j.expires_at end
      from given, json_to_recordset(g->'back') as a (
        ref bigint, state text, due_at bigint, delay_ms bigint, attempt integer, retries integer, crashes integer, streak integer,
        error text, reason text, log text, begun boolean)
      where j.ref = any(array(select (one->>'ref')::bigint from given, json_array_elements(g->'back') as one)) and j.ref = a.ref
      returning j.ref, j.lane, j.turn, j.priority, j.due_at, coalesce(j.streak, 0) >= 2 as suspect, j.grp, a.state),
    to_ready as (
      insert into ${s}.ready (lane, sort, ref) select ${turnLane('lane', 'turn')}, ${sort('back')}, ref from back where state = 'ready' and not suspect),
    to_waiting as (
      insert into ${s}.waiting (ref, lane, state, due_at, grp)
      select ref, lane, state, due_at, grp from back where state <> 'ready' or suspect)
    update ${s}.leases e
    set released = e.released || m.refs
    from (
      select fence, array_agg(ref) as refs
      from given, json_to_recordset(g->'back') as a (ref bigint, fence bigint)
      group by fence) as m
    where e.fence = any(array(select (one->>'fence')::bigint from given, json_array_elements(g->'back') as one)) and e.fence = m.fence`,
  closeLeases: `delete from ${s}.leases where fence = any($1::text::bigint[])`,
  /**
   * Only leases without jobs: a lease written after the rescuer's read still lists its jobs, and the next round
   * releases them.
   */
  dropLeases: `
    delete from ${s}.leases e
    where e.fence = any($1::text::bigint[]) and not exists (
      select 1
      from unnest(e.refs) as held (ref)
      cross join ${bodyOf('held.ref')}
      where not held.ref = any(e.released) and not ${hasEnded('held.ref')})`,
  readLeases: `
    select e.fence, e.quarantined, e.claimed_at,
           (select w.blocked_by from ${s}.workers w where w.worker = $1) as blocked_by,
           json_agg(json_build_array(${claimed}, coalesce(p.started_at, case when held.position <= e.starting then e.claimed_at end), n.queue, n.name, p.progress)
             order by held.position)::text as jobs
    from ${s}.leases e
    cross join unnest(e.refs) with ordinality as held (ref, position)
    cross join ${bodyOf('held.ref')}
    cross join ${laneOf('j.lane')}
    left join lateral (
      select p.started_at, p.progress from ${s}.reports p where p.ref = held.ref and p.fence = e.fence limit 1) p on true
    where e.worker = $1 and not held.ref = any(e.released) and not ${hasEnded('held.ref')}
    group by e.fence, e.quarantined, e.claimed_at`,
}
