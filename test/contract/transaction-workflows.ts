import assert from 'node:assert/strict'
import type { NewEvent } from '../../src/store/workflows.js'
import { only } from './fixture.js'
import { transactionCase } from './transaction-fixture.js'
import type { TransactionCase, TransactionFixture } from './transaction-fixture.js'
import { addresses, answer, ended, inbox, promote, waiting, workflow } from './workflow-fixture.js'

/** Workflows in transactions: events that are sent in a caller's, and steps that are recorded in the handler's. */

const event = (id: string, change: Partial<NewEvent> = {}): NewEvent => ({
  to: { id },
  name: 'go',
  eventId: null,
  payload: '"p"',
  ...change,
})

async function steps(b: TransactionFixture, id: string): Promise<unknown> {
  return addresses((await b.store.workflows.readSteps(id, undefined, 10))?.rows)
}

export const transactionWorkflowCases: readonly TransactionCase[] = [
  transactionCase('an event sent in a transaction is sent if and only if that commits', async (b) => {
    const { id } = await waiting(b)
    for (const end of ['rollBack', 'commit'] as const) {
      const transaction = await b.openTransaction()
      assert.deepEqual(await b.store.transactions.sendEventIn(transaction.tx, event(id)), {
        did: 'sent',
        id,
        jobName: 'mail',
      })
      await transaction[end]()
      await promote(b)
      assert.equal(await b.state(id), end === 'commit' ? 'ready' : 'blocked')
    }
    assert.deepEqual(await inbox(b, only(await b.claim(await b.worker()))), [['event', 'go', '"p"', null]])
  }),

  transactionCase('the audit row of an event commits and rolls back with it', async (b) => {
    const { id } = await waiting(b)
    const audit = { actor: 'ada', role: null, verb: 'send', reason: null, keepMs: 60_000 }
    for (const end of ['rollBack', 'commit'] as const) {
      const transaction = await b.openTransaction()
      await b.store.transactions.sendEventIn(transaction.tx, event(id, { audit }))
      await transaction[end]()
      const { rows } = await b.store.observing.readAudit({ limit: 9, cursor: null })
      assert.deepEqual(
        rows.map(({ target, after }) => [target, after]),
        end === 'commit' ? [[`job ${id}`, 'blocked, event go']] : [],
      )
    }
  }),

  transactionCase('an event that is refused in a transaction leaves the rest of it', async (b) => {
    const [id, plain] = [await workflow(b), await b.one({ name: 'other' })]
    const { tx, commit } = await b.openTransaction()
    const did = async (given: NewEvent): Promise<string> => (await b.store.transactions.sendEventIn(tx, given)).did
    assert.equal(await did(event(plain)), 'plain')
    assert.equal(await did(event(b.ids.jobId(b.clock.now))), 'gone')
    assert.equal(await did(event(id, { eventId: 'one' })), 'sent')
    assert.equal(await did(event(id, { eventId: 'one' })), 'known')
    await commit()
    await promote(b)
    assert.equal((await b.store.workflows.readWorkflow(id))?.unread, 1)
    assert.equal((await b.store.readCensus()).todos.length, 0)
  }),

  transactionCase(
    'a step that is recorded in a transaction is there with it, once, and the claim goes on',
    async (b) => {
      const id = await workflow(b)
      const job = only(await b.claim(await b.worker()))
      const settled = b.settled(job, { claimGoesOn: true, workflow: ended({ rows: [answer(0)] }) })
      const undone = await b.openTransaction()
      assert.equal(await b.store.transactions.settleJobIn(undone.tx, settled), true)
      await undone.rollBack()
      assert.deepEqual(await steps(b, id), [])
      await b.store.transactions.transact({
        claim: job,
        work: () => 1,
        settle: () => settled,
        stopped: () => undefined,
      })
      assert.deepEqual([await steps(b, id), await b.state(id)], [['/step:s0#0'], 'running'])
      await b.store.workflows.changeWorkflow({ id, verb: 'end', reason: 'r', keepMs: Infinity })
      const late = { claim: job, work: () => 1, settle: () => settled, stopped: () => undefined }
      await assert.rejects(b.store.transactions.transact(late), { code: 'E_LEASE_LOST' })
    },
  ),
]
