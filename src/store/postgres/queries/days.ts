import { DAY_MS, NUMBER_BITS } from './numbers.js'
import { RANGE_PAGES } from '../migrations/0001-times.js'
import { forgetting } from './sql-fragments.js'

/**
 * The statements that make and drop days. They are none of the others', because their texts name tables and are different
 * each day: nothing keeps them prepared.
 */

/** What has a partition for each day. */
export const PARTED = ['jobs', 'history', 'labels'] as const
export type Parted = (typeof PARTED)[number]

/** How long other processes may wait behind our wait for a lock; then it is tried again. */
const LOCK_WAIT_MS = 100
/** And while we have it: then the server undoes what we began. */
const STATEMENT_MS = 5_000

export type DayQueries = ReturnType<typeof dayQueries>

/** `schema` is a quoted identifier; days are whole numbers. */
export function dayQueries(schema: string) {
  const s = schema
  const text = s.replaceAll(`'`, `''`)
  const table = (of: Parted, day: number): string => `${s}.${partitionOf(of, day)}`
  return {
    ...lookQueries(s, text),
    begin: `begin isolation level read committed; set local lock_timeout = ${LOCK_WAIT_MS}; set local statement_timeout = ${STATEMENT_MS}; set local jit = off`,
    commit: `commit`,
    rollback: `rollback`,
    ...roundQueries(text),
    ...summaryQueries(text),
    ...labelQueries(s),
    /** Rows of that day are in the rest already: then they stay there, since nothing may move under those who run them. */
    isTaken: (of: Parted, day: number): string =>
      `select 1 as taken from ${s}.${of}_rest where ${within('ref', day)} limit 1`,
    /** By itself first: to attach it locks out only readers of the default partition, for one scan of it. */
    create: (of: Parted, day: number): string =>
      `create table if not exists ${table(of, day)} (like ${s}.${of} including all)`,
    /** To whom the others belong: whoever else may drop it later need not be of the role that made it. `owner` is quoted. */
    give: (of: Parted, day: number, owner: string): string => `alter table ${table(of, day)} owner to ${owner}`,
    attach: (of: Parted, day: number): string =>
      `alter table ${s}.${of} attach partition ${table(of, day)} for values from (${from(day)}) to (${from(day + 1)})`,

    /** All or none: a transaction that is open has one of them. */
    lockParted: `lock table only ${s}.jobs, only ${s}.history, only ${s}.labels in access exclusive mode`,
    detach: (of: Parted, day: number): string => `alter table ${s}.${of} detach partition ${table(of, day)}`,
    /** No day covers them any more, so they go to the rest: those that were seen, and what came to stay after the look. */
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
    /** Of every job that is still there, whatever it says: a job without its end would be taken for unfinished. */
    moveHistory: (day: number): string => `
      insert into ${s}.history
      select h.*
      from ${table('history', day)} h
      where h.ref = any(array(select j.ref from ${s}.jobs_rest j where ${within('j.ref', day)}))`,
    /** Those that were deleted and have children. */
    noteGone: (day: number): string => `
      insert into ${s}.link_todos (parent, what)
      select l.parent, case when h.state = 'done' then 'done' else 'gone' end
      from (select distinct parent from ${s}.links where ${within('parent', day)}) l
      left join ${table('history', day)} h on h.ref = l.parent
      -- The day is detached by now: what stays of it is in the rest.
      where l.parent not in (select j.ref from ${s}.jobs_rest j where ${within('j.ref', day)})`,
    drop: (of: Parted, day: number): string => `drop table ${table(of, day)}`,
  }
}

/** Written out and not bound, so that the plan is for one partition from the start. */
const within = (column: string, day: number): string => `${column} >= ${from(day)} and ${column} < ${from(day + 1)}`

/** The labels of a day that is dropped. Its jobs are detached by now: those that stay are in the rest. */
function labelQueries(s: string) {
  const staying = (day: number): string => `array(select j.ref from ${s}.jobs_rest j where ${within('j.ref', day)})`
  return {
    moveLabels: (day: number): string => `
      insert into ${s}.labels
      select l.*
      from ${s}.${partitionOf('labels', day)} l
      where l.ref = any(${staying(day)})`,
    /** Labels are in the rest where their day was made later than that of the jobs. */
    dropLabels: (day: number): string => `
      delete from ${s}.labels_rest
      where ${within('ref', day)} and ref <> all(${staying(day)})`,
  }
}

/** What is asked of a day before anything is locked for it. */
function lookQueries(s: string, text: string) {
  /**
   * Jobs from one ref on, so many, and the ends of them that are over. The ends are read in the same stretch; left to choose, the
   * planner would read all ends of the day for each slice.
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
    /** Only the owner of the tables may make and drop their partitions. */
    readOwner: `
      select bool_and(pg_has_role(c.relowner, 'usage') and has_schema_privilege(c.relnamespace, 'create')) as may,
             min(c.relowner::regrole::text) as owner, quote_ident(current_user) as role
      from pg_class c
      where c.oid in (${PARTED.map((of) => `'${text}.${of}'::regclass`).join(', ')})`,
    /** A slice, with those of it that are unfinished or to be kept: there is no end of them that is over. */
    lookAtSlice: `
      with ${slice}
      select count(*)::integer as rows, max(ref)::text as last,
             (json_agg(ref) filter (where ref not in (select ref from over)))::text as staying
      from slice`,
    /** The same for a role that may not drop the day: deletes what is over, the jobs with their ends. */
    pruneSlice: `
      with ${slice},
      ${forgetting(s, 'over')}
      select (select count(*)::integer from slice) as rows, (select max(ref)::text from slice) as last,
             (select count(*)::integer from gone) as forgotten`,
    /** No job is uncommitted; a job that is enqueued now gets a number after the last one. */
    lockJobs: `lock table only ${s}.jobs in share mode`,
    lastNumber: `select coalesce(pg_sequence_last_value('${text}.job_number'::regclass), 0)::text as number`,
    /** Of days that are gone. */
    sweepRevived: (oldest: number): string => `delete from ${s}.revived where ref < ${from(oldest)}`,
  }
}

const from = (day: number): bigint => BigInt(day) << BigInt(NUMBER_BITS)

/** The last ref before a day. */
export function beforeDay(day: number): string {
  return String(from(day) - 1n)
}

/** How a round through the days begins; `text` is the schema within a text of SQL. */
function roundQueries(text: string) {
  return {
    /** One at a time makes and drops; the others need not wait for it. */
    tryAlone: `select pg_try_advisory_xact_lock(hashtextextended('millrace days ${text}', 7)) as alone`,
    readParts: `
      select c.relname::text as name
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      where i.inhparent in (${PARTED.map((of) => `'${text}.${of}'::regclass`).join(', ')})`,
  }
}

/** The index on times. A block is the first page of a run; $1 has where to begin in each partition. */
function summaryQueries(text: string) {
  return {
    addSummaries: `
      select name, block, brin_summarize_range(index, block) as added
      from (
        select asked.name, x.oid as index, block
        from json_to_recordset($1::text::json) as asked (name text, next bigint)
        join pg_class t on t.oid = to_regclass('${text}.' || quote_ident(asked.name))
        join pg_index i on i.indrelid = t.oid
        join pg_class x on x.oid = i.indexrelid
        join pg_am a on a.oid = x.relam and a.amname = 'brin'
        cross join lateral generate_series(
          asked.next, pg_relation_size(t.oid) / current_setting('block_size')::bigint - ${RANGE_PAGES}, ${RANGE_PAGES}) as block
        order by asked.name, block
        limit $2::text::integer) as full_runs`,
  }
}

/** As people write days, since they will see it in lists of tables. */
export function partitionOf(of: Parted, day: number): string {
  return `${of}_${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '_')}`
}

/** The day of a partition; undefined for what is none, as the rest. */
export function dayOf(of: Parted, name: string): number | undefined {
  const [, year, month, day] = /_(\d{4})_(\d\d)_(\d\d)$/.exec(name) ?? []
  if (day === undefined || !name.startsWith(`${of}_`)) return undefined
  return Date.UTC(Number(year), Number(month) - 1, Number(day)) / DAY_MS
}
