import pg from 'pg'
import { dayQueries } from '../../../dist/store/postgres/queries/days.js'
import { DAY_MS, NUMBER_BITS } from '../../../dist/store/postgres/numbers.js'
import { LANE_NAMES, columnsOf, historyOf, KEPT_MS } from './history.js'

const PER_INSERT = 2_000

/** Writes the history into a schema whose tables a mill has made. */
export async function fillPostgres(url, schema, given) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const s = pg.escapeIdentifier(schema)
    await makePastDays(client, s, given.now)
    const lanes = new Map()
    for (const { job, queue } of LANE_NAMES) lanes.set(job, await laneOf(client, s, queue, job))
    await client.query('begin; set local synchronous_commit = off')
    await writeAll(client, s, lanes, given)
    await client.query('commit')
    await client.query(`analyze ${s}.jobs, ${s}.history, ${s}.labels`)
  } finally {
    await client.end()
  }
}

/** Each day is a partition. The engine makes those of today and of the next days only. */
async function makePastDays(client, s, now) {
  const days = dayQueries(s)
  const today = Math.floor(now / DAY_MS)
  const { rows } = await client.query(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = '${s}.jobs'::regclass`,
  )
  const made = new Set(rows.map(({ name }) => name))
  for (let day = Math.floor((now - KEPT_MS) / DAY_MS); day < today; day += 1) {
    const name = `jobs_${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '_')}`
    if (made.has(name)) continue
    for (const of of ['jobs', 'history', 'labels'])
      await client.query(`${days.create(of, day)}; ${days.attach(of, day)}`)
  }
}

async function laneOf(client, s, queue, name) {
  await client.query(`insert into ${s}.lanes (queue, name) values ($1, $2) on conflict do nothing`, [queue, name])
  const { rows } = await client.query(`select lane from ${s}.lanes where queue = $1 and name = $2`, [queue, name])
  return rows[0].lane
}

async function writeAll(client, s, lanes, given) {
  let jobs = []
  let moves = []
  const flush = async () => {
    await writeJobs(client, s, jobs)
    await client.query(
      `insert into ${s}.stats_moves (queue, name, at, done, failed, retried, wait, run, failures)
       select queue, job, at, done, failed, retried, wait, run, failures
       from json_to_recordset($1) as m (queue text, job text, at bigint, done bigint, failed bigint, retried bigint, wait text, run text, failures text)`,
      [JSON.stringify(moves)],
    )
    jobs = []
    moves = []
  }
  for (const { job, statistics, tick } of historyOf(given)) {
    if (tick !== undefined) await writeTick(client, s, tick)
    else if (statistics !== undefined) moves.push(statistics)
    else
      jobs.push({
        ...columnsOf(job),
        id: job.id,
        lane: lanes.get(job.job),
        state: job.state,
        attempt: job.attempt,
        retries: job.retries,
        reason: job.reason,
      })
    if (jobs.length >= PER_INSERT) await flush()
  }
  await flush()
}

function writeTick(client, s, { schedule, at, outcome, reason, job, firedAt }) {
  return client.query(
    `insert into ${s}.ticks (schedule, at, by_hand, outcome, reason, job, fired_at) values ($1, $2, false, $3, $4, $5, $6)`,
    [schedule, at, outcome, reason, job, firedAt],
  )
}

async function writeJobs(client, s, rows) {
  if (rows.length === 0) return
  await client.query(
    `with rows as materialized (
       select r.*, (("createdAt" / ${DAY_MS}) << ${NUMBER_BITS}) | nextval('${s}.job_number') as ref
       from json_to_recordset($1) as r (
         id uuid, lane integer, state text, attempt integer, retries integer, reason text, payload text, options text, labels json,
         "createdAt" bigint, "startedAt" bigint, "settledAt" bigint, "keepUntil" bigint, worker text, result text, error text, log text, place bigint)
       order by place),
     jobs as (
       insert into ${s}.jobs (ref, id, created_at, due_at, lane, priority, payload, options)
       select ref, id, "createdAt", "createdAt", lane, 0, payload, options from rows),
     labels as (
       insert into ${s}.labels (ref, label) select ref, label from rows, json_array_elements_text(labels) as label)
     insert into ${s}.history (ref, settled_at, started_at, keep_until, state, attempt, retries, worker, result, error, reason, log)
     select ref, "settledAt", "startedAt", "keepUntil", state, attempt, retries, worker, result, error, reason, log from rows`,
    [JSON.stringify(rows.map((row, place) => ({ ...row, place })))],
  )
}
