import { jobRow, s } from '../sql-fragments.js'

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
  whyWaits: `select w.ref, w.waits, w.wake_at as "wakeAt" from ${s}.workflows w where w.ref = any($1::text::bigint[])`,
}
