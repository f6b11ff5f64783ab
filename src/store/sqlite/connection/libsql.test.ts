import { createRequire } from 'node:module'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, test } from 'vitest'
import { storeContract } from '../../../../test/contract/store-contract.js'
import { systemWorld } from '../../../world/world.js'
import type { SqliteConstructor, SqliteDatabase } from './driver.js'
import { openFile } from './open.js'
import { SqliteStore } from '../sqlite-store.js'

const Libsql = createRequire(import.meta.url)('libsql') as SqliteConstructor

const folder = mkdtempSync(join(tmpdir(), 'millrace-libsql-'))
const handles: SqliteDatabase[] = []
afterAll(() => {
  for (const handle of handles) handle.close()
  rmSync(folder, { recursive: true, force: true })
})

async function open(path: string) {
  const world = systemWorld()
  const clock = { now: 1_800_000_000_000 }
  const handle = new Libsql(path)
  handles.push(handle)
  const file = await openFile({ target: handle, durability: 'power' }, true, world)
  return { store: new SqliteStore(file, world, { durability: 'power', now: () => clock.now }), clock }
}

describe('the store contract through a handle of another library with an old SQLite', () => {
  for (const [i, { name, run }] of storeContract.entries()) {
    test(name, async () => run(await open(join(folder, `${i}.db`))))
  }
})
