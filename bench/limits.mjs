import { SMALL } from './payloads.mjs'
import { inRounds } from './rounds.mjs'
import { showSummary } from './table.mjs'

/** So many keys wait at once. */
const KEYS = 20

/**
 * What limits cost: jobs in a queue with a limit, jobs with a limit by key, and jobs without one beside a job that has one, against the
 * same jobs in a mill without limits; and how fairly keys take turns.
 * @param {object} bench
 * @param {(spec: object, expected: object) => Promise<object>} measure
 */
export async function limits(bench, measure) {
  const { jobs, concurrency } = bench.options
  const cases = [
    { key: 'no limit', way: 'plain' },
    { key: 'beside a limit', way: 'other' },
    { key: 'queue with a limit', way: 'queue' },
    { key: `limit by ${KEYS} keys`, way: 'keys', keys: KEYS },
  ]
  const rounds = await inRounds({ ...bench.plan('limits'), cases }, ({ way, keys }) =>
    measure({ task: 'limits', way, keys, jobs, bytes: SMALL, concurrency }, { done: jobs, left: 0 }),
  )
  const rate = (result) => result.rate
  const share = (key) => rounds.ratio(key, 'no limit', rate)
  return {
    name: 'limits',
    title: `limits: ${jobs.toLocaleString('en-US')} jobs that do nothing, ${concurrency} at a time`,
    heads: ['', 'jobs/s', 'CPU µs/job', 'rate ÷ no limit'],
    rows: cases.map(({ key }) => [
      key,
      showSummary(rounds.summary(key, rate)),
      showSummary(rounds.summary(key, (result) => result.cpuUsPerJob + (result.serverUsPerJob ?? 0))),
      showSummary(share(key)),
    ]),
    gates: [
      {
        name: 'jobs without a limit beside one: rate ÷ no limit',
        measured: share('beside a limit'),
        unit: '×',
        least: 0.5,
      },
      { name: 'a queue with a limit: rate ÷ no limit', measured: share('queue with a limit'), unit: '×', least: 0.5 },
      {
        name: `of ${KEYS} keys, jobs of one before the first of each other`,
        measured: rounds.summary(`limit by ${KEYS} keys`, (result) => result.unfair),
        unit: 'jobs',
        most: 2,
      },
    ],
    rounds,
  }
}
