import assert from 'node:assert/strict'
import { itemAddress } from '../../src/job/rules/sequence.js'
import type { NewSequence, NewStep } from '../../src/store/sequences.js'
import type { ClaimedJob } from '../../src/store/store.js'
import { only } from './fixture.js'
import { transactionCase } from './transaction-fixture.js'
import type { TransactionCase, TransactionFixture } from './transaction-fixture.js'

/** Sequences in a caller's transaction: made in one, and items that settle themselves. */

function sequenceOf(b: TransactionFixture, total: number, key: string | null = null): NewSequence {
  const job = b.job({ key, queue: 'new', options: JSON.stringify({ sequence: { total } }) })
  const payloads = Array.from({ length: total }, (_, i) => `{"n":${i}}`)
  return {
    job,
    options: { onDuplicate: 'return', keepCancelledMs: Infinity },
    last: { id: job.id, total, from: 0, payloads },
    start: true,
    empty: { result: '{}', keepMs: Infinity },
  }
}

function step(index: number, change: Partial<NewStep> = {}): NewStep {
  const row = { run: 0, address: itemAddress(index), kind: 'item', no: index, attempt: 1, startedAt: 1, endedAt: 2 }
  return { ...row, value: `"r${index}"`, error: null, note: null, ...change }
}

async function rows(b: TransactionFixture, id: string): Promise<readonly unknown[]> {
  return (await b.store.sequences.readOutput(id, 0, 10))?.rows.map(({ index, result }) => [index, result]) ?? []
}

async function claimed(b: TransactionFixture, total: number): Promise<ClaimedJob> {
  await b.store.sequences.insertSequence(sequenceOf(b, total))
  return only(await b.claim(await b.worker()))
}

export const transactionSequenceCases: readonly TransactionCase[] = [
  transactionCase('a sequence written in a transaction is there with its items if that commits', async (b) => {
    const [kept, undone] = [sequenceOf(b, 3), sequenceOf(b, 3)]
    for (const sequence of [kept, undone]) {
      const { tx, commit, rollBack } = await b.openTransaction()
      const inserted = await b.store.transactions.insertSequenceIn(tx, sequence)
      assert.deepEqual(inserted, { id: sequence.job.id, isNew: true })
      await (sequence === kept ? commit() : rollBack())
    }
    assert.equal((await b.store.sequences.readSequence(kept.job.id))?.total, 3)
    assert.equal(await b.store.sequences.readSequence(undone.job.id), undefined)
    assert.deepEqual((await b.store.readCensus()).long, {
      steps: 0,
      workflows: 1,
      lists: 1,
      items: 3,
      inbox: 0,
      leftovers: 0,
    })
    const job = only(await b.claim(await b.worker()))
    assert.deepEqual(job.sequence?.items, ['{"n":0}'])
  }),

  transactionCase('a sequence that is refused leaves nothing in the transaction, though that commits', async (b) => {
    await b.one({ key: 'plain', queue: 'new' })
    const { tx, commit } = await b.openTransaction()
    const refused = async (): Promise<unknown> => b.store.transactions.insertSequenceIn(tx, sequenceOf(b, 2, 'plain'))
    await assert.rejects(refused(), { code: 'E_DUPLICATE_KEY' })
    await commit()
    assert.deepEqual((await b.store.readCensus()).long, {
      steps: 0,
      workflows: 0,
      lists: 0,
      items: 0,
      inbox: 0,
      leftovers: 0,
    })
  }),

  transactionCase('an item settled in a transaction is recorded with it, once, and its claim goes on', async (b) => {
    const job = await claimed(b, 3)
    const item = b.settled(job, { step: step(0), claimGoesOn: true })
    const undone = await b.openTransaction()
    assert.equal(await b.store.transactions.settleJobIn(undone.tx, item), true)
    await undone.rollBack()
    assert.deepEqual(await rows(b, job.id), [])
    const { tx, commit } = await b.openTransaction()
    assert.equal(await b.store.transactions.settleJobIn(tx, item), true)
    assert.equal(await b.store.transactions.settleJobIn(tx, item), false, 'an item is settled once')
    await commit()
    assert.deepEqual([await rows(b, job.id), await b.state(job.id)], [[[0, '"r0"']], 'running'])
    // What the worker writes of an item that settled itself: its open row does not replace the answer.
    const { ref, fence, queue } = job
    const open = step(0, { no: null, value: null, error: '{}' })
    const appended = await b.store.leases.appendStep({ ref, fence, queue, step: open, endsStreak: false })
    assert.deepEqual([appended.held, appended.isAnswered], [true, true])
    assert.deepEqual(await rows(b, job.id), [[0, '"r0"']])
  }),

  transactionCase(
    'the last item settled in a transaction ends the sequence, or cancels it if that was requested',
    async (b) => {
      for (const [verb, end] of [
        [undefined, 'done'],
        ['cancel', 'cancelled'],
      ] as const) {
        const job = await claimed(b, 1)
        if (verb !== undefined)
          await b.store.sequences.changeSequence({ id: job.id, verb, reason: 'r', keepMs: Infinity })
        const { tx, commit } = await b.openTransaction()
        assert.equal(await b.store.transactions.settleJobIn(tx, b.settled(job, { result: '{}', step: step(0) })), true)
        await commit()
        assert.deepEqual([await rows(b, job.id), await b.state(job.id)], [[[0, '"r0"']], end])
      }
    },
  ),

  transactionCase('an item of a sequence that was reset settles nothing', async (b) => {
    const job = await claimed(b, 3)
    await b.store.sequences.changeSequence({ id: job.id, verb: 'reset', reason: 'r', keepMs: Infinity })
    const { tx, commit } = await b.openTransaction()
    const item = b.settled(job, { step: step(0), claimGoesOn: true })
    assert.equal(await b.store.transactions.settleJobIn(tx, item), false)
    await commit()
    assert.deepEqual(await rows(b, job.id), [])
  }),
]
