import assert from 'node:assert/strict'
import { contract, only } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'

/** Streaks, suspects and their quarantines (`job/rules/quarantine.ts`). */
export const quarantineCases: readonly ContractCase[] = [
  contract(
    'a job with one crash keeps its position, with its streak, and its next outcome clears the streak',
    async (b) => {
      const [id] = await suspects(b, 1, 1)
      const worker = await b.worker()
      const job = only(await b.claim(worker))
      assert.deepEqual([job.id, job.streak], [id, 1])
      await b.settle(job, { to: 'retrying', delayMs: 0, retries: 1 })
      assert.equal((await b.read(job.id)).streak, 0)
    },
  ),

  contract('suspects are claimed one at a time, only on request, and never with other jobs', async (b) => {
    const ids = await suspects(b, 2, 2)
    const worker = await b.worker()
    const normal = await b.one()
    const plain = await b.claim(worker)
    assert.deepEqual([plain.jobs.map((job) => job.id), plain.suspectStreak, plain.isQuarantine], [[normal], 2, false])
    const first = await b.claim(worker, { suspects: 'first' })
    assert.deepEqual([only(first).id, only(first).streak, first.isQuarantine], [ids[0], 2, true])
    assert.equal(first.suspectStreak, 2, 'one suspect is left')
    const leased = await b.store.leases.readLeases(worker)
    assert.deepEqual(
      new Map(leased.map((l) => [l.id, l.quarantined])),
      new Map([
        [normal, 0],
        [ids[0], 1],
      ]),
    )
    const other = await b.one()
    const others = await b.claim(worker, { suspects: 'last' })
    assert.deepEqual([only(others).id, others.isQuarantine], [other, false], 'other work is claimed first')
    const last = await b.claim(worker, { suspects: 'last' })
    assert.deepEqual([only(last).id, last.isQuarantine, last.suspectStreak], [ids[1], true, null])
    assert.equal((await b.claim(worker, { suspects: 'first' })).jobs.length, 0)
  }),

  contract('a claim of suspects first takes other work when none waits', async (b) => {
    const id = await b.one()
    const claimed = await b.claim(await b.worker(), { suspects: 'first' })
    assert.deepEqual([only(claimed).id, claimed.isQuarantine, claimed.suspectStreak], [id, false, null])
  }),

  contract('more than 8 suspects of one streak are claimed in halves, the shortest streak first', async (b) => {
    await suspects(b, 9, 3)
    await suspects(b, 10, 2)
    const worker = await b.worker()
    const sizes: (readonly [streak: number | undefined, jobs: number])[] = []
    for (;;) {
      const { jobs } = await b.claim(worker, { suspects: 'first' })
      if (jobs.length === 0) break
      sizes.push([jobs[0]?.streak, jobs.length])
    }
    const singly = (streak: number, times: number): [number, number][] =>
      Array.from({ length: times }, () => [streak, 1])
    assert.deepEqual(sizes, [[2, 5], ...singly(2, 5), [3, 5], ...singly(3, 4)])
    const leased = await b.store.leases.readLeases(worker)
    assert.equal(leased.filter((job) => job.quarantined === 5).length, 10)
  }),

  contract('a quarantine takes no more of a queue than it has room for', async (b) => {
    await suspects(b, 10, 2)
    const claimed = await b.claim(await b.worker(), { suspects: 'first', rooms: new Map([['default', 3]]) })
    assert.equal(claimed.jobs.length, 3)
  }),

  contract('a quarantine that is over is removed from its lease, and those of other workers are kept', async (b) => {
    await suspects(b, 2, 2)
    const [worker, other] = [await b.worker(), await b.worker()]
    const mine = only(await b.claim(worker, { suspects: 'first' }))
    await b.claim(other, { suspects: 'first' })
    await b.store.leases.endQuarantine(other, mine.fence)
    assert.equal((await b.store.leases.readLeases(worker))[0]?.quarantined, 1, 'another worker cannot end it')
    await b.store.leases.endQuarantine(worker, mine.fence)
    assert.equal((await b.store.leases.readLeases(worker))[0]?.quarantined, 0)
    assert.equal((await b.store.leases.readLeases(other))[0]?.quarantined, 1)
    assert.deepEqual(await b.settle(mine), [], 'the claim is still valid')
  }),

  contract('a job that was only held is reported as not begun', async (b) => {
    await b.insert([b.job(), b.job(), b.job()])
    const worker = await b.worker()
    const { jobs } = await b.claim(worker, { max: 3, starting: 1 })
    const reported = jobs[2]
    assert.ok(reported)
    await b.store.leases.reportJobs([
      { ref: reported.ref, fence: reported.fence, startedAt: b.clock.now, progress: null },
    ])
    const leased = new Map((await b.store.leases.readLeases(worker)).map((job) => [job.ref, job.startedAt !== null]))
    assert.deepEqual(
      jobs.map((job) => leased.get(job.ref)),
      [true, false, true],
    )
  }),

  contract('suspects that wait for a time, or are paused, stay suspects', async (b) => {
    const dead = await b.worker()
    const [paused, waiting] = [await b.one(), await b.one()]
    await b.claim(dead)
    await b.request(paused, 'pause')
    const crashed = (await b.store.leases.readLeases(dead)).map((job) =>
      b.settled(job, { to: job.id === waiting ? 'scheduled' : 'ready', delayMs: 0, attempt: 0, streak: 2 }),
    )
    await b.store.leases.rescueJobs(dead, 0, crashed)
    await b.store.jobs.promoteJobs(10)
    await b.resume(paused)
    assert.equal((await b.claim(await b.worker())).jobs.length, 0)
    assert.equal((await b.claim(await b.worker(), { suspects: 'first' })).isQuarantine, true)
    assert.equal((await b.claim(await b.worker(), { suspects: 'first' })).isQuarantine, true)
  }),

  contract('a retry command on a suspect clears its streak', async (b) => {
    const [id] = await suspects(b, 1, 4)
    await b.store.jobs.changeJob({ id: id as string, from: 'ready', to: 'ready', exit: 'edited', keepMs: Infinity })
    assert.equal(only(await b.claim(await b.worker())).streak, 0)
  }),
]

/** This many jobs, ready again after a crash with this streak; returns their ids. */
async function suspects(b: ContractFixture, count: number, streak: number): Promise<readonly string[]> {
  const dead = await b.worker()
  const jobs = Array.from({ length: count }, () => b.job())
  await b.insert(jobs)
  await b.claim(dead)
  const crashed = (await b.store.leases.readLeases(dead)).map((job) =>
    b.settled(job, { to: 'ready', attempt: 0, streak }),
  )
  assert.deepEqual(await b.store.leases.rescueJobs(dead, 0, crashed), { refused: [], changed: [] })
  return jobs.map((job) => job.id)
}
