import { describe, expect, test } from 'vitest'
import { addCoverage } from './campaign/campaign.js'
import { runSequenceSeed, SEQUENCES_MUST_COVER } from './campaign/sequence-campaign.js'
import { expectFound } from './mutants/find-mutant.js'
import type { FoundAt } from './mutants/find-mutant.js'
import { SEQUENCE_MUTANTS } from './mutants/sequence-mutants.js'
import type { Coverage } from '../src/testing/simulation/simulation.js'

/** 58: random schedules of pause, resume, cancel, reset, stop and kill. `MILLRACE_SEQUENCE_SEEDS=1000` runs a whole campaign. */
const SEEDS = Number(process.env['MILLRACE_SEQUENCE_SEEDS'] ?? 30)
const SHARES = 3
/** Seeds tried before a planted bug counts as not found. */
const SEEDS_MAX = 200
const FOUND_AT: FoundAt = {
  'progress counts an item that has only failed': 2,
  'a reset keeps the output': 2,
  'a reset lets a late result in': 2,
  'a pause is not seen between two items': 2,
  'the attempts of an item are forgotten at a crash': 2,
  'a row is written by a claim that was lost': 50,
}

describe('sequences in a simulated fleet', () => {
  const coverage: Coverage = {}
  test.each(Array.from({ length: SHARES }, (_, i) => i))(
    'keep every promise, share %i of the seeds',
    { timeout: 600_000 },
    async (share) => {
      for (let seed = 1 + share; seed <= SEEDS; seed += SHARES) {
        const report = await runSequenceSeed(seed)
        addCoverage(coverage, report.coverage)
        if (report.error !== undefined)
          throw new Error(
            `seed ${seed}: ${(report.error as Error).message}\nconfiguration: ${JSON.stringify(report.config)}\n${report.trace.slice(-25).join('\n')}`,
          )
      }
    },
  )

  test('cover every verb and state', () => {
    expect(SEQUENCES_MUST_COVER.filter((what) => (coverage[what] ?? 0) === 0)).toEqual([])
  })

  test('have the same history for the same seed', async () => {
    const [first, second] = [await runSequenceSeed(7), await runSequenceSeed(7)]
    expect(second.trace).toEqual(first.trace)
  })

  test.each(SEQUENCE_MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
    'the simulator finds: %s',
    { timeout: 300_000 },
    async (_, mutant) => {
      await expectFound(mutant, runSequenceSeed, { seedsMax: SEEDS_MAX, foundAt: FOUND_AT })
    },
  )
})
