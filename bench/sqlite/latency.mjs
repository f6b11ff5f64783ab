import { acrossTwo } from '../across.mjs'
import { runTask } from '../child.mjs'
import { emptyTemplate } from '../measure.mjs'
import { LARGE, showBytes, SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'

const RATE = 100
/** Of `--jobs`, at most: at 100 a second the full run has five seconds a case. */
const JOBS_SHARE = 200

/** From the call of enqueue until the handler begins, in one process and across two. */
export async function scenario(bench) {
  const { options, place } = bench
  const jobs = Math.max(100, Math.ceil(options.jobs / JOBS_SHARE))
  const cases = casesOf()
  const rounds = await inRounds({ ...bench.plan('latency'), cases }, async ({ contestant, across, bytes }) => {
    const file = place.copyOf(await emptyTemplate(place, contestant))
    const common = { task: 'latency', contestant, file, dist: place.dist, durability: 'power', rate: RATE, bytes, jobs }
    const spec = { ...common, concurrency: options.concurrency }
    try {
      return across ? await acrossTwo(spec) : await runTask({ ...spec, role: 'both' })
    } finally {
      place.remove(file)
    }
  })
  const title =
    `latency: enqueue called → handler begins, ${RATE} jobs/s at uneven moments, ${jobs} jobs after a warm-up, FULL; ` +
    'plainjob and bare poll every 1 ms (bare is woken within its process)'
  return { name: 'latency', title, ...tableOf(cases, rounds), gates: gatesOf(rounds), rounds }
}

function casesOf() {
  const of = (contestant, across, bytes) => ({
    key: `${contestant}, ${across ? 'two processes' : 'one process'} ${showBytes(bytes)}`,
    contestant,
    across,
    bytes,
  })
  return [
    ...[false, true].flatMap((across) => ['millrace', 'plainjob', 'bare'].map((name) => of(name, across, SMALL))),
    of('millrace', false, LARGE),
    of('millrace', true, LARGE),
  ]
}

function tableOf(cases, rounds) {
  return {
    heads: ['', 'p50 ms', 'p95 ms', 'p99 ms', 'max ms', 'CPU % of the worker'],
    rows: cases.map(({ key }) => [
      key,
      ...['p50Ms', 'p95Ms', 'p99Ms', 'maxMs', 'cpuPercent'].map((figure) =>
        showSummary(rounds.summary(key, (r) => r[figure])),
      ),
    ]),
  }
}

function gatesOf(rounds) {
  const gate = (where, figure, most) => ({
    name: `latency, 20 B, ${where}: ${figure}`,
    measured: rounds.summary(`millrace, ${where} 20 B`, (r) => r[`${figure}Ms`]),
    unit: 'ms',
    most,
  })
  return [
    gate('one process', 'p50', 1),
    gate('one process', 'p99', 5),
    gate('two processes', 'p50', 5),
    gate('two processes', 'p99', 25),
  ]
}
