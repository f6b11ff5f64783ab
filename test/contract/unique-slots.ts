import assert from 'node:assert/strict'
import { contract, only, withUniqueSlot } from './fixture.js'
import type { ContractCase } from './fixture.js'
import type { UniqueSlotRequest } from '../../src/job/rules/unique.js'
import type { NewJob } from '../../src/store/store.js'

/** Uniqueness: one job per unique slot. */
export const uniqueSlotCases: readonly ContractCase[] = [
  contract('a unique slot is held by one unfinished job, and a second enqueue gets the first one', async (b) => {
    const first = await b.one(withUniqueSlot())
    assert.deepEqual(await b.insert([b.job(withUniqueSlot())]), [{ id: first, isNew: false }])
    assert.equal(
      (await b.insert([b.job({ ...withUniqueSlot(), name: 'bill' })]))[0]?.isNew,
      true,
      'a unique slot belongs to its job name',
    )
    assert.equal(
      (await b.insert([b.job(withUniqueSlot({ key: 'v' }))]))[0]?.isNew,
      true,
      'another value is another slot',
    )
    assert.equal((await b.found({})).length, 3)
  }),

  contract('a settlement frees the unique slot, whatever the outcome', async (b) => {
    const worker = await b.worker()
    for (const to of ['done', 'failed', 'cancelled'] as const) {
      await b.one(withUniqueSlot())
      const job = only(await b.claim(worker))
      assert.equal((await b.insert([b.job(withUniqueSlot())]))[0]?.isNew, false, 'it runs')
      await b.settle(job, { to, keepMs: to === 'done' ? 0 : Infinity })
    }
    assert.equal((await b.insert([b.job(withUniqueSlot())]))[0]?.isNew, true)
  }),

  contract('while waiting: one more may wait after the running job', async (b) => {
    const worker = await b.worker()
    await b.one(withUniqueSlot({ while: 'waiting' }))
    const running = only(await b.claim(worker))
    const [second] = await b.insert([b.job(withUniqueSlot({ while: 'waiting' }))])
    assert.equal(second?.isNew, true)
    assert.deepEqual(await b.insert([b.job(withUniqueSlot({ while: 'waiting' }))]), [{ id: second?.id, isNew: false }])
    await b.settle(running)
    assert.deepEqual(await b.insert([b.job(withUniqueSlot())]), [{ id: second?.id, isNew: false }])
  }),

  contract('a window holds after the end and after the pruning, until it expires', async (b) => {
    const worker = await b.worker()
    const window = withUniqueSlot({ forMs: 60_000 })
    const first = await b.one(window)
    await b.settle(only(await b.claim(worker)), { keepMs: 1_000 })
    b.clock.now += 59_999
    assert.ok((await b.prune(100)) > 0)
    assert.equal(await b.state(first), 'gone')
    assert.deepEqual(await b.insert([b.job(window)]), [{ id: first, isNew: false }])
    await assert.rejects(b.insert([b.job(withUniqueSlot({ onDuplicate: 'reject' }))]), {
      code: 'E_DUPLICATE_JOB',
      existingId: first,
    })
    await assert.rejects(b.insert([b.job(withUniqueSlot({ onDuplicate: 'replace' }))]), { code: 'E_DUPLICATE_JOB' })
    b.clock.now += 1
    assert.equal((await b.insert([b.job(window)]))[0]?.isNew, true)
  }),

  contract('a window is opened by the first enqueue, and may last for ever', async (b) => {
    const worker = await b.worker()
    const first = await b.one(withUniqueSlot({ forMs: Infinity }))
    await b.settle(only(await b.claim(worker)))
    b.clock.now += 3_000_000_000_000
    await b.prune(100)
    assert.deepEqual(await b.insert([b.job(withUniqueSlot())]), [{ id: first, isNew: false }])
  }),

  contract('a reused number does not make another job the holder of a unique slot', async (b) => {
    const worker = await b.worker()
    const first = await b.one(withUniqueSlot({ forMs: 60_000 }))
    await b.one(withUniqueSlot({ key: 'v' }))
    for (const job of (await b.claim(worker)).jobs) await b.settle(job, { keepMs: 0 })
    const strangers = [await b.one(), await b.one()]
    assert.equal((await b.insert([b.job(withUniqueSlot({ key: 'v' }))]))[0]?.isNew, true, 'its job has ended')
    for (const id of strangers) await b.store.jobs.changeJob({ id, from: 'ready', to: 'cancelled', keepMs: Infinity })
    assert.deepEqual(
      await b.insert([b.job(withUniqueSlot())]),
      [{ id: first, isNew: false }],
      'its window is still open',
    )
  }),

  contract('a cancelled or deleted job frees its unique slot and its window', async (b) => {
    const window = withUniqueSlot({ forMs: 60_000 })
    for (const to of ['cancelled', 'gone'] as const)
      for (const keepMs of [0, Infinity]) {
        const id = await b.one(window)
        assert.equal(await b.state(id), 'ready')
        assert.equal(await b.store.jobs.changeJob({ id, from: 'ready', to, keepMs }), 'changed')
      }
    const worker = await b.worker()
    const id = await b.one({ ...window, expires: { inMs: 5 } })
    await b.settle(only(await b.claim(worker)), { to: 'cancelled', keepMs: 0 })
    assert.notEqual(await b.one(window), id)
  }),

  contract('unique: reject refuses the whole bulk and writes nothing', async (b) => {
    const first = await b.one(withUniqueSlot())
    const bulk = [b.job(), b.job(withUniqueSlot({ key: 'v' })), b.job(withUniqueSlot({ onDuplicate: 'reject' }))]
    await assert.rejects(b.insert(bulk), {
      code: 'E_DUPLICATE_JOB',
      existingId: first,
      message: /is unfinished \(item 2\)/,
    })
    assert.equal((await b.found({})).length, 1)
    assert.equal((await b.insert([b.job(withUniqueSlot({ key: 'v' }))]))[0]?.isNew, true, 'and no slot was taken')
  }),

  contract('unique: replace cancels the waiting job, also of its own bulk, and stays in its window', async (b) => {
    const replacing = withUniqueSlot({ onDuplicate: 'replace', forMs: 60_000 })
    const [first] = await b.insert([b.job({ ...replacing, key: 'k' })])
    b.clock.now += 30_000
    const bulk = await b.insert([b.job(replacing), b.job(replacing)])
    assert.deepEqual([await b.state(first?.id ?? ''), await b.state(bulk[0]?.id ?? '')], ['cancelled', 'cancelled'])
    assert.match((await b.read(first?.id ?? '')).reason ?? '', /replaced by/)
    assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.isNew, true, 'its key is free')
    const worker = await b.worker()
    for (const job of (await b.claim(worker)).jobs) await b.settle(job)
    b.clock.now += 29_999
    await assert.rejects(b.insert([b.job(replacing)]), { code: 'E_DUPLICATE_JOB', message: /ran within its window/ })
    b.clock.now += 1
    assert.equal((await b.insert([b.job(replacing)]))[0]?.isNew, true)
  }),

  contract('unique: replace refuses when a worker has claimed the job, unless only waiting jobs count', async (b) => {
    const worker = await b.worker()
    const first = await b.one(withUniqueSlot())
    await b.claim(worker)
    await assert.rejects(b.insert([b.job(withUniqueSlot({ onDuplicate: 'replace' }))]), {
      code: 'E_DUPLICATE_JOB',
      message: /a worker has it/,
    })
    await b.one(withUniqueSlot({ onDuplicate: 'replace', while: 'waiting' }))
    assert.equal(await b.state(first), 'running')
  }),

  contract(
    'unique: reschedule gives the waiting job the new payload, options and time, up to its window',
    async (b) => {
      const debounced = (payload: string): NewJob =>
        b.job({
          ...withUniqueSlot({ onDuplicate: 'reschedule', while: 'waiting', forMs: 12_000 }),
          payload,
          due: { inMs: 5_000 },
        })
      const opened = b.clock.now
      const [first] = await b.insert([debounced('1'), debounced('2')])
      for (const [payload, dueIn] of [
        ['3', 8_000],
        ['4', 11_000],
        ['5', 12_000],
        ['6', 12_000],
      ] as const) {
        b.clock.now += 3_000
        assert.deepEqual(await b.insert([debounced(payload)]), [{ id: first?.id, isNew: false }])
        const row = await b.read(first?.id ?? '')
        assert.deepEqual([row.payload, row.dueAt - opened], [payload, dueIn])
      }
      assert.equal(await b.state(first?.id ?? ''), 'ready', 'the window is over, so it is no longer postponed')
      const worker = await b.worker()
      const running = only(await b.claim(worker))
      assert.equal(running.payload, '6')
      const [second] = await b.insert([debounced('7')])
      assert.equal(second?.isNew, true, 'an enqueue while it runs must run too')
      await b.settle(running)
      assert.equal((await b.read(second?.id ?? '')).dueAt, b.clock.now + 5_000)
    },
  ),

  contract('a key is checked before a unique slot, and nothing changes unless both accept the job', async (b) => {
    const keyed = await b.one({ key: 'k', ...withUniqueSlot({ key: 'a' }), due: { inMs: 1_000 } })
    const other = await b.one(withUniqueSlot({ key: 'b' }))
    const both = (change: Partial<UniqueSlotRequest>): NewJob => b.job({ key: 'k', ...withUniqueSlot(change) })
    assert.deepEqual(await b.insert([both({ key: 'c' })]), [{ id: keyed, isNew: false }])
    assert.deepEqual(await b.insert([both({ key: 'b' })], 'replace'), [{ id: other, isNew: false }])
    assert.equal(await b.state(keyed), 'scheduled', 'not replaced by a job that was not written')
    await b.insert([{ ...both({ key: 'c' }), payload: '2' }], 'move')
    assert.equal((await b.read(keyed)).payload, '2')
    assert.equal((await b.insert([b.job(withUniqueSlot({ key: 'a' }))]))[0]?.id, keyed, 'a moved job keeps its slot')
    const [third] = await b.insert([both({ key: 'a' })], 'replace')
    assert.deepEqual([third?.isNew, await b.state(keyed)], [true, 'cancelled'])
    const [fourth] = await b.insert([b.job(withUniqueSlot({ key: 'a', onDuplicate: 'replace' }))])
    assert.deepEqual([fourth?.isNew, await b.state(third?.id ?? '')], [true, 'cancelled'])
    assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.isNew, true)
  }),

  contract(
    'a retried job takes its unique slot again, and is refused when another unfinished job has it',
    async (b) => {
      const worker = await b.worker()
      const retry = (id: string, from: 'failed' | 'cancelled'): Promise<string> =>
        b.store.jobs.changeJob({ id, from, to: 'ready', due: { inMs: 0 }, keepMs: Infinity })
      const first = await b.one(withUniqueSlot({ forMs: 60_000 }))
      await b.settle(only(await b.claim(worker)), { to: 'failed' })
      assert.equal(await retry(first, 'failed'), 'changed', 'its own window does not block it')
      await b.settle(only(await b.claim(worker)), { to: 'failed' })
      b.clock.now += 60_000
      const second = await b.one(withUniqueSlot({ forMs: 60_000 }))
      await assert.rejects(retry(first, 'failed'), { code: 'E_DUPLICATE_JOB', existingId: second })
      assert.equal(await b.state(first), 'failed')
      await b.settle(only(await b.claim(worker)))
      assert.equal(await retry(first, 'failed'), 'changed', 'a window applies to enqueues only')
      assert.deepEqual(await b.insert([b.job(withUniqueSlot())]), [{ id: first, isNew: false }])
      await b.store.jobs.changeJob({ id: first, from: 'ready', to: 'cancelled', keepMs: Infinity })
      const third = await b.one(withUniqueSlot())
      await assert.rejects(retry(first, 'cancelled'), { code: 'E_DUPLICATE_JOB', existingId: third })
    },
  ),

  contract('unique slots that no longer count are swept in steps, and no others', async (b) => {
    const worker = await b.worker()
    const keys = Array.from({ length: 30 }, (_, i) => `u${i}`)
    const jobs = keys.map((key, i) => b.job(withUniqueSlot({ key, forMs: i % 3 === 0 ? 60_000 : null })))
    await b.insert(jobs)
    for (const job of (await b.claim(worker, { max: 20 })).jobs) await b.settle(job)
    const swept: number[] = []
    for (let i = 0; i < 6; i += 1) swept.push((await b.store.jobs.sweepRows(4)).swept)
    assert.deepEqual(
      swept.reduce((a, n) => a + n, 0),
      13,
      'of the 20 that ended, 7 have a window',
    )
    assert.ok(swept.every((n) => n <= 4))
    const again = await b.insert(keys.map((key) => b.job(withUniqueSlot({ key }))))
    assert.deepEqual(
      again.map((one) => one.isNew),
      keys.map((_, i) => i < 20 && i % 3 !== 0),
    )
  }),
]
