import assert from 'node:assert/strict'
import type { NewJob } from '../../src/store/store.js'
import { systemTimers } from '../../src/world/timers.js'
import { only } from './fixture.js'
import { TransactionFixture, transactionCase } from './transaction-fixture.js'
import type { TransactionCase } from './transaction-fixture.js'
import { transactionLinkCases } from './transaction-links.js'
import { transactionSequenceCases } from './transaction-sequences.js'
import { transactionWorkflowCases } from './transaction-workflows.js'

/** What every store must do inside a caller's transaction; used like `storeContract`, with a way to begin one. */
const cases: TransactionCase[] = [...transactionLinkCases, ...transactionSequenceCases, ...transactionWorkflowCases]

function contract(name: string, run: (fixture: TransactionFixture) => Promise<void>): void {
  cases.push(transactionCase(name, run))
}

contract('jobs written in a transaction are there when it commits', async (b) => {
  const jobs = [
    b.job(),
    b.job({ queue: 'new', due: { inMs: 5_000 } }),
    b.job({ key: 'k', payload: new Uint8Array([1]) }),
  ]
  const { tx, commit } = await b.openTransaction()
  assert.deepEqual(
    await b.insertIn(tx, jobs),
    jobs.map(({ id }) => ({ id, isNew: true })),
  )
  await commit()
  const rows = await b.store.jobs.readJobs(jobs.map((job) => job.id))
  assert.deepEqual(
    rows.map((row) => [row?.state, row?.queue, row?.key, row?.createdAt]),
    [
      ['ready', 'default', null, b.clock.now],
      ['scheduled', 'new', null, b.clock.now],
      ['ready', 'default', 'k', b.clock.now],
    ],
  )
  assert.equal((await b.claim(await b.worker())).jobs.length, 2)
})

cases.push({
  name: 'a closed store refuses what is asked in a transaction, and runs none of its own',
  run: async (subject) => {
    const b = new TransactionFixture(subject)
    const id = await b.one({ name: 'open' })
    const claim = only(await b.claim(await b.worker(), { names: ['open'] }))
    const { tx, rollBack } = await b.openTransaction()
    await b.store.close()
    const closed = { code: 'E_CLOSED' }
    await assert.rejects(() => b.insertIn(tx, [b.job()]), closed)
    await assert.rejects(async () => b.store.transactions.settleJobIn(tx, b.settled(claim)), closed)
    await assert.rejects(async () => b.store.transactions.sealGroupIn(tx, { group: 'g', whenDone: null }), closed)
    const work = (): never => assert.fail(`job ${id} runs in a transaction of a closed store`)
    const settle = (): never => assert.fail('it is settled')
    await assert.rejects(b.store.transactions.transact({ claim, work, settle, stopped: () => undefined }), closed)
    // In memory the handle is closed with the store.
    await Promise.resolve()
      .then(rollBack)
      .catch(() => undefined)
  },
})

contract('nothing of them is there when it is rolled back, and later jobs get the right lane', async (b) => {
  const { tx, rollBack } = await b.openTransaction()
  await b.insertIn(tx, [b.job({ queue: 'fleeting', key: 'k' })])
  await rollBack()
  assert.deepEqual(await b.found({}), [])
  const id = await b.one({ queue: 'other', key: 'k' })
  assert.deepEqual([(await b.read(id)).queue, (await b.found({})).length], ['other', 1])
})

contract('a bulk that is refused leaves nothing, though its error is caught and the rest commits', async (b) => {
  const held = await b.one({ key: 'held' })
  const { tx, commit } = await b.openTransaction()
  const before = b.job()
  const after = b.job()
  await b.insertIn(tx, [before])
  await assert.rejects(b.insertIn(tx, [b.job(), b.job({ key: 'held' }), b.job()], { onDuplicate: 'reject' }), {
    code: 'E_DUPLICATE_KEY',
    existingId: held,
  })
  await b.insertIn(tx, [after])
  await commit()
  assert.deepEqual(new Set((await b.found({})).map((row) => row.id)), new Set([held, before.id, after.id]))
})

contract('a guarded call that throws leaves nothing of what it wrote, and what was there stays', async (b) => {
  const { tx, commit } = await b.openTransaction()
  const [before, kept, undone] = [b.job(), b.job(), b.job()]
  await b.insertIn(tx, [before])
  await b.store.transactions.guarded(tx, () => b.insertIn(tx, [kept]))
  const isSync = b.store.transactions.guarded(tx, (sync) => sync)
  const boom = new Error('boom')
  const failing = (): void =>
    b.store.transactions.guarded(tx, () => {
      void b.insertIn(tx, [undone])
      throw boom
    })
  if (isSync) assert.throws(failing, boom)
  await commit()
  assert.deepEqual(new Set((await b.found({})).map((row) => row.id)), new Set([before.id, kept.id]))
})

contract('keys are enforced as elsewhere, and a rollback frees them', async (b) => {
  const first = await b.one({ key: 'k', due: { inMs: 60_000 }, payload: '1' })
  const undone = await b.openTransaction()
  await b.insertIn(undone.tx, [b.job({ key: 'k' })], { onDuplicate: 'replace' })
  await undone.rollBack()
  assert.equal(await b.state(first), 'scheduled')
  const done = await b.openTransaction()
  const moved = b.job({ key: 'k', due: { inMs: 5_000 }, payload: '2' })
  assert.deepEqual(await b.insertIn(done.tx, [moved], { onDuplicate: 'move' }), [{ id: first, isNew: false }])
  assert.deepEqual(await b.insertIn(done.tx, [b.job({ key: 'k' })]), [{ id: first, isNew: false }])
  await done.commit()
  const row = await b.read(first)
  assert.deepEqual([row.dueAt, row.payload, (await b.found({})).length], [b.clock.now + 5_000, '2', 1])
})

contract(
  'a job that is moved in a transaction gets its parents in it, and a refused move leaves the rest',
  async (b) => {
    const timer = { name: 'child', key: 'k' } as const
    const [child, move] = [await b.one(timer), { onDuplicate: 'move' as const }]
    const parent = b.job()
    const moving = (id: string): NewJob => b.job({ ...timer, after: [{ id }] })
    const undone = await b.openTransaction()
    await b.insertIn(undone.tx, [parent, moving(parent.id)], move)
    await undone.rollBack()
    assert.deepEqual([await b.state(child), (await b.read(child)).after], ['ready', []])
    const done = await b.openTransaction()
    await b.insertIn(done.tx, [parent])
    await assert.rejects(() => b.insertIn(done.tx, [b.job(), moving(child)], move), { code: 'E_CYCLE' })
    await b.insertIn(done.tx, [moving(parent.id)], move)
    await done.commit()
    assert.deepEqual([await b.state(child), (await b.read(child)).after], ['blocked', [parent.id]])
    assert.equal((await b.found({})).length, 2)
  },
)

contract('a child of a lost run is refused in a transaction too', async (b) => {
  await b.one()
  const job = only(await b.claim(await b.worker()))
  const { tx, commit } = await b.openTransaction()
  await assert.rejects(b.insertIn(tx, [b.job()], { claim: { ref: job.ref, fence: job.fence + 1 } }), {
    code: 'E_LEASE_LOST',
  })
  await b.insertIn(tx, [b.job()], { claim: job })
  await commit()
  assert.equal((await b.found({})).length, 2)
})

contract('a job settled in a transaction is done when it commits, and its key is free', async (b) => {
  const id = await b.one({ key: 'k' })
  const job = only(await b.claim(await b.worker()))
  await b.request(id, 'cancel')
  const { tx, commit } = await b.openTransaction()
  assert.equal(await b.store.transactions.settleJobIn(tx, b.settled(job, { result: '42', log: '[]' })), true)
  await commit()
  assert.deepEqual(await b.requests(), [], 'its requested change is removed')
  const row = await b.read(id)
  assert.deepEqual([row.state, row.result, row.log, row.attempt], ['done', '42', '[]', 1])
  assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.isNew, true)
  assert.deepEqual(await b.settle(job, { to: 'retrying', delayMs: 1 }), [job.ref], 'the second settlement is refused')
})

contract('a job settled in a transaction that is rolled back still belongs to its claim', async (b) => {
  const id = await b.one({ key: 'k' })
  const job = only(await b.claim(await b.worker()))
  const { tx, rollBack } = await b.openTransaction()
  await b.store.transactions.settleJobIn(tx, b.settled(job))
  await rollBack()
  assert.equal(await b.state(id), 'running')
  assert.deepEqual(await b.settle(job), [])
  assert.equal(await b.state(id), 'done')
})

contract('a settlement under a lost fence writes nothing in a transaction', async (b) => {
  const id = await b.one({ key: 'k' })
  const job = only(await b.claim(await b.worker()))
  const { tx, commit } = await b.openTransaction()
  const lost = b.settled({ ...job, fence: job.fence + 1 })
  assert.equal(await b.store.transactions.settleJobIn(tx, lost), false)
  await commit()
  assert.deepEqual([await b.state(id), (await b.store.jobs.readKeyed('mail', 'k'))?.id], ['running', id])
})

contract('a job that is not kept is deleted when the transaction that settled it commits', async (b) => {
  const id = await b.one()
  const job = only(await b.claim(await b.worker()))
  const { tx, commit } = await b.openTransaction()
  await b.store.transactions.settleJobIn(tx, b.settled(job, { keepMs: 0 }))
  await commit()
  assert.equal(await b.state(id), 'gone')
})

contract('a transaction of the store settles with what the work returned, in one commit', async (b) => {
  const id = await b.one()
  const job = only(await b.claim(await b.worker()))
  const child = b.job()
  const value = await b.store.transactions.transact({
    claim: job,
    work: (tx) => {
      void b.insertIn(tx, [child])
      return 7
    },
    settle: (returned) => b.settled(job, { result: String(returned) }),
    stopped: () => undefined,
  })
  assert.equal(value, 7)
  assert.deepEqual([await b.state(id), (await b.read(id)).result, await b.state(child.id)], ['done', '7', 'ready'])
})

contract('work that throws in a transaction of the store leaves neither its writes nor the settlement', async (b) => {
  const id = await b.one()
  const job = only(await b.claim(await b.worker()))
  const thrown = new Error('no')
  const request = { claim: job, settle: () => b.settled(job), stopped: () => undefined }
  const work = (tx: unknown): never => {
    void b.insertIn(tx, [b.job()])
    throw thrown
  }
  await assert.rejects(b.store.transactions.transact({ ...request, work }), thrown)
  assert.deepEqual([await b.state(id), (await b.found({})).length], ['running', 1])
  assert.deepEqual(await b.settle(job), [], 'the claim still holds')
})

contract('work does not begin in a transaction of the store when the claim is lost', async (b) => {
  await b.one()
  const job = only(await b.claim(await b.worker()))
  await b.settle(job)
  let ran = false
  const request = { claim: job, work: () => (ran = true), settle: () => b.settled(job), stopped: () => undefined }
  await assert.rejects(b.store.transactions.transact(request), { code: 'E_LEASE_LOST' })
  const stopped = { ...request, stopped: () => new Error('it is over') }
  await assert.rejects(b.store.transactions.transact(stopped), /it is over/)
  assert.equal(ran, false)
})

contract('the commit of a caller’s transaction is a hint', async (b) => {
  const { tx, commit } = await b.openTransaction()
  let hints = 0
  const hinted = new Promise<void>((resolve) => b.store.changes.onHint(() => (hints += 1) && resolve()))
  await b.insertIn(tx, [b.job()])
  await new Promise<void>((next) => systemTimers.soon(next))
  assert.equal(hints, 0, 'nothing is committed yet')
  await commit()
  await hinted
})

export const transactionContract: readonly TransactionCase[] = cases
