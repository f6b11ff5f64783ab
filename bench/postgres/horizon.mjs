import { runTask } from '../child.mjs'
import { percent, summarise } from '../figures.mjs'
import { SMALL } from '../payloads.mjs'
import { inRounds } from '../rounds.mjs'
import { measureCase, RATE, SERVER, tableOf, waiting } from './cases.mjs'

/** Jobs run while an old snapshot of another connection keeps every dead row: is the last fifth as fast as the first? */
export async function scenario(bench) {
  const { jobs } = bench.options
  const parties = [
    'millrace',
    'millrace, keep none',
    'graphile-worker tuned',
    'pg-boss tuned',
    'bare, lease',
    'bare, lease and cursor',
  ]
  const cases = parties.map((party) => ({ key: party, party, jobs }))
  const run = (spec, options) => withSnapshot(bench.place.server, spec.url, () => runTask(spec, options))
  const rounds = await inRounds({ ...bench.plan('horizon'), cases }, ({ party }) =>
    measureCase(bench, { task: 'drain', party, jobs, template: waiting(bench, party, SMALL, jobs), run }),
  )
  return {
    name: 'horizon',
    title:
      'horizon: no-op jobs already stored, 20 B, while another connection holds a REPEATABLE READ snapshot taken after the enqueue',
    ...tableOf(cases, rounds, [
      RATE,
      ['first fifth jobs/s', firstFifth],
      ['last fifth jobs/s', lastFifth],
      ['last ÷ first', (r) => lastFifth(r) / firstFifth(r)],
      SERVER,
    ]),
    gates: ['millrace', 'millrace, keep none'].map((party) => ({
      name: `horizon, ${party}: last fifth as a part of the first`,
      measured: percent(summarise(rounds.values(party, (r) => lastFifth(r) / firstFifth(r)))),
      unit: '%',
      least: 85,
    })),
    rounds,
  }
}

async function withSnapshot(server, url, work) {
  const holder = await server.connect(url)
  try {
    await holder.query('begin isolation level repeatable read')
    // The snapshot is taken by the first statement that reads.
    await holder.query('select count(*) from pg_class')
    return await work()
  } finally {
    await holder.end()
  }
}

/** By the beginnings of handlers; from the first one on, so that the start is not included. */
const firstFifth = (r) => (r.ran / 5 / (r.fifthsMs[0] - r.firstMs)) * 1000
const lastFifth = (r) => (r.ran / 5 / (r.fifthsMs.at(-1) - r.fifthsMs.at(-2))) * 1000
