import { describe, expect, test } from 'vitest'
import { addCoverage, runSeed, uncovered } from './campaign/campaign.js'
import type { Coverage } from '../src/testing/simulation/simulation.js'

/** Seeds that once found a fault, with what it was. They stay, though a seed produces another history when the workload changes. */
const KEPT: readonly [seed: number, found: string][] = [
  [2, 'a claim whose reply was lost kept its jobs for as long as the worker lived'],
  [12, 'jobs claimed while a confirmation was in progress were treated as cancelled'],
  [25, 'a process suspended inside a claim began stale jobs when it resumed'],
  [146, 'a suspect was treated as alone while ended jobs were not written yet'],
  [163, 'the same, by a claim that was given back late'],
  [7532, 'a suspect that had ended and was not written yet was charged with the crash of the next one'],
  [6240, 'a suspect whose claim got no reply was charged, though it was being given back'],
  [7609, 'a rescue dropped a lease that was written after its observation'],
  [37, 'a job that was taken from its worker and claimed by it again was begun by the old claim too'],
  [
    7225,
    'none in the engine: as the faults stopped, a claim and the settlement of its job happened between two runs of the checkers',
  ],
  [242, 'a held job that was announced, and then cancelled, began when its confirmation failed and was repeated'],
  [8276, 'a held job that was reported before its start, and then paused, began'],
  [4465, 'a schedule was written with a next tick that its process computed before the clock was set back'],
  [300, 'a schedule that was given another rule after the clock was set back had no tick for as long'],
  [349, 'the same'],
  [354, 'none in the engine: a successor was replaced after the job before it was given back'],
  [370, 'the same, or of one that was resumed'],
  [5466, 'none in the engine: the ledger that tells ticks by hand from others was deleted with its schedule'],
  [883, 'none in the engine: a parent was named by its key and by its id, and the checker expected another order'],
]

/** In shares, so that a failure names its seeds. Ten thousand are a campaign of their own: `npm run simulate`. */
const SHARES = 3
const SEEDS_PER_SHARE = 30

describe('the simulated fleet', () => {
  test.each(KEPT)('seed %i holds every promise: %s', async (seed) => {
    expect((await runSeed(seed)).error).toBeUndefined()
  })

  const coverage: Coverage = {}
  test.each(Array.from({ length: SHARES }, (_, i) => 1 + i * SEEDS_PER_SHARE))(
    `holds every promise for ${SEEDS_PER_SHARE} seeds from %i`,
    { timeout: 300_000 },
    async (from) => {
      for (let seed = from; seed < from + SEEDS_PER_SHARE; seed += 1) {
        const report = await runSeed(seed)
        addCoverage(coverage, report.coverage)
        if (!report.ok)
          throw new Error(
            `seed ${seed}: ${String(report.error)}\nconfiguration: ${JSON.stringify(report.config)}\nreplay: npm run simulate -- --seed ${seed}`,
          )
      }
    },
  )

  test('covered every fault and case', () => {
    expect(uncovered(coverage)).toEqual([])
  })

  test('produces the same history for the same seed, byte for byte', { timeout: 60_000 }, async () => {
    for (let seed = 1000; seed < 1004; seed += 1) {
      const [first, second] = [await runSeed(seed), await runSeed(seed)]
      expect(second.trace.join('\n')).toBe(first.trace.join('\n'))
      expect(second.coverage).toEqual(first.coverage)
    }
  })
})
