import { DAY_MS } from '../numbers.js'
import { clock, forgettingLocked, hasChildren, hasEnded, s, withinBounds } from './sql-fragments.js'

/**
 * How far one step of pruning walks, and how many jobs are due on the way. The step walks the index: if the statement
 * selected the rows at once, the planner would read and sort all that are overdue. It begins where the last step ended
 * ($3): otherwise it would walk over entries that are not vacuumed yet each time.
 */
const nextPruned = `clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    bound as materialized (
      select max(keep_until) as until, count(*)::integer as due
      from (
        select keep_until from ${s}.history
        where keep_until >= $3::text::bigint and keep_until - settled_at < ${DAY_MS}
        order by keep_until
        limit $2::text::integer) as next
      where keep_until <= (select now from clock))`
const isShort = `keep_until >= $3::text::bigint and keep_until <= (select until from bound) and keep_until - settled_at < ${DAY_MS}`

/** Statements that delete finished jobs, and free unique slots and entries of `expiring`. */
export const pruneQueries = {
  /**
   * Deletes what nearly every step deletes, at about half the cost of pruneJobs: jobs that are done, were kept for less
   * than a day and are no parent in `links`. A transaction that inserts a child locks the row of its parent only while
   * the parent is not done, and a retry locks the end first, which is locked here. So rows of `jobs` are deleted
   * without locking them first, except rows that some transaction has ever locked (xmax): pruneJobs deletes those, and
   * skips what is locked then. An end is never updated, so its ctid stays valid under its lock.
   */
  pruneDone: `
    with ${nextPruned},
    short as materialized (
      select ref, ctid as at from ${s}.history
      where ${isShort} and state = 'done'
      limit $2::text::integer
      for update skip locked),
    bounds as materialized (select min(ref) as first, max(ref) as last from short),
    dropped as (
      delete from ${s}.jobs j
      where j.ref ${withinBounds} and j.xmax = 0 and j.ref = any(array(
        select c.ref from short c
        where (select l.parent from ${s}.links l where l.parent ${withinBounds} limit 1) is null or not ${hasChildren('c.ref')}))
      returning j.ref),
    -- Not a join: planned for a few rows, it would compare each pair.
    gone as (
      delete from ${s}.history h
      where h.ref ${withinBounds} and h.ctid = any(array(select at from short)) and (h.ref in (select ref from dropped)) is true)
    select now, (select until from bound) as until, (select due from bound) as due, (select count(*)::integer from dropped) as pruned
    from clock`,
  /**
   * Deletes jobs that were kept for less than a day, and expired ones of the default partition. All others are dropped
   * with their day.
   */
  pruneJobs: `
    with ${nextPruned},
    short as materialized (
      select ref, state from ${s}.history
      where ${isShort}
      limit $2::text::integer
      for update skip locked),
    rest as materialized (
      select ref, state from ${s}.history_rest
      where keep_until <= (select now from clock) and keep_until is not null
      order by keep_until
      limit $2::text::integer
      for update skip locked),
    old as materialized (select ref, state from short union select ref, state from rest limit $2::text::integer),
    ${forgettingLocked(s, 'old')}
    select now, (select until from bound) as until, (select due from bound) as due, (select count(*)::integer from gone) as pruned,
           (select count(*)::integer from noted) as parents
    from clock`,
  /** A statement of its own, so that it sees what pruneJobs has deleted. */
  nextPrune: `
    select least(
      (select h.keep_until from ${s}.history h
       where h.keep_until >= $1::text::bigint and h.keep_until - h.settled_at < ${DAY_MS}
       order by h.keep_until
       limit 1),
      (select h.keep_until from ${s}.history_rest h where h.keep_until is not null order by h.keep_until limit 1)) as due`,
  sweepSlots: `
    with scanned as materialized (
      select u.ctid as at, u.name, u.key, u.ref, u.id, u.xmin as version,
             u.until is null or u.until <= coalesce($1::text::bigint, ${clock}) as over
      from ${s}.uniques u
      where (u.name, u.key) > ($2, $3)
      order by u.name, u.key
      limit $4::text::integer),
    unfinished as materialized (
      select j.ref, j.id from ${s}.jobs j
      where j.ref = any(array(select ref from scanned where over)) and not ${hasEnded('j.ref')}),
    chosen as materialized (
      select l.at, l.name, l.key, l.version from scanned l
      where l.over and not exists (select 1 from unfinished u where u.ref = l.ref and u.id = l.id)
      order by l.name, l.key
      limit $5::text::integer),
    swept as (
      delete from ${s}.uniques u
      -- Only the version that was read: a job that became unfinished again has rewritten its unique slot since.
      where u.ctid = any(array(select at from chosen))
        and exists (select 1 from chosen c where c.at = u.ctid and c.version = u.xmin)
      returning 1)
    select (select count(*)::integer from swept) as swept, (select count(*)::integer from scanned) as scanned,
           (select json_build_array(name, key) from scanned order by name desc, key desc limit 1) as last,
           (select json_build_array(name, key) from chosen order by name desc, key desc limit 1) as chosen`,
  /** Deletes entries of ended jobs whose time has come; reads the next few after the last one that was read. */
  sweepExpiring: `
    with scanned as materialized (
      select x.ctid as at, x.expires_at, x.ref
      from ${s}.expiring x
      where x.expires_at <= $1::text::bigint and (x.expires_at, x.ref) > ($2::text::bigint, $3::text::bigint)
      order by x.expires_at, x.ref
      limit $4::text::integer),
    unfinished as materialized (
      select j.ref, j.expires_at from ${s}.jobs j
      where j.ref = any(array(select ref from scanned)) and not ${hasEnded('j.ref')}),
    swept as (
      delete from ${s}.expiring
      where ctid = any(array(
        select l.at from scanned l
        where not exists (select 1 from unfinished u where u.ref = l.ref and u.expires_at = l.expires_at))))
    select (select count(*)::integer from scanned) as scanned,
           (select json_build_array(expires_at, ref)::text from scanned order by expires_at desc, ref desc limit 1) as last`,
}
