import { bodyOf, clock, hasEnded, s } from './sql-fragments.js'

/** Requested changes of running jobs. */
export const requestQueries = {
  putRequest: `
    insert into ${s}.requests (ref, kind, reason, keep_ms, requested_at)
    values ($1::text::bigint, $2, $3, $4::text::bigint, coalesce($5::text::bigint, ${clock}))
    on conflict (ref) do update
    set kind = excluded.kind, reason = excluded.reason, keep_ms = excluded.keep_ms, requested_at = excluded.requested_at
    where requests.kind <> excluded.kind`,
  /**
   * On the lease itself, where a settlement that waited for its lock sees it: a new row of `requests` is not in its
   * snapshot.
   */
  markRequested: `update ${s}.leases set has_request = true where fence = $1::text::bigint and not has_request`,
  dropRequests: `delete from ${s}.requests where ref = any($1::text::bigint[])`,
  requestsOf: `
    select ref, kind, reason, keep_ms from ${s}.requests where ref = any($1::text::bigint[])`,
  readRequests: `
    select w.ref, w.kind, w.reason, e.fence
    from (select * from ${s}.requests order by ref) w
    cross join lateral (
      select e.fence from ${s}.leases e
      where w.ref = any(e.refs) and not w.ref = any(e.released)
      order by e.fence
      limit 1) e`,
}

/** Paused queues. */
export const pauseQueries = {
  readPause: `
    select until, paused_at, coalesce($1::text::bigint, ${clock}) as now
    from ${s}.pauses
    where queue = $2`,
  putPause: `
    insert into ${s}.pauses (queue, until, paused_at)
    values ($1, $2::text::bigint, $3::text::bigint)
    on conflict (queue) do update set until = excluded.until, paused_at = excluded.paused_at`,
  dropPause: `
    delete from ${s}.pauses where queue = $1
    returning 1 as dropped`,
  /** Waits for claims that began before the pause was written and do not see it; later ones do. */
  awaitClaims: `lock table ${s}.leases in share mode`,
  /** Jobs that are held in advance, and sequences in hand: between two items a worker may begin the next without a claim. */
  anyHeld: `
    (select 1 as held
     from ${s}.leases e
     where cardinality(e.refs) > e.starting
     order by e.fence
     limit 1)
    union all
    (select 1 as held
     from (select refs, released from ${s}.leases order by fence) e
     cross join unnest(e.refs) as held (ref)
     cross join ${bodyOf('held.ref')}
     where not held.ref = any(e.released) and j.shape is not null and not ${hasEnded('held.ref')}
     limit 1)`,
}
