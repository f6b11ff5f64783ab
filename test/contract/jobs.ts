import assert from 'node:assert/strict'
import { contract, only } from './fixture.js'
import type { ContractCase } from './fixture.js'

/** Enqueueing and reading jobs. */
export const jobsCases: readonly ContractCase[] = [
  contract('an inserted job can be read back as it was given', async (b) => {
    const id = await b.one({ priority: 3, queue: 'mailbox', options: '{"labels":["a"]}', payload: '{"to":"a@b.c"}' })
    const row = await b.read(id)
    assert.deepEqual(
      [
        row.name,
        row.queue,
        row.priority,
        row.payload,
        row.options,
        row.state,
        row.createdAt,
        row.dueAt,
        row.attempt,
        row.claimed,
      ],
      ['mail', 'mailbox', 3, '{"to":"a@b.c"}', '{"labels":["a"]}', 'ready', b.clock.now, b.clock.now, 0, false],
    )
  }),

  contract('bytes and hostile text are read back unchanged', async (b) => {
    const text = JSON.stringify({ nul: '\u0000', lone: '\ud800', quote: `'"); -- x` })
    const id = await b.one({ payload: text, name: 'mail', queue: `o'brien"; --` })
    const bytes = await b.one({ payload: new Uint8Array([0, 255, 1, 254]) })
    assert.equal((await b.read(id)).payload, text)
    assert.equal((await b.read(id)).queue, `o'brien"; --`)
    assert.deepEqual([...((await b.read(bytes)).payload as Uint8Array)], [0, 255, 1, 254])
  }),

  contract('a bulk keeps its order and every job its own time', async (b) => {
    const jobs = Array.from({ length: 250 }, (_, i) =>
      b.job({ due: { inMs: i % 3 === 0 ? 1_000 * i : 0 }, payload: `{"n":${i}}` }),
    )
    await b.insert(jobs)
    const rows = await b.store.jobs.readJobs(jobs.map((job) => job.id))
    for (const [i, row] of rows.entries()) {
      assert.equal(row?.payload, `{"n":${i}}`)
      assert.equal(row?.state, i % 3 === 0 && i > 0 ? 'scheduled' : 'ready')
      assert.equal(row?.dueAt, b.clock.now + (i % 3 === 0 ? 1_000 * i : 0))
    }
  }),

  contract('a bulk keeps the expiry of each job, also beside jobs without one', async (b) => {
    const expiries = [null, { inMs: 5_000 }, { inMs: 5_000 }, null, { at: b.clock.now + 5_000 }, { inMs: 9_000 }]
    const jobs = expiries.map((expires) => b.job({ expires }))
    await b.insert(jobs)
    const rows = await b.store.jobs.readJobs(jobs.map((job) => job.id))
    assert.deepEqual(
      rows.map((row) => (row?.expiresAt == null ? null : row.expiresAt - b.clock.now)),
      [null, 5_000, 5_000, null, 5_000, 9_000],
    )
  }),

  contract('a key is held by one unfinished job, and a second enqueue gets the first one', async (b) => {
    const first = await b.one({ key: 'k' })
    const [second] = await b.insert([b.job({ key: 'k' })])
    assert.deepEqual(second, { id: first, isNew: false })
    const [other] = await b.insert([b.job({ key: 'k', name: 'bill' })])
    assert.equal(other?.isNew, true, 'a key belongs to its job')
    assert.equal((await b.found({})).length, 2)
  }),

  contract('a key twice in one bulk is one job', async (b) => {
    const inserted = await b.insert([b.job({ key: 'k' }), b.job({ key: 'k' }), b.job()])
    assert.deepEqual(
      inserted.map((i) => i.isNew),
      [true, false, true],
    )
    assert.equal(inserted[0]?.id, inserted[1]?.id)
  }),

  contract('an item of a bulk conflicts with what earlier items wrote', async (b) => {
    const keys = ['a', 'b', 'b', 'a', 'c', 'c', 'b']
    const inserted = await b.insert(keys.map((key) => b.job({ key })))
    assert.deepEqual(
      inserted.map((i) => i.isNew),
      [true, true, false, false, true, false, false],
    )
    assert.deepEqual([inserted[3]?.id, inserted[6]?.id], [inserted[0]?.id, inserted[1]?.id])
    assert.equal((await b.found({})).length, 3)
  }),

  contract('reject refuses the whole bulk and writes nothing', async (b) => {
    const first = await b.one({ key: 'k' })
    await assert.rejects(b.insert([b.job(), b.job({ key: 'k' })], 'reject'), {
      code: 'E_DUPLICATE_KEY',
      existingId: first,
    })
    await assert.rejects(b.insert([b.job(), b.job({ key: 'new' }), b.job({ key: 'new' })], 'reject'), {
      code: 'E_DUPLICATE_KEY',
      existingId: undefined,
      message: /item 1 of the same bulk \(item 2\)$/,
    })
    assert.equal((await b.found({})).length, 1)
  }),

  contract('replace cancels the waiting job and takes its key', async (b) => {
    const first = await b.one({ key: 'k', due: { inMs: 60_000 } })
    const [second] = await b.insert([b.job({ key: 'k', payload: '2' })], 'replace')
    assert.equal(second?.isNew, true)
    assert.equal(await b.state(first), 'cancelled')
    assert.match((await b.read(first)).reason ?? '', /replaced/)
    assert.equal((await b.store.jobs.readKeyed('mail', 'k'))?.id, second?.id)
  }),

  contract('a running job is not replaced', async (b) => {
    const worker = await b.worker()
    await b.one({ key: 'k' })
    await b.claim(worker)
    await assert.rejects(b.insert([b.job({ key: 'k' })], 'replace'), { code: 'E_DUPLICATE_KEY' })
  }),

  contract('move gives the waiting job a new time and payload', async (b) => {
    const first = await b.one({ key: 'k', due: { inMs: 60_000 }, payload: '1' })
    const [moved] = await b.insert([b.job({ key: 'k', due: { inMs: 5_000 }, payload: '2' })], 'move')
    assert.deepEqual(moved, { id: first, isNew: false })
    const row = await b.read(first)
    assert.deepEqual([row.dueAt, row.payload, row.state], [b.clock.now + 5_000, '2', 'scheduled'])
  }),

  contract('an end frees the key', async (b) => {
    const worker = await b.worker()
    const first = await b.one({ key: 'k' })
    await b.settle(only(await b.claim(worker)))
    const second = await b.one({ key: 'k' })
    assert.notEqual(second, first)
    assert.equal((await b.store.jobs.readKeyed('mail', 'k'))?.id, second, 'the newest job has the key')
  }),
]
