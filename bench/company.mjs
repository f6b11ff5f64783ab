import { inRounds } from './rounds.mjs'
import { showSummary } from './table.mjs'

/** Nodes of the flow: one, all its children, and one child of them all. */
const NODES_SHARE = 10

/** Flows and groups, on either store, without a contestant: their gates are absolute times. */
export async function company(bench, measure) {
  const { jobs } = bench.options
  const nodes = Math.ceil(jobs / NODES_SHARE)
  const cases = [{ key: 'millrace' }]
  const rounds = await inRounds({ ...bench.plan('company'), cases }, () =>
    measure({ task: 'company', jobs, nodes, bytes: 20 }, { done: 0, left: 2 * nodes }),
  )
  const figure = (name) => rounds.summary('millrace', (result) => result[name])
  const [members, parts] = [jobs, nodes].map((count) => count.toLocaleString('en-US'))
  return {
    name: 'company',
    title: `company: a flow of ${parts} nodes, the same in one bulk, and a group of ${members}`,
    heads: ['flow ms', 'bulk ms', 'group added ms', 'progress p50 ms', 'p99 ms', 'pause µs/member', 'cancel µs/member'],
    rows: [
      ['flowMs', 'bulkMs', 'groupMs', 'p50Ms', 'p99Ms', 'pauseUs', 'cancelUs'].map((name) => showSummary(figure(name))),
    ],
    gates: [
      { name: `a flow of ${parts} nodes is enqueued`, measured: figure('flowMs'), unit: 'ms', most: 2_000 },
      { name: `progress() of a group of ${members}, p99`, measured: figure('p99Ms'), unit: 'ms', most: 5 },
    ],
    rounds,
  }
}
