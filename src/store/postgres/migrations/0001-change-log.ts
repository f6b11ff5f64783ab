/** The change log and its consumers. The triggers that write it exist only while it is switched on. */
export const changeLog = (schema: string): readonly string[] => [
  `create sequence ${schema}.change_number`,
  `create table ${schema}.changes (
    number bigint primary key default nextval('${schema.replaceAll("'", "''")}.change_number'),
    id uuid not null,
    lane integer not null,
    state text not null,
    at bigint not null
  )`,
  `create table ${schema}.consumers (
    consumer text primary key,
    -- Who reads now: a later reader takes the consumer from it.
    reader text not null,
    -- The number of the last change that was read.
    position bigint not null
  )`,
  // trimChanges: the consumer that has read least
  `create index consumers_position on ${schema}.consumers (position)`,
]

/** The setting with which a transaction moves rows between partitions: that is no change. */
export const MOVING = 'millrace.moving'

/**
 * What switches the log on: one trigger for each way in which a job changes its state, by statement, so that a batch costs
 * one insert. Each is a function and its trigger. They run with the privileges of the owner of the tables: a caller of
 * `add_job` needs none on the log.
 */
export const changeTriggers = (schema: string): readonly string[] => [
  ...trigger(
    schema,
    'ready_inserted',
    'after insert on',
    'ready',
    'new table as rows',
    `
    select r.ref, 'ready' as state from rows r`,
  ),
  ...trigger(
    schema,
    'waiting_inserted',
    'after insert on',
    'waiting',
    'new table as rows',
    `
    select r.ref, r.state from rows r`,
  ),
  ...trigger(
    schema,
    'waiting_moved',
    'after update on',
    'waiting',
    'old table as before new table as rows',
    `
    select r.ref, r.state from rows r join before b on b.ref = r.ref where b.state <> r.state`,
  ),
  // Jobs that a claim holds in advance are still ready.
  ...trigger(
    schema,
    'leases_inserted',
    'after insert on',
    'leases',
    'new table as rows',
    `
    select held.ref, 'running' as state
    from rows r cross join unnest(r.refs[1:r.starting]) with ordinality as held (ref, position)`,
  ),
  // The first report of a job that was held in advance; another report is no change.
  ...trigger(schema, 'reports_inserted', 'after insert on', 'reports', 'new table as rows', begun(schema, 'rows r')),
  ...trigger(
    schema,
    'reports_moved',
    'after update on',
    'reports',
    'old table as before new table as rows',
    begun(schema, 'rows r join before b on b.ref = r.ref and b.fence <> r.fence'),
  ),
  ...trigger(
    schema,
    'history_inserted',
    'after insert on',
    'history',
    'new table as rows',
    `
    select r.ref, r.state from rows r where coalesce(current_setting('${MOVING}', true), '') <> 'on'`,
  ),
]

const begun = (schema: string, rows: string): string => `
    select r.ref, 'running' as state
    from ${rows}
    join ${schema}.leases e on e.fence = r.fence
    where array_position(e.refs, r.ref) > e.starting`

const TABLES = {
  ready_inserted: 'ready',
  waiting_inserted: 'waiting',
  waiting_moved: 'waiting',
  leases_inserted: 'leases',
  reports_inserted: 'reports',
  reports_moved: 'reports',
  history_inserted: 'history',
} as const

export const dropChangeTriggers = (schema: string): readonly string[] =>
  Object.entries(TABLES).map(([name, table]) => `drop trigger if exists log_${name} on ${schema}.${table}`)

function trigger(
  schema: string,
  name: keyof typeof TABLES,
  when: string,
  table: string,
  rows: string,
  changed: string,
): readonly string[] {
  const body = `
begin
  insert into ${schema}.changes (id, lane, state, at)
  select j.id, j.lane, c.state, (extract(epoch from clock_timestamp()) * 1000)::bigint
  from (${changed}) c
  cross join lateral (select j.id, j.lane from ${schema}.jobs j where j.ref = c.ref limit 1) j;
  return null;
end`
  return [
    `create or replace function ${schema}.log_${name}() returns trigger
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    as '${body.replaceAll("'", "''")}'`,
    `create or replace trigger log_${name} ${when} ${schema}.${table} referencing ${rows}
    for each statement execute function ${schema}.log_${name}()`,
  ]
}
