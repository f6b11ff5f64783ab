import { fork } from 'node:child_process'
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from './build.mjs'
import { tell } from './run.mjs'

/**
 * `node scripts/measure-limits.mjs part … [--store sqlite|postgres|<url>] [--processes 4] [--seconds 60] [--jobs 20000]`: limits, rates,
 * turns and outages with real processes. Parts: `rate` (1,000 a second), `drain` (a limited queue beside an unlimited one), `turns` (100,000
 * jobs of one key, one of another), `outage` (1,000 retries of a service that is down), `kills` (kill -9 of workers at a limit).
 * The exit code is 1 when a bound was exceeded or a job was lost; figures of speed decide nothing.
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
const wrong = []

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
      console.log(`${part}: ${await PARTS[part]({ store, folder })}`)
    }
  } finally {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  for (const each of wrong) console.log(`WRONG ${each}`)
  process.exitCode = wrong.length > 0 ? 1 : 0
}

function storeOf(folder, part) {
  return values.store === 'sqlite' ? join(folder, `${part}.db`) : `${values.store}?schema=limits_${part}`
}

/** The jobs, the same in every process. `place` is where handlers note what they do. */
async function library(place) {
  const { job, millrace } = await import(new URL('../dist/index.js', import.meta.url).href)
  const note = (what) => appendFileSync(join(place, `${process.pid}.log`), `${JSON.stringify(what)}\n`)
  const now = () => performance.timeOrigin + performance.now()
  return {
    millrace,
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
          note({ began: now(), id: ctx.id })
          await new Promise((next) => setTimeout(next, 20))
          note({ ended: now(), id: ctx.id })
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

async function work({ store, place, queues }) {
  const { millrace, jobs } = await library(place)
  const mill = await millrace({ store, jobs, logger: false, poll: POLL_MS, queues })
  await mill.start()
  process.send?.('started')
  process.on('message', () => mill.close({ deadline: '5s' }).then(() => process.exit(0)))
}

async function crew({ store, place, queues }, count = Number(values.processes)) {
  const start = async () => {
    const child = fork(new URL(import.meta.url), ['--worker', JSON.stringify({ store, place, queues })])
    await new Promise((resolve) => child.once('message', resolve))
    return child
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
        wrong.push('jobs are left')
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

function notesIn(place) {
  return readdirSync(place)
    .filter((name) => name.endsWith('.log'))
    .flatMap((name) => {
      const pid = Number(name.slice(0, -4))
      const lines = readFileSync(join(place, name), 'utf8')
        .split('\n')
        .filter((line) => line.endsWith('}'))
      return lines.map((line) => ({ ...JSON.parse(line), pid }))
    })
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
  if (fullest > RATE.max) wrong.push(`rate: ${fullest} starts in one window`)
  const used = starts.filter((at) => at < starts[0] + seconds * 1_000).length / (RATE.max * seconds)
  await mill.close()
  return `fullest window ${fullest} of ${RATE.max}, used ${(100 * used).toFixed(1)} % over ${seconds} s`
}

async function drain(given) {
  const count = Number(values.jobs)
  const { mill, jobs, place, until, unfinished } = await client(given)
  const speed = async (job, queues) => {
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
  const plain = await speed(jobs.plain)
  const limited = await speed(jobs.limited, { limited: { limit: { max: 5_000 } } })
  const again = await speed(jobs.plain)
  await mill.close()
  const rates = [plain, limited, again].map((each) => each.toFixed(0)).join(', ')
  return `unlimited, limited, unlimited: ${rates} jobs/s; ${((100 * limited) / ((plain + again) / 2)).toFixed(0)} %`
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
  if (before >= 2 * (keys.length + 2)) wrong.push(`turns: ${before} jobs before the single one of a key`)
  await mill.close()
  return `${before} jobs began before the single one of its key, with ${keys.length + 2} keys waiting`
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
  const from = performance.timeOrigin + performance.now()
  const seconds = Math.min(20, Number(values.seconds))
  await mill.enqueueMany(
    jobs.plain,
    Array.from({ length: 5_000 }, () => undefined),
  )
  await until(async () => (await unfinished(jobs.plain)) === 0)
  const others = performance.timeOrigin + performance.now() - from
  await new Promise((next) => setTimeout(next, seconds * 1_000))
  const to = performance.timeOrigin + performance.now()
  const probes = notes().filter(({ call }) => call > from && call <= to).length
  const polls = Math.ceil((to - from) / POLL_MS) + 1
  if (probes > polls) wrong.push(`outage: ${probes} probes in ${polls} polls`)
  const { outages } = await mill.queue('down').get()
  appendFileSync(join(place, 'healed'), '')
  const healed = performance.now()
  await until(async () => (await unfinished(jobs.down)) === 0)
  const drained = performance.now() - healed
  await fleet.stop()
  await mill.close()
  return `${outages[0]?.text}; ${probes} probes in ${polls} polls; 5,000 jobs of another queue in ${others.toFixed(0)} ms; drained in ${drained.toFixed(0)} ms`
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
    died.set(child.pid, performance.timeOrigin + performance.now())
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('exit', resolve))
    fleet.children[victim] = await fleet.start()
    count += 1
  }
  await until(async () => (await unfinished(jobs.held)) === 0, 300_000)
  await fleet.stop()
  const most = mostAtOnce(notes(), died)
  if (most > IN_FLIGHT_MAX) wrong.push(`kills: ${most} in flight at a limit of ${IN_FLIGHT_MAX}`)
  const done = (await mill.count({ job: jobs.held, state: 'done' })).count
  if (done !== enqueued) wrong.push(`kills: ${done} of ${enqueued} jobs are done`)
  await mill.close()
  return `${count} kills, ${done} of ${enqueued} jobs done, at most ${most} of ${IN_FLIGHT_MAX} in flight`
}

/** The most attempts at one time. One that never ended was in flight until its process died. */
function mostAtOnce(notes, died) {
  const ends = new Map(
    notes.filter(({ ended }) => ended !== undefined).map((each) => [`${each.pid} ${each.id} `, each.ended]),
  )
  const events = notes
    .filter(({ began }) => began !== undefined)
    .flatMap(({ began, id, pid }) => [
      { at: began, by: 1 },
      { at: ends.get(`${pid} ${id} `) ?? died.get(pid) ?? began, by: -1 },
    ])
    .toSorted((a, b) => a.at - b.at || a.by - b.by)
  let [now, most] = [0, 0]
  for (const { by } of events) {
    now += by
    most = Math.max(most, now)
  }
  return most
}
