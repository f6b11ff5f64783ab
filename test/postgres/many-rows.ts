import type { Client } from 'pg'
import { dayQueries, PARTITIONED_TABLES } from '../../src/store/postgres/queries/days.js'
import { DAY_MS, NUMBER_BITS } from '../../src/store/postgres/numbers.js'

/** The schema that the rows are in. */
export const SCHEMA = 'millrace'
/** The number of days of the jobs, today included. */
const DAYS = 10
/** Jobs per lease, of the few that workers hold. */
const HELD = 10
const LEASES = 20
export const LANES = 100
const FAR = 4_000_000_000_000

/** Today, as in refs. */
export const today = (): number => Math.floor(Date.now() / DAY_MS)
export const refOf = (i: number): bigint => (BigInt(today() - (i % DAYS)) << BigInt(NUMBER_BITS)) | BigInt(i)
export const idOf = (i: number): string => `00000000-0000-4000-8000-${i.toString(16).padStart(12, '0')}`

/** Partitions for the days of the jobs. */
export async function makeDays(client: Client): Promise<void> {
  const queries = dayQueries(SCHEMA)
  for (let day = today() - DAYS + 1; day < today(); day += 1)
    for (const of of PARTITIONED_TABLES) {
      await client.query(queries.create(of, day))
      await client.query(queries.attach(of, day))
    }
}

/**
 * `rows` jobs: half of them have ended, the others are ready or wait, and the last few are held by workers. Each table that grows
 * with jobs, groups, links or schedules has its share.
 */
export async function fillTables(client: Client, rows: number): Promise<void> {
  const held = rows - 10 * HELD * LEASES
  const s = SCHEMA
  // Not a temporary table: the server would create a schema for it, and replan every prepared statement.
  const made = `(
     select i, ((${today()} - i % ${DAYS})::bigint << ${NUMBER_BITS}) | i as ref, 1 + i % ${LANES} as lane,
            case when i % 10 < 5 then 'history' when i % 10 < 7 then 'ready' when i % 10 = 9 and i > ${held} then 'lease'
              else 'waiting' end as place
     from generate_series(1, ${rows}) as i) as made`
  for (const statement of [
    `set synchronous_commit = off`,
    `insert into ${s}.lanes (queue, name) select 'q' || i, 'n' || i from generate_series(1, ${LANES}) as i`,
    `insert into ${s}.jobs (ref, id, created_at, due_at, lane, priority, key, payload, options, expires_at, grp)
     select ref, ('00000000-0000-4000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, i, i, lane, 0,
            case when i % 3 = 0 then 'k' || i end, '{}', '{"unique":{"key":"u' || i || '"}}', ${FAR} + i,
            case when i % 2 = 0 then 'g' || i % 500 end
     from ${made} order by ref`,
    `insert into ${s}.labels (ref, label) select ref, 'l' || i % 500 from ${made} order by ref`,
    `insert into ${s}.history (ref, settled_at, keep_until, state, worker, started_at)
     select ref, i, ${FAR}, 'done', 'w1', 1 from ${made} where place = 'history' order by ref`,
    `insert into ${s}.ready (lane, sort, ref) select lane, i, ref from ${made} where place = 'ready' order by 1, 2, 3`,
    `insert into ${s}.waiting (ref, lane, state, due_at)
     select ref, lane, case when i % 10 = 9 then 'blocked' when i < 100 then 'ready' when i % 10 = 7 then 'scheduled' else 'retrying' end,
            ${FAR} + i
     from ${made} where place = 'waiting' order by ref`,
    `insert into ${s}.links (parent, child, on_failure) select ref - 1, ref, 'wait' from ${made} where i % 10 = 9 order by 1`,
    `insert into ${s}.keys (name, key, ref) select 'n' || lane, 'k' || i, ref from ${made} where i % 3 = 0 order by 1, 2`,
    `insert into ${s}.uniques (name, key, ref, id)
     select 'n' || lane, 'u' || i, ref, ('00000000-0000-4000-8000-' || lpad(to_hex(i), 12, '0'))::uuid from ${made} order by 1, 2`,
    `insert into ${s}.expiring (expires_at, ref) select ${FAR} + i, ref from ${made} order by 1`,
    `insert into ${s}.groups (grp, sealed_at) select 'g' || i, case when i = 10 then 1 end from ${made} where i % 5 = 0 order by 1`,
    `insert into ${s}.group_counts (grp, queue, state, members) select 'g' || i, 'q1', 'done', 1 from ${made} where i % 5 = 0 order by 1`,
    `insert into ${s}.group_moves (grp, queue, state, members) select 'g' || i, 'q1', 'done', 1 from ${made} where i % 5 = 0`,
    // Upkeep keeps this table short.
    `insert into ${s}.stats_moves (queue, name, at, done, failed, retried, failures)
     select 'q' || lane, 'n' || lane, i, 1, 0, 0, case when i % 50 = 0 then '[]' end from ${made} where i <= 200`,
    `insert into ${s}.stats (queue, name, span, at, done, failed, retried)
     select distinct 'q' || lane, 'n' || lane, 60000, i, 1, 0, 0 from ${made} where i % 5 = 0 order by 1, 2, 3, 4`,
    `insert into ${s}.failures (queue, name, at, fingerprint, error, place, count, first_seen, last_seen, samples)
     select 'q' || lane, 'n' || lane, 5 + i / 5 % 400, 'f' || i, 'e', '', 1, 1, 1, '[]' from ${made} where i % 5 = 0 order by 1, 2, 3, 4`,
    `insert into ${s}.schedules (id, revision, spec, created_at, next_at) select 's' || i, 1, '', 0, ${FAR} + i from ${made} where i % 5 = 0`,
    `insert into ${s}.ticks (schedule, at, by_hand, outcome, fired_at)
     select 's' || i % ${Math.ceil(rows / 500)}, i, false, 'skipped', 0 from ${made} where i % 5 = 0`,
    `insert into ${s}.link_todos (parent, what) select ref, 'done' from ${made} where i % 5 = 0`,
    `insert into ${s}.receipts (id)
     select ('00000000-0000-4000-8000-' || lpad(to_hex(i), 12, '0'))::uuid from ${made} where i % 5 = 0`,
    `insert into ${s}.revived (ref) select ref from ${made} where i % 5 = 0 order by 1`,
    `insert into ${s}.workers (worker, host, pid, started_at) select 'w' || i, '', i, 0 from generate_series(1, 5) as i`,
    `insert into ${s}.leases (fence, worker, quarantined, claimed_at, starting, refs)
     select i / ${10 * HELD}, 'w1', 0, 0, 3, array_agg(ref order by i) from ${made} where place = 'lease' group by 1`,
    `insert into ${s}.reports (ref, fence, started_at) select refs[4], fence, 0 from ${s}.leases`,
    `insert into ${s}.requests (ref, kind, reason, requested_at) select refs[1], 'cancel', '', 0 from ${s}.leases`,
    `insert into ${s}.pauses (queue, until, paused_at) select 'p' || i, ${FAR}, 0 from generate_series(1, 20) as i`,
  ])
    await client.query(statement)
}

/** A job that a worker holds, and the fence of its lease. */
export function heldOf(rows: number): { ref: bigint; fence: number } {
  return { ref: refOf(rows - 1), fence: Math.floor((rows - 1) / (10 * HELD)) }
}

/** Sets statistics so that the planner assumes this many rows in every table that grew. */
export async function pretendRows(client: Client, rows: number): Promise<void> {
  await client.query(
    `with grown as (
       select c.oid, sum(c.reltuples) over (partition by coalesce(i.inhparent, c.oid)) as rows
       from pg_class c left join pg_inherits i on i.inhrelid = c.oid
       where c.relnamespace = '${SCHEMA}'::regnamespace and c.relkind = 'r')
     update pg_class c set reltuples = c.reltuples * ${rows} / g.rows
     from grown g where g.oid = c.oid and g.rows > ${LANES} * 10`,
  )
}
