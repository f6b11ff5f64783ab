import assert from 'node:assert/strict'
import { contract, withUniqueSlot } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'
import {
  addresses,
  answer,
  append,
  CALL,
  calling,
  child,
  claimChild,
  claimOne,
  command,
  ended,
  inbox,
  inHand,
  log,
  open,
  promote,
  suspend,
  workflow,
} from './workflow-fixture.js'

/** Jobs that workflows call: one for an address, and their ends in the inbox of the caller. */

/** The inbox of the caller after the called job has ended. */
async function answered(b: ContractFixture, id: string): Promise<readonly (readonly unknown[])[]> {
  await promote(b)
  assert.equal(await b.state(id), 'ready')
  return inbox(b, await claimOne(b, await b.worker()))
}

const failure = (kind: string, error?: string): string =>
  JSON.stringify(error === undefined ? { kind } : { kind, error })

export const workflowCallCases: readonly ContractCase[] = [
  contract('a call inserts one job for its address, however often it is written', async (b) => {
    const caller = await inHand(b)
    const given = { rows: [CALL], children: [child(b)] }
    const first = await append(b, caller, given)
    const id = first.children[0]?.id
    assert.deepEqual(first.children, [{ id, isNew: true }])
    assert.deepEqual((await append(b, caller, given)).children, [{ id, isNew: true }])
    assert.deepEqual((await append(b, caller, { rows: [CALL], children: [child(b)] })).children, [{ id, isNew: true }])
    assert.equal((await b.found({ names: ['child'] })).length, 1)
    const [row] = (await log(b, caller)).rows ?? []
    assert.deepEqual(JSON.parse(row?.note ?? ''), { child: id })
    await append(b, caller, { rows: [answer(0, { address: CALL.address, kind: 'call', note: '{"log":["x"]}' })] })
    const [done] = (await log(b, caller)).rows ?? []
    assert.deepEqual(JSON.parse(done?.note ?? ''), { child: id, log: ['x'] })
  }),
  contract('a lost claim inserts no child', async (b) => {
    const caller = await inHand(b)
    await command(b, caller.id, 'end')
    const appended = await append(b, caller, { rows: [CALL], children: [child(b)] })
    assert.deepEqual([appended.held, appended.children], [false, []])
    assert.deepEqual(await b.found({ names: ['child'] }), [])
  }),
  contract('a child that is refused undoes its append, and no other', async (b) => {
    await b.insert([b.job({ name: 'child', key: 'k' })])
    const [one, other] = [await inHand(b), await inHand(b)]
    const options = { onDuplicate: 'reject', keepCancelledMs: Infinity } as const
    const rejecting = child(b, { key: 'k' }, { options })
    const answers = await b.store.leases.appendSteps([
      { ...one, run: 0, rows: [CALL], taken: [], children: [rejecting], cancelled: [], endsStreak: false },
      { ...other, run: 0, rows: [CALL], taken: [], children: [child(b)], cancelled: [], endsStreak: false },
    ])
    assert.deepEqual(
      answers.map(({ held, children, error }) => [
        held,
        children.length,
        (error as { code?: string } | undefined)?.code,
      ]),
      [
        [true, 0, 'E_DUPLICATE_KEY'],
        [true, 1, undefined],
      ],
    )
    assert.deepEqual((await log(b, one)).rows, [])
    assert.deepEqual(addresses((await log(b, other)).rows), [CALL.address])
  }),
  contract('a job that is enqueued and not awaited brings no end', async (b) => {
    const caller = await inHand(b)
    const address = '/enqueue:child#0'
    const row = answer(0, { address, kind: 'enqueue', value: null })
    const children = [child(b, {}, { address, isAwaited: false })]
    const appended = await append(b, caller, { rows: [row], children })
    await b.settle(await claimChild(b))
    await promote(b)
    assert.deepEqual(await inbox(b, caller), [])
    const [written] = (await log(b, caller)).rows ?? []
    assert.equal((JSON.parse(written?.note ?? '') as { child: string }).child, appended.children[0]?.id)
  }),
  contract('the result of a called job wakes the caller, whatever its keep', async (b) => {
    for (const keepMs of [Infinity, 1, 0]) {
      const { caller, called } = await calling(b)
      await b.settle(await claimChild(b), { result: `"r${keepMs}"`, keepMs })
      b.clock.now += 5
      while ((await b.prune(10)) > 0);
      const rows = await answered(b, caller.id)
      assert.deepEqual(rows, [['call', called, `"r${keepMs}"`, null]])
      await command(b, caller.id, 'end')
    }
  }),
  contract('the end of a called job comes with its instant, and bytes stay bytes', async (b) => {
    const { caller, called } = await calling(b)
    b.clock.now += 10
    await b.settle(await claimChild(b), { result: new Uint8Array([1, 2]) })
    const endedAt = b.clock.now
    b.clock.now += 10
    await promote(b)
    const job = await claimOne(b, await b.worker())
    const { inbox: rows } = await log(b, job)
    assert.deepEqual(
      rows.map(({ kind, name, payload, sentAt }) => [kind, name, payload, sentAt]),
      [['call', called, new Uint8Array([1, 2]), endedAt]],
    )
    assert.equal(job.id, caller.id)
  }),
  contract('a called job that fails, is cancelled or deleted, or whose result is not kept, says so', async (b) => {
    const cases: readonly (readonly [(id: string) => Promise<unknown>, string])[] = [
      [
        async () => b.settle(await claimChild(b), { to: 'failed', error: '{"message":"x"}' }),
        failure('failed', '{"message":"x"}'),
      ],
      [async () => b.settle(await claimChild(b), { to: 'failed', error: '{}', keepMs: 0 }), failure('failed', '{}')],
      [async () => b.settle(await claimChild(b), { to: 'cancelled', reason: 'r' }), failure('cancelled', 'r')],
      [
        (id) => b.store.jobs.changeJob({ id, from: 'ready', to: 'cancelled', reason: 'by hand', keepMs: Infinity }),
        failure('cancelled', 'by hand'),
      ],
      [(id) => b.store.jobs.changeJob({ id, from: 'ready', to: 'gone', keepMs: 0 }), failure('gone')],
      [async () => b.settle(await claimChild(b), { reason: 'too large' }), failure('result-not-kept', 'too large')],
    ]
    for (const [end, error] of cases) {
      const { caller, called } = await calling(b)
      await end(called)
      assert.deepEqual(await answered(b, caller.id), [['call', called, null, error]])
      await command(b, caller.id, 'end')
    }
  }),
  contract('a parked or retrying child keeps the caller waiting', async (b) => {
    const { caller, called } = await calling(b)
    await b.settle(await claimChild(b), { to: 'retrying', delayMs: 0, retries: 1, error: '{}' })
    await promote(b)
    await b.settle(await claimChild(b), { to: 'parked', reason: 'no' })
    await promote(b)
    assert.equal(await b.state(caller.id), 'blocked')
    await b.store.jobs.changeJob({ id: called, from: 'parked', to: 'ready', due: { inMs: 0 }, keepMs: Infinity })
    await b.settle(await claimChild(b), { result: '1' })
    assert.deepEqual(await answered(b, caller.id), [['call', called, '1', null]])
  }),
  contract('a failed child that is retried at once has still answered', async (b) => {
    const { caller, called } = await calling(b)
    await b.settle(await claimChild(b), { to: 'failed', error: '{}' })
    await b.store.jobs.changeJob({ id: called, from: 'failed', to: 'ready', keepMs: Infinity })
    assert.deepEqual(await answered(b, caller.id), [['call', called, null, failure('failed', '{}')]])
    await b.settle(await claimChild(b), { result: '1' })
    await promote(b)
    assert.equal((await b.store.readCensus()).long.inbox, 1)
  }),
  contract('an end that comes while the caller is in hand, or before it is suspended, is not lost', async (b) => {
    const caller = await inHand(b)
    const appended = await append(b, caller, { rows: [CALL], children: [child(b)] })
    const called = appended.children[0]?.id ?? ''
    await b.settle(await claimChild(b), { result: '1' })
    await promote(b)
    assert.deepEqual(await inbox(b, caller), [['call', called, '1', null]])
    await suspend(b, caller, 'blocked', { waits: [`call:${called}`] })
    assert.equal(await b.state(caller.id), 'ready')
  }),
  contract('the call and the suspension may be one settlement', async (b) => {
    const caller = await inHand(b)
    const children = [child(b, { queue: 'other' })]
    const called = children[0]?.job.id ?? ''
    await suspend(b, caller, 'blocked', { waits: [`call:${called}`] }, { rows: [CALL], children })
    await b.settle(await claimChild(b), { result: '1' })
    assert.deepEqual(await answered(b, caller.id), [['call', called, '1', null]])
  }),
  contract('several workflows that wait for the job of one key are all answered', async (b) => {
    const calls = [await calling(b, { key: 'k' }), await calling(b, { key: 'k' }), await calling(b, { key: 'k' })]
    const called = calls[0]?.called ?? ''
    assert.deepEqual(
      calls.map((call) => call.called),
      [called, called, called],
    )
    await promote(b)
    await b.settle(await claimChild(b), { result: '1', keepMs: 0 })
    for (let left = 10; left > 0; left -= 1) await b.store.jobs.promoteJobs(1)
    for (const { caller } of calls) assert.equal(await b.state(caller.id), 'ready')
    const jobs = (await b.claim(await b.worker())).jobs
    for (const job of jobs) assert.deepEqual(await inbox(b, job), [['call', called, '1', null]])
    const { links, todos } = await b.store.readCensus()
    assert.deepEqual([jobs.length, links, todos], [3, [], []])
  }),
  contract('a call that finds a job in hand, or one that has ended, is answered too', async (b) => {
    await b.insert([b.job({ name: 'child', key: 'k' })])
    const running = await claimChild(b)
    const first = await calling(b, { key: 'k' })
    assert.equal(first.called, running.id)
    await promote(b)
    await b.settle(running, { result: '1' })
    assert.deepEqual(await answered(b, first.caller.id), [['call', running.id, '1', null]])
    await command(b, first.caller.id, 'end')
    await b.insert([b.job({ name: 'child', ...withUniqueSlot({ forMs: 60_000 }) })])
    const done = await claimChild(b)
    await b.settle(done, { result: '2' })
    const second = await calling(b, withUniqueSlot({ forMs: 60_000 }))
    assert.equal(second.called, done.id)
    assert.deepEqual(await answered(b, second.caller.id), [['call', done.id, '2', null]])
  }),
  contract('called jobs are cancelled when the workflow waits for them no longer', async (b) => {
    const waitingChild = await calling(b)
    await command(b, waitingChild.caller.id, 'cancel')
    const caller = await claimOne(b, await b.worker())
    await append(b, caller, {
      rows: [answer(0, { address: CALL.address, kind: 'call' })],
      cancelled: [waitingChild.called],
    })
    assert.equal(await b.state(waitingChild.called), 'cancelled')
    await promote(b)
    assert.deepEqual(await inbox(b, caller), [['cancel', null, null, 'cancel it']])
    await b.settle(caller, { to: 'cancelled', workflow: ended() })
    const running = await calling(b)
    await claimChild(b)
    await command(b, running.caller.id, 'end')
    assert.equal(await b.state(running.called), 'running')
    assert.equal((await b.requests()).length, 1)
  }),
  contract('a called workflow is cancelled by its inbox', async (b) => {
    const { caller, called } = await calling(b, { shape: 'workflow' })
    const inner = await claimChild(b)
    await suspend(b, inner, 'blocked', { waits: ['event:go'] }, { rows: [open('/wait:go#0', { kind: 'wait' })] })
    await command(b, caller.id, 'end')
    assert.equal(await b.state(called), 'ready')
    assert.deepEqual(await inbox(b, await claimChild(b)), [
      ['cancel', null, null, 'the workflow that called it waits for it no longer'],
    ])
  }),
  contract('the end of a workflow drops its calls, and cancels those that its settlement names', async (b) => {
    const caller = await inHand(b)
    const [one, other] = [child(b), child(b, {}, { address: '/call:child#1' })]
    const rows = [CALL, open('/call:child#1', { kind: 'call' })]
    await append(b, caller, { rows, children: [one, other] })
    await b.settle(caller, { to: 'failed', error: '{}', workflow: ended({ cancelled: [one.job.id] }) })
    assert.deepEqual([await b.state(one.job.id), await b.state(other.job.id)], ['cancelled', 'ready'])
    await b.settle(await claimChild(b))
    await promote(b)
    const { links, todos, long } = await b.store.readCensus()
    assert.deepEqual([links, todos, long.inbox], [[], [], 0])
  }),
  contract('a workflow may be a parent and a member like any job', async (b) => {
    const parent = await workflow(b, { group: 'g' })
    const [after] = await b.insert([b.job({ name: 'child', after: [{ id: parent }] })])
    const job = await claimOne(b, await b.worker())
    await suspend(b, job, 'blocked', { waits: ['event:go'] }, { rows: [answer(0)] })
    await promote(b)
    await b.store.workflows.sendEvent({ to: { id: parent }, name: 'go', eventId: null, payload: '1' })
    assert.equal(await b.state(parent), 'ready')
    await b.settle(await claimOne(b, await b.worker()), { workflow: ended() })
    await promote(b)
    assert.equal(await b.state(after?.id ?? ''), 'ready')
  }),
]
