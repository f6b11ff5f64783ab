import assert from 'node:assert/strict'
import { contract, only } from './fixture.js'
import type { ContractCase } from './fixture.js'

/** Promotion, expiry, and commands on waiting jobs. */
export const upkeepCases: readonly ContractCase[] = [
  contract('promotion is bounded, in order of time, and returns when to run again', async (b) => {
    await b.insert([30, 10, 20, 99_000].map((inMs) => b.job({ due: { inMs } })))
    b.clock.now += 50
    assert.equal((await b.store.jobs.promoteJobs(2)).promoted, 2)
    const last = await b.store.jobs.promoteJobs(2)
    assert.deepEqual([last.promoted, last.nextInMs], [1, 99_000 - 50])
  }),

  contract('a delay beyond 2^31 ms is kept to the millisecond', async (b) => {
    const inMs = 2 ** 31 + 12_345
    const id = await b.one({ due: { inMs } })
    assert.equal((await b.read(id)).dueAt, b.clock.now + inMs)
    b.clock.now += inMs - 1
    assert.equal((await b.store.jobs.promoteJobs(10)).promoted, 0)
    b.clock.now += 1
    assert.equal((await b.store.jobs.promoteJobs(10)).promoted, 1)
  }),

  contract('expired jobs are listed while they wait, and not once they are held', async (b) => {
    const worker = await b.worker()
    const waiting = await b.one({ due: { inMs: 60_000 }, expires: { inMs: 1_000 } })
    await b.one({ expires: { inMs: 1_000 } })
    await b.claim(worker)
    b.clock.now += 1_000
    const { expired } = await b.store.jobs.promoteJobs(10)
    assert.deepEqual(expired, [{ id: waiting, name: 'mail', queue: 'default', state: 'scheduled' }])
  }),

  contract('a command takes effect only in the state it was decided for', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    assert.equal(await b.store.jobs.changeJob({ id, from: 'scheduled', to: 'cancelled', keepMs: Infinity }), 'stale')
    await b.claim(worker)
    assert.equal(await b.store.jobs.changeJob({ id, from: 'running', to: 'cancelled', keepMs: Infinity }), 'stale')
    assert.equal(await b.store.jobs.changeJob({ id, from: 'ready', to: 'gone', keepMs: 0 }), 'stale')
    assert.equal(await b.state(id), 'running')
  }),

  contract('a failed job is retried by a command, keeps its history and takes its key again', async (b) => {
    const worker = await b.worker()
    const id = await b.one({ key: 'k' })
    await b.settle(only(await b.claim(worker)), {
      to: 'failed',
      attempt: 1,
      retries: 25,
      log: '[{"startedAt":1,"endedAt":2,"worker":"w"}]',
    })
    const retry = { id, from: 'failed', to: 'ready', exit: 'retried', freshRetries: true, keepMs: Infinity } as const
    assert.equal(await b.store.jobs.changeJob(retry), 'changed')
    const row = await b.read(id)
    assert.deepEqual([row.state, row.attempt, row.retries, row.settledAt], ['ready', 1, 0, null])
    assert.equal((JSON.parse(row.log ?? '[]') as unknown[]).length, 2)
    await b.settle(only(await b.claim(worker)), { to: 'failed' })
    const other = await b.one({ key: 'k' })
    await assert.rejects(b.store.jobs.changeJob(retry), { code: 'E_DUPLICATE_KEY', existingId: other })
    assert.equal(await b.state(id), 'failed', 'the refused retry wrote nothing')
  }),

  contract('an edit changes what it names and nothing else', async (b) => {
    const id = await b.one({ payload: '1', options: '{"labels":["x"]}', due: { inMs: 60_000 } })
    const change = {
      id,
      from: 'scheduled',
      to: 'scheduled',
      due: { inMs: 5_000 },
      keepMs: Infinity,
      edit: { payload: '2', priority: 7, queue: 'other' },
    } as const
    assert.equal(await b.store.jobs.changeJob(change), 'changed')
    const row = await b.read(id)
    assert.deepEqual(
      [row.payload, row.priority, row.queue, row.dueAt, row.options],
      ['2', 7, 'other', b.clock.now + 5_000, '{"labels":["x"]}'],
    )
  }),

  contract('a deleted job no longer exists, and its key is free', async (b) => {
    const id = await b.one({ key: 'k' })
    assert.equal(await b.store.jobs.changeJob({ id, from: 'ready', to: 'gone', keepMs: 0 }), 'changed')
    assert.equal(await b.state(id), 'gone')
    assert.equal(await b.store.jobs.readKeyed('mail', 'k'), undefined)
  }),
]
