import { clock, given, hasEnded, isLane, laneOf, newRef, s, sort, turnLane } from './sql-fragments.js'

const counted = `counted as (
      insert into ${s}.group_moves (grp, queue, state, members)
      select m."group", n.queue, case when m.blocked then 'blocked' when m.due_at <= m.now then 'ready' else 'scheduled' end, count(*)
      from made m
      cross join ${laneOf('m.lane')}
      where m."group" is not null
      group by 1, 2, 3),`

/** New jobs, with their labels, keys, unique slots and group counts. */
export const insertQueries = {
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
        after text, blocked boolean, is_parent boolean, turn integer, shape text, limit_turn bigint, rate_turn bigint, weight integer${givenColumn})),
    body as (
      insert into ${s}.jobs (ref, id, created_at, due_at, expires_at, lane, priority, key, payload, bytes, options, after, is_parent, shape, turn, rate_turn, weight${column})
      select ref, id, now, due_at, expires_at, lane, priority, key, payload, decode(bytes, 'base64'), options, after, is_parent, shape, limit_turn, rate_turn, weight${group}
      from made),
    to_ready as (
      insert into ${s}.ready (lane, sort, ref)
      select ${turnLane('lane', 'limit_turn')}, ${sort('made')}, ref from made where due_at <= now and blocked is not true),
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
