import { s, clock, hasEnded, laneOf } from './sql-fragments.js'

/** States of members that a group still waits for. */
const unfinished = `state not in ('done', 'failed', 'cancelled')`
/** The number of unfinished members of a group, in the snapshot of one statement. */
const unfinishedOf = (group: string): string => `(
      (select coalesce(sum(c.members), 0) from ${s}.group_counts c where c.grp = ${group} and c.${unfinished})
      + (select coalesce(sum(m.members), 0) from ${s}.group_moves m where m.grp = ${group} and m.${unfinished}))`

/** While more members than this are unfinished, a settlement sends no hint: the poll folds the moves. */
const NEARLY_DONE = 10_000

export const groupQueries = {
  /**
   * Locks the groups for share until the transaction ends: meanwhile no other process seals, completes or deletes them.
   * In a fixed order, so that there is no deadlock.
   */
  shareGroups: `
    select g.grp, g.sealed_at, g.completed_at, g.empty_since
    from ${s}.groups g
    where g.grp = any(array(select value from json_array_elements_text($1::text::json)))
    order by g.grp
    for share`,
  addGroups: `
    insert into ${s}.groups (grp)
    select value from json_array_elements_text($1::text::json) order by value
    on conflict (grp) do nothing`,
  keepGroups: `
    update ${s}.groups set empty_since = null
    where grp = any(array(select value from json_array_elements_text($1::text::json))) and empty_since is not null`,
  isMember: `
    select 1 as member from ${s}.jobs j where j.ref = $1::text::bigint and j.grp = $2`,
  /**
   * Waits for open transactions that add members. The zero-count move makes the next fold check whether the group is
   * complete, however long ago its last member ended.
   */
  sealGroup: `
    with sealed as (
      update ${s}.groups
      set sealed_at = coalesce($1::text::bigint, ${clock}), when_done = $2
      where grp = $3 and sealed_at is null
      returning grp)
    insert into ${s}.group_moves (grp, queue, state, members)
    select grp, '', 'done', 0 from sealed
    returning 1 as sealed`,
  /** Inserts moves, and returns whether a group may soon be complete. */
  countMoves: `
    with moved as (
      insert into ${s}.group_moves (grp, queue, state, members)
      select a."group", a.queue, a.state, a.members
      from json_to_recordset($1::text::json) as a ("group" text, queue text, state text, members integer)
      returning grp)
    select 1 as near
    from ${s}.groups g
    where g.grp = any(array(select grp from moved)) and g.sealed_at is not null and g.completed_at is null
      and (select coalesce(sum(c.members), 0) from ${s}.group_counts c where c.grp = g.grp and c.${unfinished}) < ${NEARLY_DONE}
    limit 1`,
  readGroup: `
    select g.sealed_at as sealed, g.completed_at as completed, moves.number::integer as moves,
           (select json_agg(json_build_object('queue', each.queue, 'state', each.state, 'members', each.members))
            from (
              select both_of.queue, both_of.state, sum(both_of.members)::bigint as members
              from (
                select c.queue, c.state, c.members from ${s}.group_counts c where c.grp = $1
                union all
                select m.queue, m.state, m.members from ${s}.group_moves m where m.grp = $1) as both_of
              group by both_of.queue, both_of.state) as each)::text as counts,
           -- Reads only what workers have claimed, which bounds it.
           (select json_agg(json_build_object('queue', each.queue, 'members', each.members))
            from (
              select n.queue, count(*) as members
              -- Only jobs that have begun: the rest of a lease, which is most of it, is not read.
              from ${s}.jobs j
              cross join ${laneOf('j.lane')}
              where j.ref = any(array(
                  select held.ref
                  from (select refs, released, starting from ${s}.leases order by fence) e
                  cross join unnest(e.refs[1:e.starting]) as held (ref)
                  where not held.ref = any(e.released)
                  union
                  select p.ref
                  from (select ref, fence from ${s}.reports order by ref) p
                  cross join lateral (select refs, released from ${s}.leases where fence = p.fence limit 1) e
                  where p.ref = any(e.refs) and not p.ref = any(e.released)))
                and j.grp = $1 and not ${hasEnded('j.ref')}
              group by n.queue) as each)::text as running
    from (select count(*) as number from ${s}.group_moves m where m.grp = $1) as moves
    left join ${s}.groups g on g.grp = $1`,
  /**
   * Folds moves into counts. Moves of a group that is complete in this snapshot are left: they mark that its follow-up
   * job is still to be enqueued. Returns the complete groups.
   */
  foldMoves: `
    with scanned as materialized (
      select m.ctid as at, m.grp from ${s}.group_moves m order by m.grp limit $1::text::integer for update skip locked),
    complete as materialized (
      select g.grp
      from ${s}.groups g
      where g.grp = any(array(select grp from scanned)) and g.sealed_at is not null and g.completed_at is null
        and ${unfinishedOf('g.grp')} = 0),
    taken as (
      delete from ${s}.group_moves
      where ctid = any(array(select at from scanned where grp not in (select grp from complete)))
      returning grp, queue, state, members),
    folded as (
      insert into ${s}.group_counts (grp, queue, state, members)
      select grp, queue, state, sum(members) from taken group by grp, queue, state having sum(members) <> 0 order by 1, 2, 3
      on conflict (grp, queue, state) do update set members = group_counts.members + excluded.members)
    select (select count(*)::integer from scanned) as scanned, (select json_agg(grp) from complete)::text as complete`,
  whenDone: `
    select when_done as written from ${s}.groups where grp = $1 and completed_at is null`,
  /** Blocks transactions that add members; if one holds the row, it is skipped and checked again soon. */
  lockGroup: `
    select when_done as written
    from ${s}.groups
    where grp = $1 and sealed_at is not null and completed_at is null
    for update skip locked`,
  /**
   * A statement of its own, after the lock, so that its snapshot includes what the transactions that shared the lock
   * committed.
   */
  isComplete: `
    select 1 as complete where ${unfinishedOf('$1')} = 0`,
  completeGroup: `
    update ${s}.groups set completed_at = coalesce($2::text::bigint, ${clock}), when_done = null where grp = $1`,
  /**
   * The next few groups of a walk through all: a group without members is marked, and deleted when it has been marked
   * for long enough. A transaction that adds to a marked group removes the mark first, and a row that has changed since
   * it was read is skipped.
   */
  sweepGroups: `
    with clock as materialized (select coalesce($1::text::bigint, ${clock}) as now),
    scanned as materialized (
      select g.grp, g.empty_since,
             (select j.ref from ${s}.jobs j where j.grp = g.grp limit 1) is not null as lives
      from ${s}.groups g
      where g.grp > $2
      order by g.grp
      limit $3::text::integer),
    marked as (
      update ${s}.groups g set empty_since = case when l.lives then null else now end
      from scanned l, clock
      where g.grp = any(array(select grp from scanned)) and g.grp = l.grp and l.lives = (g.empty_since is not null)
        and l.empty_since is not distinct from g.empty_since),
    gone as (
      delete from ${s}.groups g
      using scanned l, clock
      where g.grp = any(array(select grp from scanned)) and g.grp = l.grp and not l.lives and g.empty_since = l.empty_since and g.empty_since <= now - $4::text::bigint
        and (g.sealed_at is null or g.completed_at is not null)
      returning g.grp),
    counts as (delete from ${s}.group_counts where grp = any(array(select grp from gone))),
    moves as (delete from ${s}.group_moves where grp = any(array(select grp from gone)))
    select (select count(*)::integer from gone) as forgotten, (select count(*)::integer from scanned) as scanned,
           (select max(grp) from scanned) as last`,
}
