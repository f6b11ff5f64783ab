import { describe, expect, test } from 'vitest'
import { addCoverage } from './campaign/campaign.js'
import { LIMITS_MUST_COVER, runLimitSeed } from './campaign/limit-campaign.js'
import { LIMIT_MUTANTS } from './mutants/limit-mutants.js'
import { expectFound } from './mutants/find-mutant.js'
import type { FoundAt } from './mutants/find-mutant.js'
import type { Coverage } from '../src/testing/simulation/simulation.js'

/** Limits, rates, turns and outages with crashes. `MILLRACE_LIMIT_SEEDS=1000` runs a whole campaign. */
const SEEDS = Number(process.env['MILLRACE_LIMIT_SEEDS'] ?? 8)
/** Seeds tried before a planted bug counts as not found. */
const SEEDS_MAX = 100
const FOUND_AT: FoundAt = {
  'no turn is remembered': 2,
  'a window ends before its time, as by the clock of a worker': 4,
  'a lane is probed at every promotion': 5,
  'retries are not held': 5,
  'held retries are never released': 5,
}

describe('limits in a simulated fleet', () => {
  const coverage: Coverage = {}
  test('keep every promise', { timeout: 3_600_000 }, async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const report = await runLimitSeed(seed)
      addCoverage(coverage, report.coverage)
      if (report.error !== undefined)
        throw new Error(
          `seed ${seed}: ${(report.error as Error).message}\nconfiguration: ${JSON.stringify(report.config)}\n${report.trace.slice(-25).join('\n')}`,
        )
    }
  })

  // Six keys had one turn each before the last one, which was more than those still waiting by then seemed to allow.
  test('keys that wait long for their one turn keep every promise', async () => {
    expect((await runLimitSeed(700_297)).error).toBeUndefined()
  })

  test('cover crashes, full limits, turns and probes', () => {
    expect(LIMITS_MUST_COVER.filter((what) => (coverage[what] ?? 0) === 0)).toEqual([])
  })

  test.each(LIMIT_MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
    'the simulator finds: %s',
    { timeout: 300_000 },
    async (_, mutant) => {
      await expectFound(mutant, runLimitSeed, { seedsMax: SEEDS_MAX, foundAt: FOUND_AT })
    },
  )
})
