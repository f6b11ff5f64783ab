import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { build } from './build.mjs'
import { tell } from './run.mjs'

/**
 * `node scripts/measure-statistics.mjs [jobs] [sqlite|postgres]`: fills a store with kept jobs (default 100,000) that ended in the last 30
 * days, and asks every verb of `mill.stats`. Prints the fastest, the median and the slowest of 7 answers in ms, compares counts with a recount of the
 * tables and percentiles with the durations themselves, and fails when a count differs, a percentile is wrong by more than 2 %, or the
 * median of a verb is above 50 ms. 10,000,000 jobs take about 15 minutes and 4 GB of disk on each store.
 */
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const DAYS = 30
const CHUNK = 20_000
const ANSWERS = 7
const ANSWER_MAX_MS = 50
const ERROR_MAX = 0.02
const NUMBER_BITS = 38n
const QUEUES = Array.from({ length: 8 }, (_, n) => `queue-${n}`)
const NAMES = ['mail', 'report']

const [total, engine] = [Number(process.argv[2] ?? 100_000), process.argv[3] ?? 'sqlite']
if (!Number.isSafeInteger(total) || total < 1 || !['sqlite', 'postgres'].includes(engine))
  throw new Error('node scripts/measure-statistics.mjs [jobs] [sqlite|postgres]')

tell(await build())
const from = (path) => import(new URL(`../dist/${path}`, import.meta.url).href)
const { millrace } = await from('index.js')
const { internalsOf } = await from('mill/internals.js')
const { Sketch } = await from('job/statistics/sketch.js')
const { failureOf } = await from('job/statistics/failure.js')
const { startPostgres } = await from('testing/index.js')
const { chooseLibrary } = await from('store/sqlite/connection/library.js')

/** Numbers that look random, the same in every run. */
let seed = 20_261_118
function random() {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}
/** Durations as they are in life: most are short, and a few are a thousand times as long. */
const duration = (middle) => Math.round(middle * Math.exp(1.6 * (random() + random() + random() - 1.5) * 2))

const seen = new Map(
  QUEUES.map((queue) => [
    queue,
    { wait: new Float64Array(total), run: new Float64Array(total), ended: 0, done: 0, failed: 0, retries: 0 },
  ]),
)
const tables = engine === 'sqlite' ? await sqliteTables() : await postgresTables()
const began = performance.now()
const faults = []
try {
  await fill()
  const mill = await millrace({ store: tables.url, logger: false })
  await fold(mill)
  await ask(mill)
  await compare(mill)
  await mill.close()
} finally {
  await tables.close()
}
for (const fault of faults) console.log(`✗ ${fault}`)
console.log(
  faults.length === 0 ? 'counts equal the recount, and percentiles are within 2 %' : `${faults.length} faults`,
)
process.exitCode = faults.length === 0 ? 0 : 1

/** The jobs, in the order in which they ended, and what each adds to the statistics. */
async function fill() {
  const first = Date.now() - DAYS * DAY_MS
  const span = DAYS * DAY_MS - 5 * MINUTE_MS
  let jobs = []
  let moves = new Map()
  for (let n = 1; n <= total; n += 1) {
    const job = makeJob(n, Math.floor(first + (span * n) / total))
    jobs.push(job)
    countMove(moves, job)
    if (jobs.length < CHUNK && n < total) continue
    await tables.write(jobs, [...moves.values()].map(moveRow))
    ;[jobs, moves] = [[], new Map()]
    progress('filled', n)
  }
  process.stderr.write('\n')
}

function makeJob(n, settledAt) {
  const lane = Math.floor(random() ** 2 * QUEUES.length * NAMES.length)
  const [queue, name] = [QUEUES[lane % QUEUES.length], NAMES[Math.floor(lane / QUEUES.length)]]
  const [wait, run] = [duration(120), duration(800 * (1 + (lane % QUEUES.length)))]
  const state = random() < 0.01 ? 'failed' : 'done'
  const retries = random() < 0.05 ? 1 + Math.floor(random() * 3) : 0
  const of = seen.get(queue)
  of.wait[of.ended] = wait
  of.run[of.ended] = run
  of.ended += 1
  of[state] += 1
  of.retries += retries
  const startedAt = settledAt - run
  return { n, lane, queue, name, state, retries, wait, run, dueAt: startedAt - wait, startedAt, settledAt }
}

function countMove(moves, { queue, name, settledAt, state, retries, wait, run }) {
  const at = Math.floor(settledAt / MINUTE_MS) * MINUTE_MS
  const key = `${queue}\n${name}\n${at}`
  const move = moves.get(key) ?? {
    queue,
    name,
    at,
    done: 0,
    failed: 0,
    retried: 0,
    wait: new Sketch(),
    run: new Sketch(),
    failures: 0,
  }
  moves.set(key, move)
  move[state] += 1
  move.retried += retries
  move.wait.add(wait)
  move.run.add(run)
  move.failures += state === 'failed' ? 1 : 0
}

function moveRow({ queue, name, at, done, failed, retried, wait, run, failures }) {
  const stack = `Error: declined\n    at ${name} (/app/src/${name}.ts:41:7)`
  const { message, ...group } = failureOf(name, { name: 'CardError', message: 'card declined', stack })
  const grouped =
    failures === 0 ? null : JSON.stringify([{ ...group, count: failures, samples: [{ id: queue, message }] }])
  return { queue, name, at, done, failed, retried, wait: wait.write(), run: run.write(), failures: grouped }
}

/** By upkeep, as in a running mill. */
async function fold(mill) {
  const { store } = internalsOf(mill)
  const all = await tables.unfolded()
  for (let left = all; left > 0; left = await tables.unfolded()) {
    for (let again = 0; again < 10; again += 1) await store.jobs.sweepRows(500)
    progress('folded', all - left, all)
  }
  process.stderr.write('\n')
}

async function ask(mill) {
  const asked = {
    'queues()': () => mill.stats.queues(),
    'errors(queue)': () => mill.stats.errors('queue-3'),
    'retries()': () => mill.stats.retries(),
    'retries({ days: Infinity })': () => mill.stats.retries({ days: Infinity }),
    'processingTimes()': () => mill.stats.processingTimes(),
    'processingTimes({ days: 7, queue })': () => mill.stats.processingTimes({ days: 7, queue: 'queue-3' }),
    'waitTimes()': () => mill.stats.waitTimes(),
    'series() of an hour': () => mill.stats.series(),
    'series() of 30 days by hour': () =>
      mill.stats.series({ from: new Date(Date.now() - DAYS * DAY_MS), bucket: '1h', queue: 'queue-3' }),
    'series() of 30 days by day': () => mill.stats.series({ from: new Date(Date.now() - DAYS * DAY_MS), bucket: '1d' }),
    'errorGroups()': () => mill.stats.errorGroups(),
  }
  console.log(
    `\n${total} kept jobs on ${tables.name}, ${tables.megabytes()} MB\n\nms: fastest, median and slowest of ${ANSWERS}`,
  )
  for (const [verb, call] of Object.entries(asked)) {
    await call()
    const times = []
    for (let n = 0; n < ANSWERS; n += 1) {
      const sent = performance.now()
      await call()
      times.push(performance.now() - sent)
    }
    const sorted = times.toSorted((a, b) => a - b)
    const median = sorted[ANSWERS >> 1]
    console.log(
      `${verb.padEnd(38)} ${[sorted[0], median, sorted.at(-1)].map((ms) => ms.toFixed(1).padStart(7)).join(' ')}`,
    )
    if (median > ANSWER_MAX_MS) faults.push(`${verb} takes ${median.toFixed(1)} ms, and ${ANSWER_MAX_MS} is the limit`)
  }
  console.log('')
}

async function compare(mill) {
  const all = { days: Infinity }
  const [retries, runs, waits, counted] = [
    await mill.stats.retries(all),
    await mill.stats.processingTimes(all),
    await mill.stats.waitTimes(all),
    await tables.recount(),
  ]
  for (const [queue, { wait, run, ended }] of seen) {
    const of = counted.get(queue) ?? { done: 0, failed: 0, retries: 0 }
    same(`${queue} ok`, retries[queue]?.ok ?? 0, of.done)
    same(`${queue} retries`, retries[queue]?.retries ?? 0, of.retries)
    same(`${queue} runs`, runs[queue]?.count ?? 0, of.done + of.failed)
    same(`${queue} waits`, waits[queue]?.count ?? 0, of.done + of.failed)
    near(`${queue} run`, runs[queue], run.subarray(0, ended).sort())
    near(`${queue} wait`, waits[queue], wait.subarray(0, ended).sort())
  }
}

function same(what, told, counted) {
  if (told !== counted) faults.push(`${what}: ${told} where the tables have ${counted}`)
}

function near(what, told, sorted) {
  if (sorted.length === 0) return
  for (const [name, part] of [
    ['p50', 0.5],
    ['p90', 0.9],
    ['p95', 0.95],
    ['p99', 0.99],
  ]) {
    const exact = sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)]
    const wrong = Math.abs(told[name] - exact) / Math.max(1, exact)
    if (wrong > ERROR_MAX)
      faults.push(`${what} ${name}: ${told[name]} where ${exact} is right (${(100 * wrong).toFixed(2)} %)`)
  }
  same(`${what} min`, told.min, sorted[0])
  same(`${what} max`, told.max, sorted.at(-1))
}

async function sqliteTables() {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-statistics-'))
  const file = join(folder, 'jobs.db')
  await (await millrace({ store: file, logger: false })).close()
  const { open: Database } = chooseLibrary()
  const database = new Database(file)
  database.exec('pragma synchronous = off')
  for (const [lane, [name, queue]] of lanes().entries())
    database.prepare('insert into millrace_lanes (lane, queue, name) values (?, ?, ?)').run(lane + 1, queue, name)
  const job = database.prepare(
    `insert into millrace_jobs (seq, id, lane, priority, payload, created_at) values (?, ?, ?, 0, '{"to":"ada@example.com"}', ?)`,
  )
  const history = database.prepare(
    `insert into millrace_history (seq, state, due_at, attempt, retries, crashes, started_at, settled_at, worker, lane)
     values (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, 'w', case when ?2 = 'failed' then (select lane from millrace_jobs where seq = ?1) end)`,
  )
  const move = database.prepare(
    'insert into millrace_stats_moves (queue, name, at, done, failed, retried, wait, run, failures) values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  )
  return {
    url: file,
    name: 'SQLite',
    megabytes: () => Math.round(statSync(file).size / 1e6),
    write: async (jobs, moves) => {
      database.exec('begin')
      for (const each of jobs) {
        job.run(each.n, `job ${each.n}`, each.lane + 1, each.dueAt)
        history.run(each.n, each.state, each.dueAt, each.retries + 1, each.retries, each.startedAt, each.settledAt)
      }
      for (const each of moves) move.run(...Object.values(each))
      database.exec('commit')
    },
    unfolded: async () => Number(database.prepare('select count(*) as n from millrace_stats_moves').get().n),
    recount: async () =>
      byQueue(
        database
          .prepare(
            `select n.queue, sum(h.state = 'done') as done, sum(h.state = 'failed') as failed, sum(h.retries) as retries
             from millrace_history h join millrace_jobs j on j.seq = h.seq join millrace_lanes n on n.lane = j.lane group by n.queue`,
          )
          .all(),
      ),
    close: async () => {
      database.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function postgresTables() {
  const server = await startPostgres({ settings: { fsync: 'off', shared_buffers: '512MB', max_wal_size: '4GB' } })
  await (await millrace({ store: server.url, logger: false })).close()
  const sql = new pg.Client(server.url)
  await sql.connect()
  await sql.query(
    'insert into millrace.lanes (lane, queue, name) overriding system value select * from unnest($1::integer[], $2::text[], $3::text[])',
    [lanes().map((_, lane) => lane + 1), lanes().map(([, queue]) => queue), lanes().map(([name]) => name)],
  )
  const today = Math.floor(Date.now() / DAY_MS)
  const dayOf = (at) => BigInt(Math.floor(at / DAY_MS))
  const kept = (await sql.query(`select relname from pg_class where relname like 'jobs_2%'`)).rows.map(
    (row) => row.relname,
  )
  for (let day = today - DAYS - 1; day <= today; day += 1) {
    const name = new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '_')
    if (kept.includes(`jobs_${name}`)) continue
    for (const of of ['jobs', 'history', 'labels'])
      await sql.query(
        `create table millrace.${of}_${name} partition of millrace.${of} for values from (${BigInt(day) << NUMBER_BITS}) to (${BigInt(day + 1) << NUMBER_BITS})`,
      )
  }
  const column = (rows, of) => rows.map(of)
  let bytes = 0
  return {
    url: server.url,
    name: `PostgreSQL ${server.version}`,
    megabytes: () => Math.round(bytes / 1e6),
    write: async (jobs, moves) => {
      const ref = (each) => String((dayOf(each.settledAt) << NUMBER_BITS) | BigInt(each.n))
      await sql.query(
        `insert into millrace.jobs (ref, id, created_at, due_at, lane, priority, payload)
         select ref, gen_random_uuid(), at, at, lane, 0, '{"to":"ada@example.com"}' from unnest($1::bigint[], $2::bigint[], $3::integer[]) as e (ref, at, lane)`,
        [column(jobs, ref), column(jobs, (each) => each.dueAt), column(jobs, (each) => each.lane + 1)],
      )
      await sql.query(
        `insert into millrace.history (ref, state, attempt, retries, started_at, settled_at, worker, lane)
         select ref, state, retries + 1, retries, started, settled, 'w', case when state = 'failed' then lane end
         from unnest($1::bigint[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::integer[]) as e (ref, state, retries, started, settled, lane)`,
        [
          column(jobs, ref),
          column(jobs, (each) => each.state),
          column(jobs, (each) => each.retries),
          column(jobs, (each) => each.startedAt),
          column(jobs, (each) => each.settledAt),
          column(jobs, (each) => each.lane + 1),
        ],
      )
      await sql.query(
        `insert into millrace.stats_moves (queue, name, at, done, failed, retried, wait, run, failures)
         select queue, name, at, done, failed, retried, wait, run, failures from json_to_recordset($1) as e (queue text, name text, at bigint,
           done bigint, failed bigint, retried bigint, wait text, run text, failures text)`,
        [JSON.stringify(moves)],
      )
    },
    unfolded: async () => {
      const { rows } = await sql.query(
        'select (select count(*) from millrace.stats_moves) as n, pg_database_size(current_database()) as bytes',
      )
      bytes = Number(rows[0].bytes)
      if (Number(rows[0].n) === 0) await sql.query('vacuum analyze')
      return Number(rows[0].n)
    },
    recount: async () =>
      byQueue(
        (
          await sql.query(
            `select n.queue, count(*) filter (where h.state = 'done') as done, count(*) filter (where h.state = 'failed') as failed,
                    sum(h.retries) as retries
             from millrace.history h join millrace.jobs j on j.ref = h.ref join millrace.lanes n on n.lane = j.lane group by n.queue`,
          )
        ).rows,
      ),
    close: async () => {
      await sql.end()
      await server.stop()
    },
  }
}

function lanes() {
  return NAMES.flatMap((name) => QUEUES.map((queue) => [name, queue]))
}

function byQueue(rows) {
  return new Map(
    rows.map(({ queue, done, failed, retries }) => [
      queue,
      { done: Number(done), failed: Number(failed), retries: Number(retries) },
    ]),
  )
}

function progress(what, count, of = total) {
  const seconds = ((performance.now() - began) / 1_000).toFixed(0)
  process.stderr.write(`\r${what} ${count} of ${of}, ${seconds} s   `)
}
