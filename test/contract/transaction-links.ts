import assert from 'node:assert/strict'
import type { Promoted } from '../../src/store/store.js'
import type { ContractFixture } from './fixture.js'
import { only } from './fixture.js'
import { transactionCase } from './transaction-fixture.js'
import type { TransactionCase } from './transaction-fixture.js'

/** Promotes until all to-dos of ended parents are processed. */
async function promoted(b: ContractFixture): Promise<Promoted> {
  const told = await b.store.jobs.promoteJobs(100)
  return told.again ? promoted(b) : told
}

/** Parents, children and members of groups inside a caller's transaction. */
export const transactionLinkCases: readonly TransactionCase[] = [
  transactionCase(
    'a job in a transaction may run after one of the same transaction, and after none that it cannot see',
    async (b) => {
      const { tx, commit } = await b.openTransaction()
      const parent = b.job({ key: 'k' })
      const child = b.job({ after: [{ id: parent.id }], name: 'child' })
      const keyed = b.job({ after: [{ name: 'mail', key: 'k' }], name: 'child' })
      await b.insertIn(tx, [parent])
      await b.insertIn(tx, [child, keyed])
      await assert.rejects(() => b.insertIn(tx, [b.job({ after: [{ id: b.job().id }] })]), { code: 'E_PARENT_MISSING' })
      await commit()
      assert.deepEqual([await b.state(child.id), await b.state(keyed.id)], ['blocked', 'blocked'])
      await b.settle(only(await b.claim(await b.worker())))
      await promoted(b)
      assert.deepEqual([await b.state(child.id), await b.state(keyed.id)], ['ready', 'ready'])
    },
  ),

  transactionCase('children written in a transaction that is rolled back leave nothing', async (b) => {
    const parent = await b.one()
    const { tx, rollBack } = await b.openTransaction()
    await b.insertIn(tx, [b.job({ after: [{ id: parent }], name: 'child' })])
    await rollBack()
    await b.settle(only(await b.claim(await b.worker())))
    assert.equal((await promoted(b)).promoted, 0)
    assert.equal((await b.found({})).length, 1)
  }),

  transactionCase('a parent that is settled in a transaction releases its children when that commits', async (b) => {
    const parent = await b.one()
    const child = await b.one({ after: [{ id: parent }], name: 'child' })
    await promoted(b)
    const claimed = only(await b.claim(await b.worker()))
    const { tx, commit } = await b.openTransaction()
    assert.equal(await b.store.transactions.settleJobIn(tx, b.settled(claimed)), true)
    await commit()
    await promoted(b)
    assert.equal(await b.state(child), 'ready')
  }),

  transactionCase(
    'members and the seal of a group that are rolled back leave nothing, and a settlement in a transaction is counted',
    async (b) => {
      const worker = await b.worker()
      const members = async (): Promise<string[]> =>
        (await b.store.groups.readGroup('g')).counts.map(({ state, members: many }) => `${many} ${state}`)
      const undone = await b.openTransaction()
      await b.insertIn(undone.tx, [b.job({ group: 'g' }), b.job({ group: 'g', due: { inMs: 1_000 } })])
      assert.equal(await b.store.transactions.sealGroupIn(undone.tx, { group: 'g', whenDone: null }), true)
      await assert.rejects(b.insertIn(undone.tx, [b.job({ group: 'g' })]), { code: 'E_GROUP_SEALED' })
      await undone.rollBack()
      assert.deepEqual([await members(), (await b.store.groups.readGroup('g')).sealedAt], [[], null])
      const kept = await b.openTransaction()
      await b.insertIn(kept.tx, [b.job({ group: 'g' })])
      assert.equal(await b.store.transactions.sealGroupIn(kept.tx, { group: 'g', whenDone: null }), true)
      await kept.commit()
      assert.deepEqual(await members(), ['1 ready'])
      const settled = b.settled(only(await b.claim(worker)))
      const ending = await b.openTransaction()
      assert.equal(await b.store.transactions.settleJobIn(ending.tx, settled), true)
      await ending.commit()
      await b.store.jobs.promoteJobs(10)
      assert.deepEqual([await members(), (await b.store.groups.readGroup('g')).completedAt], [['1 done'], b.clock.now])
    },
  ),

  transactionCase(
    'a seal whose whenDone job has a missing parent is refused, and the transaction can continue',
    async (b) => {
      const { tx, commit } = await b.openTransaction()
      const options = { onDuplicate: 'return', keepCancelledMs: Infinity } as const
      const sealAfter = async (parent: string): Promise<boolean> => {
        const whenDone = { job: b.job({ name: 'report', after: [{ id: parent }] }), options }
        return b.store.transactions.sealGroupIn(tx, { group: 'g', whenDone })
      }
      await assert.rejects(sealAfter(b.job().id), { code: 'E_PARENT_MISSING' })
      const [member] = await b.insertIn(tx, [b.job({ group: 'g' })])
      assert.equal(await sealAfter(member?.id ?? ''), true)
      await commit()
      assert.equal((await b.store.groups.readGroup('g')).sealedAt, b.clock.now)
    },
  ),
]
