import assert from 'node:assert/strict'
import { contract, only } from './fixture.js'
import type { ContractCase } from './fixture.js'
import type { ClaimedJob } from '../../src/store/store.js'

/** Workers, their heartbeats, and the jobs of dead workers. */
export const rescueCases: readonly ContractCase[] = [
  contract('heartbeats count up; the heartbeat of a worker without a row reports that', async (b) => {
    const worker = await b.worker()
    assert.equal(await b.store.leases.beat(worker), true)
    assert.deepEqual(await b.store.leases.readWorkers(), [{ id: worker, beat: 1 }])
    await b.store.leases.dropWorker(worker)
    assert.equal(await b.store.leases.beat(worker), false)
  }),

  contract(
    'a rescue frees the dead worker’s jobs, with their streak, and only if its heartbeat did not change',
    async (b) => {
      const worker = await b.worker()
      const id = await b.one()
      const job = only(await b.claim(worker))
      const leased = await b.store.leases.readLeases(worker)
      assert.deepEqual(
        leased.map((l) => [l.id, l.quarantined, l.fence]),
        [[id, 0, job.fence]],
      )
      const crashed = leased.map((l) => b.settled(l, { to: 'ready', attempt: 0, streak: 2 }))
      await b.store.leases.beat(worker)
      assert.equal(await b.store.leases.rescueJobs(worker, 0, crashed), null, 'its heartbeat changed')
      assert.equal(await b.state(id), 'running')
      assert.deepEqual(await b.store.leases.rescueJobs(worker, 1, crashed), { refused: [], changed: [] })
      assert.equal(await b.state(id), 'ready')
      assert.equal((await b.read(id)).streak, 2)
      assert.deepEqual(await b.store.leases.readWorkers(), [])
      assert.deepEqual(await b.settle(job), [job.ref], 'the worker that was declared dead is refused')
    },
  ),

  contract('a rescue that is too late after its observation writes nothing', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    await b.claim(worker)
    const crashed = (await b.store.leases.readLeases(worker)).map((l) => b.settled(l, { to: 'ready', attempt: 0 }))
    assert.equal(await b.store.leases.rescueJobs(worker, 0, crashed, -1), null)
    assert.equal(await b.state(id), 'running')
    assert.deepEqual(await b.store.leases.readWorkers(), [{ id: worker, beat: 0 }])
    assert.deepEqual(await b.store.leases.rescueJobs(worker, 0, crashed, 10_000), { refused: [], changed: [] })
    assert.equal(await b.state(id), 'ready')
  }),

  contract('a worker is listed with its process, where that can be identified', async (b) => {
    await b.store.leases.addWorker({ id: 'known', host: 'here', pid: 4_194_304, identity: 'machine.17' })
    await b.store.leases.addWorker({ id: 'unknown', host: 'here', pid: 1, identity: null })
    assert.deepEqual(
      [...(await b.store.leases.readWorkers())].sort((a, z) => (a.id < z.id ? -1 : 1)),
      [
        { id: 'known', beat: 0, process: { pid: 4_194_304, identity: 'machine.17' } },
        { id: 'unknown', beat: 0 },
      ],
    )
  }),

  contract('a worker is listed with its lease, where it gave one', async (b) => {
    await b.store.leases.addWorker({ id: 'known', host: 'here', pid: 1, leaseMs: 30_000 })
    assert.deepEqual(await b.store.leases.readWorkers(), [{ id: 'known', beat: 0, leaseMs: 30_000 }])
  }),

  contract('claims whose reply was lost are voided: their jobs are returned, not those of other claims', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    const { fence } = only(await b.claim(worker))
    const other = await b.one()
    const kept = only(await b.claim(worker))
    const nothing = b.ids.fence()
    const voided = await b.store.leases.voidClaims(worker, [fence, nothing])
    assert.deepEqual(
      voided.map((job) => [job.id, job.fence]),
      [[id, fence]],
    )
    await b.settle(voided[0] as ClaimedJob, { to: 'ready', attempt: 0 })
    assert.equal(only(await b.claim(worker)).id, id)
    assert.deepEqual(await b.settle(kept), [], 'the jobs of another claim still belong to it')
    assert.equal(await b.state(other), 'done')
    assert.equal(await b.store.leases.beat(worker), true)
  }),

  contract('a rescue never overwrites a job that ended meanwhile', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    const job = only(await b.claim(worker))
    const crashed = (await b.store.leases.readLeases(worker)).map((l) =>
      b.settled(l, { to: 'ready', attempt: 0, streak: 2 }),
    )
    await b.settle(job, { result: '"mine"' })
    assert.deepEqual((await b.store.leases.rescueJobs(worker, 0, crashed))?.refused, [job.ref])
    const row = await b.read(id)
    assert.deepEqual([row.state, row.result], ['done', '"mine"'])
  }),

  contract('leases of a worker without a row are listed, and freed at once', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    await b.claim(worker)
    await b.store.leases.dropWorker(worker)
    assert.deepEqual(await b.store.leases.readWorkers(), [{ id: worker, beat: null }])
    const crashed = (await b.store.leases.readLeases(worker)).map((l) =>
      b.settled(l, { to: 'ready', attempt: 0, streak: 2 }),
    )
    assert.deepEqual((await b.store.leases.rescueJobs(worker, null, crashed))?.refused, [])
    assert.equal(await b.state(id), 'ready')
    assert.deepEqual(await b.store.leases.readWorkers(), [])
  }),

  contract('a rescue leaves jobs that were claimed after its observation, and the next one frees them', async (b) => {
    const worker = await b.worker()
    await b.one()
    await b.claim(worker)
    const seen = (await b.store.leases.readLeases(worker)).map((l) =>
      b.settled(l, { to: 'ready', attempt: 0, streak: 2 }),
    )
    const late = await b.one()
    await b.claim(worker)
    assert.deepEqual((await b.store.leases.rescueJobs(worker, 0, seen))?.refused, [])
    assert.deepEqual(await b.store.leases.readWorkers(), [{ id: worker, beat: null }])
    const rest = (await b.store.leases.readLeases(worker)).map((l) =>
      b.settled(l, { to: 'ready', attempt: 0, streak: 2 }),
    )
    assert.deepEqual((await b.store.leases.rescueJobs(worker, null, rest))?.refused, [])
    assert.equal(await b.state(late), 'ready')
    assert.deepEqual(await b.store.leases.readWorkers(), [])
  }),

  contract('closed leases hold no jobs', async (b) => {
    const worker = await b.worker()
    await b.one()
    const job = only(await b.claim(worker))
    await b.store.leases.settleJobs([b.settled(job)], [job.fence])
    await b.store.leases.dropWorker(worker)
    assert.deepEqual(await b.store.leases.readWorkers(), [])
  }),

  contract('a child of a lost run is not written', async (b) => {
    const worker = await b.worker()
    await b.one()
    const job = only(await b.claim(worker))
    const under = { onDuplicate: 'return', keepCancelledMs: 0, claim: job } as const
    await b.store.jobs.insertJobs([b.job({ name: 'child' })], under)
    await b.settle(job)
    await assert.rejects(b.store.jobs.insertJobs([b.job({ name: 'child' })], under), { code: 'E_LEASE_LOST' })
    assert.equal((await b.found({ names: ['child'] })).length, 1)
  }),

  contract('find filters, pages and orders', async (b) => {
    const worker = await b.worker()
    const ids: string[] = []
    for (let i = 0; i < 35; i += 1)
      ids.push(
        await b.one({ queue: i % 2 === 0 ? 'even' : 'odd', options: i % 5 === 0 ? '{"labels":["five","x"]}' : null }),
      )
    const claimed = await b.claim(worker, { max: 3 })
    await b.settle(claimed.jobs[0] as ClaimedJob)
    assert.deepEqual(
      (await b.found({})).map((row) => row.id),
      [...ids].reverse(),
    )
    assert.deepEqual(
      (await b.found({ order: 'oldest', limit: 4 })).map((row) => row.id),
      ids,
    )
    assert.equal((await b.found({ queues: ['odd'] })).length, 17)
    assert.equal((await b.found({ label: 'five' })).length, 7)
    assert.equal((await b.found({ states: ['running'] })).length, 2)
    assert.equal((await b.found({ states: ['done'] })).length, 1)
    assert.equal((await b.found({ states: ['done', 'running'] })).length, 3)
    assert.equal((await b.found({ names: ['nobody'] })).length, 0)
  }),

  contract('hints describe what a commit changed', async (b) => {
    const hints: unknown[] = []
    const stop = b.store.changes.onHint((hint) => hints.push(hint))
    await b.one()
    await b.one({ due: { inMs: 700 } })
    assert.deepEqual(hints, [
      { ready: true, dueInMs: null, settled: false, requested: false },
      { ready: false, dueInMs: 700, settled: false, requested: false },
    ])
    stop()
    await b.one()
    assert.equal(hints.length, 2)
  }),

  contract('the end of a job is a hint, also of one that is kept for no time', async (b) => {
    const worker = await b.worker()
    for (const keepMs of [60_000, 0]) {
      await b.one()
      const claimed = only(await b.claim(worker))
      let isSettled = false
      const stop = b.store.changes.onHint((hint) => (isSettled ||= hint.settled))
      await b.settle(claimed, { keepMs })
      stop()
      assert.ok(isSettled, `kept for ${keepMs} ms`)
    }
  }),
]
