import { expect, test } from 'vitest'
import { runSeed } from '../src/testing/campaign.js'
import { MUTANTS } from './mutants/mutants.js'

/** Seeds tried before a planted bug counts as not found. */
const SEEDS_MAX = 400

const found: string[] = []

test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
  'the simulator finds: %s',
  { timeout: 120_000 },
  async (name, mutant) => {
    for (let seed = 1; seed <= SEEDS_MAX; seed += 1) {
      const report = await runSeed(seed, mutant.plants)
      if (report.ok) continue
      found.push(
        `seed ${String(seed).padStart(3)}  ${name}: ${report.error instanceof Error ? report.error.message : String(report.error)}`,
      )
      return
    }
    expect.fail(`${SEEDS_MAX} seeds did not find it`)
  },
)

test('at least twenty bugs were planted and all were found', () => {
  console.log(found.join('\n'))
  expect(found.length).toBeGreaterThanOrEqual(20)
  expect(found).toHaveLength(MUTANTS.length)
})
