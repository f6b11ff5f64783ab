import pg from 'pg'
import { build } from './build.mjs'
import { tell } from './run.mjs'

/**
 * `node scripts/measure-days.mjs [rows]`: what the upkeep of a large day (1,000,000 rows) costs processes that claim and enqueue
 * meanwhile: the process that does the upkeep, and another one. Prints the median and the slowest call in ms: with no such day, with
 * one that is kept, and with one that is dropped.
 */
const DAY_MS = 86_400_000
const NUMBER_BITS = 38n
const UPKEEP_MAX_MS = 120_000
const rows = Number(process.argv[2] ?? 1_000_000)

tell(await build())
const from = (path) => import(new URL(`../dist/${path}`, import.meta.url).href)
const { startPostgres } = await from('testing/index.js')
const { openDatabase } = await from('store/postgres/connection/open.js')
const { targetOf } = await from('store/postgres/connection/target.js')
const { PostgresStore } = await from('store/postgres/postgres-store.js')
const { systemWorld } = await from('world/world.js')

const server = await startPostgres({ settings: { fsync: 'off', shared_buffers: '512MB', max_wal_size: '4GB' } })
const sql = new pg.Client(server.url)
await sql.connect()
const world = systemWorld()
const day = Math.floor(Date.now() / DAY_MS) - 2
const name = new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '_')
let fences = 0
try {
  console.log(`${rows} rows, PostgreSQL ${server.version}\n`)
  console.log(
    '                     took ms   own claim     own enqueue   other claim   other enqueue   (middle, slowest)',
  )
  await measure('nothing to do', (store) => store.sweepRows(500))
  await fill(Date.now() + DAY_MS)
  await measure('a day that is kept', (store) => store.sweepRows(500))
  await sql.query(`update millrace.history set keep_until = $1 where keep_until > $1`, [Date.now() - 1_000])
  await sql.query(`vacuum analyze millrace.history_${name}`)
  await measure('a day that is dropped', untilGone)
} finally {
  await sql.end()
  await server.stop()
}

async function measure(what, upkeep) {
  const [own, other] = [await open(), await open()]
  const calls = { 'own claim': [], 'own enqueue': [], 'other claim': [], 'other enqueue': [] }
  let isOver = false
  const loops = [
    ['own', own],
    ['other', other],
  ].flatMap(([who, store]) => [
    again(calls[`${who} claim`], () => isOver, claimer(store)),
    again(
      calls[`${who} enqueue`],
      () => isOver,
      () => enqueue(store),
    ),
  ])
  await new Promise((next) => setTimeout(next, 1_000))
  for (const times of Object.values(calls)) times.length = 0
  const began = performance.now()
  await upkeep(own)
  const tookMs = performance.now() - began
  await new Promise((next) => setTimeout(next, 500))
  isOver = true
  await Promise.all(loops)
  await Promise.all([own.close(), other.close()])
  const shown = Object.values(calls).map((times) => {
    const sorted = times.toSorted((a, b) => a - b)
    return `${sorted[sorted.length >> 1].toFixed(1).padStart(5)} ${sorted.at(-1).toFixed(1).padStart(7)} `
  })
  console.log(`${what.padEnd(20)} ${tookMs.toFixed(0).padStart(7)}  ${shown.join(' ')}`)
}

async function open() {
  return new PostgresStore(await openDatabase(await targetOf(server.url, 'millrace'), true, world), world)
}

async function again(times, isOver, call) {
  while (!isOver()) {
    const began = performance.now()
    await call()
    times.push(performance.now() - began)
    await new Promise((next) => setTimeout(next, 5))
  }
}

function claimer(store) {
  const worker = world.ids.workerId()
  const ready = store.addWorker({ id: worker, host: 'here', pid: 1 })
  return async () => {
    await ready
    const request = { worker, max: 5, starting: 5, rooms: new Map(), names: ['mail'], suspects: 'none' }
    return store.claimJobs({ ...request, fence: (fences += 1) })
  }
}

function enqueue(store) {
  const job = { name: 'mail', queue: 'default', priority: 0, key: null, payload: '1', options: null }
  const id = world.ids.jobId(Date.now())
  return store.insertJobs([{ ...job, id, due: { inMs: 0 }, expires: null }], {
    onDuplicate: 'return',
    keepCancelledMs: Infinity,
  })
}

/** A typical past day: jobs that are done, and a few that still wait. */
async function fill(keepUntil) {
  const bounds = [0, 1].map((more) => BigInt(day + more) << NUMBER_BITS)
  for (const of of ['jobs', 'history'])
    await sql.query(
      `create table millrace.${of}_${name} partition of millrace.${of} for values from (${bounds[0]}) to (${bounds[1]})`,
    )
  const [lane] = (await sql.query('select lane from millrace.lanes limit 1')).rows
  await sql.query(`insert into millrace.jobs (ref, id, created_at, due_at, lane, priority, payload)
    select ${bounds[0]} + n, gen_random_uuid(), ${day * DAY_MS}, ${day * DAY_MS}, ${lane.lane}, 0, '{"to":"somebody@example.com"}'
    from generate_series(1, ${rows}) n`)
  await sql.query(`insert into millrace.history (ref, settled_at, keep_until, state)
    select ${bounds[0]} + n, ${day * DAY_MS}, ${keepUntil}, 'done' from generate_series(1, ${rows - 100}) n`)
  await sql.query(`select setval('millrace.job_number', ${rows})`)
  await sql.query(`vacuum analyze millrace.jobs_${name}`)
  await sql.query(`vacuum analyze millrace.history_${name}`)
}

async function untilGone(store) {
  const end = Date.now() + UPKEEP_MAX_MS
  while (Date.now() < end) {
    await store.sweepRows(500)
    const { rows: found } = await sql.query(`select to_regclass('millrace.jobs_${name}') as there`)
    if (found[0].there === null) return
  }
  throw new Error('the day is still there')
}
