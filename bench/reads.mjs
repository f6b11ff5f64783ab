import { runTask } from './child.mjs'
import { SMALL } from './payloads.mjs'
import { inRounds } from './rounds.mjs'
import { showSummary } from './table.mjs'
import { FILTERS, TIME_FILTERS } from './tasks/find.mjs'

/** A first page takes no longer than this, whatever the filter. */
const FIRST_MS = 50
const LANES = 10_000
const RATE = 100
/** Of `--jobs`: at 100 a second a case takes a few seconds. */
const JOBS_SHARE = 400

/** The first job of every filter among a great many scheduled ones. */
export async function findScenario(bench, contestant) {
  const { options, place } = bench
  const { others } = options
  const steps = [{ task: 'fill-rare', contestant, others, bytes: SMALL }]
  const rounds = await inRounds({ ...bench.plan('find'), cases: [{ key: 'find' }] }, async () =>
    onCopy(place, await place.template(`rare ${others}`, steps), (where) =>
      runTask({ task: 'find', contestant, ...where }),
    ),
  )
  const of = (name) => rounds.summary('find', (r) => r[name])
  return {
    name: 'find',
    title: `find: the first job of a filter (limit 1, the slower order) among ${others.toLocaleString('en-US')} scheduled jobs`,
    heads: ['', 'ms'],
    rows: Object.keys({ ...FILTERS, ...TIME_FILTERS }).map((name) => [name, showSummary(of(name))]),
    gates: [{ name: 'find: the slowest filter', measured: of('worst'), unit: 'ms', most: FIRST_MS }],
    rounds,
  }
}

/** How soon a job starts where there are many names or queues, against one of each. */
export async function lanesScenario(bench, contestant) {
  const { options, place } = bench
  const lanes = options.quick ? LANES / 10 : LANES
  const jobs = Math.max(50, Math.ceil(options.jobs / JOBS_SHARE))
  const cases = [
    { key: 'one lane', names: 1, queues: 1 },
    { key: 'names', names: lanes, queues: 1 },
    { key: 'queues', names: 1, queues: lanes },
  ]
  const rounds = await inRounds({ ...bench.plan('lanes'), cases }, async ({ names, queues }) =>
    onCopy(
      place,
      await place.template('lanes empty', [{ task: 'fill', contestant, bytes: SMALL, groups: [] }]),
      (where) => runTask({ task: 'lanes', contestant, names, queues, jobs, rate: RATE, ...where }),
    ),
  )
  return {
    name: 'lanes',
    title: `lanes: enqueue called → handler begins, ${RATE} jobs/s over ${lanes.toLocaleString('en-US')} names or queues`,
    heads: ['', 'p50 ms', 'p95 ms'],
    rows: cases.map(({ key }) => [
      key,
      ...['p50Ms', 'p95Ms'].map((figure) => showSummary(rounds.summary(key, (r) => r[figure]))),
    ]),
    gates: ['names', 'queues'].map((key) => ({
      name: `lanes: p50 of ${lanes.toLocaleString('en-US')} ${key} ÷ one lane`,
      measured: rounds.ratio(key, 'one lane', (r) => r.p50Ms),
      unit: '×',
      most: 2,
    })),
    rounds,
  }
}

async function onCopy(place, template, measure) {
  const copy = await place.copyOf(template)
  try {
    return await measure(place.whereOf(copy))
  } finally {
    await place.remove(copy)
  }
}
