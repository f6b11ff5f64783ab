import { LARGE, showBytes, SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { absent, beside, CLIENT, measureCase, present, RATE, SERVER, tableOf, waiting } from './cases.mjs'

/** Of `--jobs`: large payloads would make half a gigabyte to copy each round, and Redis has to be filled each time. */
const SHARE = 5

/** Jobs that are already stored, run by one process. */
export async function scenario(bench) {
  const cases = present(bench, casesOf(bench.options.jobs))
  const rounds = await inRounds({ ...bench.plan('drain'), cases }, ({ party, jobs, bytes, analysed }) =>
    measureCase(bench, { task: 'drain', party, jobs, template: waiting(bench, party, bytes, jobs, { analysed }) }),
  )
  const title =
    'drain: no-op jobs already stored, from start to the last handler (Millrace: until it has stopped; bare: the last end on ' +
    `disk); Millrace at concurrency ${bench.options.concurrency}; 4 KiB and bullmq with a fifth of the jobs`
  const table = tableOf(cases, rounds, [
    RATE,
    CLIENT,
    SERVER,
    ['first job ms', (r) => r.firstMs],
    ['loop delay p99 ms', (r) => r.delayP99Ms],
    ['peak MiB', (r) => r.peakMiB],
  ])
  return { name: 'drain', title, ...table, notes: absent(bench), gates: gatesOf(rounds), rounds }
}

function casesOf(jobs) {
  const few = Math.ceil(jobs / SHARE)
  const of = (party, bytes, { analysed = true } = {}) => ({
    key: `${party} ${showBytes(bytes)}${analysed ? '' : ', never analysed'}`,
    party,
    bytes,
    analysed,
    jobs: bytes === LARGE || party === 'bullmq' ? few : jobs,
  })
  const kept = ['millrace', 'pg-boss tuned', 'bare, kept']
  const deleted = ['millrace, keep none', 'graphile-worker tuned', 'bare, deleted', 'bare, lease', 'bullmq']
  return [
    ...[...kept, ...deleted].map((party) => of(party, SMALL)),
    ...['millrace', 'graphile-worker tuned'].map((party) => of(party, SMALL, { analysed: false })),
    ...['millrace', 'pg-boss tuned', 'bare, kept', 'millrace, keep none', 'graphile-worker tuned'].map((party) =>
      of(party, LARGE),
    ),
  ]
}

function gatesOf(rounds) {
  const against = (name, size, [above, below], limits) =>
    beside(rounds, `drain, ${size}: ${name}`, [`${above} ${size}`, `${below} ${size}`], limits)
  const kept = 'Millrace, history kept ÷ graphile-worker tuned, which deletes'
  return [
    ...['20 B', '4 KiB'].flatMap((size) => [
      against(kept, size, ['millrace', 'graphile-worker tuned'], { least: 1.6 }),
      against('Millrace, history kept ÷ pg-boss tuned', size, ['millrace', 'pg-boss tuned'], { least: 2 }),
      against(
        "Millrace, keep: 'none' ÷ graphile-worker tuned",
        size,
        ['millrace, keep none', 'graphile-worker tuned'],
        {
          least: 2,
          goal: 3,
        },
      ),
    ]),
    beside(
      rounds,
      'drain, 20 B: Millrace never analysed ÷ analysed',
      ['millrace 20 B, never analysed', 'millrace 20 B'],
      { least: 0.9 },
    ),
    {
      name: 'drain, 20 B: CPU a job in the client',
      measured: rounds.summary('millrace 20 B', CLIENT[1]),
      unit: 'µs',
      most: 15,
    },
  ]
}
