import assert from 'node:assert/strict'
import type { ClaimedJob, SettledJob } from '../../src/store/store.js'
import { contract, only } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'

/** `schedule` (move) under a key whose job a worker has claimed: a successor is written, and blocked until that job ends. */
export const successorCases: readonly ContractCase[] = [
  contract('move under the key of a running job writes a successor that is blocked until that job ends', async (b) => {
    const running = await start(b)
    const next = await move(b, { payload: '2' })
    assert.deepEqual([next.isNew, await b.state(running.id), await b.state(next.id)], [true, 'running', 'blocked'])
    assert.deepEqual((await b.read(next.id)).after, [running.id])
    assert.deepEqual(await claimed(b), [], 'it is due, but not before the other has ended')
    await end(b, running)
    assert.deepEqual(await claimed(b), [next.id])
    assert.equal((await b.read(next.id)).payload, '2')
  }),

  contract('a successor that is due after the end of the job before it waits for its time', async (b) => {
    const running = await start(b)
    const next = await move(b, { due: { inMs: 60_000 } })
    b.clock.now += 30_000
    await end(b, running)
    assert.deepEqual([await b.state(next.id), await claimed(b)], ['scheduled', []])
    b.clock.now += 30_000
    await b.store.jobs.promoteJobs(10)
    assert.deepEqual(await claimed(b), [next.id])
  }),

  contract('a job that a worker holds and has not begun gets a successor too', async (b) => {
    await b.one({ key: 'k' })
    const held = only(await b.claim(await b.worker(), { starting: 0 }))
    const next = await move(b)
    await b.settle(held, { to: 'ready', attempt: 0 })
    assert.deepEqual(await claimed(b), [held.id], 'given back, it is the first to be claimed')
    assert.equal(await b.state(next.id), 'blocked')
  }),

  contract('a key names the successor: it is read, moved, returned, rejected and waited for', async (b) => {
    const running = await start(b)
    const next = await move(b, { due: { inMs: 5_000 } })
    assert.equal((await b.store.jobs.readKeyed('mail', 'k'))?.id, next.id)
    assert.deepEqual(await move(b, { due: { inMs: 9_000 }, payload: '3' }), { id: next.id, isNew: false })
    const row = await b.read(next.id)
    assert.deepEqual(
      [row.state, row.dueAt, row.payload, row.after],
      ['blocked', b.clock.now + 9_000, '3', [running.id]],
    )
    assert.deepEqual(await b.insert([b.job({ key: 'k' })]), [{ id: next.id, isNew: false }])
    await assert.rejects(b.insert([b.job({ key: 'k' })], 'reject'), { code: 'E_DUPLICATE_KEY', existingId: next.id })
    const child = await b.one({ after: [{ name: 'mail', key: 'k' }] })
    assert.deepEqual((await b.read(child)).after, [next.id])
    assert.equal((await b.found({ states: ['running', 'blocked'] })).length, 3)
  }),

  contract('without a successor the key of a running job names that job', async (b) => {
    const running = await start(b)
    assert.deepEqual(await b.insert([b.job({ key: 'k' })]), [{ id: running.id, isNew: false }])
    await assert.rejects(b.insert([b.job({ key: 'k' })], 'replace'), {
      code: 'E_DUPLICATE_KEY',
      existingId: running.id,
    })
  }),

  contract('replace replaces the successor, and the new one waits instead', async (b) => {
    const running = await start(b)
    const first = await move(b)
    const [second] = await b.insert([b.job({ key: 'k', payload: '9' })], 'replace')
    assert.equal(second?.isNew, true)
    assert.deepEqual([await b.state(first.id), await b.state(second?.id ?? '')], ['cancelled', 'blocked'])
    assert.deepEqual(await claimed(b), [])
    await end(b, running)
    assert.deepEqual(await claimed(b), [second?.id])
  }),

  contract(
    'when a successor is cancelled or deleted the key names the running job again, and no other job runs',
    async (b) => {
      const running = await start(b)
      for (const to of ['cancelled', 'gone'] as const) {
        const next = await move(b)
        assert.equal(next.isNew, true)
        assert.equal(await b.store.jobs.changeJob({ id: next.id, from: 'blocked', to, keepMs: Infinity }), 'changed')
        assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.id, running.id)
      }
      await end(b, running)
      assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.isNew, true, 'and its end frees the key')
    },
  ),

  contract('a successor runs when the job before it fails for good, is cancelled, or is not kept', async (b) => {
    const ends: Partial<SettledJob>[] = [
      { to: 'failed' },
      { to: 'cancelled' },
      { to: 'done', keepMs: 0 },
      { to: 'failed', keepMs: 0 },
    ]
    for (const change of ends) {
      const running = await start(b)
      const next = await move(b)
      await end(b, running, change)
      const job = only(await b.claim(await b.worker()))
      assert.equal(job.id, next.id, JSON.stringify(change))
      await end(b, job)
    }
  }),

  contract('a successor waits while the job before it is retried, crashes, snoozes or is parked', async (b) => {
    let running = await start(b)
    const next = await move(b)
    const goesOn: Partial<SettledJob>[] = [
      { to: 'retrying', delayMs: 1_000, retries: 1, error: '{}' },
      { to: 'ready', crashes: 1 },
      { to: 'scheduled', delayMs: 1_000 },
    ]
    for (const change of goesOn) {
      await end(b, running, change)
      b.clock.now += 1_000
      await b.store.jobs.promoteJobs(10)
      running = only(await b.claim(await b.worker()))
      assert.notEqual(running.id, next.id, JSON.stringify(change))
    }
    await end(b, running, { to: 'parked' })
    assert.deepEqual([await b.state(next.id), await claimed(b)], ['blocked', []])
    const gone = { id: running.id, from: 'parked' as const, to: 'gone' as const, keepMs: 0 }
    assert.equal(await b.store.jobs.changeJob(gone), 'changed')
    await b.store.jobs.promoteJobs(10)
    assert.deepEqual(await claimed(b), [next.id], 'and runs when that one is deleted')
  }),

  contract('a running successor gets a successor itself, repeatedly', async (b) => {
    let running = await start(b)
    for (let turn = 0; turn < 4; turn += 1) {
      const next = await move(b)
      assert.equal(next.isNew, true)
      await end(b, running)
      running = only(await b.claim(await b.worker()))
      assert.equal(running.id, next.id)
    }
    await end(b, running)
    const fresh = await move(b)
    assert.deepEqual([fresh.isNew, await b.state(fresh.id)], [true, 'ready'])
  }),

  contract('a job that ended is not retried while its successor is unfinished', async (b) => {
    const running = await start(b)
    const next = await move(b, { due: { inMs: 60_000 } })
    await end(b, running, { to: 'failed' })
    const retry = { id: running.id, from: 'failed' as const, to: 'ready' as const, keepMs: Infinity }
    await assert.rejects(b.store.jobs.changeJob(retry), { code: 'E_DUPLICATE_KEY', existingId: next.id })
  }),

  contract('a successor that is paused stays so, and is blocked or ready when it is resumed', async (b) => {
    const running = await start(b)
    const next = await move(b)
    await b.pause(next.id, 'blocked')
    await b.resume(next.id)
    assert.equal(await b.state(next.id), 'blocked')
    await b.pause(next.id, 'blocked')
    await end(b, running)
    assert.deepEqual([await b.state(next.id), await claimed(b)], ['paused', []])
    await b.resume(next.id)
    assert.deepEqual(await claimed(b), [next.id])
  }),

  contract(
    'a successor that expires before the other ends is cancelled, and the key names the running job',
    async (b) => {
      const running = await start(b)
      const next = await move(b, { expires: { inMs: 1_000 } })
      b.clock.now += 1_000
      const { expired } = await b.store.jobs.promoteJobs(10)
      assert.deepEqual(
        expired.map(({ id, state }) => [id, state]),
        [[next.id, 'blocked']],
      )
      await b.store.jobs.changeJob({ id: next.id, from: 'blocked', to: 'cancelled', keepMs: Infinity })
      assert.equal((await b.store.jobs.readKeyed('mail', 'k'))?.id, running.id)
    },
  ),

  contract('a successor has a group, and its own parents beside the job before it', async (b) => {
    const running = await start(b)
    const parent = await b.one()
    const next = await move(b, { group: 'g', after: [{ id: parent }, { name: 'mail', key: 'k' }] })
    assert.deepEqual((await b.read(next.id)).after, [parent, running.id])
    assert.equal(await counted(b), 'default blocked 1')
    // By its own policy it would wait for a retry of the other, which could not take the key.
    await end(b, running, { to: 'failed' })
    assert.equal(await b.state(next.id), 'blocked')
    await end(b, only(await b.claim(await b.worker())))
    assert.equal(await counted(b), 'default ready 1')
    assert.deepEqual(await claimed(b), [next.id])
  }),

  contract('a bulk that moves a running key twice writes one successor', async (b) => {
    const running = await start(b)
    const inserted = await b.insert(
      ['1', '2', '3'].map((payload) => b.job({ key: 'k', payload })),
      'move',
    )
    assert.deepEqual(
      inserted.map(({ isNew }) => isNew),
      [true, false, false],
    )
    const replaced = await b.insert(
      ['4', '5'].map((payload) => b.job({ key: 'k', payload })),
      'replace',
    )
    const last = replaced[1]?.id ?? ''
    assert.equal(await b.state(replaced[0]?.id ?? ''), 'cancelled')
    await end(b, running)
    assert.deepEqual([await claimed(b), (await b.read(last)).payload], [[last], '5'])
  }),

  contract('of concurrent schedule calls under a running key one writes, the others move', async (b) => {
    const running = await start(b)
    const all = await Promise.all(['1', '2', '3', '4'].map((payload) => move(b, { payload })))
    assert.equal(new Set(all.map(({ id }) => id)).size, 1)
    assert.equal(all.filter(({ isNew }) => isNew).length, 1)
    await end(b, running)
    assert.deepEqual(await claimed(b), [all[0]?.id])
  }),
]

async function start(b: ContractFixture): Promise<ClaimedJob> {
  const id = await b.one({ key: 'k', priority: 9 })
  const job = only(await b.claim(await b.worker()))
  assert.equal(job.id, id)
  return job
}

async function move(
  b: ContractFixture,
  change: Parameters<ContractFixture['job']>[0] = {},
): Promise<{ id: string; isNew: boolean }> {
  const [inserted] = await b.insert([b.job({ key: 'k', ...change })], 'move')
  assert.ok(inserted)
  return { id: inserted.id, isNew: inserted.isNew }
}

async function end(b: ContractFixture, job: ClaimedJob, change: Partial<SettledJob> = {}): Promise<void> {
  assert.deepEqual(await b.settle(job, change), [])
  while ((await b.store.jobs.promoteJobs(10)).again);
}

async function claimed(b: ContractFixture): Promise<string[]> {
  return (await b.claim(await b.worker())).jobs.map((job) => job.id)
}

async function counted(b: ContractFixture): Promise<string> {
  const { counts } = await b.store.groups.readGroup('g')
  return counts.map(({ queue, state, members }) => `${queue} ${state} ${members}`).join()
}
