import { expect } from 'vitest'
import { NotPlanted } from './mutants.js'
import type { Mutant } from './mutants.js'
import type { Plants } from '../../src/testing/simulation/sim-database.js'

/** Names of planted bugs, with the seed that last found each if it is not the first. */
export type FoundAt = { readonly [mutant: string]: number }

/**
 * Runs seeds from 1 until one finds the planted bug, and fails when none of `seedsMax` does. The seed that last found it is
 * tried first: when the workload changes it may find nothing, and the search takes its usual time.
 */
export async function expectFound(
  { name, plants }: Mutant,
  run: (seed: number, plants: Plants) => Promise<{ readonly error: unknown }>,
  { seedsMax, foundAt }: { readonly seedsMax: number; readonly foundAt: FoundAt },
): Promise<void> {
  for (let seed = 0; seed <= seedsMax; seed += 1) {
    const tried = seed === 0 ? (foundAt[name] ?? 1) : seed
    const { error } = await run(tried, plants)
    if (error instanceof NotPlanted) throw error
    if (error !== undefined) return console.log(`found at seed ${tried}: ${name}`)
  }
  expect.fail(`${name} was not found in ${seedsMax} seeds`)
}
