import { percent } from '../figures.mjs'
import { filledTemplate, measureOn } from '../measure.mjs'
import { LARGE, showBytes, SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'

/** Of `--jobs`: large payloads would make a file of half a gigabyte, and plainjob flushes twice a job. */
const SHARE = 5

/** Jobs that are already stored, run by one process. Measures CPU, memory and the event loop. */
export async function scenario(bench) {
  const { options, place } = bench
  const cases = casesOf(options.jobs)
  const rounds = await inRounds({ ...bench.plan('drain'), cases }, async ({ contestant, durability, bytes, jobs }) =>
    measureOn(bench, {
      template: await filledTemplate(place, contestant, bytes, jobs),
      spec: { task: 'drain', contestant, durability, jobs, concurrency: options.concurrency },
      expected: { done: jobs, left: 0 },
    }),
  )
  const title =
    'drain: no-op jobs already stored, from start to the last end on disk, history kept; ' +
    `Millrace at concurrency ${options.concurrency}, plainjob 1, bare in batches of 500`
  return { name: 'drain', title, ...tableOf(cases, rounds), gates: gatesOf(rounds), rounds }
}

function casesOf(jobs) {
  return [
    { durability: 'power', bytes: SMALL },
    { durability: 'process', bytes: SMALL },
    { durability: 'power', bytes: LARGE },
  ].flatMap((setting) =>
    ['millrace', 'plainjob', 'bare'].map((contestant) => {
      const isFew = setting.bytes === LARGE || (contestant === 'plainjob' && setting.durability === 'power')
      const key = `${contestant} ${setting.durability === 'power' ? 'FULL' : 'NORMAL'} ${showBytes(setting.bytes)}`
      return { ...setting, key, contestant, jobs: isFew ? Math.ceil(jobs / SHARE) : jobs }
    }),
  )
}

function tableOf(cases, rounds) {
  const figures = ['rate', 'cpuUsPerJob', 'firstMs', 'delayP99Ms', 'delayMaxMs', 'peakMiB']
  return {
    heads: ['', 'jobs', 'jobs/s', 'CPU µs/job', 'first job ms', 'loop delay p99 ms', 'max ms', 'peak MiB'],
    rows: cases.map(({ key, jobs }) => [
      key,
      jobs.toLocaleString('en-US'),
      ...figures.map((figure) => showSummary(rounds.summary(key, (result) => result[figure]))),
    ]),
  }
}

function gatesOf(rounds) {
  const quotient = (above, below) => rounds.ratio(above, below, (result) => result.rate)
  const beside = (name, above, below) => ({
    name: `drain, ${name}: Millrace ÷ plainjob`,
    measured: quotient(above, below),
    unit: '×',
    least: 6,
    goal: 10,
  })
  const ofBare = (size) => ({
    name: `drain, ${size}, FULL: Millrace as a part of bare`,
    measured: percent(quotient(`millrace FULL ${size}`, `bare FULL ${size}`)),
    unit: '%',
    least: 40,
    goal: 60,
  })
  const own = (name, figure, unit, most) => ({
    name: `drain, 20 B, FULL: ${name}`,
    measured: rounds.summary('millrace FULL 20 B', (result) => result[figure]),
    unit,
    most,
  })
  return [
    beside('20 B, both FULL', 'millrace FULL 20 B', 'plainjob FULL 20 B'),
    beside('20 B, both NORMAL', 'millrace NORMAL 20 B', 'plainjob NORMAL 20 B'),
    beside('20 B, each by its default (FULL, NORMAL)', 'millrace FULL 20 B', 'plainjob NORMAL 20 B'),
    beside('4 KiB, both FULL', 'millrace FULL 4 KiB', 'plainjob FULL 4 KiB'),
    ofBare('20 B'),
    ofBare('4 KiB'),
    {
      name: "drain, 20 B: Millrace FULL ÷ durability 'process'",
      measured: quotient('millrace FULL 20 B', 'millrace NORMAL 20 B'),
      unit: '×',
      least: 0.7,
    },
    own('CPU a job', 'cpuUsPerJob', 'µs', 12),
    own('event-loop delay p99', 'delayP99Ms', 'ms', 20),
    own('peak memory', 'peakMiB', 'MiB', 110),
  ]
}
