import { LOCK_CLASS, LOCK_SLOTS } from '../numbers.js'
import { laneOf, optionsJson, s } from './sql-fragments.js'

/** Who holds a key or a unique slot: see `store/verbs/conflicts.ts`. */
export const conflictQueries = {
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
}
