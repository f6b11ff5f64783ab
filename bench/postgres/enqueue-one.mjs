import { percent } from '../figures.mjs'
import { SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { absent, beside, CLIENT, measureCase, present, RATE, rateOf, SERVER, tableOf, waiting } from './cases.mjs'

/** Of `--jobs`: a flush each makes them slow. */
const ONE_SHARE = 40
const HUNDRED_SHARE = 5
const CALLERS = 100

/** Callers that await each enqueue: a single one, and a hundred at once, whose commits can be shared. */
export async function scenario(bench) {
  const cases = present(bench, casesOf(bench.options.jobs))
  const rounds = await inRounds({ ...bench.plan('enqueue-one'), cases }, ({ party, callers, jobs }) =>
    measureCase(bench, {
      task: 'enqueue-one',
      party,
      jobs,
      callers,
      bytes: SMALL,
      template: waiting(bench, party, SMALL, 0),
      expected: { done: 0, left: jobs },
    }),
  )
  const title = 'enqueue-one: each enqueue awaited, 20 B, after a warm-up'
  const table = tableOf(cases, rounds, [RATE, CLIENT, SERVER, ['p50 ms', (r) => r.p50Ms], ['p99 ms', (r) => r.p99Ms]])
  return { name: 'enqueue-one', title, ...table, notes: absent(bench), gates: gatesOf(rounds), rounds }
}

function casesOf(jobs) {
  const of = (party, callers) => ({
    key: `${party}, ${callers} caller${callers > 1 ? 's' : ''}`,
    party,
    callers,
    jobs: Math.ceil(jobs / (callers > 1 ? HUNDRED_SHARE : ONE_SHARE)),
  })
  return [
    ...['millrace', 'graphile-worker', 'pg-boss tuned', 'bare', 'bullmq'].map((party) => of(party, 1)),
    of('millrace', CALLERS),
  ]
}

function gatesOf(rounds) {
  const one = 'millrace, 1 caller'
  return [
    beside(rounds, 'enqueue, one caller: Millrace ÷ graphile-worker', [one, 'graphile-worker, 1 caller'], {
      least: 2.5,
    }),
    {
      name: 'enqueue, one caller: Millrace as a part of a bare commit',
      measured: percent(rounds.ratio(one, 'bare, 1 caller', rateOf)),
      unit: '%',
      least: 70,
    },
    beside(rounds, `enqueue: ${CALLERS} callers ÷ one`, [`millrace, ${CALLERS} callers`, one], { least: 8 }),
  ]
}
