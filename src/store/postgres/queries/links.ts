import { LOCK_CLASS } from '../numbers.js'
import { bodyOf, hasChildren, s, isReadyRowOf, laneOf } from './sql-fragments.js'

/**
 * What the children of a job need to know of it: how it ended, or that it is parked. Every other state is reported as
 * ready.
 */
const stateOf = `coalesce(h.state, (select w.state from ${s}.waiting w where w.ref = j.ref and w.state = 'parked'), 'ready') as state`
const found = `j.ref, j.id::text as id, n.name, j.key, ${stateOf}`
/**
 * True of every link, and not in the index of the primary key, so that a full scan of that index does not look as cheap
 * as links_child.
 */
const notByKey = `l.on_failure <> ''`
const endOf = `left join lateral (select h.ref, h.state from ${s}.history h where h.ref = j.ref limit 1) h on true`

/** Jobs that come after others. */
export const linkQueries = {
  parentsById: `
    select ${found}
    from json_array_elements_text($1::text::json) as a (id)
    cross join lateral (select j.ref, j.id, j.lane, j.key from ${s}.jobs j where j.id = a.id::uuid limit 1) j
    cross join ${laneOf('j.lane')}
    ${endOf}`,
  parentsByRef: `
    select ${found}
    from unnest($1::text::bigint[]) as a (ref)
    cross join ${bodyOf('a.ref')}
    cross join ${laneOf('j.lane')}
    ${endOf}`,
  /** As readKeyed: the unfinished job that has the key, else the newest that had it. */
  parentsByKey: `
    select a.name as "wantedName", a.key as "wantedKey", j.ref, j.id, a.name, a.key, j.state
    from json_to_recordset($1::text::json) as a (name text, key text)
    cross join lateral (
      select j.ref, j.id::text as id, ${stateOf}
      from ${s}.jobs j
      cross join ${laneOf('j.lane')}
      ${endOf}
      where j.key = a.key and n.name = a.name
      order by h.ref is null desc,
        j.ref = (select k.ref from ${s}.keys k where k.name = a.name and k.key = a.key order by k.turn desc limit 1) desc nulls last,
        j.ref desc
      limit 1) j`,
  /**
   * A transaction that deletes one of them waits, and then sees the links that are written here. Others do not wait.
   */
  holdParents: `
    select ref from ${s}.jobs where ref = any($1::text::bigint[]) order by ref for key share`,
  /** The refs of jobs that this transaction has just inserted: in today's partition or the default one. */
  newRefs: `
    select ref, id::text as id
    from ${s}.jobs
    where id = any(array(select value::uuid from json_array_elements_text($1::text::json))) and ref >= $2::text::bigint`,
  addLinks: `
    insert into ${s}.links (parent, child, on_failure, keep_ms)
    select parent, child, on_failure, keep_ms
    from rows from (
      unnest($1::text::bigint[]), unnest($2::text::bigint[]), json_array_elements_text($3::text::json), unnest($4::text::bigint[]))
      as each (parent, child, on_failure, keep_ms)
    on conflict (parent, child) do update set on_failure = excluded.on_failure, keep_ms = excluded.keep_ms`,
  putAfter: `
    with labelled as (
      insert into ${s}.labels (ref, label)
      select a.ref, chr(1) || parent.id
      from json_to_recordset($1::text::json) as a (ref bigint, after text)
      cross join lateral json_array_elements_text(a.after::json) as parent (id)
      on conflict do nothing)
    update ${s}.jobs j set after = a.after
    from json_to_recordset($1::text::json) as a (ref bigint, after text)
    where j.ref = any(array(select (one->>'ref')::bigint from json_array_elements($1::text::json) as one)) and j.ref = a.ref`,
  haveLinks: `
    select distinct a.child
    from unnest($1::text::bigint[]) as a (child)
    where (select l.on_failure from ${s}.links l where l.child = a.child limit 1) is not null`,
  dropLinks: `delete from ${s}.links where child = any($1::text::bigint[])`,
  addTodos: `
    insert into ${s}.link_todos (parent, id, what)
    select parent, id, what
    from json_to_recordset($1::text::json) as a (parent bigint, id uuid, what text)`,
  /** Locks jobs that are about to be deleted. */
  lockJobs: `select ref from ${s}.jobs where ref = any($1::text::bigint[]) order by ref for update`,
  noteForgotten: `
    insert into ${s}.link_todos (parent, id, what)
    select j.ref, j.id, a.what
    from json_to_recordset($1::text::json) as a (ref bigint, what text)
    cross join ${bodyOf('a.ref')}
    where ${hasChildren('a.ref')}
    returning 1 as noted`,
  /** To-dos for parked jobs with a child whose policy is 'run-if-parked'. */
  noteParked: `
    insert into ${s}.link_todos (parent, what)
    select distinct l.parent, 'parked'
    from ${s}.links l
    where l.parent = any($1::text::bigint[]) and l.on_failure = 'run-if-parked'
    returning 1 as noted`,
  nextTodos: `
    select number, parent, id, what, ended_at, result, encode(result_bytes, 'base64') as result_bytes, error
    from ${s}.link_todos
    order by number
    limit $1::text::integer
    for update skip locked`,
  dropTodos: `delete from ${s}.link_todos where number = any($1::text::bigint[])`,
  forgottenAmong: `
    select parent from ${s}.link_todos where parent = any($1::text::bigint[]) and what in ('done', 'gone')`,
  anyTodo: `select 1 as todo from ${s}.link_todos order by number limit 1`,

  /*
   * A parent that got a child is marked, and its row is inserted again, so that no claim can have it without seeing the
   * mark. Skips locked rows.
   */
  markParents: `
    with free as materialized (
      select ref, is_parent from ${s}.jobs where ref = any($1::text::bigint[]) for no key update skip locked),
    marked as (
      update ${s}.jobs set is_parent = true
      where ref = any(array(select ref from free where is_parent is not true)))
    select ref from free`,
  takeReadyRows: `
    delete from ${s}.ready
    where ctid = any(array(
      select r.at
      from ${s}.jobs j
      cross join lateral (
        select r.ctid as at from ${s}.ready r where ${isReadyRowOf('r', 'j')} limit 1 for update skip locked) r
      where j.ref = any($1::text::bigint[])))
    returning lane, sort, ref`,
  takeWaitingRows: `
    delete from ${s}.waiting
    where ref = any(array(select ref from ${s}.waiting where ref = any($1::text::bigint[]) for update skip locked))
    returning ref, lane, state, due_at, grp`,
  lockEnds: `
    select ref from ${s}.history where ref = any($1::text::bigint[]) for update skip locked`,
  lockFreeLeases: `
    select fence from ${s}.leases where fence = any($1::text::bigint[]) for update skip locked`,
  markLeases: `update ${s}.leases set has_request = true where fence = any($1::text::bigint[]) and not has_request`,

  /** The links that these ends resolve, by policy. */
  movedLinks: `
    select l.parent, l.child, l.on_failure, l.keep_ms
    from json_to_recordset($1::text::json) as a (parent bigint, policies text)
    cross join lateral (
      select l.parent, l.child, l.on_failure, l.keep_ms
      from ${s}.links l
      where l.parent = a.parent and l.on_failure = any(string_to_array(a.policies, ' '))
      limit $2::text::integer) l
    limit $2::text::integer`,
  lockChildren: `
    select ref from ${s}.waiting where ref = any($1::text::bigint[]) order by ref for update skip locked`,
  anyChildren: `
    select a.ref from unnest($1::text::bigint[]) as a (ref)
    where (select w.due_at from ${s}.waiting w where w.ref = a.ref) is not null`,
  resolveLinks: `
    delete from ${s}.links
    where ctid = any(array(
      select l.at
      from rows from (unnest($1::text::bigint[]), unnest($2::text::bigint[])) as each (parent, child)
      cross join lateral (
        select l.ctid as at from ${s}.links l
        where l.parent = each.parent and l.child = each.child
        limit 1
        for update) l))`,
  /** Jobs without an open link wait for their time, which has mostly passed. */
  freeJobs: `
    update ${s}.waiting w
    set state = case when (select j.error from ${s}.jobs j where j.ref = w.ref) is null then 'scheduled' else 'retrying' end
    -- Not by the index on states: most of it is blocked.
    where w.ref = any($1::text::bigint[]) and (w.state = 'blocked') is true
      and (select l.child from ${s}.links l where l.child = w.ref limit 1) is null
    returning w.grp, (select n.queue from ${s}.lanes n where n.lane = w.lane) as queue, w.state`,
  /** Only one transaction at a time adds links to existing jobs: two at once could close a cycle that neither sees. */
  lockLinking: `select pg_advisory_xact_lock(${LOCK_CLASS}, -1)`,
  /** Follows a long chain step by step: each step is one index lookup, and the planner has no other choice. */
  linksAbove: `
    with recursive up (child, parent) as (
      select l.child, l.parent from ${s}.links l where l.child = any($1::text::bigint[]) and ${notByKey}
      union
      select l.child, l.parent
      from up
      cross join lateral (
        select l.child, l.parent from ${s}.links l where l.child = up.parent and ${notByKey} offset 0) l)
    select child, parent from up`,
}
