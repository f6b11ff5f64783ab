import assert from 'node:assert/strict'
import type { ClaimedJob } from '../../src/store/store.js'
import type { QueueOutage } from '../../src/store/limits.js'
import { contract } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'

const FAILED = { health: { kind: 'failed', after: 3 } } as const
const SUCCEEDED = { health: { kind: 'succeeded' } } as const
const POLL = 1_000

/** Outages: retries that are held, probed and released. */
export const outageCases: readonly ContractCase[] = [
  contract('retries are held after so many failures in a row, and jobs that never ran still start', async (b) => {
    const worker = await b.worker()
    const jobs = await running(b, worker, 4)
    await fail(b, jobs.slice(0, 2))
    assert.deepEqual(
      (await b.claim(worker)).failing?.map(({ queue, name }) => [queue, name]),
      [['default', 'mail']],
    )
    await b.settle(jobs[2] as ClaimedJob, SUCCEEDED)
    assert.equal((await b.claim(worker)).failing, undefined, 'a success in between ends the count')
    await b.insert(Array.from({ length: 2 }, () => b.job()))
    const more = (await b.claim(worker)).jobs
    await fail(b, [...more, jobs[3] as ClaimedJob])
    b.clock.now += 100
    const probed = await promote(b)
    assert.equal(probed, 1, 'one retry of five is the probe')
    assert.deepEqual(await outages(b), [{ name: 'mail', state: 'closed', since: b.clock.now - 100, waiting: 4 }])
    const fresh = await b.one()
    assert.deepEqual(
      new Set((await b.claim(worker)).jobs.map((job) => job.attempt > 0)),
      new Set([true, false]),
      'the probe, and the new job',
    )
    assert.equal(await b.state(fresh), 'running')
  }),

  contract(
    'a closed lane gets one probe per poll, whichever worker asks, and none before a retry is due',
    async (b) => {
      const worker = await b.worker()
      await fail(b, await running(b, worker, 6), 500)
      assert.equal(await promote(b), 0)
      b.clock.now += 500
      const times: number[] = []
      for (let at = 0; at < 3_500; at += 100) {
        const promoted = (await promote(b)) + (await promote(b))
        if (promoted > 0) times.push(at)
        assert.ok(promoted <= 1, `one probe at a time, got ${promoted}`)
        const { jobs } = await b.claim(worker)
        await fail(b, jobs, 60_000)
        b.clock.now += 100
      }
      assert.deepEqual(times, [0, 1_000, 2_000, 3_000])
      assert.equal((await outages(b))[0]?.waiting, 2)
    },
  ),

  contract('the probe is picked among the held retries', async (b) => {
    const worker = await b.worker()
    const jobs = await running(b, worker, 10)
    await fail(b, jobs)
    const picked = new Set<string>()
    for (const pick of [0, 0.35, 0.7, 0.999]) {
      await b.store.jobs.promoteJobs(100, { everyMs: POLL, pick })
      for (const job of (await b.claim(worker)).jobs) {
        picked.add(job.id)
        await fail(b, [job], 60_000)
      }
      b.clock.now += POLL
    }
    assert.equal(picked.size, 4)
    assert.ok(
      picked.has(jobs[0]?.id as string) && picked.has(jobs[9]?.id as string),
      'the first and the last are among them',
    )
  }),

  contract('the first success opens it and the held retries start in growing rounds', async (b) => {
    const worker = await b.worker()
    await fail(b, await running(b, worker, 32))
    const sizes: number[] = []
    for (let round = 0; round < 10; round += 1) {
      await promote(b)
      const { jobs } = await b.claim(worker)
      if (jobs.length === 0) break
      sizes.push(jobs.length)
      for (const job of jobs) await b.settle(job, SUCCEEDED)
    }
    assert.deepEqual(sizes, [1, 2, 4, 8, 16, 1])
    assert.deepEqual(await outages(b), [])
    assert.equal((await b.claim(worker)).failing, undefined)
  }),

  contract('while held retries remain one failure closes it again', async (b) => {
    const worker = await b.worker()
    await fail(b, await running(b, worker, 12))
    await promote(b)
    for (const job of (await b.claim(worker)).jobs) await b.settle(job, SUCCEEDED)
    assert.equal((await outages(b))[0]?.state, 'opening')
    await promote(b)
    const second = (await b.claim(worker)).jobs
    assert.equal(second.length, 2)
    await fail(b, second.slice(0, 1))
    assert.deepEqual(
      (await outages(b)).map(({ state, waiting }) => [state, waiting]),
      [['closed', 9]],
    )
    await b.settle(second[1] as ClaimedJob, {})
    assert.equal(await promote(b), 0, 'the next probe comes with the next poll')
    b.clock.now += POLL
    assert.equal(await promote(b), 1)
  }),

  contract(
    'one lane is closed by itself, and a held retry can be cancelled, paused, edited and run by a person',
    async (b) => {
      const worker = await b.worker()
      await b.insert([b.job({ name: 'other' })])
      const [other] = (await b.claim(worker, { names: ['other'] })).jobs
      const jobs = await running(b, worker, 5)
      await fail(b, jobs)
      await b.settle(other as ClaimedJob, { to: 'retrying', delayMs: 0, retries: 1, error: '{}', ...FAILED })
      assert.equal(await promote(b), 2, 'the probe of the one, and the retry of the other')
      assert.equal((await b.claim(worker, { names: ['other'] })).jobs.length, 1)
      const probe = (await b.claim(worker)).jobs[0]?.id
      const [one, two, three, four] = jobs.map((job) => job.id).filter((id) => id !== probe) as [
        string,
        string,
        string,
        string,
      ]
      const keepMs = Infinity
      assert.equal(await b.store.jobs.changeJob({ id: one, from: 'retrying', to: 'cancelled', keepMs }), 'changed')
      assert.equal(await b.pause(two, 'retrying'), 'changed')
      assert.equal(await b.resume(two), 'changed')
      assert.equal(
        await b.store.jobs.changeJob({ id: three, from: 'retrying', to: 'ready', due: { inMs: 0 }, keepMs }),
        'changed',
      )
      assert.deepEqual(
        [await b.state(one), await b.state(two), await b.state(four)],
        ['cancelled', 'ready', 'retrying'],
      )
      assert.equal((await outages(b))[0]?.waiting, 1)
    },
  ),

  contract('a group counts held, probed and released retries as any others', async (b) => {
    const worker = await b.worker()
    await b.insert(Array.from({ length: 4 }, () => b.job({ group: 'g' })))
    await fail(b, (await b.claim(worker)).jobs)
    await promote(b)
    const counted = async (): Promise<object> => (await b.store.groups.readGroup('g')) ?? {}
    const [probe] = (await b.claim(worker)).jobs
    await b.settle(probe as ClaimedJob, SUCCEEDED)
    await promote(b)
    for (const job of (await b.claim(worker)).jobs) await b.settle(job, SUCCEEDED)
    await promote(b)
    for (const job of (await b.claim(worker)).jobs) await b.settle(job, SUCCEEDED)
    assert.match(JSON.stringify(await counted()), /"state":"done","members":4|"done":4/)
  }),
]

async function running(b: ContractFixture, worker: string, count: number): Promise<readonly ClaimedJob[]> {
  await b.insert(Array.from({ length: count }, () => b.job()))
  return (await b.claim(worker)).jobs
}

async function fail(b: ContractFixture, jobs: readonly ClaimedJob[], delayMs = 0): Promise<void> {
  for (const job of jobs)
    await b.settle(job, { to: 'retrying', delayMs, retries: job.retries + 1, error: '{}', ...FAILED })
}

async function promote(b: ContractFixture): Promise<number> {
  return (await b.store.jobs.promoteJobs(100, { everyMs: POLL, pick: 0 })).promoted
}

async function outages(b: ContractFixture): Promise<readonly QueueOutage[]> {
  return (await b.store.queues.readQueue('default')).outages
}
