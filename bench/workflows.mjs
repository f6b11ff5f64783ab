import { startTask } from './child.mjs'
import { summarise } from './figures.mjs'
import { emptyTemplate } from './measure.mjs'
import { inRounds } from './rounds.mjs'
import { showSummary } from './table.mjs'

/** A workflow of three steps is four commits or more: fewer of them give the same figure. */
const SHARE = 10
const MAX_MS = 600_000
/** Of the rate of plain jobs, by how many are in hand. */
const ASKED = {
  10: { least: 0.45, goal: 0.55 },
  100: { least: 0.25, goal: 0.35 },
}

/**
 * Workflows of three steps beside as many plain jobs, 10 and 100 in hand; and beside another engine for the same work.
 * @param {{ contestant: string, rival?: string, bare?: string, gates: 'plain' | 'rival' }} how  `bare`: the party that writes the answers alone.
 */
export async function workflowsScenario(bench, { contestant, rival, bare, gates }) {
  const { place, options, nodeArgs } = bench
  const jobs = Math.max(1_000, Math.ceil(options.jobs / SHARE))
  const parties = ['jobs', 'workflows', rival, bare].filter((party) => party !== undefined)
  const cases = Object.keys(ASKED).flatMap((inHand) =>
    parties.map((party) => ({ key: `${party}, ${inHand} in hand`, party, concurrency: Number(inHand) })),
  )
  const template = await emptyTemplate(place, contestant)
  const rounds = await inRounds({ ...bench.plan('workflows'), cases }, async ({ party, concurrency }) => {
    const copy = await place.copyOf(template)
    try {
      const where = { task: 'workflows', contestant, party, jobs, concurrency, ...place.whereOf(copy) }
      const { ms, ran, cpuUs } = await startTask(where, { nodeArgs, maxMs: MAX_MS }).result
      if (ran !== jobs) throw new Error(`${ran} of ${jobs} ended`)
      return { rate: (ran / ms) * 1000, cpuUs: cpuUs / ran }
    } finally {
      await place.remove(copy)
    }
  })
  const rate = (result) => result.rate
  const ofPlain = Object.entries(ASKED).map(([inHand, asked]) => ({
    name: `workflows of 3 steps ÷ plain jobs, ${inHand} in hand`,
    measured: rounds.ratio(`workflows, ${inHand} in hand`, `jobs, ${inHand} in hand`, rate),
    unit: '×',
    ...asked,
  }))
  const ofRival = Object.keys(ASKED).map((inHand) => ({
    name: `workflows of 3 steps ÷ ${rival}, ${inHand} in hand`,
    measured: rounds.ratio(`workflows, ${inHand} in hand`, `${rival}, ${inHand} in hand`, rate),
    unit: '×',
    least: 5,
  }))
  return {
    name: 'workflows',
    title: `workflows: ${jobs.toLocaleString('en')} of three steps that do nothing, and as many plain jobs`,
    heads: ['', 'per s', 'µs CPU each'],
    rows: cases.map(({ key }) => [
      key,
      showSummary(rounds.summary(key, rate)),
      showSummary(rounds.summary(key, (r) => r.cpuUs)),
    ]),
    notes: bare === undefined ? [] : Object.keys(ASKED).map((inHand) => formatFloor(rounds, bare, inHand)),
    gates: gates === 'plain' ? ofPlain : ofRival,
    rounds,
  }
}

/** What plain jobs would reach of their own rate if each were followed by the bare writes of three answers, and by nothing else. */
function formatFloor(rounds, bare, inHand) {
  const [jobs, answers] = [`jobs, ${inHand} in hand`, `${bare}, ${inHand} in hand`].map((key) =>
    rounds.values(key, (result) => result.rate),
  )
  const most = jobs.map((rate, round) => answers[round] / (rate + answers[round])).filter((each) => !Number.isNaN(each))
  return `plain jobs and the ${bare} alone, ${inHand} in hand: ${showSummary(summarise(most))} of the rate of plain jobs`
}
