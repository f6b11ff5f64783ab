import { expect, test } from 'vitest'
import type { ClaimedJob, NewJob } from '../../store.js'
import { systemWorld } from '../../../world/world.js'
import { openFile } from '../connection/open.js'
import { SqliteStore } from '../sqlite-store.js'

const world = systemWorld()
const newJob = (): NewJob => ({
  id: world.ids.jobId(world.clock.now()),
  name: 'mail',
  queue: 'default',
  priority: 0,
  key: null,
  payload: '1',
  options: null,
  due: { inMs: 0 },
  expires: null,
})

/** A store in memory with jobs that a worker holds for its next free slots. */
async function holding(count: number): Promise<{ store: SqliteStore; held: readonly ClaimedJob[] }> {
  const store = new SqliteStore(await openFile({ target: ':memory:', durability: 'power' }, true, world), world, {
    durability: 'power',
  })
  await store.insertJobs(Array.from({ length: count }, newJob), { onDuplicate: 'return', keepCancelledMs: Infinity })
  await store.addWorker({ id: 'w', host: 'here', pid: 1 })
  const fence = world.ids.fence()
  const request = {
    worker: 'w',
    fence,
    names: undefined,
    max: count,
    starting: 0,
    rooms: new Map(),
    suspects: 'none' as const,
  }
  return { store, held: (await store.claimJobs(request)).jobs }
}

const cancelled = (id: string) => ({ id, from: 'ready' as const, to: 'cancelled' as const, keepMs: Infinity })

test('a cancelled held job is not confirmed', async () => {
  const { store, held } = await holding(2)
  expect((await store.confirmJobs(held)).mine).toEqual(new Set(held.map((job) => job.ref)))
  await store.changeJob(cancelled((held[0] as ClaimedJob).id))
  expect((await store.confirmJobs(held)).mine).toEqual(new Set([(held[1] as ClaimedJob).ref]))
  await store.close()
})

// The command is counted when it is requested, not when it is committed; a confirmation in between must not use up the
// count.
test('a cancelled held job is not confirmed, also when another confirmation came before the commit', async () => {
  const { store, held } = await holding(1)
  const [job] = held as [ClaimedJob]
  const cancelling = store.changeJob(cancelled(job.id))
  await store.confirmJobs(held)
  expect(await cancelling).toBe('taken')
  const confirmed = await store.confirmJobs(held)
  await store.close()
  expect(confirmed.mine).toEqual(new Set())
})
