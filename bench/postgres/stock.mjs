import { runTask } from '../child.mjs'
import { SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { SINGLES } from '../tasks/stock.mjs'
import { findBouncer, startBouncer } from './bouncer.mjs'
import { beside, measureCase, tableOf, waiting } from './cases.mjs'

/** Of `--jobs`: what is measured after the drain does not grow with it. */
const SHARE = 5

/** What JIT costs Millrace: the same server with JIT, its default, and without it, also behind PgBouncer. */
export async function scenario(bench) {
  const name = 'stock'
  const title =
    'stock: a drain, then single jobs, mill.get and mill.find one at a time, and an idle mill; JIT as the server is shipped, and off'
  const [{ jit, on }] = await bench.place.server.query(
    `select pg_jit_available() as jit, current_setting('jit') = 'on' as on`,
  )
  if (!jit || !on) {
    const why = 'left out: this server cannot compile, or does not; `--server debian` takes one that does'
    return { name, title, heads: [], rows: [], notes: [why], gates: [], rounds: { broken: [] } }
  }
  const jobs = Math.ceil(bench.options.jobs / SHARE)
  const ways = findBouncer() === undefined ? ['direct'] : ['direct', 'PgBouncer']
  const cases = ways.flatMap((way) =>
    ['on', 'off'].map((setting) => ({ key: `${way}, JIT ${setting}`, way, setting, jobs })),
  )
  const rounds = await inRounds({ ...bench.plan(name), cases }, (each) => measure(bench, each))
  const table = tableOf(cases, rounds, COLUMNS)
  const notes = ways.length === 1 ? ['PgBouncer: left out, as it is not installed'] : []
  return { name, title, ...table, notes, gates: ways.flatMap((way) => gatesOf(rounds, way)), rounds }
}

const COLUMNS = [
  ['jobs/s', (r) => r.rate],
  ['server CPU µs/job', (r) => r.serverUsPerJob],
  ['start ms', (r) => r.startMs],
  ['get ms', (r) => r.getMs],
  ['find ms', (r) => r.findMs],
  ['idle: server CPU %', (r) => r.idlePercent],
]

async function measure(bench, { way, setting, jobs }) {
  const template = waiting(bench, 'millrace', SMALL, jobs)
  const run = async (spec, options) => {
    if (setting === 'off')
      await bench.place.server.query(`alter database ${new URL(spec.url).pathname.slice(1)} set jit = off`)
    if (way === 'direct') return { ...(await runTask(spec, options)), counted: jobs }
    const bouncer = await startBouncer(findBouncer(), spec.url)
    try {
      return { ...(await runTask({ ...spec, url: bouncer.url }, options)), counted: jobs }
    } finally {
      await bouncer.stop()
    }
  }
  const expected = { done: jobs + SINGLES, left: 0 }
  return measureCase(bench, { task: 'stock', party: 'millrace', bytes: SMALL, jobs, template, run, expected })
}

function gatesOf(rounds, way) {
  const [on, off] = [`${way}, JIT on`, `${way}, JIT off`]
  const most = { most: 1.1 }
  return [
    beside(rounds, `stock, ${way}: drain, JIT on ÷ off`, [on, off], { least: 0.9 }),
    beside(rounds, `stock, ${way}: start, JIT on ÷ off`, [on, off], most, (r) => r.startMs),
    beside(rounds, `stock, ${way}: get, JIT on ÷ off`, [on, off], most, (r) => r.getMs),
    beside(rounds, `stock, ${way}: find, JIT on ÷ off`, [on, off], most, (r) => r.findMs),
  ]
}
