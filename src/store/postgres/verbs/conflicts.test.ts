import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase } from '../../../../test/postgres/shared-postgres.js'
import { systemWorld } from '../../../world/world.js'
import type { NewJob } from '../../store.js'
import { openDatabase } from '../connection/open.js'
import { PostgresStore } from '../postgres-store.js'
import { targetOf } from '../connection/target.js'

let database: Awaited<ReturnType<typeof freshDatabase>>
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

const WINDOW_MS = 100

const NEW: NewJob = {
  id: '0198a000-0000-7000-8000-000000000001',
  name: 'work',
  queue: 'default',
  priority: 0,
  key: null,
  payload: '{}',
  options: null,
  due: { inMs: 0 },
  expires: null,
  unique: { key: 'v', while: 'waiting', onDuplicate: 'ignore', forMs: WINDOW_MS },
}

test('a job is dated at the time at which its unique slot was read as free', async () => {
  const world = systemWorld()
  const opened = await openDatabase(await targetOf(database.url, 'moments'), true, world)
  // Each statement takes a while, as on a busy server.
  let clock = 1_800_000_000_000
  const store = new PostgresStore(opened, world, { now: () => (clock += 7) })
  await store.insertJobs([NEW], { onDuplicate: 'return', keepCancelledMs: Infinity })
  const job = await store.readJobs([NEW.id])
  const [slot] = await opened.connection('work').query<{ until: string }>('select until from moments.uniques', [])
  expect(Number(slot?.until) - (job[0]?.createdAt ?? 0)).toBe(WINDOW_MS)
  await store.close()
})
