import assert from 'node:assert/strict'
import type { ClaimedJob } from '../../src/store/store.js'
import { contract } from './fixture.js'
import type { ContractCase } from './fixture.js'

/** Pruning of finished jobs. */
export const pruningCases: readonly ContractCase[] = [
  contract('pruning deletes jobs whose keep time is over, a bounded number at a time', async (b) => {
    const worker = await b.worker()
    await b.insert(Array.from({ length: 5 }, () => b.job()))
    const claimed = await b.claim(worker)
    for (const [i, job] of claimed.jobs.entries()) await b.settle(job, { keepMs: i === 4 ? Infinity : 1_000 })
    assert.equal(await b.prune(10), 0)
    b.clock.now += 1_000
    assert.equal(await b.prune(3), 3)
    assert.equal(await b.prune(3), 1)
    assert.equal((await b.found({})).length, 1)
  }),

  contract('pruning returns when to run again, and deletes the longest overdue first', async (b) => {
    const worker = await b.worker()
    assert.equal((await b.store.jobs.pruneJobs(10)).nextInMs, null, 'there will be nothing to prune')
    await b.insert(Array.from({ length: 4 }, () => b.job()))
    const [first, second, third, kept] = (await b.claim(worker)).jobs as [
      ClaimedJob,
      ClaimedJob,
      ClaimedJob,
      ClaimedJob,
    ]
    for (const [job, keepMs] of [
      [first, 3_000],
      [second, 1_000],
      [third, 2_000],
      [kept, Infinity],
    ] as const)
      await b.settle(job, { keepMs })
    assert.deepEqual(await b.store.jobs.pruneJobs(10), { pruned: 0, nextInMs: 1_000 })
    b.clock.now += 2_500
    assert.deepEqual(await b.store.jobs.pruneJobs(1), { pruned: 1, nextInMs: 0 })
    assert.equal(await b.state(second.id), 'gone')
    assert.deepEqual(await b.store.jobs.pruneJobs(10), { pruned: 1, nextInMs: 500 })
    assert.equal(await b.state(third.id), 'gone')
    b.clock.now += 500
    assert.deepEqual(await b.store.jobs.pruneJobs(10), { pruned: 1, nextInMs: null })
    assert.equal(await b.state(kept.id), 'done')
  }),

  contract('a large batch is pruned whole, also where jobs that are kept stand between', async (b) => {
    const worker = await b.worker()
    const jobs = Array.from({ length: 300 }, () => b.job())
    await b.insert(jobs)
    const claimed = (await b.claim(worker, { max: 300 })).jobs
    const isKept = (i: number): boolean => i % 7 === 0 || (i > 100 && i < 110)
    await b.store.leases.settleJobs(
      claimed.map((job, i) => b.settled(job, { keepMs: isKept(i) ? Infinity : 1_000 })),
      [],
    )
    b.clock.now += 1_000
    const kept = claimed.filter((_, i) => isKept(i)).map((job) => job.id)
    assert.deepEqual(await b.store.jobs.pruneJobs(1_000), { pruned: 300 - kept.length, nextInMs: null })
    const left = await b.store.jobs.readJobs(jobs.map(({ id }) => id))
    assert.deepEqual(left.flatMap((row) => (row === undefined ? [] : [row.id])).sort(), kept.sort())
  }),

  contract('one step deletes done, failed and cancelled jobs, the longest overdue first', async (b) => {
    const worker = await b.worker()
    await b.insert(Array.from({ length: 7 }, () => b.job()))
    const { jobs } = await b.claim(worker)
    const ends = ['done', 'failed', 'cancelled', 'done', 'failed', 'done', 'done'] as const
    for (const [i, job] of jobs.entries())
      await b.settle(job, { to: ends[i] as (typeof ends)[number], keepMs: 1_000 + i })
    b.clock.now += 1_005
    assert.deepEqual(await b.store.jobs.pruneJobs(4), { pruned: 4, nextInMs: 0 })
    assert.deepEqual(
      (await b.store.jobs.readJobs(jobs.map(({ id }) => id))).map((row) => row?.state ?? 'gone'),
      ['gone', 'gone', 'gone', 'gone', 'failed', 'done', 'done'],
    )
    assert.deepEqual(await b.store.jobs.pruneJobs(4), { pruned: 2, nextInMs: 1 })
  }),

  contract('many failed parents that are pruned at once release or cancel every child', async (b) => {
    const parents = Array.from({ length: 200 }, () => b.job())
    await b.insert(parents)
    const kids = parents.map(({ id }, i) =>
      b.job({ name: 'kid', after: [{ id }], onParentFailure: i % 2 === 0 ? 'wait' : 'run', keepCancelledMs: 60_000 }),
    )
    await b.insert(kids)
    const { jobs } = await b.claim(await b.worker(), { names: ['mail'], max: 200 })
    await b.store.leases.settleJobs(
      jobs.map((job) => b.settled(job, { to: 'failed', keepMs: 1_000 })),
      [],
    )
    while ((await b.store.jobs.promoteJobs(50)).again);
    b.clock.now += 1_000
    assert.equal(await b.prune(1_000), 200)
    while ((await b.store.jobs.promoteJobs(50)).again);
    const rows = await b.store.jobs.readJobs(kids.map(({ id }) => id))
    assert.deepEqual(
      rows.map((row) => row?.state),
      kids.map((_, i) => (i % 2 === 0 ? 'cancelled' : 'ready')),
    )
  }),
]
