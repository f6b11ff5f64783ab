import { afterAll, beforeAll, expect, test } from 'vitest'
import { runChunk, runProgram } from './model/campaign.js'
import { CASES } from './model/cases.js'
import { openModelDatabase } from './model/databases.js'
import type { ModelDatabase } from './model/databases.js'
import { MILLS } from './model/pair.js'
import { systemWorld } from '../src/world/world.js'
import { freshSchema, onPostgres } from './support/fresh-store.js'

/** `npm run model` runs more programs. */
const PROGRAMS = onPostgres ? 20 : 100
const MAX_MS = 4_000

let database: ModelDatabase
beforeAll(async () => {
  database = await openModelDatabase(MILLS, freshSchema())
})
afterAll(() => database.close())

for (const [found, steps] of Object.entries(CASES))
  test(`a program that once found: ${found}`, () => runProgram(database, steps))

test('mills do what the reference model says, whatever the program', { timeout: MAX_MS + 300_000 }, async () => {
  let ran = 0
  const start = performance.now()
  const difference = await runChunk(database, {
    seed: Math.floor(systemWorld().random() * 2 ** 31),
    programs: PROGRAMS,
    // At least one program runs, however slow the machine is.
    isOver: () => ran > 0 && performance.now() - start > MAX_MS,
    agreed: () => (ran += 1),
  })
  expect(difference).toBeUndefined()
  expect(ran).toBeGreaterThan(0)
})
