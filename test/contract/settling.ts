import assert from 'node:assert/strict'
import { contract, only } from './fixture.js'
import type { ContractCase } from './fixture.js'
import type { ClaimedJob } from '../../src/store/store.js'

/** Settling. */
export const settlingCases: readonly ContractCase[] = [
  contract('a settlement is written to history with all that was decided', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    const job = only(await b.claim(worker))
    b.clock.now += 50
    assert.deepEqual(
      await b.settle(job, { to: 'failed', error: '{"name":"E"}', reason: 'why', log: '[1]', worker: 'me' }),
      [],
    )
    const row = await b.read(id)
    assert.deepEqual(
      [row.state, row.settledAt, row.error, row.reason, row.log, row.worker, row.attempt],
      ['failed', b.clock.now, '{"name":"E"}', 'why', '[1]', 'me', 1],
    )
  }),

  contract('a retry waits for its time and then is claimed with its attempts', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    await b.settle(only(await b.claim(worker)), { to: 'retrying', delayMs: 1_000, attempt: 1, retries: 1 })
    assert.equal(await b.state(id), 'retrying')
    assert.equal((await b.store.jobs.promoteJobs(10)).nextInMs, 1_000)
    assert.equal((await b.claim(worker)).jobs.length, 0)
    b.clock.now += 1_000
    assert.equal((await b.store.jobs.promoteJobs(10)).promoted, 1)
    const again = only(await b.claim(worker))
    assert.deepEqual([again.attempt, again.retries], [1, 1])
  }),

  contract('jobs settled in one batch are each recorded by themselves', async (b) => {
    const rows = Array.from({ length: 40 }, (_, i) => b.job({ due: { inMs: -i }, key: i === 3 ? 'k' : null }))
    await b.insert(rows)
    const worker = await b.worker()
    const { jobs } = await b.claim(worker, { starting: 10 })
    assert.equal(jobs.length, 40)
    b.clock.now += 5
    const settled = jobs.map((job, i) =>
      b.settled(job, {
        startedAt: b.clock.now - (i > 20 ? 1 : 2),
        worker: 'me',
        ...(i === 7 ? { result: '"seven"' } : {}),
        ...(i === 30 ? { to: 'failed', error: '{"name":"E"}' } : {}),
      }),
    )
    assert.deepEqual((await b.store.leases.settleJobs(settled, [])).refused, [])
    for (const [i, job] of jobs.entries()) {
      const row = await b.read(job.id)
      assert.deepEqual(
        [row.state, row.dueAt, row.startedAt, row.settledAt, row.attempt, row.result, row.worker],
        [
          i === 30 ? 'failed' : 'done',
          job.dueAt,
          b.clock.now - (i > 20 ? 1 : 2),
          b.clock.now,
          1,
          i === 7 ? '"seven"' : null,
          'me',
        ],
      )
    }
    const [again] = await b.insert([b.job({ key: 'k' })])
    assert.equal(again?.isNew, true, 'the key is free')
  }),

  contract('one lost fence in a batch is refused alone', async (b) => {
    await b.insert(Array.from({ length: 20 }, () => b.job()))
    const { jobs } = await b.claim(await b.worker(), { starting: 0 })
    const settled = jobs.map((job, i) => b.settled(i === 9 ? { ...job, fence: job.fence + 1 } : job))
    assert.deepEqual((await b.store.leases.settleJobs(settled, [])).refused, [jobs[9]?.ref])
    const states = await Promise.all(jobs.map((job) => b.state(job.id)))
    assert.deepEqual(
      states,
      jobs.map((_, i) => (i === 9 ? 'ready' : 'done')),
    )
  }),

  contract('a job settled under its old and its new fence at once is settled by the new one', async (b) => {
    await b.insert(Array.from({ length: 6 }, () => b.job()))
    const worker = await b.worker()
    const { jobs } = await b.claim(worker)
    const [again] = jobs
    assert.ok(again)
    await b.settle(again, { to: 'ready', attempt: 0 })
    const renewed = only(await b.claim(worker))
    const settled = [...jobs.map((job) => b.settled(job, { result: '"old"' })), b.settled(renewed, { result: '"new"' })]
    assert.deepEqual((await b.store.leases.settleJobs(settled, [])).refused, [again.ref])
    assert.equal((await b.read(again.id)).result, '"new"')
    for (const job of jobs) assert.equal(await b.state(job.id), 'done')
  }),

  contract('a settlement under a lost fence writes nothing and is reported', async (b) => {
    const worker = await b.worker()
    const [first, second] = [await b.one(), await b.one()]
    const claimed = await b.claim(worker)
    const [a, c] = claimed.jobs as [ClaimedJob, ClaimedJob]
    const stale = { ...a, fence: a.fence + 1 }
    const { refused } = await b.store.leases.settleJobs([b.settled(stale), b.settled(c)], [])
    assert.deepEqual(refused, [a.ref])
    assert.deepEqual([await b.state(first), await b.state(second)], ['running', 'done'])
    assert.deepEqual(await b.settle(stale, { to: 'retrying', delayMs: 5 }), [a.ref])
    assert.equal(await b.state(first), 'running')
  }),

  contract('settling twice does nothing the second time', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    const job = only(await b.claim(worker))
    await b.settle(job, { result: '1' })
    assert.deepEqual(await b.settle(job, { to: 'failed', result: '2' }), [job.ref])
    const row = await b.read(id)
    assert.deepEqual([row.state, row.result], ['done', '1'])
  }),

  contract('a job that is given back keeps its position in the queue', async (b) => {
    const worker = await b.worker()
    const first = await b.one()
    b.clock.now += 10
    await b.one()
    const claimed = await b.claim(worker, { max: 1 })
    b.clock.now += 10
    await b.settle(claimed.jobs[0] as ClaimedJob, { to: 'ready', attempt: 0 })
    assert.equal((await b.claim(worker)).jobs[0]?.id, first)
  }),

  contract('a job that has begun no longer expires when it is given back, and a held one does', async (b) => {
    const worker = await b.worker()
    const ids = [await b.one({ expires: { inMs: 1_000 } }), await b.one({ expires: { inMs: 1_000 } })]
    const [begun, held] = (await b.claim(worker)).jobs as [ClaimedJob, ClaimedJob]
    b.clock.now += 2_000
    await b.settle(begun, { to: 'ready', attempt: 0, hasBegun: true })
    await b.settle(held, { to: 'ready', attempt: 0, hasBegun: false })
    const { expired } = await b.store.jobs.promoteJobs(10)
    assert.deepEqual(
      expired.map(({ id }) => id),
      [ids[1]],
    )
  }),

  contract('without a keep time the job is deleted when it ends', async (b) => {
    const worker = await b.worker()
    const id = await b.one({ key: 'k' })
    await b.settle(only(await b.claim(worker)), { keepMs: 0 })
    assert.equal(await b.state(id), 'gone')
    assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.isNew, true)
  }),
]
