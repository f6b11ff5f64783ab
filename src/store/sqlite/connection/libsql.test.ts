import { createRequire } from 'node:module'
import { afterAll, describe, test } from 'vitest'
import { storeContract } from '../../../../test/contract/store-contract.js'
import { systemWorld } from '../../../world/world.js'
import type { SqliteConstructor, SqliteDatabase } from './driver.js'
import { openFile } from './open.js'
import { SqliteStore } from '../sqlite-store.js'

const Libsql = createRequire(import.meta.url)('libsql') as SqliteConstructor

const handles: SqliteDatabase[] = []
afterAll(() => {
  for (const handle of handles) handle.close()
})

/** In memory: the statements are what an old SQLite may read differently, and a file for each case takes longer than the case. */
async function open() {
  const world = systemWorld()
  const clock = { now: 1_800_000_000_000 }
  const handle = new Libsql(':memory:')
  handles.push(handle)
  const file = await openFile({ target: handle, durability: 'power' }, true, world)
  return { store: new SqliteStore(file, world, { durability: 'power', now: () => clock.now }), clock }
}

describe('the store contract through a handle of another library with an old SQLite', () => {
  for (const { name, run } of storeContract) test(name, async () => run(await open()))
})
