import { startTask } from './child.mjs'
import { summarise } from './figures.mjs'
import { SMALL } from './payloads.mjs'
import { inRounds } from './rounds.mjs'
import { showNumber, showSummary } from './table.mjs'

/** Jobs of a round that measures the cost of pruning: some seconds, most of them after the first job's keep time. */
const COST_SHARE = 3
const TELL_EVERY_MS = 20_000
const MAX_MS = 2 * 3_600_000
const KEEP = { done: '1s' }
const MIB = 1024 * 1024

/**
 * S7: with jobs kept for a second, a store after `--total` jobs is at most twice as large as after 100,000; and pruning costs at
 * most a tenth of the rate, against the same with history kept for a week, which is not pruned within the run.
 * @param {object} bench
 * @param {{ contestant: string, empty: () => Promise<unknown> }} store
 */
export async function bounded(bench, { contestant, empty }) {
  const { options } = bench
  const run = (spec, tell) => runOn(bench, empty, { task: 'bounded', contestant, durability: 'power', ...spec }, tell)
  const jobs = options.jobs * COST_SHARE
  const cases = [{ key: 'kept 7 d' }, { key: 'kept 1 s', keep: KEEP }]
  const rounds = await inRounds({ ...bench.plan('bounded'), cases }, async ({ keep }) => run({ jobs, keep }))
  const long = await run({ jobs: options.total, keep: KEEP, isSampled: true }, bench.tell).catch((error) => {
    rounds.broken.push(`bounded, ${options.total} jobs: ${error.message}`)
    return undefined
  })
  return {
    name: 'bounded',
    title: `bounded: 20 B jobs enqueued and worked off at the same time, at most 10,000 waiting, FULL`,
    heads: ['', 'jobs', 'jobs/s', 'CPU µs/job', 'MiB', 'jobs in the store'],
    rows: [...cases.map(({ key }) => rowOf(key, jobs, rounds)), ...(long?.samples ?? []).map(sampleRow)],
    notes: long === undefined ? [] : [`kept 1 s, ${count(options.total)} jobs: ${showNumber(long.rate)} jobs/s`],
    gates: gatesOf(rounds, long, options.total),
    rounds: Object.assign(rounds, { toJSON: () => ({ rounds: rounds.values('kept 1 s', (r) => r), long }) }),
  }
}

async function runOn({ place, options, nodeArgs }, empty, spec, tell) {
  const copy = await place.copyOf(await empty())
  let timer
  try {
    const where = { ...spec, ...place.whereOf(copy), concurrency: options.concurrency, bytes: SMALL }
    const task = startTask(where, { nodeArgs, maxMs: MAX_MS })
    if (tell !== undefined) timer = setInterval(() => tell(progressOf(task.said.sample, spec.jobs)), TELL_EVERY_MS)
    const result = await task.result
    if (result.ran !== spec.jobs) throw new Error(`handlers ran ${result.ran} times for ${spec.jobs} jobs`)
    const ofServer = result.serverUs === undefined ? 0 : result.serverUs
    return { ...result, rate: (result.ran / result.ms) * 1000, cpuUsPerJob: (result.cpuUs + ofServer) / result.ran }
  } finally {
    clearInterval(timer)
    await place.remove(copy)
  }
}

function progressOf(sample, jobs) {
  if (sample === undefined) return `bounded: fewer than 100,000 of ${count(jobs)} jobs so far`
  const minutes = (sample.ms / 60_000).toFixed(1)
  return `bounded: ${count(sample.ran)} of ${count(jobs)} jobs in ${minutes} min, ${mib(sample.bytes)} MiB, ${count(sample.jobs)} jobs in the store`
}

function rowOf(key, jobs, rounds) {
  const figure = (pick) => showSummary(rounds.summary(key, pick))
  const last = (pick) => figure((result) => pick(result.samples.at(-1)))
  return [
    key,
    count(jobs),
    figure((r) => r.rate),
    figure((r) => r.cpuUsPerJob),
    last((s) => s.bytes / MIB),
    last((s) => s.jobs),
  ]
}

function sampleRow({ ran, ms, bytes, jobs }) {
  return ['kept 1 s, after', count(ran), showNumber((ran / ms) * 1000), '', mib(bytes), count(jobs)]
}

function gatesOf(rounds, long, total) {
  const [first, ...later] = long?.samples ?? []
  const most = later.length === 0 ? undefined : Math.max(...later.map(({ bytes }) => bytes)) / first.bytes
  return [
    {
      name: `bounded: the largest size up to ${count(total)} jobs ÷ that after 100,000`,
      measured: summarise([most]),
      unit: '×',
      most: 2,
    },
    {
      name: 'bounded: jobs/s kept 1 s ÷ kept 7 d',
      measured: rounds.ratio('kept 1 s', 'kept 7 d', (r) => r.rate),
      unit: '×',
      least: 0.9,
    },
  ]
}

const count = (number) => number.toLocaleString('en-US')
const mib = (bytes) => (bytes / MIB).toFixed(1)
