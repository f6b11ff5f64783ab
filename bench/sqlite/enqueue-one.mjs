import { percent } from '../figures.mjs'
import { emptyTemplate, measureOn } from '../measure.mjs'
import { LARGE, showBytes, SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'

/** Of `--jobs`: a flush each makes them slow. */
const ONE_SHARE = 25
const HUNDRED_SHARE = 5

/** Callers that await each enqueue: a single one, and a hundred at once, whose commits can be shared. */
export async function scenario(bench) {
  const { options, place } = bench
  const cases = casesOf(options.jobs)
  const rounds = await inRounds({ ...bench.plan('enqueue-one'), cases }, async ({ contestant, callers, bytes, jobs }) =>
    measureOn(bench, {
      template: await emptyTemplate(place, contestant),
      spec: { task: 'enqueue-one', contestant, callers, durability: 'power', bytes, jobs, concurrency: 1 },
      expected: { done: 0, left: jobs },
    }),
  )
  const title =
    'enqueue-one: each enqueue awaited, FULL, after a warm-up; plainjob and bare commit before they return, so more callers change nothing'
  return { name: 'enqueue-one', title, ...tableOf(cases, rounds), gates: gatesOf(rounds), rounds }
}

function casesOf(jobs) {
  const of = (contestant, callers, bytes) => ({
    key: `${contestant}, ${callers} caller${callers > 1 ? 's' : ''} ${showBytes(bytes)}`,
    contestant,
    callers,
    bytes,
    jobs: Math.ceil(jobs / (callers > 1 ? HUNDRED_SHARE : ONE_SHARE)),
  })
  return [SMALL, LARGE].flatMap((bytes) => [
    ...['millrace', 'plainjob', 'bare'].map((contestant) => of(contestant, 1, bytes)),
    of('millrace', 100, bytes),
  ])
}

function tableOf(cases, rounds) {
  return {
    heads: ['', 'jobs', 'jobs/s', 'CPU µs/job', 'p50 ms', 'p99 ms'],
    rows: cases.map(({ key, jobs }) => [
      key,
      jobs.toLocaleString('en-US'),
      ...[(r) => r.rate, (r) => r.cpuUsPerJob, (r) => r.p50Ms, (r) => r.p99Ms].map((pick) =>
        showSummary(rounds.summary(key, pick)),
      ),
    ]),
  }
}

function gatesOf(rounds) {
  return ['20 B', '4 KiB'].flatMap((size) => {
    const [one, hundred] = [`millrace, 1 caller ${size}`, `millrace, 100 callers ${size}`]
    const rate = (r) => r.rate
    return [
      {
        name: `enqueue, ${size}, FULL, one caller: Millrace as a part of bare single commits`,
        measured: percent(rounds.ratio(one, `bare, 1 caller ${size}`, rate)),
        unit: '%',
        least: 70,
      },
      {
        name: `enqueue, ${size}, FULL: 100 callers ÷ one`,
        measured: rounds.ratio(hundred, one, rate),
        unit: '×',
        least: 10,
      },
    ]
  })
}
