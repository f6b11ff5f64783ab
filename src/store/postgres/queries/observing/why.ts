import { TURN_SPAN } from '../../../../job/limits/turns.js'
import { bodyOf, hasEnded, jobRow, leaseOf, s, sort, turnLane } from '../sql-fragments.js'

/** Why jobs are not running. */
export const whyQueries = {
  /** The open links of blocked jobs: a lookup for each, since servers before 17 read all links to order those of several children. */
  whyParents: `
    select k.child, p.id, p.name as job, p.state
    from (
      select k.child, k.parent
      from (select ref from unnest($1::text::bigint[]) as given (ref) order by ref) given
      cross join lateral (
        select child, parent from ${s}.links
        where child = given.ref
        order by parent
        limit $2::text::integer) k
      limit $2::text::integer) k
    cross join lateral (${jobRow} where j.ref = k.parent limit 1) p
    order by k.child, p.ref`,
  whyHolders: `
    select given.ref, e.worker
    from unnest($1::text::bigint[]) as given (ref)
    cross join lateral (
      select e.worker from ${s}.leases e
      where given.ref = any(e.refs) and not given.ref = any(e.released)
      order by e.fence
      limit 1) e`,
  whyTurns: `
    select j.ref, j.lane, ${turnLane('j.lane', 'j.turn')} as turn, ${sort('j')} as sort, j.rate_turn as "rateTurn", j.weight
    from unnest($1::text::bigint[]) as given (ref)
    cross join ${bodyOf('given.ref')}`,
  /** The jobs that have the slots of a limit. */
  whySlots: `
    select j.id::text as id
    from (select ref, fence from ${s}.slots where bucket = $1 order by ref) s
    cross join ${leaseOf('s.fence')}
    cross join ${bodyOf('s.ref')}
    where not s.ref = any(e.released) and not ${hasEnded('s.ref')}
    order by s.ref`,
  whyStarts: `select used, until from ${s}.windows where bucket = $1 and until > $2::text::bigint order by until`,
  /** Ready jobs of a name ($1) or a queue ($2), of one key ($3) or of all; of the turn $4 those before ($5, $6). */
  whyAhead: `
    select count(*)::integer as jobs, max(coalesce(j.weight, 1)) as heaviest
    from (
      select r.ref
      from (
        select lane from ${s}.lanes where name = $1
        union
        select lane from ${s}.lanes where queue = $2) n
      cross join lateral (
        select n.lane::bigint as first, n.lane::bigint as last where $3::text is null
        union all
        select -(n.lane::bigint * ${TURN_SPAN} + coalesce($3::text::bigint, ${TURN_SPAN - 1})),
               -(n.lane::bigint * ${TURN_SPAN} + coalesce($3::text::bigint, 0))) range
      cross join lateral (
        select r.ref from ${s}.ready r
        where r.lane between range.first and range.last
          and (r.lane <> $4::text::bigint or (r.sort, r.ref) < ($5::text::bigint, $6::text::bigint))
        limit $7::text::integer) r
      limit $7::text::integer) r
    cross join ${bodyOf('r.ref')}`,
  whyWaits: `select w.ref, w.waits, w.wake_at as "wakeAt" from ${s}.workflows w where w.ref = any($1::text::bigint[])`,
}
