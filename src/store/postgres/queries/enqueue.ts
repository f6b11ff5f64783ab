import { LOCK_CLASS, LOCK_SLOTS } from './numbers.js'
import { s, clock, given, newRef, sort, hasEnded, isLane, laneOf, optionsJson } from './sql-fragments.js'

const counted = `counted as (
      insert into ${s}.group_moves (grp, queue, state, members)
      select m."group", n.queue, case when m.blocked then 'blocked' when m.due_at <= m.now then 'ready' else 'scheduled' end, count(*)
      from made m
      cross join ${laneOf('m.lane')}
      where m."group" is not null
      group by 1, 2, 3),`

/** Inserting jobs, and reading the holders of their keys and unique slots. */
export const enqueueQueries = {
  readLanes: `
    select n.lane, n.queue, n.name
    from json_to_recordset($1::text::json) as a (queue text, name text)
    cross join lateral (select * from ${s}.lanes n where n.queue = a.queue and n.name = a.name limit 1) n`,
  /** In a fixed order, so that there is no deadlock. */
  addLanes: `
    insert into ${s}.lanes (queue, name)
    select queue, name
    from json_to_recordset($1::text::json) as a (queue text, name text)
    order by queue, name
    on conflict (queue, name) do nothing`,
  checkLane: `select 1 as there where ${isLane('$1::text::integer', '$2', '$3', '$4::text::boolean')}`,
  /**
   * Jobs that differ only in id and payload, as in most bulks. Ids and payloads are parameters of their own, since each
   * access into a JSON text parses all of it.
   */
  insertAlike: `
    with ${given},
    shared as materialized (
      select now, coalesce((g->>'at')::bigint, now + (g->>'in')::bigint) as due_at,
             coalesce((g->>'expiresAt')::bigint, now + (g->>'expiresIn')::bigint) as expires_at,
             (g->>'lane')::integer as lane, (g->>'priority')::integer as priority, g->>'options' as options,
             (g->>'receipt')::uuid as receipt
      from given
      where ${isLane(`(g->>'lane')::integer`, `g->>'queue'`, `g->>'name'`, `(g->>'again')::boolean`)}),
    made as materialized (
      select ${newRef} as ref, each.id::uuid as id, each.payload, now, due_at, expires_at, lane, priority, options
      from shared, rows from (json_array_elements_text($2::text::json), json_array_elements_text($3::text::json)) as each (id, payload)),
    body as (
      insert into ${s}.jobs (ref, id, created_at, due_at, expires_at, lane, priority, payload, options)
      select ref, id, now, due_at, expires_at, lane, priority, payload, options from made),
    to_ready as (insert into ${s}.ready (lane, sort, ref) select lane, ${sort('made')}, ref from made where due_at <= now),
    to_waiting as (
      insert into ${s}.waiting (ref, lane, state, due_at) select ref, lane, 'scheduled', due_at from made where due_at > now),
    expiring as (
      insert into ${s}.expiring (expires_at, ref) select expires_at, ref from made where expires_at is not null),
    ${receipt('shared')}
    select written, ready, due_in as "dueIn"
    from (
      select count(*)::integer as written, coalesce(bool_or(due_at <= now), false) as ready,
             min(least(case when due_at > now then due_at - now end, case when expires_at is not null then greatest(0, expires_at - now) end))::float8 as due_in
      from made) as summary`,
  /** A single job that is due at once: the most common enqueue of a request, which waits for it. */
  insertOne: `
    with made as (
      insert into ${s}.jobs (ref, id, created_at, due_at, lane, priority, payload, options)
      select ${newRef}, $2::text::uuid, now, now, $3::text::integer, $4::text::integer, $5, $6
      from (select coalesce($1::text::bigint, ${clock}) as now) as clock
      where ${isLane('$3::text::integer', '$7', '$8', 'false')}
      returning ref, lane, priority, due_at),
    receipt as (
      insert into ${s}.receipts (id) select $9::text::uuid from made where $9::text is not null)
    insert into ${s}.ready (lane, sort, ref) select lane, ${sort('made')}, ref from made
    returning 1 as written`,
  /** Jobs of any kind. Their keys and unique slots were found free, and are taken here. */
  insertJobs: insertAny('', '', ''),
  /** The same with members of groups, which are counted. */
  insertMembers: insertAny(', "group" text', ', grp', counted),
  /** The same with labelled jobs, members of groups or not. */
  insertLabelled: insertAny(
    ', "group" text, labels json',
    ', grp',
    `${counted}
    labelled as (
      insert into ${s}.labels (ref, label)
      select m.ref, each.label from made m cross join lateral json_array_elements_text(m.labels) as each (label)),`,
  ),
  /** No other transaction takes these locks before this one ends; in a fixed order, so that there is no deadlock. */
  lockNames: `
    select count(pg_advisory_xact_lock(${LOCK_CLASS}, slot))
    from (
      select distinct (hashtextextended(value, 7) & ${LOCK_SLOTS - 1})::integer as slot
      from json_array_elements_text($1::text::json)
      order by 1) as sorted`,
  /** Which of these locks could be taken without waiting. */
  tryLockNames: `
    select name, pg_try_advisory_xact_lock(${LOCK_CLASS}, (hashtextextended(name, 7) & ${LOCK_SLOTS - 1})::integer) as locked
    from json_array_elements_text($1::text::json) as names (name)`,
  /** The holders of keys, the newest first, and of unique slots. */
  keyHolders: `
    select a.name as "wantedName", a.key as "wantedKey", k.ref, k.turn
    from json_to_recordset($1::text::json) as a (name text, key text)
    cross join lateral (
      select k.ref, k.turn from ${s}.keys k where k.name = a.name and k.key = a.key order by k.turn desc limit 2) k
    order by k.turn desc`,
  slotHolders: `
    select u.name, u.key, u.ref, u.id::text as id, u.until
    from json_to_recordset($1::text::json) as a (name text, key text)
    cross join lateral (select * from ${s}.uniques u where u.name = a.name and u.key = a.key limit 1) u`,
  /** Under the lock of its name, so that no row is inserted between the check and the insert. */
  takeKey: `
    insert into ${s}.keys (name, key, ref)
    select $1, $2, $3::text::bigint
    where not exists (select 1 from ${s}.keys where name = $1 and key = $2)
    on conflict (name, key, turn) do nothing
    returning 1 as taken`,
  freeKeys: `
    delete from ${s}.keys
    where ctid = any(array(
      select k.at
      from json_to_recordset($1::text::json) as a (name text, key text, ref bigint)
      cross join lateral (
        select k.ctid as at from ${s}.keys k
        where k.name = a.name and k.key = a.key and k.ref = a.ref
        limit 1
        for update) k))`,
  takeSlot: `
    insert into ${s}.uniques (name, key, ref, id, until)
    values ($1, $2, $3::text::bigint, $4::text::uuid, $5::text::bigint)
    on conflict (name, key) do update set ref = excluded.ref, id = excluded.id, until = excluded.until`,
  /** The unique slots of jobs that are cancelled or deleted, read from their rows before those are deleted. */
  freeSlots: `
    delete from ${s}.uniques
    where ctid = any(array(
      select u.at
      from ${s}.jobs j
      cross join ${laneOf('j.lane')}
      cross join lateral (
        select u.ctid as at from ${s}.uniques u
        where u.name = n.name and u.key = ${optionsJson('j.options')} #>> '{unique,key}' and u.id = j.id
        limit 1
        for update) u
      where j.ref = any($1::text::bigint[]) and j.options like '%"unique"%'))`,
  holdsClaim: `
    select 1 as held
    from ${s}.leases e
    where e.fence = $2::text::bigint and $1::text::bigint = any(e.refs) and not $1::text::bigint = any(e.released)
      and not ${hasEnded('$1::text::bigint')}`,
}

/**
 * The receipt of a statement that commits by itself (../connection/receipts.ts); `from` has a row only if the jobs are
 * written.
 */
function receipt(from: string): string {
  return `receipt as (insert into ${s}.receipts (id) select receipt from ${from} where receipt is not null)`
}

/**
 * `givenColumn` and `column` are the columns that members and labelled jobs have in addition, `counted` is a further
 * part of the statement.
 */
function insertAny(givenColumn: string, column: string, counted: string): string {
  const group = column === '' ? '' : ', "group"'
  return `
    with ${given},
    sure as materialized (
      select g, now, (g->>'receipt')::uuid as receipt
      from given
      where not exists (
        select 1
        from json_to_recordset(g->'lanes') as a (lane integer, queue text, name text)
        where not ${isLane('a.lane', 'a.queue', 'a.name', `(g->>'again')::boolean`)})),
    made as materialized (
      select ${newRef} as ref, each.*, sure.now,
             coalesce(each.at, sure.now + each."in") as due_at,
             coalesce(each."expiresAt", sure.now + each."expiresIn") as expires_at
      from sure, json_to_recordset($2::text::json) as each (
        id uuid, lane integer, name text, priority integer, key text, payload text, bytes text, options text,
        at bigint, "in" bigint, "expiresAt" bigint, "expiresIn" bigint, slot text, until bigint,
        after text, blocked boolean, is_parent boolean, turn integer${givenColumn})),
    body as (
      insert into ${s}.jobs (ref, id, created_at, due_at, expires_at, lane, priority, key, payload, bytes, options, after, is_parent${column})
      select ref, id, now, due_at, expires_at, lane, priority, key, payload, decode(bytes, 'base64'), options, after, is_parent${group}
      from made),
    to_ready as (
      insert into ${s}.ready (lane, sort, ref)
      select lane, ${sort('made')}, ref from made where due_at <= now and blocked is not true),
    to_waiting as (
      insert into ${s}.waiting (ref, lane, state, due_at${column})
      select ref, lane, case when blocked then 'blocked' else 'scheduled' end, due_at${group} from made where due_at > now or blocked),
    expiring as (
      insert into ${s}.expiring (expires_at, ref) select expires_at, ref from made where expires_at is not null),
    keyed as (
      insert into ${s}.keys (name, key, turn, ref)
      select name, key, coalesce(turn, 0), ref from made where key is not null),
    ${counted}
    slotted as (
      insert into ${s}.uniques (name, key, ref, id, until)
      select name, slot, ref, id, until from made where slot is not null
      on conflict (name, key) do update set ref = excluded.ref, id = excluded.id, until = excluded.until),
    ${receipt('sure')}
    select written, ready, due_in as "dueIn"
    from (
      select count(*)::integer as written, coalesce(bool_or(due_at <= now and blocked is not true), false) as ready,
             min(least(case when due_at > now and blocked is not true then due_at - now end, case when expires_at is not null then greatest(0, expires_at - now) end))::float8 as due_in
      from made) as summary`
}
