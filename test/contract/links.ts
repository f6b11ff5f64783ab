import assert from 'node:assert/strict'
import type { JobRow, NewJob, SettledJob } from '../../src/store/store.js'
import { contract, only } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'

/** Jobs that run after others. */
export const linkCases: readonly ContractCase[] = [
  contract('a job that runs after others is blocked until all of them are done', async (b) => {
    const [first, second] = [await b.one(), await b.one({ key: 'k' })]
    const child = await b.one({ after: [{ id: first }, { name: 'mail', key: 'k' }], name: 'child' })
    assert.deepEqual([await b.state(child), (await b.read(child)).after], ['blocked', [first, second]])
    assert.deepEqual(await endNext(b), first)
    assert.equal(await b.state(child), 'blocked')
    assert.deepEqual(await endNext(b), second)
    assert.equal(await b.state(child), 'ready')
    assert.deepEqual((await b.read(child)).after, [first, second])
  }),

  contract('a parent that is done already blocks no child', async (b) => {
    const parent = await b.one()
    await endNext(b)
    assert.equal(await b.state(await b.one({ after: [{ id: parent }] })), 'ready')
  }),

  contract('a parent that does not exist is refused by name, and nothing is written', async (b) => {
    const there = await b.one()
    const missing = b.job().id
    const jobs = [b.job(), b.job({ after: [{ id: there }, { id: missing }, { name: 'mail', key: 'nobody' }] })]
    await assert.rejects(b.insert(jobs), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'E_PARENT_MISSING')
      assert.match(error.message, new RegExp(missing))
      assert.match(error.message, /"nobody"/)
      return true
    })
    assert.equal((await b.found({})).length, 1)
  }),

  contract('a bulk may name its own jobs as parents, in any order', async (b) => {
    const [a, c] = [b.job(), b.job()]
    const last = b.job({ after: [{ id: a.id }, { id: c.id }] })
    await b.insert([last, a, c])
    assert.deepEqual(await states(b, [last.id, a.id, c.id]), ['blocked', 'ready', 'ready'])
    await endNext(b)
    await endNext(b)
    assert.equal(await b.state(last.id), 'ready')
  }),

  contract('a parent of the same bulk whose key was held is the holder', async (b) => {
    const holder = await b.one({ key: 'k' })
    const parent = b.job({ key: 'k' })
    const child = b.job({ after: [{ id: parent.id }] })
    await b.insert([parent, child])
    assert.deepEqual([await b.state(child.id), (await b.read(child.id)).after], ['blocked', [holder]])
    await endNext(b)
    assert.equal(await b.state(child.id), 'ready')
  }),

  contract('a released job waits for its own due time', async (b) => {
    const parent = await b.one()
    const child = await b.one({ after: [{ id: parent }], due: { inMs: 5_000 } })
    await endNext(b)
    assert.equal(await b.state(child), 'scheduled')
    b.clock.now += 5_000
    await promote(b)
    assert.equal(await b.state(child), 'ready')
  }),

  contract('a parent that fails resolves, cancels or keeps its links, by each child’s policy', async (b) => {
    const parent = await b.one()
    const [wait, cancel, run] = await children(b, parent)
    await endNext(b, { to: 'failed', error: '{"name":"Error","message":"no"}' })
    assert.deepEqual(await states(b, [wait, cancel, run]), ['blocked', 'cancelled', 'ready'])
    assert.match((await b.read(cancel)).reason ?? '', new RegExp(`parent mail ${parent} failed`))
  }),

  contract(
    'a parent that is cancelled does the same, and a child that it cancels ends for its own children',
    async (b) => {
      const parent = await b.one()
      const [wait, cancel, run] = await children(b, parent)
      const grandchild = await b.one({ after: [{ id: cancel }], onParentFailure: 'cancel', name: 'child' })
      await b.store.jobs.changeJob({ id: parent, from: 'ready', to: 'cancelled', keepMs: Infinity })
      await promote(b)
      assert.deepEqual(await states(b, [wait, cancel, run, grandchild]), ['blocked', 'cancelled', 'ready', 'cancelled'])
      assert.match((await b.read(grandchild)).reason ?? '', new RegExp(`parent child ${cancel} was cancelled`))
    },
  ),

  contract('a parent that had failed before its child was enqueued is treated alike', async (b) => {
    const parent = await b.one()
    await endNext(b, { to: 'failed' })
    const [wait, cancel, run] = await children(b, parent)
    await promote(b)
    assert.deepEqual(await states(b, [wait, cancel, run]), ['blocked', 'cancelled', 'ready'])
    assert.equal(await b.store.jobs.changeJob({ id: parent, from: 'failed', to: 'ready', keepMs: Infinity }), 'changed')
    await endNext(b, {}, [parent])
    assert.equal(await b.state(wait), 'ready', 'the retry succeeded')
  }),

  contract('a failed parent that is retried and succeeds releases its waiting children', async (b) => {
    const parent = await b.one()
    const [wait] = await children(b, parent)
    await endNext(b, { to: 'failed' })
    await b.store.jobs.changeJob({ id: parent, from: 'failed', to: 'ready', keepMs: Infinity })
    await endNext(b, {}, [parent])
    assert.equal(await b.state(wait), 'ready')
  }),

  contract('a parent that is deleted leaves no child blocked', async (b) => {
    const parent = await b.one({ due: { inMs: 60_000 } })
    const [wait, cancel, run] = await children(b, parent)
    await b.store.jobs.changeJob({ id: parent, from: 'scheduled', to: 'gone', keepMs: 0 })
    await b.insert([b.job({ name: 'other' })])
    await promote(b)
    assert.deepEqual(await states(b, [wait, cancel, run]), ['cancelled', 'cancelled', 'ready'])
    assert.match((await b.read(wait)).reason ?? '', new RegExp(`parent ${parent} is gone`))
  }),

  contract('a failed parent that is pruned leaves no child blocked', async (b) => {
    const parent = await b.one()
    const [wait, , run] = await children(b, parent)
    await endNext(b, { to: 'failed', keepMs: 1_000 })
    b.clock.now += 1_000
    assert.equal(await b.prune(10), 1)
    await promote(b)
    assert.deepEqual(await states(b, [parent, wait, run]), ['gone', 'cancelled', 'ready'])
  }),

  contract('a parent that is done and not kept releases its children', async (b) => {
    const parent = await b.one()
    const [wait, cancel, run] = await children(b, parent)
    await endNext(b, { keepMs: 0 })
    assert.deepEqual(await states(b, [parent, wait, cancel, run]), ['gone', 'ready', 'ready', 'ready'])
  }),

  contract(
    'a to-do that was written and not processed is processed later, whatever happened to the parent',
    async (b) => {
      const parent = await b.one()
      const [wait, cancel] = await children(b, parent)
      const worker = await b.worker()
      await b.settle(only(await b.claim(worker)))
      assert.deepEqual(await states(b, [wait, cancel]), ['blocked', 'blocked'])
      assert.equal(await b.store.jobs.changeJob({ id: parent, from: 'done', to: 'gone', keepMs: 0 }), 'changed')
      await promote(b)
      assert.deepEqual(await states(b, [wait, cancel]), ['ready', 'ready'])
    },
  ),

  contract(
    'a blocked job can be paused, resumed, moved, edited and cancelled, and stays blocked in between',
    async (b) => {
      const parent = await b.one()
      const child = await b.one({ after: [{ id: parent }], key: 'c', name: 'child' })
      assert.equal(await b.pause(child, 'blocked'), 'changed')
      assert.equal(await b.resume(child), 'changed')
      assert.equal(await b.state(child), 'blocked')
      const edit = { id: child, from: 'blocked', to: 'blocked', keepMs: Infinity, edit: { priority: 3 } } as const
      assert.equal(await b.store.jobs.changeJob({ ...edit, due: { inMs: 2_000 } }), 'changed')
      await b.insert([b.job({ name: 'child', key: 'c', due: { inMs: 3_000 } })], 'move')
      const row = await b.read(child)
      assert.deepEqual([row.state, row.dueAt], ['blocked', b.clock.now + 3_000])
      assert.equal(await b.store.jobs.changeJob({ id: child, from: 'blocked', to: 'cancelled', keepMs: 0 }), 'changed')
      await endNext(b)
      assert.equal(await b.state(child), 'gone')
    },
  ),

  contract('a paused child is released in place, and continues when it is resumed', async (b) => {
    const parent = await b.one()
    const child = await b.one({ after: [{ id: parent }] })
    await b.pause(child, 'blocked')
    await endNext(b)
    assert.equal(await b.state(child), 'paused')
    await b.resume(child)
    assert.equal(await b.state(child), 'ready')
  }),

  contract('a blocked job that expires is listed', async (b) => {
    const parent = await b.one({ due: { inMs: 60_000 } })
    const child = await b.one({ after: [{ id: parent }], expires: { inMs: 1_000 } })
    b.clock.now += 1_000
    const { expired } = await b.store.jobs.promoteJobs(10)
    assert.deepEqual(
      expired.map(({ id, state }) => [id, state]),
      [[child, 'blocked']],
    )
  }),

  contract('a cancelled child that is retried runs whatever its parents did', async (b) => {
    const parent = await b.one()
    const [, cancel] = await children(b, parent)
    await endNext(b, { to: 'failed' })
    await b.store.jobs.changeJob({ id: cancel, from: 'cancelled', to: 'ready', keepMs: Infinity })
    assert.equal(await b.state(cancel), 'ready')
  }),

  contract('parents are added to a waiting job, also while one of them runs', async (b) => {
    const worker = await b.worker()
    const parent = await b.one()
    const claimed = only(await b.claim(worker))
    const child = await b.one({ name: 'child' })
    assert.equal(await b.store.jobs.changeJob(adding(child, 'ready', [parent])), 'changed')
    assert.deepEqual([await b.state(child), (await b.read(child)).after], ['blocked', [parent]])
    await promote(b)
    await b.settle(claimed)
    await promote(b)
    assert.equal(await b.state(child), 'ready')
  }),

  contract('a child that is enqueued while its parent runs, and before any promotion, is released', async (b) => {
    const worker = await b.worker()
    const parent = await b.one()
    const claimed = only(await b.claim(worker))
    const child = await b.one({ name: 'child', after: [{ id: parent }] })
    await b.settle(claimed, { result: '1' })
    await promote(b)
    assert.equal(await b.state(child), 'ready')
  }),

  contract('parents that would close a cycle are refused with the path, and nothing is written', async (b) => {
    const first = await b.one({ due: { inMs: 60_000 }, name: 'first' })
    const second = await b.one({ after: [{ id: first }], name: 'second' })
    const third = await b.one({ after: [{ id: second }], name: 'third' })
    await assert.rejects(b.store.jobs.changeJob(adding(first, 'scheduled', [third])), (error: Error) => {
      assert.equal((error as { code?: string }).code, 'E_CYCLE')
      assert.match(error.message, new RegExp(`first ${first} → third ${third} → second ${second} → first ${first}`))
      return true
    })
    await assert.rejects(b.store.jobs.changeJob(adding(first, 'scheduled', [first])), { code: 'E_CYCLE' })
    assert.deepEqual([await b.state(first), (await b.read(first)).after], ['scheduled', []])
  }),

  contract('a rescue of the parent leaves its children blocked', async (b) => {
    const worker = await b.worker()
    const parent = await b.one()
    const child = await b.one({ after: [{ id: parent }] })
    const claimed = only(await b.claim(worker))
    const lost = b.settled(claimed, { to: 'ready', streak: 2, attempt: 0 })
    await b.store.leases.rescueJobs(worker, 0, [lost])
    await promote(b)
    assert.deepEqual(await states(b, [parent, child]), ['ready', 'blocked'])
  }),

  contract('the children of one parent are released a bounded number at a time', async (b) => {
    const parent = await b.one()
    const jobs = Array.from({ length: 25 }, () => b.job({ name: 'child', after: [{ id: parent }] }))
    await b.insert(jobs)
    await b.settle(only(await b.claim(await b.worker())))
    const counts: number[] = []
    for (let again = true; again;) {
      const told = await b.store.jobs.promoteJobs(10)
      counts.push(told.promoted)
      again = told.again
    }
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      25,
    )
    assert.ok(
      counts.every((count) => count <= 10),
      String(counts),
    )
    assert.equal((await b.found({ states: ['ready'] })).length, 25)
  }),
]

const adding = (id: string, from: JobRow['state'], parents: readonly string[]) => ({
  id,
  from,
  to: from,
  keepMs: Infinity,
  edit: { after: { parents: parents.map((parent) => ({ id: parent })), onFailure: 'wait' as const, keepMs: Infinity } },
})

/** One child of each policy. */
async function children(b: ContractFixture, parent: string): Promise<[wait: string, cancel: string, run: string]> {
  const child = (onParentFailure: NewJob['onParentFailure']): Promise<string> =>
    b.one({ name: 'child', after: [{ id: parent }], onParentFailure })
  return [await child('wait'), await child('cancel'), await child('run')]
}

/** Ends the first ready job, and processes the to-dos. */
export async function endNext(
  b: ContractFixture,
  change: Partial<SettledJob> = {},
  of?: readonly string[],
): Promise<string> {
  const { jobs } = await b.claim(await b.worker(), { max: 1 })
  const [job] = jobs
  assert.ok(job, 'a job is ready')
  if (of !== undefined) assert.ok(of.includes(job.id))
  assert.deepEqual(await b.settle(job, change), [])
  await promote(b)
  return job.id
}

/** Promotes until there is nothing left to do. */
export async function promote(b: ContractFixture): Promise<void> {
  while ((await b.store.jobs.promoteJobs(100)).again);
}

function states(b: ContractFixture, ids: readonly string[]): Promise<string[]> {
  return Promise.all(ids.map((id) => b.state(id)))
}
