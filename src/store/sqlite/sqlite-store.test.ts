import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, test } from 'vitest'
import { storeContract } from '../../testing/store-contract.js'
import { systemWorld } from '../../world/world.js'
import { openFile } from './open.js'
import { SqliteStore } from './sqlite-store.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-contract-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function open(target: string) {
  const world = systemWorld()
  const clock = { now: 1_800_000_000_000 }
  const file = await openFile({ target, durability: 'power' }, true, world)
  return { store: new SqliteStore(file, world, { durability: 'power', now: () => clock.now }), clock }
}

describe('the store contract on an SQLite file', () => {
  for (const [i, { name, run }] of storeContract.entries())
    test(name, async () => run(await open(join(folder, `${i}.db`))))
})

describe('the store contract on SQLite in memory', () => {
  for (const { name, run } of storeContract) test(name, async () => run(await open(':memory:')))
})
