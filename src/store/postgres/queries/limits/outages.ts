import { s } from '../sql-fragments.js'

const laneNamed = `lateral (select n.lane from ${s}.lanes n where n.queue = $1 and n.name = $2 limit 1) n`

/** The probe is one of so many held retries. */
const PROBED_AMONG = 10_000

/** Outages: lanes whose attempts fail, and their held retries. */
export const outageQueries = {
  addOutage: `
    insert into ${s}.outages (lane, state, failures)
    select n.lane, 'counting', 0 from (values (1)) as one cross join ${laneNamed}
    on conflict (lane) do nothing`,
  /** Locks the row, so that two settlements of one lane are counted one after the other. */
  lockOutage: `
    select o.lane, o.state, o.failures, o.since, o.probe_at
    from (values (1)) as one
    cross join ${laneNamed}
    cross join lateral (select * from ${s}.outages o where o.lane = n.lane limit 1 for update) o`,
  putOutage: `
    insert into ${s}.outages (lane, state, failures, since, probe_at)
    values ($1::text::integer, $2, $3::text::bigint, $4::text::bigint, $5::text::bigint)
    on conflict (lane) do update
    set state = excluded.state, failures = excluded.failures, since = excluded.since, probe_at = excluded.probe_at`,
  dropOutage: `delete from ${s}.outages where lane = $1::text::integer`,
  closedOutages: `
    select o.lane, o.state, o.failures, o.since, o.probe_at
    from (select * from ${s}.outages order by lane) o
    where o.state = 'closed'`,
  holdRetries: `
    update ${s}.waiting
    set held = true
    where ref = any(array(
      select w.ref
      from ${s}.waiting w
      where w.state in ('scheduled', 'retrying') and w.held is not true and w.due_at <= $1::text::bigint
        and w.state = 'retrying' and w.held is null
        and (select o.lane from ${s}.outages o where o.lane = w.lane and o.state = 'closed') is not null
      order by w.due_at
      limit $2::text::integer
      for update of w skip locked))`,
  /** Of the first held retries: in order of the index, which no other index offers, so that no plan reads all of the table. */
  heldRange: `
    with h as materialized (
      select w.ref from ${s}.waiting w where w.lane = $1::text::integer and w.held limit ${PROBED_AMONG})
    select min(ref) as first, max(ref) as last from h`,
  /** One process sends the probe: the condition on the locked row decides. */
  takeProbe: `
    update ${s}.outages
    set probe_at = $3::text::bigint
    where lane = $1::text::integer and probe_at <= $2::text::bigint and state = 'closed'
    returning 1 as taken`,
  releaseProbe: `
    update ${s}.waiting
    set held = false
    where ref = any(array(
      select w.ref
      from ${s}.waiting w
      where w.lane = $1::text::integer and w.held and (w.lane, w.ref) >= ($1::text::integer, $2::text::bigint)
      limit 1
      for update skip locked))`,
  releaseHeld: `
    update ${s}.waiting
    set held = null
    where ref = any(array(
      select w.ref
      from ${s}.waiting w
      where w.lane = $1::text::integer and w.held
      limit $2::text::integer
      for update skip locked))
    returning 1 as released`,
  someHeld: `select 1 as held from ${s}.waiting where lane = $1::text::integer and held limit 1`,
  readOutages: `
    select n.name, o.state, o.since,
           (select count(*) from ${s}.waiting w where w.lane = o.lane and w.held) as waiting
    from (select lane, name from ${s}.lanes where queue = $1 order by name) n
    cross join lateral (select * from ${s}.outages o where o.lane = n.lane limit 1) o
    where o.state <> 'counting'
    order by n.name`,
}
