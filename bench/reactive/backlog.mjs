import { runTask } from '../child.mjs'
import { inRounds } from '../rounds.mjs'
import { showSummary } from '../table.mjs'
import { ONE_THREAD, taskOf } from './libraries.mjs'

const MESSAGES = 100_000

/** Whether the time to drain a queue grows with its length only. */
export async function scenario(bench) {
  const { place, nodeArgs } = bench
  const cases = [{ key: 'messages posted in one turn' }]
  const rounds = await inRounds({ ...bench.plan('backlog'), cases }, () =>
    runTask(taskOf(place, 'millrace', 'reactive-backlog', { count: MESSAGES }), {
      nodeArgs: [...ONE_THREAD, ...nodeArgs],
    }),
  )
  const [{ key }] = cases
  const shown = [(r) => r.fewUs / 1000, (r) => r.manyUs / 1000, (r) => r.quotient]
  return {
    name: 'backlog',
    title: `backlog: ${MESSAGES.toLocaleString('en-US')} messages and a tenth of them`,
    heads: ['', 'a tenth, CPU ms', 'all, CPU ms', 'quotient'],
    rows: [[key, ...shown.map((pick) => showSummary(rounds.summary(key, pick)))]],
    gates: [
      {
        name: 'ten times the messages',
        measured: rounds.summary(key, (r) => r.quotient),
        unit: '× the time',
        most: 13,
      },
    ],
    rounds,
  }
}
