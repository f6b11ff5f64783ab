import { expect, test } from 'vitest'
import { runPoisonSeed } from './campaign/poison.js'
import { CRASH_MUTANTS } from './mutants/crash-mutants.js'
import { NotPlanted } from './mutants/mutants.js'

/** X10 in a simulated fleet: poison jobs of any position, priority and length, and plain kills. */

/** The seed that last found each, if not the first: it is tried first, so that this test is fast. */
const FOUND_AT: { readonly [mutant: string]: number } = {
  'held jobs count as begun': 16,
  'a suspect is parked one crash too early': 3,
}

/** Seeds tried before a planted bug counts as not found. */
const SEEDS_MAX = 60

const MUST_COVER = [
  'quarantines of one',
  'quarantines of several',
  'quarantines outlived',
  'crashes charged in quarantine',
  'crash-budget parks',
]

test(
  'the crash rule holds, whatever the position, priority and length of a poison job',
  { timeout: 120_000 },
  async () => {
    const met = new Map<string, number>()
    // Also the seeds that find planted bugs: without the bug they must pass.
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, ...Object.values(FOUND_AT)]) {
      const { error, coverage } = await runPoisonSeed(seed)
      expect(error, `seed ${seed}`).toBeUndefined()
      for (const [what, times] of Object.entries(coverage)) met.set(what, (met.get(what) ?? 0) + times)
    }
    expect(MUST_COVER.filter((what) => !met.has(what))).toEqual([])
  },
)

test.each(CRASH_MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
  'the simulator finds: %s',
  { timeout: 120_000 },
  async (name, { plants }) => {
    for (let seed = 0; seed <= SEEDS_MAX; seed += 1) {
      const { error } = await runPoisonSeed(seed === 0 ? (FOUND_AT[name] ?? 1) : seed, plants)
      if (error === undefined) continue
      if (error instanceof NotPlanted) throw error
      console.log(`seed ${seed}  ${name}: ${(error as Error).message}`)
      return
    }
    expect.fail(`${SEEDS_MAX} seeds did not find it`)
  },
)
