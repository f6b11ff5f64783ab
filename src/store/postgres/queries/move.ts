import { DAY_MS } from '../numbers.js'
import { s, clock, hasEnded } from './words.js'

/** Nobody has written the job since it was read. Who writes one takes it out of its place first, so it stays that way. */
const isAsRead = (ref: string, version: string): string =>
  `(select j.xmin::text from ${s}.jobs j where j.ref = ${ref}) = ${version}`

/** Out of one place and into another. */
export const moveQueries = {
  takeReady: `
    delete from ${s}.ready
    where lane = $1::text::integer and sort = $2::text::bigint and ref = $3::text::bigint and ${isAsRead('$3::text::bigint', '$4')}
    returning 1 as taken`,
  takeWaiting: `
    delete from ${s}.waiting
    where ref = $1::text::bigint and state = $2 and ${isAsRead('$1::text::bigint', '$3')}
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
  /**
   * What would go with its day is noted: whoever drops the day has looked at it perhaps (days.ts). With a day to spare, since
   * the server's clock may be set back.
   */
  takeHistory: `
    with taken as (delete from ${s}.history where ref = $1::text::bigint and xmin::text = $3 returning ref, keep_until),
    noted as (
      insert into ${s}.revived (ref)
      select ref from taken where keep_until <= coalesce($2::text::bigint, ${clock}) + ${DAY_MS}
      on conflict do nothing)
    select 1 as taken from taken`,
  /** A job that is made live again is no longer of the lease that ended it, should that still be open. */
  forgetLeases: `
    update ${s}.leases set gone = gone || $1::text::bigint
    where $1::text::bigint = any(refs) and not $1::text::bigint = any(gone)`,
  putReady: `
    insert into ${s}.ready (lane, sort, ref) values ($1::text::integer, $2::text::bigint, $3::text::bigint)`,
  putWaiting: `
    insert into ${s}.waiting (ref, lane, state, due_at, grp)
    values ($1::text::bigint, $2::text::integer, $3, $4::text::bigint, $5)`,
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
}
