import { afterAll, expect, test } from 'vitest'
import { PostgresEngine } from './campaign/postgres-engine.js'
import { freshSchema, isShort, onPostgres } from './support/fresh-store.js'
import { describeFailure, listCases, runCase, SCENARIO_NAMES, shuffled } from './seams/seams.js'
import type { OpenEngine, SeamCase } from './seams/seams.js'
import type { SeamFault, SeamGroup } from './seams/seam.js'

/** `npm run seams` runs all of them; here each run takes the same sample. */
const SAMPLE = onPostgres ? 4 : 50
const SCENARIOS_MAX = onPostgres ? 2 : 24

/** Calls that once found a fault, with what it was: every such call of the scenario is run. */
const KEPT: readonly [scenario: string, call: string, fault: SeamFault, found: string][] = [
  [
    'enqueue',
    'settleJobs',
    'fails after',
    'an end that was written without an answer was logged as lost, without its hooks',
  ],
  ['retry', 'settleJobs', 'unreachable after', 'the same of an attempt that failed'],
  ['transaction', 'transact', 'fails after', 'the same of an end that ctx.transaction had committed'],
]

const fresh = freshSchema()
const engine = fresh === undefined ? undefined : await PostgresEngine.open(fresh.url, fresh.schema)
const openEngine: OpenEngine = engine === undefined ? undefined : () => engine.empty()
afterAll(() => engine?.close())

const GROUPS: readonly SeamGroup[] = onPostgres ? ['store', 'statements', 'callbacks'] : ['store', 'callbacks']

/** What they found was above the store: on PostgreSQL outside the matrix, one of them shows that their calls fail there too. */
test.each(KEPT.slice(0, isShort ? 1 : KEPT.length))(
  'in scenario %s every %s that %s breaks no promise: %s',
  async (scenario, call, fault) => {
    const cases = await listCases([scenario], ['store'], openEngine)
    const kept = cases.filter(({ strike }) => strike.seam.call === call && strike.fault === fault)
    expect(kept.length).toBeGreaterThan(0)
    expect(await failuresOf(kept)).toEqual([])
  },
)

test.each(GROUPS)('one failing call breaks no promise: %s', { timeout: 120_000 }, async (group) => {
  const names = shuffled(SCENARIO_NAMES).slice(0, SCENARIOS_MAX)
  const cases = shuffled(await listCases(names, [group], openEngine)).slice(0, SAMPLE)
  expect(await failuresOf(cases)).toEqual([])
})

async function failuresOf(cases: readonly SeamCase[]): Promise<string[]> {
  const failures: string[] = []
  for (const each of cases) {
    const { error } = await runCase(each, openEngine)
    if (error !== undefined) failures.push(describeFailure(each, onPostgres ? 'postgres' : 'sqlite', error))
  }
  return failures
}
