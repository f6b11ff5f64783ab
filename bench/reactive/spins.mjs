import { runTask } from '../child.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'
import { ONE_THREAD, taskOf } from './libraries.mjs'

const SAMPLES = 5

/** What no other library here has, so its figures are rates. */
const CASES = [
  { key: 'wait chain of 200', unit: 'runs', least: 150_000 },
  { key: 'fan-out of 1,000', unit: 'runs', least: 250_000 },
  { key: 'one spin', unit: 'writes', least: 1e6 / 6 },
  { key: 'mailbox, iterate', unit: 'messages', least: 300_000 },
  { key: 'fork of 10 signals' },
  { key: 'fork of 100,000 signals' },
]

export async function scenario(bench) {
  const { options, place, nodeArgs } = bench
  const samples = options.quick ? 1 : SAMPLES
  const rounds = await inRounds({ ...bench.plan('spins'), cases: CASES }, ({ key: name }) =>
    runTask(taskOf(place, 'millrace', 'reactive-spins', { name, samples }), { nodeArgs: [...ONE_THREAD, ...nodeArgs] }),
  )
  const measured = (key) => rounds.summary(key, (result) => result.rate)
  return {
    name: 'spins',
    title: 'spins and messages, for each second of CPU time; every write and post is followed by its drain',
    heads: ['', 'a second'],
    rows: CASES.map(({ key }) => [key, showSummary(measured(key))]),
    gates: [
      ...CASES.filter(({ least }) => least !== undefined).map(({ key, unit, least }) => ({
        name: key,
        measured: measured(key),
        unit: `${unit} a second`,
        least,
      })),
      {
        name: 'a fork of 10 signals / of 100,000, in forks a second',
        measured: rounds.ratio('fork of 10 signals', 'fork of 100,000 signals', (result) => result.rate),
        unit: '×',
        most: 5,
      },
    ],
    rounds,
  }
}
