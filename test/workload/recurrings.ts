import type { RecurringOptions } from '../../src/schedule/record.js'
import { checkUnbroken } from '../../src/testing/checkers/tick-checks.js'
import type { Random } from '../../src/testing/simulation/random.js'
import { asTenant } from './shared-state.js'
import { insist } from './commands.js'
import type { ScenarioClient } from './scenario.js'

/** Its times are always the same and it is never paused, so its ledger must be complete. */
const UNBROKEN = 'unbroken'
const UNBROKEN_MS = 1_000
/** One that is deleted and declared again, and one whose gaps are backfilled: a deleted ledger cannot say what has run. */
const OTHERS = ['fleeting', 'patchy'] as const

/** In some histories, and in all in which the clock is set, everything recurs from the start; in most, little does, since checking it is slow. */
export async function beginRecurring(scenario: ScenarioClient): Promise<void> {
  if (!scenario.random.chance(0.2) && !hasSteps(scenario)) return
  for (const id of [UNBROKEN, ...OTHERS]) await insist(scenario, () => say(scenario, id))
}

/** Declares the schedules, as every process does at its start; sometimes with other options. */
export async function recur(scenario: ScenarioClient): Promise<void> {
  await say(scenario, scenario.random.chance(0.5) ? UNBROKEN : scenario.random.pick(OTHERS))
}

async function say(scenario: ScenarioClient, id: string): Promise<void> {
  const { sim, mill, random } = scenario
  const isUnbroken = id === UNBROKEN
  const rule = isUnbroken ? { every: UNBROKEN_MS } : anyRule(random)
  const policy = { ...anyPolicy(random), ...(isUnbroken ? { missed: 'all' as const } : {}) }
  // A clock that is set forward by a day skips a thousand ticks of each, which is slow to check.
  const options = hasSteps(scenario) && policy.missed === 'all' ? { ...policy, missed: 'once' as const } : policy
  const n = random.int(1, 3)
  if (id === 'fleeting' && random.chance(0.3)) return sayDeadly(scenario)
  await asTenant(scenario, random, (tenant) => mill.recurring(id, 'steady', { ms: 5, n, tenant }, rule, options))
  sim.count('recurring')
}

/** For some ticks, each of which kills the process that runs it until it is parked; the next ones wait for it, but not for ever. */
async function sayDeadly(scenario: ScenarioClient): Promise<void> {
  const { sim, mill, random } = scenario
  const options = { overlap: 'wait', missed: 'skip', until: new Date(sim.clock.now + 5_000) } as const
  await asTenant(scenario, random, (tenant) =>
    mill.recurring('fleeting', 'pill', { kills: 99, tenant }, { every: 2_000 }, options),
  )
  sim.count('recurring, and deadly')
}

function anyRule(random: Random): string | { every: number } {
  return random.pick(['* * * * * *', '*/3 * * * * *', { every: random.int(1_000, 4_000) }])
}

function anyPolicy(random: Random): RecurringOptions {
  return {
    missed: random.pick(['skip', 'once', 'all']),
    overlap: random.pick(['allow', 'skip', 'wait', 'cancel']),
    ...(random.chance(0.3) ? { jitter: random.int(1, 2_000) } : {}),
    ...(random.chance(0.2) ? { key: `key-${random.int(1, 3)}`, onDuplicate: random.pick(['return', 'reject']) } : {}),
  }
}

/** Where the clock is set, a ledger may have gaps, and `EveryChecker` checks that it continues. */
export function hasSteps({ sim }: ScenarioClient): boolean {
  return sim.config.faults.clockStep > 0
}

/** Sends a command to a schedule. */
export async function commandSchedule({ sim, mill, random }: ScenarioClient): Promise<void> {
  const id = random.pick(OTHERS)
  const what = random.pick(['pause', 'resume', 'runNow', 'backfill', 'delete', 'upcoming'] as const)
  if (what === 'backfill')
    await mill.schedules.backfill('patchy', new Date(sim.clock.now - 15_000), new Date(sim.clock.now - 1))
  else if (what === 'delete') await mill.deleteRecurring('fleeting')
  else if (what === 'upcoming') await mill.upcoming('5s', { limit: 50 })
  else await mill.schedules[what](random.chance(0.3) && what === 'runNow' ? UNBROKEN : id)
  sim.count(`schedule: ${what}`)
}

/** At the end all schedules are deleted, so that all jobs can drain. */
export async function endRecurring(scenario: ScenarioClient): Promise<void> {
  const { sim, mill } = scenario
  if (!hasSteps(scenario)) sim.count('ticks in an unbroken ledger', checkUnbroken(sim.census(), UNBROKEN, UNBROKEN_MS))
  for (const id of [UNBROKEN, ...OTHERS]) await insist(scenario, () => mill.deleteRecurring(id))
}
