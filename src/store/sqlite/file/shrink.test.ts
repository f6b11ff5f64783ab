import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ContractFixture } from '../../../../test/contract/fixture.js'
import { systemWorld } from '../../../world/world.js'
import { chooseLibrary } from '../connection/library.js'
import { openFile } from '../connection/open.js'
import { SqliteStore } from '../sqlite-store.js'

let folder = ''
let path = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-space-'))
  path = join(folder, 'jobs.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Fills a store with some megabytes, prunes all of it, sweeps to the end, and returns the size before and after. */
async function peak(): Promise<{ before: number; after: number; steps: number }> {
  const clock = { now: 1_800_000_000_000 }
  const world = systemWorld()
  const file = await openFile({ target: path, durability: 'process' }, true, world)
  const store = new SqliteStore(file, world, { durability: 'process', now: () => clock.now })
  const b = new ContractFixture({ store, clock })
  const worker = await b.worker()
  await b.insert(Array.from({ length: 2_000 }, () => b.job({ payload: JSON.stringify('x'.repeat(4_000)) })))
  const { jobs } = await b.claim(worker, { max: 2_000 })
  await store.settleJobs(
    jobs.map((job) => b.settled(job, { keepMs: 1_000 })),
    [],
  )
  clock.now += 1_000
  const fold = (): unknown => file.database.prepare('pragma wal_checkpoint(truncate)').get()
  fold()
  const before = statSync(path).size
  expect((await store.pruneJobs(5_000)).pruned).toBe(2_000)
  let steps = 1
  while ((await store.sweepRows(10)).more) steps += 1
  fold()
  const after = statSync(path).size
  await store.close()
  return { before, after, steps }
}

test('a file that the store created returns the space of a peak to the disk, in steps', async () => {
  const { before, after, steps } = await peak()
  expect(before).toBeGreaterThan(8_000_000)
  expect(after).toBeLessThan(before * 0.6)
  expect(steps).toBeGreaterThan(2)
})

test('a file that its user created keeps its auto_vacuum mode', async () => {
  const own = new (chooseLibrary().open)(path)
  own.exec('create table app (id integer)')
  own.close()
  const { before, after, steps } = await peak()
  expect(after).toBe(before)
  expect(steps).toBe(1)
})
