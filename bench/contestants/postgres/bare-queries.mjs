/** Jobs claimed, and settled, in one statement. */
const BATCH = 500

export const SCHEMA = `
create table if not exists jobs (
  id bigint generated always as identity primary key,
  name text not null,
  payload text not null,
  state smallint not null default 0,
  due_at bigint not null,
  ended_at bigint
);
create index if not exists jobs_waiting on jobs (name, due_at, id) where state = 0;
create table if not exists leases (
  id bigint generated always as identity primary key,
  jobs text not null
)`

/** By due time first: the primary key has the order of ids too, and a plan that used it would scan all ended jobs. */
const heads = (after) => `array(
    select id from jobs
    where state = 0 and name = $1 ${after}
    order by due_at, id
    limit ${BATCH}
    for update skip locked)`

const claimed = `
  claimed as (update jobs set state = 1 where id = any(${heads('')}) returning id, payload)
select id, payload from claimed`

export const STATEMENTS = {
  insert: 'insert into jobs (name, payload, due_at) values ($1, $2, $3)',
  insertAndTell: `
with made as (insert into jobs (name, payload, due_at) values ($1, $2, $3))
select pg_notify('bare', '')`,
  insertAll: 'insert into jobs (name, payload, due_at) select $1, unnest($2::text[]), $3',
  kept: `
with ended as (update jobs set state = 2, ended_at = $2::bigint where id = any($3::bigint[])),${claimed}`,
  deleted: `
with asked as (select $2::bigint), ended as (delete from jobs where id = any($3::bigint[])),${claimed}`,
  lease: `
with ended as (delete from leases where id = $4::bigint),
  taken as (delete from jobs where id = any(${heads('and (due_at, id) > ($2::bigint, $3::bigint)')})
    returning id, due_at, payload),
  lease as (
    insert into leases (jobs) select json_agg(json_build_array(id, payload)) from taken having count(*) > 0
    returning id)
select (select id from lease)::text as lease, json_agg(payload)::text as payloads,
  (select array[due_at, id]::text[] from taken order by due_at desc, id desc limit 1) as last
from taken`,
  count: `
select (count(*) filter (where state = 2))::integer as done, (count(*) filter (where state <> 2))::integer
  + (select count(*) from leases)::integer as left
from jobs`,
}
