import pg from 'pg'

/**
 * The same as `outside-eye.mjs`, for the tables in PostgreSQL. A job that is held by a lease is running
 * or about to be; a job that has ended may still be named by a lease, which does not mean that it is held.
 */
const PLACES = `
with held as (
  select ref, count(*) as times
  from SCHEMA.leases e cross join unnest(e.refs) as ref
  where not ref = any(e.released)
  group by ref)
select
  coalesce(j.id::text, '#' || ref) as id,
  j.ref is not null as "hasBody",
  n.name,
  h.state as history, h.reason, h.result,
  case when h.ref is not null then coalesce(w.state, 'ready')
       else coalesce(w.state, case when r.ref is not null then 'ready' else 'running' end) end as live,
  (w.ref is not null)::int + (r.ref is not null)::int
    + case when h.ref is null then coalesce(held.times, 0) else 0 end::int as lives
from (
  select ref from SCHEMA.jobs
  union select ref from SCHEMA.history
  union select ref from SCHEMA.waiting
  union select ref from SCHEMA.ready) as places
left join SCHEMA.jobs j using (ref)
left join SCHEMA.lanes n on n.lane = j.lane
left join SCHEMA.history h using (ref)
left join SCHEMA.waiting w using (ref)
left join SCHEMA.ready r using (ref)
left join held using (ref)`

/** In the transaction that settles; and in the one that writes a job beside an unfinished one of its unique value. */
const WATCH = `
create table SCHEMA.torture_settled (ref bigint not null);
create table SCHEMA.torture_twice (ref bigint not null);
create table SCHEMA.torture_work (id text not null);
create table SCHEMA.torture_orders (id text not null);
create function SCHEMA.torture_settled() returns trigger language plpgsql as $$
begin
  insert into SCHEMA.torture_settled (ref) values (new.ref);
  return null;
end $$;
create trigger torture_settled after insert on SCHEMA.history for each row execute function SCHEMA.torture_settled();
create function SCHEMA.torture_twice() returns trigger language plpgsql as $$
begin
  insert into SCHEMA.torture_twice (ref)
  select new.ref
  from SCHEMA.jobs j
  where j.lane = new.lane and j.ref <> new.ref
    and j.options::json #>> '{unique,key}' = new.options::json #>> '{unique,key}'
    and not exists (select 1 from SCHEMA.history h where h.ref = j.ref);
  return null;
end $$;
create trigger torture_twice after insert on SCHEMA.jobs for each row
when (new.options is not null) execute function SCHEMA.torture_twice();
create extension if not exists amcheck`

const WORK_ASTRAY = `
select coalesce(jobs.id::text, work.id) as id, coalesce(h.state, 'unfinished or gone') as state, coalesce(work.times, 0) as times
from (select id, count(*) as times from SCHEMA.torture_work group by id) as work
full join (
  select j.* from SCHEMA.jobs j join SCHEMA.lanes n using (lane) where n.name in ('banker', 'teller')) as jobs
  on jobs.id::text = work.id
left join SCHEMA.history h using (ref)
where coalesce(work.times, 0) <> (coalesce(h.state, '') = 'done')::int`

const ORDERS_ASTRAY = `
select coalesce(orders.id, jobs.id) as id, coalesce(jobs.times, 0) as jobs
from SCHEMA.torture_orders as orders
full join (
  select j.payload::json ->> 'order' as id, count(*) as times
  from SCHEMA.jobs j join SCHEMA.lanes n using (lane)
  where n.name = 'ordered'
  group by 1) as jobs on jobs.id = orders.id
where orders.id is null or coalesce(jobs.times, 0) <> 1`

const TWICE = `select j.id from SCHEMA.torture_twice join SCHEMA.jobs j using (ref)`

const COUNTS = `
select
  (select count(*)::int from SCHEMA.torture_work) as works,
  (select count(*)::int from SCHEMA.torture_orders) as orders,
  (select count(*)::int from SCHEMA.jobs join SCHEMA.lanes n using (lane) where n.name = 'sole') as soles`

const PAUSED = `select queue from SCHEMA.pauses where until is null`

const SETTLED_TWICE = `
select j.id, count(*)::int as times
from SCHEMA.torture_settled join SCHEMA.jobs j using (ref)
group by j.id
having count(*) > 1`

const SETTLED_OF = `
select j.id from SCHEMA.jobs j join SCHEMA.history h using (ref) where j.id = any($1::uuid[])`

const UNFINISHED = `
select (select count(*) from SCHEMA.jobs) - (select count(*) from SCHEMA.history)
  - (select count(*) from SCHEMA.waiting where state = 'parked') as count`

/** Every index against its table: this finds what a recovery left damaged. */
const CHECK_INDEXES = `
select bt_index_check(index => c.oid, heapallindexed => true)
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_am a on a.oid = c.relam
where n.nspname = $1 and c.relkind = 'i' and a.amname = 'btree'`

export class PostgresEye {
  #pool
  #schema

  constructor(url, schema) {
    this.#pool = new pg.Pool({ connectionString: url, max: 2, application_name: 'torture' })
    this.#pool.on('error', () => undefined) // The server may be killed; the next query reconnects.
    this.#schema = schema
  }

  watchSettlements() {
    return this.#all(WATCH)
  }
  workAstray() {
    return this.#all(WORK_ASTRAY)
  }
  ordersAstray() {
    return this.#all(ORDERS_ASTRAY)
  }
  twice() {
    return this.#all(TWICE)
  }
  async counts() {
    return (await this.#all(COUNTS))[0]
  }
  async pausedQueues() {
    return (await this.#all(PAUSED)).map((row) => row.queue)
  }
  /** For the census: a job is live in one table at most, and in none when it has ended. */
  async places() {
    const rows = await this.#all(PLACES)
    for (const row of rows) {
      if (row.lives > 1) row.history ??= 'twice'
      if (row.lives === 0) row.live = null
    }
    return rows
  }
  settledTwice() {
    return this.#all(SETTLED_TWICE)
  }
  async settledOf(ids) {
    return new Set((await this.#all(SETTLED_OF, [ids])).map((row) => row.id))
  }
  async unfinished() {
    return Number((await this.#all(UNFINISHED))[0].count)
  }
  /** 'ok', or what is broken. */
  async integrity() {
    try {
      await this.#all(CHECK_INDEXES, [this.#schema])
      return 'ok'
    } catch (error) {
      return error.message
    }
  }
  close() {
    return this.#pool.end()
  }

  async #all(text, values) {
    const { rows } = await this.#pool.query(text.replaceAll('SCHEMA', this.#schema), values)
    return rows
  }
}
