import assert from 'node:assert/strict'
import { contract, only } from './fixture.js'
import type { ContractCase } from './fixture.js'
import type { ClaimedJob } from '../../src/store/store.js'
import {
  addresses,
  answer,
  append,
  claimOne,
  command,
  ended,
  inbox,
  inHand,
  log,
  open,
  promote,
  send,
  sent,
  suspend,
  sweepAll,
  WAIT,
  waiting,
  workflow,
} from './workflow-fixture.js'

/** Workflows: a log under the fence, an inbox, suspension without a claim, and their commands. */
export const workflowCases: readonly ContractCase[] = [
  contract('a log is read as answers by number and then open rows', async (b) => {
    const job = await inHand(b)
    const rows = [open('/sleep:#0', { until: 99 }), answer(1), answer(0, { note: '{"log":["a"]}' })]
    assert.deepEqual(await append(b, job, { rows }), { ref: job.ref, held: true, children: [] })
    const read = await log(b, job)
    assert.deepEqual([read.run, read.nextNo, read.deadlineAt, read.retriedAt], [0, 2, null, null])
    assert.deepEqual(addresses(read.rows), ['/step:s0#0', '/step:s1#0', '/sleep:#0'])
    const [first, second, last] = read.rows ?? []
    assert.deepEqual([first?.value, first?.note, first?.answeredAt], ['"v0"', '{"log":["a"]}', 7])
    assert.deepEqual([second?.since, second?.no], [1, 1])
    assert.deepEqual([last?.until, last?.no, last?.answeredAt], [99, null, null])
  }),
  contract('workflows without a log, a suspension and an inbox are found, and no others', async (b) => {
    const worker = await b.worker()
    const fresh = await workflow(b)
    const sentTo = await workflow(b)
    const begun = await workflow(b)
    const suspended = await workflow(b)
    await b.one()
    const { jobs: claimed } = await b.claim(worker)
    const of = (id: string): ClaimedJob => {
      const job = claimed.find((each) => each.id === id)
      assert.ok(job)
      return job
    }
    const unbegun = async (): Promise<ReadonlySet<number>> => new Set(await b.store.leases.findUnbegun(claimed))
    assert.deepEqual(await unbegun(), new Set([fresh, sentTo, begun, suspended].map((id) => of(id).ref)))
    assert.equal(await sent(b, sentTo), 'sent')
    await append(b, of(begun), { rows: [answer(0)] })
    await suspend(b, of(suspended), 'ready')
    assert.deepEqual(await unbegun(), new Set([of(fresh).ref]))
    assert.deepEqual(await b.store.leases.findUnbegun([]), [])
  }),
  contract('bytes are kept in a log', async (b) => {
    const job = await inHand(b)
    await append(b, job, { rows: [answer(0, { value: new Uint8Array([0, 255]) })] })
    assert.deepEqual((await log(b, job)).rows?.[0]?.value, new Uint8Array([0, 255]))
  }),
  contract('an answer fills an open row, and a row with its answer stays', async (b) => {
    const job = await inHand(b)
    const address = '/sleep:#0'
    await append(b, job, { rows: [open(address, { until: 9 })] })
    await append(b, job, { rows: [answer(0, { address, kind: 'sleep', value: null })] })
    await append(b, job, { rows: [answer(5, { address })] })
    const { rows = [] } = await log(b, job)
    assert.deepEqual(
      rows.map((row) => [row.address, row.no, row.value, row.until]),
      [[address, 0, null, null]],
    )
  }),
  contract('a lost claim appends nothing, and clears no suspension of another', async (b) => {
    const job = await inHand(b)
    const worker = await b.worker()
    assert.deepEqual(await suspend(b, job, 'ready'), [])
    const next = await claimOne(b, worker)
    assert.deepEqual(await append(b, job, { rows: [answer(0)] }), { ref: job.ref, held: false, children: [] })
    assert.deepEqual(await b.store.leases.readLogs([{ ...job, keptFence: null }]), [])
    await suspend(b, next, 'blocked', { waits: ['event:go'] })
    assert.deepEqual(await b.store.leases.readLogs([{ ...job, keptFence: null }]), [])
    assert.equal(await sent(b, job.id), 'sent')
    assert.equal(await b.state(job.id), 'ready')
    assert.deepEqual((await log(b, await claimOne(b, worker))).rows, [])
  }),
  contract('an answer ends the count of crashes', async (b) => {
    const job = await inHand(b)
    await b.settle(job, { to: 'ready', streak: 1, crashes: 2 })
    const again = await claimOne(b, await b.worker())
    assert.deepEqual([again.streak, again.crashes], [1, 2])
    await append(b, again, { rows: [answer(0)], endsStreak: true })
    const { streak, crashes } = await b.read(job.id)
    assert.deepEqual([streak, crashes], [0, 0])
  }),
  contract('a kept run goes on if no other claim has read the log', async (b) => {
    const job = await inHand(b)
    await suspend(b, job, 'ready', {}, { rows: [answer(0)], deadlineAt: 500 })
    const second = await claimOne(b, await b.worker())
    const kept = await log(b, second, job.fence)
    assert.deepEqual([kept.rows, kept.deadlineAt], [undefined, 500])
    await suspend(b, second, 'ready', {}, { deadlineAt: 500 })
    const third = await claimOne(b, await b.worker())
    assert.deepEqual(addresses((await log(b, third, job.fence)).rows), ['/step:s0#0'])
  }),
  contract('a suspended workflow waits for a time in the state that it is given', async (b) => {
    for (const to of ['scheduled', 'retrying'] as const) {
      const job = await inHand(b)
      await suspend(b, job, to, { wakeAt: b.clock.now + 500 }, { rows: [open('/sleep:#0')] })
      const row = await b.read(job.id)
      assert.deepEqual([row.state, row.dueAt, row.claimed, row.attempt], [to, b.clock.now + 500, false, 0])
      b.clock.now += 499
      await promote(b)
      assert.equal(await b.state(job.id), to)
      b.clock.now += 1
      await promote(b)
      assert.equal(await b.state(job.id), 'ready')
      await b.settle(await claimOne(b, await b.worker()))
    }
  }),
  contract('a blocked workflow wakes at its time, and the time is announced', async (b) => {
    const job = await inHand(b, { group: 'g' })
    await suspend(b, job, 'blocked', { waits: ['event:go'], wakeAt: b.clock.now + 500 }, { rows: [WAIT] })
    assert.equal(await b.state(job.id), 'blocked')
    assert.equal((await b.store.jobs.promoteJobs(10)).nextInMs, 500)
    b.clock.now += 500
    await promote(b)
    const row = await b.read(job.id)
    assert.deepEqual([row.state, row.dueAt], ['ready', b.clock.now])
    const counts = (await b.store.groups.readGroup('g'))?.counts.filter(({ members }) => members !== 0)
    assert.deepEqual(
      counts?.map(({ state, members }) => [state, members]),
      [['ready', 1]],
    )
    assert.equal((await b.store.jobs.promoteJobs(10)).nextInMs, null)
  }),
  contract('an event wakes a workflow that waits for it, and no other', async (b) => {
    const { id } = await waiting(b)
    assert.equal(await sent(b, id, { name: 'other' }), 'sent')
    assert.equal(await b.state(id), 'blocked')
    b.clock.now += 10
    assert.deepEqual(await send(b, id), { did: 'sent', id, jobName: 'mail' })
    const row = await b.read(id)
    assert.deepEqual([row.state, row.dueAt], ['ready', b.clock.now])
    const job = await claimOne(b, await b.worker())
    assert.deepEqual(await inbox(b, job), [
      ['event', 'other', '"p"', null],
      ['event', 'go', '"p"', null],
    ])
    assert.deepEqual(addresses((await log(b, job)).rows), ['/step:s0#0', '/wait:go#0'])
  }),
  contract('an event that came before the suspension makes it ready at once', async (b) => {
    const job = await inHand(b)
    await sent(b, job.id)
    await suspend(b, job, 'blocked', { waits: ['event:other'], wakeAt: b.clock.now + 60_000 }, { rows: [answer(0)] })
    assert.equal(await b.state(job.id), 'blocked')
    await sent(b, job.id, { name: 'other' })
    const again = await claimOne(b, await b.worker())
    await log(b, again)
    await suspend(b, again, 'blocked', { waits: ['event:go'] })
    assert.equal(await b.state(job.id), 'ready')
  }),
  contract('an event is kept in every state that is not final', async (b) => {
    const held = await b.worker()
    const early = await workflow(b, { due: { inMs: 5_000 } })
    assert.equal(await sent(b, early), 'sent')
    assert.equal(await b.state(early), 'scheduled')
    const parked = await inHand(b)
    await b.settle(parked, { to: 'parked', reason: 'drift', workflow: ended({ rows: [answer(0)] }) })
    assert.equal(await sent(b, parked.id), 'sent')
    assert.equal(await b.state(parked.id), 'parked')
    const { id } = await waiting(b)
    await command(b, id, 'pause')
    assert.equal(await sent(b, id), 'sent')
    assert.equal(await b.state(id), 'paused')
    await command(b, id, 'resume')
    const done = await claimOne(b, held)
    assert.deepEqual(await inbox(b, done), [['event', 'go', '"p"', null]])
    await b.settle(done, { workflow: ended() })
    assert.equal(await sent(b, id), 'ended')
    assert.equal((await b.store.workflows.readWorkflow(id))?.unread, 1)
  }),
  contract('an event for no job, for a plain one or by a key that no job has is refused', async (b) => {
    assert.deepEqual(await send(b, b.ids.jobId(b.clock.now)), { did: 'gone', id: null, jobName: null })
    const plain = await b.one()
    assert.deepEqual(await send(b, plain), { did: 'plain', id: plain, jobName: 'mail' })
    const id = await workflow(b, { key: 'k' })
    assert.equal((await send(b, '', { to: { name: 'mail', key: 'k' } })).id, id)
    assert.equal(await sent(b, '', { to: { name: 'mail', key: 'x' } }), 'gone')
  }),
  contract('an event of one id is written once, also after it was taken and after a restart', async (b) => {
    const job = await inHand(b)
    const known = { eventId: 'click-1' }
    assert.equal(await sent(b, job.id, known), 'sent')
    assert.equal(await sent(b, job.id, known), 'known')
    const [read] = await b.store.leases.readInboxes([job])
    const number = read?.inbox[0]?.number ?? -1
    await append(b, job, { rows: [answer(0, { address: '/wait:go#0', kind: 'wait' })], taken: [number] })
    assert.deepEqual(await inbox(b, job), [])
    assert.equal(await sent(b, job.id, known), 'known')
    await b.settle(job, { to: 'ready', workflow: ended({ restarted: { input: '{"n":2}' } }) })
    assert.equal(await sent(b, job.id, known), 'known')
    const other = await workflow(b)
    assert.equal(await sent(b, other, known), 'sent')
  }),
  contract('an append that is repeated takes nothing that came later', async (b) => {
    const job = await inHand(b)
    await sent(b, job.id)
    const [read] = await b.store.leases.readInboxes([job])
    const taken = [read?.inbox[0]?.number ?? -1]
    const given = { rows: [answer(0, { address: '/wait:go#0', kind: 'wait' })], taken }
    await append(b, job, given)
    await sent(b, job.id, { payload: '"later"' })
    await append(b, job, given)
    assert.deepEqual(await inbox(b, job), [['event', 'go', '"later"', null]])
  }),
  contract('a settlement writes its rows, takes from the inbox and ends the claim in one', async (b) => {
    const job = await inHand(b)
    await sent(b, job.id)
    const [read] = await b.store.leases.readInboxes([job])
    const workflowEnd = ended({ rows: [answer(0)], taken: [read?.inbox[0]?.number ?? -1] })
    assert.deepEqual(await b.settle(job, { result: '"r"', workflow: workflowEnd }), [])
    assert.equal((await b.read(job.id)).result, '"r"')
    const steps = await b.store.workflows.readSteps(job.id, undefined, 10)
    assert.deepEqual([steps?.name, steps?.isWorkflow, addresses(steps?.rows)], ['mail', true, ['/step:s0#0']])
    assert.equal((await b.store.workflows.readWorkflow(job.id))?.unread, 0)
    const late = await b.settle(job, { workflow: ended({ rows: [answer(1)] }), to: 'ready' })
    assert.deepEqual(late, [job.ref])
    assert.equal((await b.store.workflows.readSteps(job.id, undefined, 10))?.rows.length, 1)
  }),
  contract('a restart begins the next run with the new input and keeps the inbox', async (b) => {
    const job = await inHand(b, { key: 'k', group: 'g' })
    await sent(b, job.id)
    const restarted = ended({ rows: [answer(0)], restarted: { input: '{"n":2}' }, deadlineAt: 77 })
    await b.settle(job, { to: 'ready', attempt: 0, workflow: restarted })
    const next = await claimOne(b, await b.worker())
    assert.deepEqual([next.payload, next.id, next.key, next.group], ['{"n":2}', job.id, 'k', 'g'])
    const read = await log(b, next)
    assert.deepEqual([read.run, read.rows, read.deadlineAt, read.nextNo], [1, [], 77, 0])
    assert.equal(read.inbox.length, 1)
    await append(b, next, { run: 1, rows: [answer(0, { run: 1 })] })
    await sweepAll(b)
    assert.equal((await b.store.readCensus()).long.steps, 1)
  }),
  contract('steps are read in pages, and the record says what is open', async (b) => {
    const job = await inHand(b)
    await append(b, job, { rows: [answer(0), answer(1), open('/sleep:#0', { until: 9 }), open('/sleep:#1')] })
    const page = async (after?: string): Promise<string[] | undefined> =>
      addresses((await b.store.workflows.readSteps(job.id, after, 2))?.rows)
    assert.deepEqual(await page(), ['/step:s0#0', '/step:s1#0'])
    assert.deepEqual(await page('/step:s0#0'), ['/step:s1#0', '/sleep:#0'])
    assert.deepEqual(await page('/sleep:#0'), ['/sleep:#1'])
    assert.deepEqual(await page('/sleep:#1'), [])
    assert.deepEqual(await page('/forgotten#0'), [])
    const record = await b.store.workflows.readWorkflow(job.id)
    assert.deepEqual([record?.isWorkflow, record?.run, record?.answers, record?.unread], [true, 0, 2, 0])
    assert.deepEqual(addresses(record?.open), ['/sleep:#0', '/sleep:#1'])
    const gone = b.ids.jobId(b.clock.now)
    assert.deepEqual(
      [await b.store.workflows.readWorkflow(gone), await b.store.workflows.readSteps(gone, undefined, 1)],
      [undefined, undefined],
    )
    const plain = await b.one()
    assert.equal((await b.store.workflows.readSteps(plain, undefined, 1))?.isWorkflow, false)
  }),
  contract('what was sent and is not taken is read in pages, without a claim', async (b) => {
    const job = await inHand(b)
    for (const payload of ['1', '2', '3']) await sent(b, job.id, { payload })
    const page = async (after: number): Promise<(readonly [number, unknown])[]> =>
      (await b.store.workflows.readInbox(job, after, 2)).map((row) => [row.number, row.payload])
    const first = await page(0)
    assert.deepEqual(
      first.map(([, payload]) => payload),
      ['1', '2'],
    )
    const rest = await page(first[1]?.[0] ?? 0)
    assert.deepEqual(
      rest.map(([, payload]) => payload),
      ['3'],
    )
    await append(b, job, { rows: [answer(0)], taken: [first[0]?.[0] ?? -1] })
    assert.equal((await b.store.workflows.readInbox(job, 0, 10)).length, 2)
  }),
  contract('a deleted workflow leaves no row, and a new one sees none of the old', async (b) => {
    const job = await inHand(b)
    await sent(b, job.id)
    await sent(b, job.id, { eventId: 'i' })
    await b.settle(job, { to: 'failed', keepMs: 0, workflow: ended({ rows: [answer(0), answer(1)], forgetFrom: 1 }) })
    assert.equal(await b.state(job.id), 'gone')
    const next = await inHand(b)
    const read = await log(b, next)
    assert.deepEqual([read.rows, read.inbox, read.nextNo], [[], [], 0])
    await append(b, next, { run: read.run, rows: [answer(0, { run: read.run })] })
    await sent(b, next.id)
    await sweepAll(b)
    const again = await log(b, next)
    assert.deepEqual([addresses(again.rows), again.inbox.length], [['/step:s0#0'], 1])
    await b.settle(next, { keepMs: 10, workflow: ended() })
    b.clock.now += 20
    while ((await b.prune(10)) > 0);
    await sweepAll(b)
    const { long } = await b.store.readCensus()
    assert.deepEqual([long.steps, long.workflows, long.inbox, long.leftovers], [0, 0, 0, 0])
  }),
  contract('a job that was enqueued without its shape is a workflow once its log was read', async (b) => {
    const id = await b.one()
    assert.equal(await sent(b, id), 'plain')
    const job = only(await b.claim(await b.worker()))
    await log(b, job)
    assert.equal(await sent(b, id), 'sent')
  }),
]
