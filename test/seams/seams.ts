import type { SimEngine } from '../../src/testing/simulation/sim-database.js'
import { seeded } from '../../src/testing/simulation/random.js'
import { runSeam } from './run-seam.js'
import type { SeamReport } from './run-seam.js'
import { faultsOf, textOf } from './seam.js'
import type { SeamGroup, Strike } from './seam.js'
import { SCENARIOS } from './scenarios/scenarios.js'
import type { Scenario } from './stage.js'

/** One call of one scenario that fails in one way. */
export interface SeamCase {
  readonly scenario: string
  readonly group: SeamGroup
  readonly strike: Strike
  /** Which call it is, of all calls of the scenario, from 1. */
  readonly n: number
}

export type OpenEngine = (() => Promise<SimEngine>) | undefined

/** Every call of these scenarios, with every way in which it can fail. The undisturbed scenarios must keep all promises. */
export async function listCases(
  names: readonly string[],
  groups: readonly SeamGroup[],
  openEngine: OpenEngine,
): Promise<SeamCase[]> {
  const cases: SeamCase[] = []
  // The first history on a server makes the partitions of its days, which no later one does.
  if (openEngine !== undefined) await runSeam({ scenario: scenarioOf('start'), group: 'store', openEngine })
  for (const name of names)
    for (const group of groups) {
      const { error, calls } = await runSeam({ scenario: scenarioOf(name), group, openEngine })
      if (error !== undefined) throw new Error(`scenario ${name} (${group}) fails by itself`, { cause: error })
      for (const [index, seam] of calls.entries())
        for (const fault of faultsOf(seam.call))
          cases.push({ scenario: name, group, strike: { seam, fault }, n: index + 1 })
    }
  return cases
}

export function runCase({ scenario, group, strike }: SeamCase, openEngine: OpenEngine): Promise<SeamReport> {
  return runSeam({ scenario: scenarioOf(scenario), group, strike, openEngine })
}

/** The same cases in an order in which each part of the list is a sample of the whole. */
export function shuffled<T>(cases: readonly T[], seed = 1): T[] {
  const random = seeded(seed)
  return cases
    .map((each) => ({ each, at: random.next() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ each }) => each)
}

/** What failed, and how to repeat it. */
export function describeFailure(failed: SeamCase, store: string, error: unknown): string {
  const { scenario, group, strike, n } = failed
  const at = textOf(strike.seam)
  const why = error instanceof Error ? error.message : String(error)
  return (
    `${scenario}: call ${n}, ${at}, ${strike.fault}: ${why}\n` +
    `  repeat: npm run seams -- --store ${store} --scenario ${scenario} --group ${group} --at "${at}" --fault "${strike.fault}"`
  )
}

export const SCENARIO_NAMES: readonly string[] = SCENARIOS.map(({ name }) => name)

function scenarioOf(name: string): Scenario {
  const scenario = SCENARIOS.find((each) => each.name === name)
  if (scenario === undefined) throw new Error(`no scenario is named ${name}`)
  return scenario
}
