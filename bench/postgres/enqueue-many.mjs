import { percent } from '../figures.mjs'
import { LARGE, showBytes, SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { absent, beside, CLIENT, measureCase, present, RATE, rateOf, SERVER, tableOf, waiting } from './cases.mjs'

const SHARE = 5
const PARTIES = ['millrace', 'graphile-worker tuned', 'pg-boss tuned', 'bare']

/** All jobs at once, on empty tables. */
export async function scenario(bench) {
  const cases = present(bench, casesOf(bench.options.jobs))
  const rounds = await inRounds({ ...bench.plan('enqueue-many'), cases }, ({ party, jobs, bytes }) =>
    measureCase(bench, {
      task: 'enqueue-many',
      party,
      jobs,
      bytes,
      template: waiting(bench, party, bytes, 0),
      expected: { done: 0, left: jobs },
    }),
  )
  const title =
    'enqueue-many: Millrace in one call, the others in parts of 1,000 (bare: in one transaction); 4 KiB and bullmq a fifth'
  const table = tableOf(cases, rounds, [RATE, CLIENT, SERVER, ['peak MiB', (r) => r.peakMiB]])
  return { name: 'enqueue-many', title, ...table, notes: absent(bench), gates: gatesOf(rounds), rounds }
}

function casesOf(jobs) {
  const few = Math.ceil(jobs / SHARE)
  const of = (party, bytes, count) => ({ key: `${party} ${showBytes(bytes)}`, party, bytes, jobs: count })
  return [
    ...PARTIES.map((party) => of(party, SMALL, jobs)),
    of('bullmq', SMALL, few),
    ...PARTIES.map((party) => of(party, LARGE, few)),
  ]
}

function gatesOf(rounds) {
  return ['20 B', '4 KiB'].flatMap((size) => [
    beside(
      rounds,
      `enqueueMany, ${size}: Millrace ÷ graphile-worker's addJobs`,
      [`millrace ${size}`, `graphile-worker tuned ${size}`],
      { least: 2 },
    ),
    {
      name: `enqueueMany, ${size}: Millrace as a part of the bare batched insert`,
      measured: percent(rounds.ratio(`millrace ${size}`, `bare ${size}`, rateOf)),
      unit: '%',
      least: 65,
    },
  ])
}
