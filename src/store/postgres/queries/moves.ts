import { DAY_MS } from '../numbers.js'
import { s, clock, hasEnded } from './sql-fragments.js'

/*
 * Each deletes the rows of several jobs from one table: those that are still there, and have not changed since they
 * were read. A transaction that writes a job deletes its row first, so a deleted row means that the job is as it was
 * read. Every access is an index lookup: the planner would sometimes scan all of `ready`.
 */
type Locked = '' | 'skip locked'

const bodyAsRead = `cross join lateral (select j.xmin::text as version from ${s}.jobs j where j.ref = a.ref limit 1) j`

const takeReady = (locked: Locked): string => `
    delete from ${s}.ready
    where ctid = any(array(
      select r.at
      from json_to_recordset($1::text::json) as a (ref bigint, version text, lane bigint, sort bigint)
      ${bodyAsRead}
      cross join lateral (
        select r.ctid as at
        from ${s}.ready r
        where (r.lane, r.sort, r.ref) = (a.lane, a.sort, a.ref)
        limit 1
        for update ${locked}) r
      where j.version = a.version))
    returning ref`

const takeWaiting = (locked: Locked): string => `
    delete from ${s}.waiting
    where ref = any(array(
      select w.ref
      from json_to_recordset($1::text::json) as a (ref bigint, version text, state text)
      ${bodyAsRead}
      cross join lateral (
        select w.ref from ${s}.waiting w where w.ref = a.ref and w.state = a.state limit 1 for update ${locked}) w
      where j.version = a.version))
    returning ref`

/**
 * A job that would be dropped with its day is recorded: the process that drops the day may have read it already
 * (days.ts). One day is added, since the server's clock may be set back.
 */
const takeHistory = (locked: Locked): string => `
    with mine as materialized (
      select h.ref
      from json_to_recordset($1::text::json) as a (ref bigint, version text)
      cross join lateral (
        select h.ref from ${s}.history h where h.ref = a.ref and h.xmin::text = a.version limit 1 for update ${locked}) h),
    taken as (delete from ${s}.history where ref = any(array(select ref from mine)) returning ref, keep_until),
    noted as (
      insert into ${s}.revived (ref)
      select ref from taken where keep_until <= coalesce($2::text::bigint, ${clock}) + ${DAY_MS}
      on conflict do nothing)
    select ref from taken`

/** Commands, and jobs that a conflict reschedules: from one table to another. */
export const moveQueries = {
  takeReady: takeReady(''),
  takeWaiting: takeWaiting(''),
  takeHistory: takeHistory(''),
  takeFreeReady: takeReady('skip locked'),
  takeFreeWaiting: takeWaiting('skip locked'),
  takeFreeHistory: takeHistory('skip locked'),
  /** Removed from a lease under its lock, and only if the job has not ended meanwhile. */
  lockLease: `select fence from ${s}.leases where fence = $1::text::bigint for update`,
  takeHeld: `
    update ${s}.leases e
    set released = e.released || $1::text::bigint
    where e.fence = $2::text::bigint and $1::text::bigint = any(e.refs) and not $1::text::bigint = any(e.released)
      and not ${hasEnded('$1::text::bigint')}
      and not exists (select 1 from ${s}.reports p where p.ref = $1::text::bigint and p.fence = e.fence)
    returning $1::text::bigint as ref`,
  /** A job that becomes unfinished again no longer belongs to the lease that ended it, if that is still open. */
  forgetLeases: `
    update ${s}.leases e
    set released = e.released || m.refs
    from (
      select e.fence, array_agg(held.ref) as refs
      from (select fence, refs, released from ${s}.leases where refs && $1::text::bigint[] order by fence) e
      cross join unnest(e.refs) as held (ref)
      where held.ref = any($1::text::bigint[]) and not held.ref = any(e.released)
      group by e.fence) as m
    where e.fence = m.fence`,
  putReady: `
    insert into ${s}.ready (lane, sort, ref)
    select lane, sort, ref from json_to_recordset($1::text::json) as a (lane bigint, sort bigint, ref bigint)`,
  putWaiting: `
    insert into ${s}.waiting (ref, lane, state, due_at, grp)
    select ref, lane, state, due_at, grp
    from json_to_recordset($1::text::json) as a (ref bigint, lane integer, state text, due_at bigint, grp text)`,
  putExpiring: `
    insert into ${s}.expiring (expires_at, ref)
    select expires_at, ref from json_to_recordset($1::text::json) as a (expires_at bigint, ref bigint)
    on conflict do nothing`,
  updateJobs: `
    update ${s}.jobs j
    set due_at = a.due_at, expires_at = a.expires_at, lane = a.lane, priority = a.priority, attempt = a.attempt,
        retries = a.retries, crashes = a.crashes, streak = a.streak, payload = a.payload, bytes = decode(a.bytes, 'base64'),
        options = a.options, error = a.error, reason = a.reason, log = a.log,
        turn = a.turn, rate_turn = a.rate_turn, weight = a.weight
    from json_to_recordset($1::text::json) as a (
      ref bigint, due_at bigint, expires_at bigint, lane integer, priority integer, attempt integer, retries integer,
      crashes integer, streak integer, payload text, bytes text, options text, error text, reason text, log text,
      turn bigint, rate_turn bigint, weight integer)
    where j.ref = any(array(select (one->>'ref')::bigint from json_array_elements($1::text::json) as one)) and j.ref = a.ref`,
  deleteJobs: `delete from ${s}.jobs where ref = any($1::text::bigint[])`,
}
