import { expect, test } from 'vitest'
import { systemWorld } from '../../../world/world.js'
import type { NewJob } from '../../store.js'
import { openFile } from '../connection/open.js'
import { SqliteStore } from '../sqlite-store.js'

const world = systemWorld()
const newJob = (change: Partial<NewJob>): NewJob => ({
  id: world.ids.jobId(world.clock.now()),
  name: 'mail',
  queue: 'default',
  priority: 0,
  key: null,
  payload: '1',
  options: null,
  due: { inMs: 0 },
  expires: null,
  ...change,
})
const reject = { onDuplicate: 'reject', keepCancelledMs: Infinity } as const

async function open(): Promise<SqliteStore> {
  const file = await openFile({ target: ':memory:', durability: 'power' }, true, world)
  return new SqliteStore(file, world, { durability: 'power' })
}

/**
 * One turn with two writes: a job of a new (queue, name), then one that is refused. The transaction is rolled back and
 * the first write is run again; the lane that it cached the first time is in no table any more.
 */
test('a job of a new queue is written although another write of its turn was refused', async () => {
  const store = await open()
  await store.insertJobs([newJob({ key: 'k' })], reject)
  const fresh = newJob({ queue: 'brand-new' })
  const settled = await Promise.allSettled([
    store.insertJobs([fresh], reject),
    store.insertJobs([newJob({ key: 'k' })], reject),
  ])
  expect(settled.map((each) => each.status)).toEqual(['fulfilled', 'rejected'])
  const [row] = await store.readJobs([fresh.id])
  await store.close()
  expect(row).toMatchObject({ id: fresh.id, queue: 'brand-new', name: 'mail' })
})

test('a job of a new queue is never confused with one of another name', async () => {
  const store = await open()
  await store.insertJobs([newJob({ key: 'k' })], reject)
  const fresh = newJob({ queue: 'brand-new' })
  await Promise.allSettled([store.insertJobs([fresh], reject), store.insertJobs([newJob({ key: 'k' })], reject)])
  await store.insertJobs([newJob({ name: 'delete-everything', queue: 'danger' })], reject)
  const [row] = await store.readJobs([fresh.id])
  await store.close()
  expect(row?.name).toBe('mail')
})
