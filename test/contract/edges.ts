import assert from 'node:assert/strict'
import type { NewJob } from '../../src/store/store.js'
import { contract, only, withUniqueSlot } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'
import { due, fire, fired, read, tick } from './schedule-fixture.js'

/** Cases at the edges of verbs: which keep time counts, which order among equals, what a filter leaves out. */
export const edgeCases: readonly ContractCase[] = [
  contract('a tick that cancels the open job keeps it as long as that job says, or else the schedule', async (b) => {
    for (const [keepCancelledMsOf, keptMs] of [
      [undefined, 1_000],
      [() => undefined, 1_000],
      [() => 5_000, 5_000],
    ] as const) {
      const { row, at } = await due(b)
      const [first] = await fired(b, fire(row, [tick(b, at, { due: { inMs: 60_000 } })], { overlap: 'cancel' }))
      const how = {
        overlap: 'cancel',
        keepCancelledMs: 1_000,
        ...(keepCancelledMsOf && { keepCancelledMsOf }),
      } as const
      await fired(b, fire(await read(b, 'nightly'), [tick(b, at + 1, { due: { inMs: 60_000 } })], how as never))
      const id = first?.job ?? ''
      assert.deepEqual([await b.state(id), (await b.read(id)).reason], ['cancelled', REASON])
      b.clock.now += keptMs - 1
      await b.prune(10)
      assert.equal(await b.state(id), 'cancelled')
      b.clock.now += 10_000
      while ((await b.prune(10)) > 0);
      assert.equal(await b.state(id), 'gone')
      await b.store.schedules.dropSchedule('nightly')
    }
  }),

  contract('suspects of several lanes are claimed in the order in which they were enqueued', async (b) => {
    const order = ['b', 'a', 'c', 'a', 'b', 'c', 'a']
    const dead = await b.worker()
    const jobs = order.map((name) => b.job({ name, queue: `queue of ${name}` }))
    await b.insert(jobs)
    const names = ['a', 'b', 'c']
    await b.claim(dead, { names })
    const leased = await b.store.leases.readLeases(dead)
    const crashed = leased.map((job) => b.settled(job, { to: 'ready', attempt: 0, streak: 2 }))
    await b.store.leases.rescueJobs(dead, 0, crashed)
    const worker = await b.worker()
    const claimed: string[] = []
    for (const _ of order) {
      const job = only(await b.claim(worker, { names, suspects: 'first', max: 1, starting: 1 }))
      claimed.push(job.id)
      await b.settle(job)
    }
    assert.deepEqual(
      claimed,
      jobs.map(({ id }) => id),
    )
  }),

  contract('concurrent cancels keep the reason and the keep time of each', async (b) => {
    const ids = (await b.insert(Array.from({ length: 12 }, () => b.job()))).map(({ id }) => id)
    await Promise.all(
      ids.map((id, n) => {
        const reason = n % 3 === 0 ? {} : { reason: `because ${n}` }
        const keepMs = n % 2 === 0 ? 1_000 : Infinity
        return b.store.jobs.changeJob({ id, from: 'ready', to: 'cancelled', keepMs, ...reason })
      }),
    )
    const reasons = await Promise.all(ids.map(async (id) => (await b.read(id)).reason))
    assert.deepEqual(
      reasons,
      ids.map((_, n) => (n % 3 === 0 ? null : `because ${n}`)),
    )
    b.clock.now += 2_000
    while ((await b.prune(5)) > 0);
    const states = await Promise.all(ids.map((id) => b.state(id)))
    assert.deepEqual(
      states,
      ids.map((_, n) => (n % 2 === 0 ? 'gone' : 'cancelled')),
    )
  }),

  contract('of a run of jobs with one lost claim, in any place, that one is refused and stays as it was', async (b) => {
    for (const place of [0, 2, 5]) {
      await b.insert(Array.from({ length: 6 }, () => b.job()))
      const { jobs } = await b.claim(await b.worker())
      const lost = jobs[place]
      assert.ok(lost)
      await b.settle(lost, { to: 'failed', error: '{}', keepMs: 60_000, worker: 'other', startedAt: 1 })
      const { refused } = await b.store.leases.settleJobs(
        jobs.map((job) => b.settled(job)),
        [],
      )
      assert.deepEqual(refused, [lost.ref])
      assert.deepEqual(
        await Promise.all(jobs.map(({ id }) => b.state(id))),
        jobs.map((_, n) => (n === place ? 'failed' : 'done')),
      )
    }
  }),

  contract('a search combines group, label, key, queue and times, and gives what matches all of them', async (b) => {
    const labelled = (label: string): Partial<NewJob> => ({ options: JSON.stringify({ labels: [label] }) })
    const early = await b.one({ group: 'g', ...labelled('red'), queue: 'q' })
    b.clock.now += 1_000
    const middle = await b.one({ group: 'g', ...labelled('red'), key: 'k' })
    const other = await b.one({ group: 'other', ...labelled('red') })
    b.clock.now += 1_000
    const late = await b.one({ group: 'g', ...labelled('blue') })
    const ids = async (query: object): Promise<string[]> =>
      (await b.found({ order: 'oldest', ...query })).map(({ id }) => id)
    assert.deepEqual(await ids({ group: 'g' }), [early, middle, late])
    assert.deepEqual(await ids({ label: 'red' }), [early, middle, other])
    assert.deepEqual(await ids({ group: 'g', label: 'red' }), [early, middle])
    assert.deepEqual(await ids({ group: 'other', label: 'red' }), [other])
    assert.deepEqual(await ids({ group: 'g', label: 'red', queues: ['q'] }), [early])
    assert.deepEqual(await ids({ group: 'g', key: 'k', names: ['mail'] }), [middle])
    assert.deepEqual(await ids({ group: 'other', key: 'k', names: ['mail'] }), [])
    const at = b.clock.now
    assert.deepEqual(await ids({ group: 'g', createdAfter: at - 2_000 }), [middle, late])
    assert.deepEqual(await ids({ group: 'g', createdBefore: at }), [early, middle])
    assert.deepEqual(await ids({ label: 'red', createdAfter: at - 2_000, createdBefore: at }), [middle, other])
  }),

  contract('a sequence under a unique value that a plain job holds is refused with that job', async (b) => {
    const unique = withUniqueSlot({ forMs: 60_000 })
    const plain = await b.one(unique)
    await assert.rejects(insertSequence(b, unique), { code: 'E_DUPLICATE_JOB', existingId: plain })
    const keyed = await b.one({ key: 'k' })
    await assert.rejects(insertSequence(b, { key: 'k' }), { code: 'E_DUPLICATE_KEY', existingId: keyed })
    const first = await insertSequence(b, { key: 'free' })
    assert.deepEqual([first.isNew, await insertSequence(b, { key: 'free' })], [true, { id: first.id, isNew: false }])
  }),

  contract('a child in one bulk with a parent that has ended under its unique value runs at once', async (b) => {
    const unique = withUniqueSlot({ forMs: 60_000 })
    const ended = await b.one({ name: 'once', ...unique })
    await b.settle(only(await b.claim(await b.worker(), { names: ['once'] })))
    const again = b.job({ name: 'once', ...unique })
    const child = b.job({ after: [{ id: again.id }] })
    const inserted = await b.insert([again, child])
    assert.deepEqual(inserted, [
      { id: ended, isNew: false },
      { id: child.id, isNew: true },
    ])
    while ((await b.store.jobs.promoteJobs(10)).again);
    assert.deepEqual([await b.state(child.id), (await b.read(child.id)).after], ['ready', [ended]])
  }),
]

const REASON = 'the next tick of schedule "nightly" came'

function insertSequence(b: ContractFixture, change: Partial<NewJob>): Promise<{ id: string; isNew: boolean }> {
  const given = JSON.parse(change.options ?? '{}') as object
  const job = b.job({ ...change, options: JSON.stringify({ ...given, sequence: { total: 1 } }) })
  return b.store.sequences.insertSequence({
    job,
    options: { onDuplicate: 'return', keepCancelledMs: Infinity },
    last: { id: job.id, total: 1, from: 0, payloads: ['1'] },
    start: true,
    empty: { result: '{}', keepMs: Infinity },
  })
}
