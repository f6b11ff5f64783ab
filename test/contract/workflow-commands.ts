import assert from 'node:assert/strict'
import { contract } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'
import {
  addresses,
  answer,
  append,
  calling,
  claimChild,
  claimOne,
  command,
  ended,
  inbox,
  inHand,
  log,
  open,
  promote,
  sent,
  suspend,
  sweepAll,
  WAIT,
  waiting,
  workflow,
} from './workflow-fixture.js'

/** Cancel, pause, resume and retry of workflows in each of their places. */

const CANCEL = ['cancel', null, null, 'cancel it']

async function did(b: ContractFixture, id: string, verb: Parameters<typeof command>[2]): Promise<readonly unknown[]> {
  const { did: what, to } = await command(b, id, verb)
  return [what, to, await b.state(id)]
}

export const workflowCommandCases: readonly ContractCase[] = [
  contract('a workflow that has recorded nothing is cancelled at once', async (b) => {
    for (const due of [0, 5_000]) {
      const id = await workflow(b, { due: { inMs: due }, key: `k${due}` })
      assert.deepEqual(await did(b, id, 'cancel'), ['moved', 'cancelled', 'cancelled'])
      assert.deepEqual(await did(b, id, 'cancel'), ['no', null, 'cancelled'])
    }
  }),
  contract('a cancel of a suspended workflow goes into its inbox and wakes it', async (b) => {
    const { id } = await waiting(b, { group: 'g' })
    assert.deepEqual(await did(b, id, 'cancel'), ['requested', null, 'ready'])
    assert.equal((await b.store.workflows.readWorkflow(id))?.isCancelRequested, true)
    assert.deepEqual(await did(b, id, 'cancel'), ['requested', null, 'ready'])
    assert.deepEqual(await did(b, id, 'pause'), ['no', null, 'ready'])
    const job = await claimOne(b, await b.worker())
    assert.deepEqual(await inbox(b, job), [CANCEL])
    const [read] = await b.store.leases.readInboxes([job])
    const unwinding = answer(1, { address: '!cancel', kind: '!cancel', value: null })
    await append(b, job, { rows: [unwinding], taken: [read?.inbox[0]?.number ?? -1] })
    assert.deepEqual(await inbox(b, job), [])
    assert.deepEqual(await did(b, id, 'cancel'), ['requested', null, 'running'])
    assert.deepEqual(await did(b, id, 'resume'), ['no', null, 'running'])
    await suspend(b, job, 'scheduled', { wakeAt: b.clock.now + 100 })
    assert.equal(await b.state(id), 'scheduled')
    assert.deepEqual(await did(b, id, 'pause'), ['no', null, 'scheduled'])
    const counts = (await b.store.groups.readGroup('g'))?.counts.filter(({ members }) => members !== 0)
    assert.deepEqual(
      counts?.map(({ state, members }) => [state, members]),
      [['scheduled', 1]],
    )
  }),
  contract('a cancel of a workflow in hand goes into its inbox, and its suspension is ready', async (b) => {
    const job = await inHand(b)
    assert.deepEqual(await did(b, job.id, 'cancel'), ['requested', null, 'running'])
    assert.deepEqual(await b.requests(), [])
    await suspend(b, job, 'blocked', { waits: ['event:go'] }, { rows: [WAIT] })
    assert.equal(await b.state(job.id), 'ready')
  }),
  contract('a cancel withdraws a pause that was requested, and a paused workflow unwinds', async (b) => {
    const job = await inHand(b)
    assert.deepEqual(await did(b, job.id, 'pause'), ['requested', null, 'running'])
    assert.deepEqual(await did(b, job.id, 'cancel'), ['requested', null, 'running'])
    await suspend(b, job, 'blocked', { waits: ['event:go'] }, { rows: [WAIT] })
    assert.equal(await b.state(job.id), 'ready')
    await b.settle(await claimOne(b, await b.worker()), { to: 'cancelled', workflow: ended() })
    const paused = await waiting(b)
    await command(b, paused.id, 'pause')
    assert.deepEqual(await did(b, paused.id, 'cancel'), ['requested', null, 'ready'])
    assert.deepEqual(await inbox(b, await claimOne(b, await b.worker())), [CANCEL])
  }),
  contract('a rescue of a workflow with a cancel in its inbox makes it ready', async (b) => {
    const worker = await b.worker()
    await workflow(b)
    const job = await claimOne(b, worker)
    await append(b, job, { rows: [answer(0)] })
    await command(b, job.id, 'cancel')
    const rescued = b.settled(job, { to: 'ready', streak: 1 })
    assert.deepEqual((await b.store.leases.rescueJobs(worker, 0, [rescued]))?.refused, [])
    assert.equal(await b.state(job.id), 'ready')
    assert.deepEqual(await inbox(b, await claimOne(b, await b.worker())), [CANCEL])
  }),
  contract('a parked workflow is not cancelled, paused or resumed', async (b) => {
    const job = await inHand(b)
    await b.settle(job, { to: 'parked', reason: 'drift', workflow: ended({ rows: [answer(0)] }) })
    for (const verb of ['cancel', 'end', 'pause', 'resume'] as const)
      assert.deepEqual(await did(b, job.id, verb), ['no', null, 'parked'])
  }),
  contract('ending at once takes a workflow from its place or its claim, and frees its key', async (b) => {
    const suspended = await waiting(b, { key: 'a', group: 'g' })
    assert.deepEqual(await did(b, suspended.id, 'end'), ['moved', 'cancelled', 'cancelled'])
    const job = await inHand(b, { key: 'a', group: 'g' })
    assert.deepEqual(await did(b, job.id, 'end'), ['moved', 'cancelled', 'cancelled'])
    assert.deepEqual(await append(b, job, { rows: [answer(0)] }), { ref: job.ref, held: false, children: [] })
    assert.deepEqual(await b.settle(job, { workflow: ended() }), [job.ref])
    const row = await b.read(job.id)
    assert.deepEqual([row.state, row.reason], ['cancelled', 'end it'])
    assert.equal((await b.insert([b.job({ key: 'a' })]))[0]?.isNew, true)
    const counts = (await b.store.groups.readGroup('g'))?.counts.filter(({ members }) => members !== 0)
    assert.deepEqual(
      counts?.map(({ state, members }) => [state, members]),
      [['cancelled', 2]],
    )
  }),
  contract('ending at once cancels what the workflow called, but not what it left or found', async (b) => {
    const { caller, called } = await calling(b)
    await command(b, caller.id, 'end')
    assert.equal(await b.state(called), 'cancelled')
    const left = await calling(b, {}, { isLeft: true })
    await command(b, left.caller.id, 'end')
    assert.equal(await b.state(left.called), 'ready')
    const old = await b.one({ name: 'child', key: 'k' })
    const found = await calling(b, { key: 'k' })
    assert.equal(found.called, old)
    await command(b, found.caller.id, 'end')
    assert.equal(await b.state(old), 'ready')
  }),
  contract('a pause of a workflow in hand is applied by its suspension, and a resume continues the wait', async (b) => {
    const job = await inHand(b)
    await command(b, job.id, 'pause')
    await suspend(b, job, 'blocked', { waits: ['event:go'], wakeAt: b.clock.now + 500 }, { rows: [WAIT] })
    assert.equal(await b.state(job.id), 'paused')
    assert.equal((await b.store.jobs.promoteJobs(10)).nextInMs, null)
    assert.deepEqual(await did(b, job.id, 'resume'), ['moved', 'blocked', 'blocked'])
    assert.equal((await b.store.jobs.promoteJobs(10)).nextInMs, 500)
    assert.equal(await sent(b, job.id), 'sent')
    assert.equal(await b.state(job.id), 'ready')
  }),
  contract('a workflow in hand that is paused between two steps is ready when it is resumed', async (b) => {
    const job = await inHand(b)
    await command(b, job.id, 'pause')
    await b.settle(job, { to: 'ready', workflow: ended({ rows: [answer(0)] }) })
    assert.equal(await b.state(job.id), 'paused')
    assert.deepEqual(await did(b, job.id, 'resume'), ['moved', 'ready', 'ready'])
    const held = await claimOne(b, await b.worker())
    await command(b, job.id, 'pause')
    assert.deepEqual(await did(b, job.id, 'resume'), ['requested', null, 'running'])
    await suspend(b, held, 'blocked', { waits: ['event:go'] })
    assert.equal(await b.state(job.id), 'blocked')
  }),
  contract('a resumed workflow is ready if what it waits for has come, or its time has passed', async (b) => {
    const { id } = await waiting(b)
    await command(b, id, 'pause')
    await sent(b, id)
    assert.deepEqual(await did(b, id, 'resume'), ['moved', 'ready', 'ready'])
    for (const to of ['blocked', 'scheduled', 'retrying'] as const) {
      const job = await claimOne(b, await b.worker())
      await log(b, job)
      await suspend(b, job, to, { waits: [], wakeAt: b.clock.now + 100 })
      assert.deepEqual(await did(b, id, 'pause'), ['moved', 'paused', 'paused'])
      assert.deepEqual(await did(b, id, 'pause'), ['no', null, 'paused'])
      assert.deepEqual(await did(b, id, 'resume'), ['moved', to, to])
      await command(b, id, 'pause')
      b.clock.now += 100
      await promote(b)
      assert.deepEqual(await did(b, id, 'resume'), ['moved', 'ready', 'ready'])
    }
  }),
  contract('a workflow that never began is paused and resumed like any job', async (b) => {
    const id = await workflow(b, { due: { inMs: 100 } })
    await command(b, id, 'pause')
    await command(b, id, 'resume')
    assert.equal(await b.state(id), 'scheduled')
  }),
  contract(
    'a retry forgets the answer that failed and what was called after it, and no number is given again',
    async (b) => {
      const job = await inHand(b, { key: 'k' })
      const rows = [
        answer(0),
        answer(1, { error: '{"name":"Error","message":"x"}', value: null }),
        answer(2, { since: 1 }),
        answer(3, { since: 2 }),
        open('/sleep:#0', { since: 4 }),
        open('/sleep:#1', { since: 1 }),
      ]
      await b.settle(job, { to: 'failed', error: '{}', workflow: ended({ rows, forgetFrom: 1 }) })
      const retried = await command(b, job.id, 'retry')
      assert.deepEqual([retried.did, retried.from, retried.to], ['moved', 'failed', 'ready'])
      assert.deepEqual(retried.forgotten, ['/step:s1#0', '/step:s3#0', '/sleep:#0'])
      assert.match((await b.read(job.id)).log ?? '', /retried; forgot \/step:s1#0, \/step:s3#0, \/sleep:#0/)
      const read = await log(b, await claimOne(b, await b.worker()))
      assert.deepEqual(addresses(read.rows), ['/step:s0#0', '/step:s2#0', '/sleep:#1'])
      assert.deepEqual([read.nextNo, read.retriedAt], [4, b.clock.now])
      assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.isNew, false)
    },
  ),
  contract('a retry of a cancelled or parked workflow continues it', async (b) => {
    const job = await inHand(b)
    await append(b, job, { rows: [answer(0)] })
    await command(b, job.id, 'cancel')
    await command(b, job.id, 'end')
    assert.deepEqual(await did(b, job.id, 'retry'), ['moved', 'ready', 'ready'])
    const again = await claimOne(b, await b.worker())
    assert.deepEqual([addresses((await log(b, again)).rows), await inbox(b, again)], [['/step:s0#0'], []])
    await b.settle(again, { to: 'parked', reason: 'drift', workflow: ended() })
    assert.deepEqual(await did(b, job.id, 'retry'), ['moved', 'ready', 'ready'])
    assert.deepEqual(await did(b, job.id, 'retry'), ['no', null, 'ready'])
  }),
  contract('a passed deadline is forgotten by a retry, and one to come is kept', async (b) => {
    for (const [deadlineAt, kept] of [
      [b.clock.now - 1, null],
      [b.clock.now + 900, b.clock.now + 900],
    ] as const) {
      const job = await inHand(b)
      await suspend(b, job, 'ready', {}, { deadlineAt })
      const again = await claimOne(b, await b.worker())
      await b.settle(again, { to: 'failed', error: '{}', workflow: ended({ deadlineAt }) })
      await command(b, job.id, 'retry')
      const third = await claimOne(b, await b.worker())
      assert.equal((await log(b, third)).deadlineAt, kept)
      await b.settle(third, { workflow: ended() })
    }
  }),
  contract('a fresh retry begins with an empty log and the same input', async (b) => {
    const job = await inHand(b)
    await b.settle(job, { to: 'failed', error: '{}', workflow: ended({ rows: [answer(0), answer(1)], forgetFrom: 1 }) })
    assert.deepEqual(await did(b, job.id, 'retry-fresh'), ['moved', 'ready', 'ready'])
    const again = await claimOne(b, await b.worker())
    const read = await log(b, again)
    assert.deepEqual([again.payload, read.run, read.rows, read.nextNo], [job.payload, 1, [], 0])
    await sweepAll(b)
    assert.equal((await b.store.readCensus()).long.steps, 0)
    assert.equal((await command(b, await b.one(), 'retry-fresh')).did, 'plain')
    assert.equal((await command(b, b.ids.jobId(b.clock.now), 'retry')).did, 'gone')
  }),
  contract('a workflow that was suspended, paused and deleted leaves no row', async (b) => {
    const { id } = await waiting(b)
    await command(b, id, 'pause')
    await b.store.jobs.changeJob({ id, from: 'paused', to: 'gone', keepMs: 0 })
    const { caller, called } = await calling(b)
    await b.store.jobs.changeJob({ id: caller.id, from: 'blocked', to: 'gone', keepMs: 0 })
    await b.settle(await claimChild(b))
    await promote(b)
    assert.equal(await b.state(called), 'done')
    await sweepAll(b)
    const { long, links, todos } = await b.store.readCensus()
    assert.deepEqual([long.steps, long.workflows, long.inbox, long.leftovers, links, todos], [0, 0, 0, 0, [], []])
  }),
]
