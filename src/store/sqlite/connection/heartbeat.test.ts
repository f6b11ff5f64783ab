import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { systemWorld } from '../../../world/world.js'
import { chooseLibrary } from './library.js'
import { openFile } from './open.js'
import { SqliteStore } from '../sqlite-store.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-heart-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const sleep = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms))

/**
 * A file that other processes write at full speed is rarely unlocked: SQLite's own busy wait would miss nearly every
 * chance.
 */
test('beats are written to a file that is nearly always locked', async () => {
  const path = join(folder, 'busy.db')
  const world = systemWorld()
  const file = await openFile({ target: path, durability: 'process' }, true, world)
  const store = new SqliteStore(file, world, { durability: 'process' })
  await store.addWorker({ id: 'w', host: 'h', pid: 1 })
  const lost: string[] = []
  const heart = await store.startHeartbeat('w', 300, (why) => lost.push(why))
  expect(heart).toBeDefined()
  const other = new (chooseLibrary().open)(path)
  other.exec('pragma busy_timeout = 1000')
  const before = (await store.readWorkers())[0]?.beat ?? 0
  for (let i = 0; i < 25; i += 1) {
    other.exec('begin immediate')
    await sleep(150)
    other.exec('rollback')
    await sleep(5)
  }
  const [worker] = await store.readWorkers()
  // A dozen beats are due in that time, and a lease is three beats.
  expect((worker?.beat ?? 0) - before).toBeGreaterThanOrEqual(6)
  expect(lost).toEqual([])
  other.close()
  await heart?.stop()
  await store.close()
})
