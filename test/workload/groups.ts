import type { Random } from '../../src/testing/simulation/random.js'
import { insist } from './commands.js'
import { asTenant } from './shared-state.js'
import type { ScenarioClient } from './scenario.js'

const GROUPS = ['spring', 'summer', 'autumn'] as const

/** The group of the next job, if it is to be in one. From a stream of its own, so that the rest of the scenario does not change. */
export function anyGroup(random: Random): { readonly group?: string } {
  return random.chance(0.4) ? { group: random.pick(GROUPS) } : {}
}

/** At the end every group is sealed, while members still run and add to it; the whenDone job names its group. */
export async function sealGroups(scenario: ScenarioClient): Promise<void> {
  for (const name of GROUPS)
    await insist(scenario, () =>
      asTenant(scenario, scenario.groupRandom, (tenant) =>
        scenario.mill.group(name, { whenDone: ['steady', { ms: 1, n: 0, tenant, follows: name }] }).seal(),
      ),
    )
}
