import { percent } from '../figures.mjs'
import { emptyTemplate, measureOn } from '../measure.mjs'
import { LARGE, showBytes, SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'

const LARGE_SHARE = 5

/** One call with all jobs, on an empty file. */
export async function scenario(bench) {
  const { options, place } = bench
  const cases = casesOf(options.jobs)
  const rounds = await inRounds({ ...bench.plan('enqueue-many'), cases }, async ({ contestant, json, bytes, jobs }) =>
    measureOn(bench, {
      template: await emptyTemplate(place, contestant),
      spec: { task: 'enqueue-many', contestant, json, durability: 'power', bytes, jobs, concurrency: 1 },
      expected: { done: 0, left: jobs },
    }),
  )
  const title = `enqueue-many: one call with ${options.jobs.toLocaleString('en-US')} jobs (4 KiB: a fifth), FULL`
  return { name: 'enqueue-many', title, ...tableOf(cases, rounds), gates: gatesOf(rounds), rounds }
}

function casesOf(jobs) {
  return [SMALL, LARGE].flatMap((bytes) =>
    [
      { contestant: 'millrace', name: 'millrace' },
      { contestant: 'plainjob', name: 'plainjob' },
      { contestant: 'bare', name: 'bare, a prepared insert each' },
      { contestant: 'bare', name: 'bare, one json_each', json: true },
    ].map(({ name, ...rest }) => ({
      ...rest,
      key: `${name} ${showBytes(bytes)}`,
      bytes,
      jobs: bytes === LARGE ? Math.ceil(jobs / LARGE_SHARE) : jobs,
    })),
  )
}

function tableOf(cases, rounds) {
  return {
    heads: ['', 'jobs/s', 'CPU µs/job', 'peak MiB'],
    rows: cases.map(({ key }) => [
      key,
      ...[(r) => r.rate, (r) => r.cpuUsPerJob, (r) => r.peakMiB].map((pick) => showSummary(rounds.summary(key, pick))),
    ]),
  }
}

function gatesOf(rounds) {
  return ['20 B', '4 KiB'].map((size) => ({
    name: `enqueueMany, ${size}, FULL: Millrace as a part of bare prepared inserts`,
    measured: percent(rounds.ratio(`millrace ${size}`, `bare, a prepared insert each ${size}`, (r) => r.rate)),
    unit: '%',
    least: 70,
  }))
}
