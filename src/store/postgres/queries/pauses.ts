import { clock, s } from './sql-fragments.js'

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
  anyHeld: `
    select 1 as held
    from ${s}.leases e
    where cardinality(e.refs) > e.starting
    order by e.fence
    limit 1`,
}
