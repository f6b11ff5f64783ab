import { s, SCHEMA_TEXT } from '../sql-fragments.js'

/** The change log and its consumers. */
export const changeLogQueries = {
  changeTriggers: `
    select 1 as found from pg_trigger where tgrelid = '${SCHEMA_TEXT}.history'::regclass and tgname = 'log_history_inserted'`,
  takeConsumer: `
    update ${s}.consumers set reader = $2 where consumer = $1
    returning 1 as taken`,
  addConsumer: `
    insert into ${s}.consumers (consumer, reader, position) values ($1, $2, $3::text::bigint)
    on conflict (consumer) do update set reader = excluded.reader`,
  readConsumer: `select position from ${s}.consumers where consumer = $1 and reader = $2`,
  lastChange: `select coalesce(pg_sequence_last_value('${SCHEMA_TEXT}.change_number'::regclass), 0) as number`,
  /**
   * Transactions that have written changes and are open. Each took the lock before its numbers, and loses it after its
   * rows are visible.
   */
  changeWriters: `
    select distinct l.virtualtransaction as writer
    from pg_locks l
    where l.locktype = 'relation' and l.relation = '${SCHEMA_TEXT}.changes'::regclass and l.mode = 'RowExclusiveLock'
      and l.granted and l.pid is distinct from pg_backend_pid()`,
  changesAfter: `
    select c.number, c.id::text as id, n.name as job, n.queue, c.state, c.at
    from (
      select * from ${s}.changes
      where number > $1::text::bigint and number <= $2::text::bigint
      order by number
      limit $3::text::integer) c
    cross join lateral (select * from ${s}.lanes n where n.lane = c.lane limit 1) n
    order by c.number`,
  saveRead: `
    update ${s}.consumers set position = greatest(position, $3::text::bigint)
    where consumer = $1 and reader = $2
    returning 1 as saved`,
  dropConsumer: `
    delete from ${s}.consumers where consumer = $1
    returning 1 as dropped`,
  trimChanges: `
    delete from ${s}.changes
    where number = any(array(
      select c.number from ${s}.changes c
      where c.number <= coalesce(
        (select k.position from ${s}.consumers k order by k.position limit 1), $1::text::bigint)
      order by c.number
      limit $2::text::integer))
    returning 1 as dropped`,
}
