import { DAY_MS, NUMBER_BITS } from '../numbers.js'
import { MOVING } from '../migrations/0001-change-log.js'
import { RANGE_PAGES } from '../migrations/0001-times.js'
import { forgetting } from './sql-fragments.js'

/**
 * The statements that create and drop partitions of days. They are apart from the others because their texts name
 * tables and differ each day, so they are not prepared.
 */

/** The tables with one partition per day. */
export const PARTITIONED_TABLES = ['jobs', 'history', 'labels'] as const
export type PartitionedTable = (typeof PARTITIONED_TABLES)[number]

/** How long a statement waits for its lock, and so delays other processes that queue behind it; then it is retried. */
const LOCK_WAIT_MS = 100
/** The time limit while it holds the lock; then the server rolls back. */
const STATEMENT_MS = 5_000

export type DayQueries = ReturnType<typeof dayQueries>

/** `schema` is a quoted identifier; days are whole numbers. */
export function dayQueries(schema: string) {
  const s = schema
  const text = s.replaceAll(`'`, `''`)
  const table = (of: PartitionedTable, day: number): string => `${s}.${partitionOf(of, day)}`
  return {
    ...scanQueries(s, text),
    begin: `begin isolation level read committed; set local lock_timeout = ${LOCK_WAIT_MS}; set local statement_timeout = ${STATEMENT_MS}; set local jit = off; set local ${MOVING} = 'on'`,
    commit: `commit`,
    rollback: `rollback`,
    ...roundQueries(text),
    ...summaryQueries(text),
    ...labelQueries(s),
    /**
     * Whether rows of that day are in the default partition: they stay, since rows of running jobs must not be moved.
     */
    isTaken: (of: PartitionedTable, day: number): string =>
      `select 1 as taken from ${s}.${of}_rest where ${within('ref', day)} limit 1`,
    /** Created first and then attached, which blocks only readers of the default partition, during one scan of it. */
    create: (of: PartitionedTable, day: number): string =>
      `create table if not exists ${table(of, day)} (like ${s}.${of} including all)`,
    /** To the owner of the others: another role than the creator may have to drop it. `owner` is quoted. */
    give: (of: PartitionedTable, day: number, owner: string): string =>
      `alter table ${table(of, day)} owner to ${owner}`,
    attach: (of: PartitionedTable, day: number): string =>
      `alter table ${s}.${of} attach partition ${table(of, day)} for values from (${from(day)}) to (${from(day + 1)})`,

    /** All or none: an open transaction has locked at least one of them. */
    lockPartitioned: `lock table only ${s}.jobs, only ${s}.history, only ${s}.labels in access exclusive mode`,
    detach: (of: PartitionedTable, day: number): string => `alter table ${s}.${of} detach partition ${table(of, day)}`,
    /** To the default partition: jobs that the scan found, and those that must stay since then. */
    moveJobs: (day: number): string => `
      with moved as (
        insert into ${s}.jobs
        select j.*
        from ${table('jobs', day)} j
        where j.ref = any(array(
          select unnest($1::text::bigint[])
          union
          select r.ref from ${s}.revived r where ${within('r.ref', day)}
          union
          select late.ref from ${table('jobs', day)} late where late.ref > ${from(day)} + $2::text::bigint))
        returning 1)
      select count(*)::integer as rows from moved`,
    /** The ends of all jobs that stay, even expired ones: without its end a job would count as unfinished. */
    moveHistory: (day: number): string => `
      insert into ${s}.history
      select h.*
      from ${table('history', day)} h
      where h.ref = any(array(select j.ref from ${s}.jobs_rest j where ${within('j.ref', day)}))`,
    /** To-dos for deleted jobs that have children. */
    noteGone: (day: number): string => `
      insert into ${s}.link_todos (parent, what)
      select l.parent, case when h.state = 'done' then 'done' else 'gone' end
      from (select distinct parent from ${s}.links where ${within('parent', day)}) l
      left join ${table('history', day)} h on h.ref = l.parent
      -- The day is detached by now: the rows that stay are in the default partition.
      where l.parent not in (select j.ref from ${s}.jobs_rest j where ${within('j.ref', day)})`,
    drop: (of: PartitionedTable, day: number): string => `drop table ${table(of, day)}`,
  }
}

/** Literals instead of parameters, so that the plan covers one partition from the start. */
const within = (column: string, day: number): string => `${column} >= ${from(day)} and ${column} < ${from(day + 1)}`

/** The labels and logs of a day that is dropped. Its jobs are detached by now: those that stay are in the default partition. */
function labelQueries(s: string) {
  const staying = (day: number): string => `array(select j.ref from ${s}.jobs_rest j where ${within('j.ref', day)})`
  return {
    moveLabels: (day: number): string => `
      insert into ${s}.labels
      select l.*
      from ${s}.${partitionOf('labels', day)} l
      where l.ref = any(${staying(day)})`,
    /** Leftovers for deleted jobs that have a log: no trigger runs when their partition is dropped. */
    noteLongWork: (day: number): string => `
      insert into ${s}.leftovers (ref, run, list, is_deleted, due_at)
      select j.ref, coalesce(w.run, 0), t.list, true, 0
      from ${s}.${partitionOf('jobs', day)} j
      left join ${s}.workflows w on w.ref = j.ref
      left join ${s}.lists t on t.id = j.id
      where j.shape is not null and j.ref <> all(${staying(day)})`,
    /** Labels are in the default partition if their partition was created later than that of the jobs. */
    dropLabels: (day: number): string => `
      delete from ${s}.labels_rest
      where ${within('ref', day)} and ref <> all(${staying(day)})`,
  }
}

/** Reads a day before anything is locked for it. */
function scanQueries(s: string, text: string) {
  /**
   * A number of jobs after a ref, and the expired ends among them. The ends are read in the same range of refs;
   * otherwise the planner would read all ends of the day for each slice.
   */
  const slice = `slice as materialized (
        select ref from ${s}.jobs
        where ref > $1::text::bigint and ref <= $2::text::bigint
        order by ref
        limit $4::text::integer),
      over as materialized (
        select ref from ${s}.history
        where ref > $1::text::bigint and ref <= (select max(ref) from slice) and keep_until <= $3::text::bigint)`
  return {
    /** Only the owner of the tables may create and drop their partitions. */
    readOwner: `
      select bool_and(pg_has_role(c.relowner, 'usage') and has_schema_privilege(c.relnamespace, 'create')) as may,
             min(c.relowner::regrole::text) as owner, quote_ident(current_user) as role
      from pg_class c
      where c.oid in (${PARTITIONED_TABLES.map((of) => `'${text}.${of}'::regclass`).join(', ')})`,
    /** A slice, with those of its jobs that are unfinished or still kept: they have no expired end. */
    scanSlice: `
      with ${slice}
      select count(*)::integer as rows, max(ref)::text as last,
             (json_agg(ref) filter (where ref not in (select ref from over)))::text as staying
      from slice`,
    /** The same for a role that may not drop the day: deletes expired jobs with their ends. */
    pruneSlice: `
      with ${slice},
      ${forgetting(s, 'over')}
      select (select count(*)::integer from slice) as rows, (select max(ref)::text from slice) as last,
             (select count(*)::integer from gone) as forgotten`,
    /** Waits for uncommitted inserts; a job that is enqueued later gets a higher number than `lastNumber`. */
    lockJobs: `lock table only ${s}.jobs in share mode`,
    lastNumber: `select coalesce(pg_sequence_last_value('${text}.job_number'::regclass), 0)::text as number`,
    /** Rows of days that were dropped. */
    sweepRevived: (oldest: number): string => `delete from ${s}.revived where ref < ${from(oldest)}`,
  }
}

const from = (day: number): bigint => BigInt(day) << BigInt(NUMBER_BITS)

/** The last ref before a day. */
export function beforeDay(day: number): string {
  return String(from(day) - 1n)
}

/** The first statements of a round through the days; `text` is the schema within an SQL string. */
function roundQueries(text: string) {
  return {
    /** One process at a time creates and drops; the others do not wait for it. */
    tryAlone: `select pg_try_advisory_xact_lock(hashtextextended('millrace days ${text}', 7)) as alone`,
    readParts: `
      select c.relname::text as name
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      where i.inhparent in (${PARTITIONED_TABLES.map((of) => `'${text}.${of}'::regclass`).join(', ')})`,
  }
}

/** Fills the index on times. A block is the first page of a range; $1 has the block to begin at in each partition. */
function summaryQueries(text: string) {
  return {
    addSummaries: `
      select name, block, brin_summarize_range(index, block) as added
      from (
        select wanted.name, x.oid as index, block
        from json_to_recordset($1::text::json) as wanted (name text, next bigint)
        join pg_class t on t.oid = to_regclass('${text}.' || quote_ident(wanted.name))
        join pg_index i on i.indrelid = t.oid
        join pg_class x on x.oid = i.indexrelid
        join pg_am a on a.oid = x.relam and a.amname = 'brin'
        cross join lateral generate_series(
          wanted.next, pg_relation_size(t.oid) / current_setting('block_size')::bigint - ${RANGE_PAGES}, ${RANGE_PAGES}) as block
        order by wanted.name, block
        limit $2::text::integer) as full_runs`,
  }
}

/** With a readable date, since people see it in lists of tables. */
export function partitionOf(of: PartitionedTable, day: number): string {
  return `${of}_${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '_')}`
}

/** The day of a partition; undefined for other tables, such as the default partition. */
export function dayOf(of: PartitionedTable, name: string): number | undefined {
  const [, year, month, day] = /_(\d{4})_(\d\d)_(\d\d)$/.exec(name) ?? []
  if (day === undefined || !name.startsWith(`${of}_`)) return undefined
  return Date.UTC(Number(year), Number(month) - 1, Number(day)) / DAY_MS
}
