import assert from 'node:assert/strict'
import { contract, only } from './fixture.js'
import type { ContractCase } from './fixture.js'
import type { ClaimedJob } from '../../src/store/store.js'

/** Claiming. */
export const claimsCases: readonly ContractCase[] = [
  contract('a claim takes due jobs, higher priority first, then the oldest', async (b) => {
    const worker = await b.worker()
    const old = await b.one()
    b.clock.now += 1_000
    const high = await b.one({ priority: 1 })
    const young = await b.one()
    const later = await b.one({ due: { inMs: 60_000 } })
    const claimed = await b.claim(worker)
    assert.deepEqual(
      claimed.jobs.map((job) => job.id),
      [high, old, young],
    )
    assert.equal(await b.state(later), 'scheduled')
    assert.equal(await b.state(old), 'running')
    assert.equal(claimed.now, b.clock.now)
  }),

  contract('low priority does not starve: an hour of waiting outweighs five points', async (b) => {
    const worker = await b.worker()
    const low = await b.one()
    b.clock.now += 3_600_000
    const high = await b.one({ priority: 5 })
    const claimed = await b.claim(worker)
    assert.deepEqual(
      claimed.jobs.map((job) => job.id),
      [low, high],
    )
  }),

  contract(
    'a claim takes only the given names, no more than requested and no more than a queue has room for',
    async (b) => {
      const worker = await b.worker()
      await b.insert([
        b.job(),
        b.job(),
        b.job(),
        b.job({ queue: 'slow' }),
        b.job({ queue: 'slow' }),
        b.job({ name: 'unknown' }),
      ])
      const rooms = new Map([['slow', 1]])
      const first = await b.claim(worker, { max: 3, rooms })
      assert.equal(first.jobs.length, 3)
      const second = await b.claim(worker, { rooms: new Map([['slow', 0]]) })
      assert.ok(second.jobs.every((job) => job.queue !== 'slow'))
      const all = await b.claim(worker, { names: undefined })
      assert.ok(
        all.jobs.some((job) => job.name === 'unknown'),
        'without names it takes any job',
      )
    },
  ),

  contract(
    'large payloads are claimed complete and in order, with all their columns, and small ones after them',
    async (b) => {
      const worker = await b.worker()
      const text = (i: number): string => JSON.stringify({ i, text: `"\\\u2028ø${'x'.repeat(5_000)}` })
      const [bytes, small] = [new Uint8Array(3_000).fill(255), '{"small":true}']
      await b.insert([b.job({ payload: text(0) }), b.job({ payload: text(1), priority: 1, key: 'k' })])
      await b.insert([b.job({ payload: bytes }), b.job({ payload: text(3), options: '{"labels":["l"]}' })])
      // The first claim shows the store that they are large.
      const [first] = (await b.claim(worker, { max: 1 })).jobs
      assert.deepEqual([first?.payload, first?.key], [text(1), 'k'])
      await b.insert([b.job({ payload: small })])
      const { jobs } = await b.claim(worker)
      assert.deepEqual(
        jobs.map(({ payload }) => (typeof payload === 'string' ? payload : [...payload])),
        [text(0), [...bytes], text(3), small],
      )
      assert.deepEqual([jobs[2]?.options, jobs[0]?.attempt, jobs[0]?.key], ['{"labels":["l"]}', 0, null])
      assert.deepEqual((await b.claim(worker)).jobs, [])
      await b.insert([b.job({ payload: small })])
      assert.equal((await b.claim(worker)).jobs[0]?.payload, small)
    },
  ),

  contract('no two claims take the same job', async (b) => {
    const [one, two] = [await b.worker(), await b.worker()]
    await b.insert(Array.from({ length: 50 }, () => b.job()))
    const claims = await Promise.all([b.claim(one, { max: 30 }), b.claim(two, { max: 30 }), b.claim(one, { max: 30 })])
    const ids = claims.flatMap((claimed) => claimed.jobs.map((job) => job.id))
    assert.equal(ids.length, 50)
    assert.equal(new Set(ids).size, 50)
  }),

  contract('a claim by a worker without a row reports that the worker is lost', async (b) => {
    const id = await b.one()
    const claimed = await b.claim('nobody')
    assert.deepEqual([claimed.lost, claimed.jobs.length], [true, 0])
    assert.equal(await b.state(id), 'ready')
  }),

  contract('held jobs are read as ready, and can be cancelled until they begin', async (b) => {
    const worker = await b.worker()
    const [first, second] = [await b.one(), await b.one()]
    const claimed = await b.claim(worker, { starting: 1 })
    assert.deepEqual([await b.state(first), await b.state(second)], ['running', 'ready'])
    assert.equal((await b.claim(worker)).jobs.length, 0, 'a held job is not claimed again')
    assert.equal(
      await b.store.jobs.changeJob({ id: second, from: 'ready', to: 'cancelled', keepMs: Infinity }),
      'taken',
    )
    const confirmed = await b.store.leases.confirmJobs(claimed.jobs)
    assert.deepEqual([...confirmed.mine], [claimed.jobs[0]?.ref])
    const held = claimed.jobs[1] as ClaimedJob
    assert.deepEqual(await b.store.leases.reportJobs([{ ...held, startedAt: 1, progress: null }]), [held.ref])
    assert.deepEqual(await b.settle(held), [held.ref])
    assert.equal(await b.state(second), 'cancelled')
  }),

  contract(
    'a confirmation keeps the jobs of paused queues from starting, not those of a pause that is over',
    async (b) => {
      const worker = await b.worker()
      for (const queue of ['over', 'paused', 'until']) await b.one({ queue })
      const { jobs } = await b.claim(worker, { starting: 0 })
      await b.store.queues.pauseQueue({ queue: 'over', until: { inMs: 1_000 } })
      await b.store.queues.pauseQueue({ queue: 'until', until: { inMs: 1_001 } })
      await b.store.queues.pauseQueue({ queue: 'paused', until: null })
      b.clock.now += 1_000
      const { mine, paused } = await b.store.leases.confirmJobs(jobs)
      const queues = (refs: ReadonlySet<number>): string[] =>
        jobs
          .filter(({ ref }) => refs.has(ref))
          .map(({ queue }) => queue)
          .toSorted()
      assert.deepEqual([queues(mine), queues(paused)], [['over'], ['paused', 'until']])
    },
  ),

  contract('a report makes a held job running and keeps its progress', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    const job = only(await b.claim(worker, { starting: 0 }))
    assert.deepEqual(await b.store.leases.reportJobs([{ ...job, startedAt: 42, progress: '{"done":1}' }]), [])
    const row = await b.read(id)
    assert.deepEqual([row.state, row.startedAt, row.progress], ['running', 42, '{"done":1}'])
    const [leased] = await b.store.leases.readLeases(worker)
    assert.deepEqual([leased?.startedAt, leased?.progress], [42, '{"done":1}'], 'for the rescue')
  }),
]
