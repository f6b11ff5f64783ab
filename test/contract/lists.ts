import assert from 'node:assert/strict'
import { contract } from './fixture.js'
import type { ContractCase } from './fixture.js'

/** Pages of workers, groups and sequences. */
export const listCases: readonly ContractCase[] = [
  contract('workers are listed by page with what they said of themselves last, and what they run', async (b) => {
    for (const id of ['w1', 'w2', 'w3'])
      await b.store.leases.addWorker({ id, host: 'here', pid: 7, leaseMs: 15_000, about: { slots: 2, version: '1' } })
    await b.insert([b.job(), b.job(), b.job({ name: 'other' }), b.job({ queue: 'mail' })])
    const { jobs } = await b.claim('w2', { names: undefined, max: 4, starting: 3 })
    await b.store.leases.reportWorker('w2', { slots: 5, names: ['mail'], version: '2' })
    const first = await b.store.observing.listWorkers({ limit: 2, after: '' })
    const second = await b.store.observing.listWorkers({ limit: 2, after: 'w2' })
    assert.deepEqual(
      [...first.rows, ...second.rows].map(({ id }) => id),
      ['w1', 'w2', 'w3'],
    )
    assert.deepEqual([first.isMore, second.isMore], [true, false])
    const [one, two] = first.rows
    assert.deepEqual(one?.about, { slots: 2, version: '1' })
    assert.deepEqual(two?.about, { slots: 5, names: ['mail'], version: '2' })
    assert.deepEqual([one?.host, one?.pid, one?.leaseMs, one?.startedAt], ['here', 7, 15_000, b.clock.now])
    const started = jobs.slice(0, 3)
    const running = two?.running ?? []
    assert.equal(
      running.reduce((sum, { count }) => sum + count, 0),
      3,
      'the fourth is held',
    )
    for (const { job, queue, count, since } of running) {
      assert.equal(count, started.filter((each) => each.name === job && each.queue === queue).length)
      assert.equal(since, b.clock.now)
    }
    assert.deepEqual(one?.running, [])
  }),

  contract('a beat says when it was, by the clock of the database', async (b) => {
    const id = await b.worker()
    const before = Date.now()
    await b.store.leases.beat(id)
    const { rows } = await b.store.observing.listWorkers({ limit: 9, after: '' })
    const [worker] = rows
    assert.ok(Math.abs((worker?.beatAt ?? 0) - before) < 60_000, `beat at ${worker?.beatAt}`)
  }),

  contract(
    'a worker that was declared dead is listed for ten minutes, where it is asked for, and a stopped one is not',
    async (b) => {
      const about = { slots: 2, version: '1' }
      for (const id of ['w1', 'w2', 'w3'])
        await b.store.leases.addWorker({ id, host: 'here', pid: 7, leaseMs: 15_000, about })
      await b.store.leases.rescueJobs('w2', 0, [])
      await b.store.leases.dropWorker('w3')
      const died = b.clock.now
      const list = async (limit: number, after: string): Promise<unknown> => {
        const { rows, isMore } = await b.store.observing.listWorkers({ limit, after, withDead: true })
        return [rows.map(({ id, diedAt, about: said }) => [id, diedAt, said]), isMore]
      }
      assert.deepEqual(await list(9, ''), [
        [
          ['w1', null, about],
          ['w2', died, about],
        ],
        false,
      ])
      assert.deepEqual(await list(1, ''), [[['w1', null, about]], true])
      assert.deepEqual(await list(1, 'w1'), [[['w2', died, about]], false])
      const registered = await b.store.observing.listWorkers({ limit: 9, after: '' })
      assert.deepEqual(
        registered.rows.map(({ id }) => id),
        ['w1'],
      )
      b.clock.now += 600_001
      assert.deepEqual(await list(9, ''), [[['w1', null, about]], false])
    },
  ),

  contract('groups are listed by page in the order of their names, with their counts', async (b) => {
    const members = ['b', 'a', 'c', 'a'].map((group) => b.job({ group }))
    await b.insert(members)
    await b.store.groups.sealGroup({ group: 'b', whenDone: null })
    const first = await b.store.observing.listGroups({ limit: 2, after: '' })
    const second = await b.store.observing.listGroups({ limit: 2, after: 'b' })
    const shown = [...first.rows, ...second.rows].map(({ id, sealedAt, counts }) => [id, sealedAt !== null, counts])
    const ready = (number: number): object[] => [{ queue: 'default', state: 'ready', members: number }]
    assert.deepEqual(shown, [
      ['a', false, ready(2)],
      ['b', true, ready(1)],
      ['c', false, ready(1)],
    ])
    assert.deepEqual([first.isMore, second.isMore], [true, false])
  }),

  contract(
    'queues are listed with the counts of their unfinished jobs, their pauses and the oldest due time',
    async (b) => {
      const worker = await b.worker()
      const turn = { limit: 7, rate: null, weight: null }
      await b.insert([b.job({ queue: 'mail' }), b.job({ queue: 'mail', name: 'other' })])
      await b.claim(worker, { names: undefined, max: 1, starting: 1 })
      const from = b.clock.now
      b.clock.now += 1_000
      await b.insert([
        b.job({ queue: 'mail', turn }),
        b.job({ queue: 'mail', due: { inMs: 60_000 } }),
        b.job({ queue: 'sms', due: { inMs: 60_000 } }),
        b.job({ queue: 'sms' }),
      ])
      await b.store.queues.pauseQueue({ queue: 'sms', until: null })
      const listed = await b.store.observing.listQueues()
      const none = { ready: 0, running: 0, scheduled: 0, retrying: 0, blocked: 0, paused: 0, parked: 0, failed: 0 }
      assert.deepEqual(
        listed.map(({ name, counts, isExact, oldestDueAt, pause }) => [name, counts, isExact, oldestDueAt, pause]),
        [
          ['mail', { ...none, ready: 2, running: 1, scheduled: 1 }, true, from, undefined],
          ['sms', { ...none, ready: 1, scheduled: 1 }, true, b.clock.now, { pausedAt: b.clock.now, until: null }],
        ],
      )
    },
  ),
]
