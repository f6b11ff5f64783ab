import { fork } from 'node:child_process'
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from './build.mjs'
import { mostAtOnce, notesIn, now } from './limits/notes.mjs'
import { tell } from './run.mjs'

/**
 * `node scripts/measure-limits.mjs part … [--store sqlite|postgres|<url>] [--processes 4] [--seconds 60] [--jobs 20000]`: limits, rates,
 * turns and outages with real processes. Parts: `rate` (1,000 a second), `drain` (a limited queue beside an unlimited one), `turns` (100,000
 * jobs of one key, one of another), `outage` (1,000 retries of a service that is down), `kills` (kill -9 of workers at a limit).
 * Each part prints its gates as met or missed. The exit code is 1 when a promise was broken (a bound exceeded, a job lost); a gate of
 * speed that was missed decides nothing, since it depends on the load of the machine.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    store: { type: 'string', default: 'sqlite' },
    processes: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '60' },
    jobs: { type: 'string', default: '20000' },
    worker: { type: 'string' },
  },
})
const PARTS = { rate, drain, turns, outage, kills }
const RATE = { max: 1_000, per: '1s' }
const IN_FLIGHT_MAX = 7
const POLL_MS = 500
let isBroken = false

/** A gate that every run must meet. */
function promise(isMet, text) {
  if (!isMet) isBroken = true
  console.log(`  ${isMet ? 'met   ' : 'BROKEN'} ${text}`)
}

/** A gate of speed. */
function speed(isMet, text) {
  console.log(`  ${isMet ? 'met   ' : 'missed'} ${text}`)
}

if (values.worker === undefined) await main()
else await work(JSON.parse(values.worker))

async function main() {
  tell(await build())
  const { startPostgres } = await import(new URL('../dist/testing/index.js', import.meta.url).href)
  const server = values.store === 'postgres' ? await startPostgres() : undefined
  const folder = mkdtempSync(join(tmpdir(), 'millrace-limits-'))
  try {
    for (const part of positionals.length > 0 ? positionals : Object.keys(PARTS)) {
      const store = server === undefined ? storeOf(folder, part) : `${server.url}?schema=${part}`
      console.log(`${part} on ${values.store}, load ${loadavg()[0]?.toFixed(1)}`)
      await PARTS[part]({ store, folder })
    }
  } finally {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  process.exitCode = isBroken ? 1 : 0
}

function storeOf(folder, part) {
  return values.store === 'sqlite' ? join(folder, `${part}.db`) : `${values.store}?schema=limits_${part}`
}

/** The jobs, the same in every process. `place` is where the handlers of process number `no` note what they do. */
async function library(place, no = 0) {
  const { job, millrace } = await import(new URL('../dist/index.js', import.meta.url).href)
  const note = (what) => appendFileSync(join(place, `${no}.log`), `${JSON.stringify(what)}\n`)
  return {
    millrace,
    note,
    jobs: {
      rated: job('rated', { run: () => undefined, rate: RATE }),
      plain: job('plain', { run: () => undefined }),
      limited: job('limited', { run: () => undefined, queue: 'limited' }),
      keyed: job('keyed', {
        run: (p) => note({ key: p.key, at: now() }),
        limit: { max: 1_000, key: (p) => p.key },
      }),
      held: job('held', {
        run: async (p, ctx) => {
          note({ began: now(), id: ctx.id, attempt: ctx.attempt })
          await new Promise((next) => setTimeout(next, 20))
          note({ ended: now(), id: ctx.id, attempt: ctx.attempt })
        },
        limit: { max: IN_FLIGHT_MAX },
      }),
      down: job('down', {
        run: () => {
          note({ call: now() })
          if (!readdirSync(place).includes('healed')) throw new Error('the service is down')
        },
        queue: 'down',
        retry: { backoff: { start: '300ms', factor: 1 }, limit: Infinity },
      }),
    },
  }
}

async function work({ store, place, queues, no }) {
  const { millrace, jobs, note } = await library(place, no)
  const mill = await millrace({ store, jobs, logger: leaseLogger(note), poll: POLL_MS, queues })
  await mill.start()
  process.send?.('started')
  process.on('message', () => mill.close({ deadline: '5s' }).then(() => process.exit(0)))
}

/** Notes that the worker lost its lease: its handlers may go on for a moment while another worker runs the jobs again. */
function leaseLogger(note) {
  const write = (fields, line) => {
    if (/lost its lease/.test(line ?? fields)) note({ lostLease: true })
  }
  return { debug: () => undefined, info: () => undefined, warn: write, error: write }
}

async function crew({ store, place, queues }, count = Number(values.processes)) {
  let started = 0
  const start = async () => {
    const no = (started += 1)
    const child = fork(new URL(import.meta.url), ['--worker', JSON.stringify({ store, place, queues, no })])
    await new Promise((resolve) => child.once('message', resolve))
    return Object.assign(child, { no })
  }
  const children = []
  for (let n = 0; n < count; n += 1) children.push(await start())
  const end = (child) =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve()
      child.once('exit', resolve)
      child.send('stop')
    })
  return { children, start, stop: () => Promise.all(children.map(end)) }
}

async function client({ store, folder }) {
  const place = mkdtempSync(join(folder, 'notes-'))
  const { millrace, jobs } = await library(place)
  const mill = await millrace({ store, jobs, logger: false })
  const until = async (isOver, ms = 120_000) => {
    const end = Date.now() + ms
    while (!(await isOver())) {
      if (Date.now() > end) {
        promise(false, `all jobs end within ${ms / 1_000} s`)
        return
      }
      await new Promise((next) => setTimeout(next, 50))
    }
  }
  const unfinished = async (job) => {
    let count = 0
    for (const state of ['ready', 'running', 'scheduled', 'retrying']) count += (await mill.count({ job, state })).count
    return count
  }
  return { mill, jobs, place, until, unfinished, notes: () => notesIn(place) }
}

async function rate(given) {
  const seconds = Number(values.seconds)
  const { mill, jobs, place } = await client(given)
  await mill.enqueueMany(
    jobs.rated,
    Array.from({ length: RATE.max * (seconds + 2) }, () => undefined),
  )
  const fleet = await crew({ ...given, place })
  await new Promise((next) => setTimeout(next, (seconds + 1) * 1_000))
  await fleet.stop()
  const starts = []
  for await (const each of mill.find({ job: jobs.rated, state: 'done' })) starts.push(each.startedAt.getTime())
  starts.sort((a, b) => a - b)
  let fullest = 0
  for (let from = 0, to = 0; from < starts.length; from += 1) {
    while (to < starts.length && starts[to] < starts[from] + 1_000) to += 1
    fullest = Math.max(fullest, to - from)
  }
  promise(fullest <= RATE.max, `no window of 1 s has more than ${RATE.max} starts by database time: ${fullest}`)
  const used = starts.filter((at) => at < starts[0] + seconds * 1_000).length / (RATE.max * seconds)
  await mill.close()
  speed(used >= 0.98, `98 % of the rate is used: ${(100 * used).toFixed(1)} % over ${seconds} s`)
}

async function drain(given) {
  const count = Number(values.jobs)
  const { mill, jobs, place, until, unfinished } = await client(given)
  const drained = async (job, queues) => {
    await mill.enqueueMany(
      job,
      Array.from({ length: count }, () => undefined),
    )
    const began = performance.now()
    const fleet = await crew({ ...given, place, queues }, 1)
    await until(async () => (await unfinished(job)) === 0)
    await fleet.stop()
    return count / ((performance.now() - began) / 1_000)
  }
  const rates = { plain: [], limited: [] }
  // In turns, so that a load that changes is the same for both.
  for (let round = 0; round < 3; round += 1) {
    rates.plain.push(await drained(jobs.plain))
    rates.limited.push(await drained(jobs.limited, { limited: { limit: { max: 5_000 } } }))
  }
  await mill.close()
  const median = (each) => each.toSorted((a, b) => a - b)[1]
  const share = median(rates.limited) / median(rates.plain)
  const shown = `${median(rates.limited).toFixed(0)} of ${median(rates.plain).toFixed(0)} jobs/s`
  speed(share >= 0.5, `a limited queue drains at 50 % of an unlimited one: ${(100 * share).toFixed(0)} %, ${shown}`)
}

async function turns(given) {
  const { mill, jobs, place, until, notes } = await client(given)
  await mill.enqueueMany(
    jobs.keyed,
    Array.from({ length: 100_000 }, () => ({ key: 'big' })),
  )
  const keys = Array.from({ length: 20 }, (_, n) => `key ${n}`)
  await mill.enqueueMany(
    jobs.keyed,
    keys.flatMap((key) => Array.from({ length: 50 }, () => ({ key }))),
  )
  await mill.enqueue(jobs.keyed, { key: 'single' })
  const fleet = await crew({ ...given, place })
  await until(() => notes().some(({ key }) => key === 'single'))
  await fleet.stop()
  const order = notes().toSorted((a, b) => a.at - b.at)
  const before = order.findIndex(({ key }) => key === 'single')
  const waiting = keys.length + 2
  await mill.close()
  promise(
    before < 2 * waiting,
    `fewer than ${2 * waiting} jobs begin before the single one of a key, with ${waiting} keys waiting: ${before}`,
  )
}

async function outage(given) {
  const { mill, jobs, place, until, unfinished, notes } = await client(given)
  await mill.enqueueMany(
    jobs.down,
    Array.from({ length: 1_000 }, () => undefined),
  )
  const fleet = await crew({ ...given, place })
  await until(() => notes().length >= 1_000)
  await new Promise((next) => setTimeout(next, 2_000))
  const from = now()
  const seconds = Math.min(20, Number(values.seconds))
  await mill.enqueueMany(
    jobs.plain,
    Array.from({ length: 5_000 }, () => undefined),
  )
  await until(async () => (await unfinished(jobs.plain)) === 0)
  const others = now() - from
  await new Promise((next) => setTimeout(next, seconds * 1_000))
  const to = now()
  const probes = notes().filter(({ call }) => call > from && call <= to).length
  const polls = Math.ceil((to - from) / POLL_MS) + 1
  const { outages } = await mill.queue('down').get()
  appendFileSync(join(place, 'healed'), '')
  const healed = performance.now()
  await until(async () => (await unfinished(jobs.down)) === 0)
  const drained = performance.now() - healed
  await fleet.stop()
  await mill.close()
  console.log(`  ${outages[0]?.text}; 5,000 jobs of another queue took ${others.toFixed(0)} ms`)
  promise(probes <= polls, `at most one probe a poll in all processes: ${probes} in ${polls} polls`)
  promise(probes > 0, 'the service is probed')
  speed(drained < 10_000, `1,000 held retries end within 10 s after the service works: ${drained.toFixed(0)} ms`)
}

async function kills(given) {
  const { mill, jobs, place, until, unfinished, notes } = await client(given)
  const seconds = Number(values.seconds)
  const fleet = await crew({ ...given, place })
  const died = new Map()
  const end = Date.now() + seconds * 1_000
  let enqueued = 0
  let count = 0
  while (Date.now() < end) {
    await mill.enqueueMany(
      jobs.held,
      Array.from({ length: 50 }, () => undefined),
    )
    enqueued += 50
    await new Promise((next) => setTimeout(next, 300))
    const victim = Math.floor(Math.random() * fleet.children.length)
    const child = fleet.children[victim]
    // Another process may prove its death, and run its jobs again, before this one gets the event.
    died.set(child.no, now())
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('exit', resolve))
    fleet.children[victim] = await fleet.start()
    count += 1
  }
  await until(async () => (await unfinished(jobs.held)) === 0, 300_000)
  await fleet.stop()
  const all = notes()
  const most = mostAtOnce(all, died)
  const lost = all.filter(({ lostLease }) => lostLease).length
  let done = 0
  // A count stops at 10,000.
  for await (const _ of mill.find({ job: jobs.held, state: 'done' })) done += 1
  await mill.close()
  promise(count > 0, `workers are killed: ${count}`)
  if (lost > 0)
    console.log(`  ${lost} workers stood still for longer than their leases: their handlers are not counted as claimed`)
  promise(most <= IN_FLIGHT_MAX || lost > 0, `at most ${IN_FLIGHT_MAX} handlers run at once: ${most}`)
  promise(done === enqueued, `every job ends: ${done} of ${enqueued}`)
}
