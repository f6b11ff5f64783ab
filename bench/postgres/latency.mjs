import { acrossTwo } from '../across.mjs'
import { SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { WARM_UP } from '../tasks/latency.mjs'
import { absent, beside, measureCase, present, tableOf, waiting } from './cases.mjs'

const PER_SECOND = 100
/** Of `--jobs`: at 100 a second the full run has five seconds a case. */
const JOBS_SHARE = 200
/** One at a time, its default, and as many at once as Millrace. */
const RIVALS = ['graphile-worker', 'graphile-worker, 10 at once']

/** From the call of enqueue until the handler begins, from one process to another. */
export async function scenario(bench) {
  const jobs = Math.max(100, Math.ceil(bench.options.jobs / JOBS_SHARE))
  const parties = ['millrace', ...RIVALS, 'pg-boss notified', 'bullmq', 'bare, notified']
  const cases = present(
    bench,
    parties.map((party) => ({ key: party, party, jobs })),
  )
  const rounds = await inRounds({ ...bench.plan('latency'), cases }, ({ party }) => measure(bench, party, jobs))
  const title =
    `latency: enqueue called → handler begins in another process, ${PER_SECOND} jobs/s at uneven moments, after a warm-up, ` +
    '20 B'
  const figures = ['p50Ms', 'p95Ms', 'p99Ms', 'maxMs', 'cpuPercent']
  const heads = ['p50 ms', 'p95 ms', 'p99 ms', 'max ms', 'CPU % of the worker']
  const columns = figures.map((figure, i) => [heads[i], (r) => r[figure]])
  const table = tableOf(cases, rounds, columns)
  return { name: 'latency', title, ...table, notes: absent(bench), gates: gatesOf(rounds), rounds }
}

async function measure(bench, party, jobs) {
  const template = waiting(bench, party, SMALL, 0)
  // The warm-up is stored and run like the rest.
  const ran = WARM_UP + jobs
  const run = async (spec) => ({ ...(await acrossTwo({ ...spec, jobs })), counted: ran })
  return measureCase(bench, { task: 'latency', party, rate: PER_SECOND, bytes: SMALL, jobs: ran, template, run })
}

function gatesOf(rounds) {
  return RIVALS.flatMap((rival) => [
    beside(rounds, `latency: p50, Millrace ÷ ${rival}`, ['millrace', rival], { most: 0.7 }, (r) => r.p50Ms),
    beside(rounds, `latency: p99, Millrace ÷ ${rival}`, ['millrace', rival], { most: 1 }, (r) => r.p99Ms),
  ])
}
