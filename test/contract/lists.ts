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
]
