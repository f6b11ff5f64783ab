import assert from 'node:assert/strict'
import type { Hint } from '../../src/store/store.js'
import { contract, only } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'
import { due, fire, fired, planned, read, tick } from './schedule-fixture.js'
import { CALL, append, child, claimChild, ended, inHand, open, send, suspend, waiting } from './workflow-fixture.js'

/** What a verb reports to the listeners of its own process, once it has committed: `ready due 5000 settled requested`. */
async function hinted(b: ContractFixture, verb: () => Promise<unknown>): Promise<string> {
  const hints: Hint[] = []
  const stop = b.store.changes.onHint((hint) => hints.push(hint))
  await verb()
  stop()
  const dues = hints.flatMap(({ dueInMs }) => (dueInMs === null ? [] : [dueInMs]))
  const has = (field: 'ready' | 'settled' | 'requested'): string[] => (hints.some((hint) => hint[field]) ? [field] : [])
  const earliest = dues.length === 0 ? [] : [`due ${Math.min(...dues)}`]
  return [...has('ready'), ...earliest, ...has('settled'), ...has('requested')].join(' ')
}

/** Without its hint, a verb's work waits for a poll. */
export const hintCases: readonly ContractCase[] = [
  contract('an insert reports a ready job, and when a later one is due or expires', async (b) => {
    const insert = (...jobs: Parameters<ContractFixture['job']>[0][]): Promise<string> =>
      hinted(b, () => b.insert(jobs.map((job) => b.job(job))))
    assert.equal(await insert({}), 'ready')
    assert.equal(await insert({ due: { inMs: 5_000 } }), 'due 5000')
    assert.equal(await insert({ due: { inMs: 5_000 } }, { due: { at: b.clock.now + 3_000 } }), 'due 3000')
    assert.equal(await insert({ expires: { inMs: 8_000 } }), 'ready due 8000')
    assert.equal(await insert({ key: 'k' }), 'ready')
    assert.equal(await insert({ key: 'k' }), '')
    assert.equal(await insert({ key: 'later', due: { inMs: 5_000 } }), 'due 5000')
  }),

  contract('a move of a keyed job reports when it is due and expires then', async (b) => {
    await b.one({ key: 'k', due: { inMs: 50_000 } })
    const move = (inMs: number, expires: { inMs: number } | null = null): Promise<string> =>
      hinted(b, () => b.insert([b.job({ key: 'k', due: { inMs }, expires })], 'move'))
    assert.equal(await move(20_000), 'due 20000')
    assert.equal(await move(20_000, { inMs: 8_000 }), 'due 8000')
    assert.equal(await move(0, { inMs: 8_000 }), 'ready due 8000')
    assert.equal(await move(0), 'ready')
    assert.equal(await hinted(b, () => b.insert([b.job({ key: 'k' })], 'replace')), 'ready settled')
  }),

  contract('a settlement reports an end, a retry and a release', async (b) => {
    const worker = await b.worker()
    const settle = async (change: Parameters<ContractFixture['settle']>[1]): Promise<string> => {
      await b.one({ name: 'settled' })
      const job = only(await b.claim(worker, { names: ['settled'] }))
      const hint = await hinted(b, () => b.settle(job, change))
      await b.store.jobs.changeJob({ id: job.id, from: (await b.read(job.id)).state, to: 'gone', keepMs: 0 })
      return hint
    }
    assert.equal(await settle({ to: 'done' }), 'settled')
    assert.equal(await settle({ to: 'done', keepMs: 60_000, result: '1' }), 'settled')
    assert.equal(await settle({ to: 'failed', error: '{}' }), 'settled')
    assert.equal(await settle({ to: 'ready', attempt: 0 }), 'ready')
    assert.equal(await settle({ to: 'retrying', delayMs: 7_000, error: '{}' }), 'due 7000')
    assert.equal(await settle({ to: 'scheduled', delayMs: 9_000 }), 'due 9000')
    assert.equal(await settle({ to: 'parked', reason: 'odd' }), '')
  }),

  contract('the end of a parent reports that its children are to be promoted, whichever way it ends', async (b) => {
    const worker = await b.worker()
    const ends: readonly [string, Parameters<ContractFixture['settle']>[1]][] = [
      ['due 0 settled', { to: 'done' }],
      ['due 0 settled', { to: 'done', keepMs: 0 }],
      ['due 0 settled', { to: 'failed', error: '{}' }],
      ['due 0', { to: 'parked', reason: 'odd' }],
    ]
    for (const [expected, end] of ends) {
      const parent = await b.one({ name: 'parent' })
      await b.one({ after: [{ id: parent }], onParentFailure: 'run-if-parked' })
      while ((await b.store.jobs.promoteJobs(100)).again);
      const job = only(await b.claim(worker, { names: ['parent'] }))
      assert.equal(await hinted(b, () => b.settle(job, end)), expected, JSON.stringify(end))
    }
    for (const to of ['cancelled', 'gone'] as const) {
      const parent = await b.one({ name: 'parent', due: { inMs: 9_000 } })
      await b.one({ after: [{ id: parent }] })
      while ((await b.store.jobs.promoteJobs(100)).again);
      const change = { id: parent, from: 'scheduled', to, keepMs: Infinity } as const
      assert.equal(await hinted(b, () => b.store.jobs.changeJob(change)), 'due 0 settled', to)
    }
  }),

  contract('the end of a parent that was claimed before its child came is reported too', async (b) => {
    const worker = await b.worker()
    const parent = await b.one({ name: 'parent' })
    const job = only(await b.claim(worker, { names: ['parent'] }))
    await b.one({ after: [{ id: parent }] })
    while ((await b.store.jobs.promoteJobs(100)).again);
    assert.equal(await hinted(b, () => b.settle(job)), 'due 0 settled')
  }),

  contract('pruning a parent reports that its children are to be promoted', async (b) => {
    const worker = await b.worker()
    const parent = await b.one({ name: 'parent' })
    await b.one({ after: [{ id: parent }], onParentFailure: 'wait' })
    while ((await b.store.jobs.promoteJobs(100)).again);
    await b.settle(only(await b.claim(worker, { names: ['parent'] })), { to: 'failed', error: '{}', keepMs: 1_000 })
    while ((await b.store.jobs.promoteJobs(100)).again);
    b.clock.now += 2_000
    assert.equal(await hinted(b, () => b.store.jobs.pruneJobs(10)), 'due 0')
    assert.equal(await hinted(b, () => b.store.jobs.pruneJobs(10)), '')
  }),

  contract('a command reports what it makes ready, due or ended', async (b) => {
    const id = await b.one()
    assert.equal(await hinted(b, () => b.pause(id, 'ready')), '')
    assert.equal(await hinted(b, () => b.resume(id)), 'ready')
    const later = await b.one({ due: { inMs: 4_000 } })
    await b.pause(later, 'scheduled')
    b.clock.now += 1_000
    assert.equal(await hinted(b, () => b.resume(later)), 'due 3000')
    const cancel = { id: later, from: 'scheduled', to: 'cancelled', keepMs: Infinity } as const
    assert.equal(await hinted(b, () => b.store.jobs.changeJob(cancel)), 'settled')
    assert.equal(await hinted(b, () => b.store.jobs.changeJob(cancel)), '')
    const retry = { id: later, from: 'cancelled', to: 'ready', due: { inMs: 0 }, keepMs: Infinity } as const
    assert.equal(await hinted(b, () => b.store.jobs.changeJob(retry)), 'ready')
    const remove = { id: later, from: 'ready', to: 'gone', keepMs: Infinity } as const
    assert.equal(await hinted(b, () => b.store.jobs.changeJob(remove)), 'settled')
  }),

  contract('a requested change, and a pause and a resume of a queue, are reported', async (b) => {
    const id = await b.one()
    only(await b.claim(await b.worker()))
    assert.equal(await hinted(b, () => b.request(id, 'cancel')), 'requested')
    assert.equal(await hinted(b, () => b.store.queues.pauseQueue({ queue: 'default', until: null })), 'requested')
    assert.equal(await hinted(b, () => b.store.queues.resumeQueue('default')), 'ready')
  }),

  contract('a command of a job that a worker holds in advance is reported to that worker', async (b) => {
    const id = await b.one()
    only(await b.claim(await b.worker(), { starting: 0 }))
    assert.match(await hinted(b, () => b.pause(id, 'ready')), /requested/)
  }),

  contract('a promotion reports that jobs became ready, and only then', async (b) => {
    await b.one({ due: { inMs: 1_000 } })
    const promote = (): Promise<string> => hinted(b, () => b.store.jobs.promoteJobs(10))
    assert.equal(await promote(), '')
    b.clock.now += 1_000
    assert.equal(await promote(), 'ready')
    assert.equal(await promote(), '')
    await b.one({ group: 'g', due: { inMs: 1_000 } })
    b.clock.now += 1_000
    assert.equal(await promote(), 'ready')
  }),

  contract('a group reports that it is complete, by its seal or by its last end', async (b) => {
    const worker = await b.worker()
    const seal = (group: string): Promise<string> =>
      hinted(b, () => b.store.groups.sealGroup({ group, whenDone: null }))
    await b.one({ group: 'g' })
    assert.equal(await seal('g'), 'due 0')
    assert.equal(await seal('g'), '')
    const job = only(await b.claim(worker))
    assert.equal(await hinted(b, () => b.settle(job)), 'due 0 settled')
    await b.store.jobs.promoteJobs(10)
    await b.one({ group: 'open' })
    const other = only(await b.claim(worker))
    assert.equal(await hinted(b, () => b.settle(other)), 'settled')
  }),

  contract('a schedule reports its next tick when it is put and when it fires', async (b) => {
    const put = planned(b, { id: 'daily', nextAt: b.clock.now + 6_000 })
    assert.equal(await hinted(b, () => b.store.schedules.putSchedule(put, null)), 'due 6000')
    const past = planned(b, { id: 'paused', pausedAt: b.clock.now })
    assert.equal(await hinted(b, () => b.store.schedules.putSchedule(past, null)), '')
    const { row, at } = await due(b)
    const nextAt = b.clock.now + 2_500
    const first = fire(row, [tick(b, at)], { nextAt })
    assert.equal(await hinted(b, () => fired(b, first)), 'ready due 2500')
    const last = fire(await read(b, 'nightly'), [], { nextAt: b.clock.now - 1 })
    assert.equal(await hinted(b, () => fired(b, last)), 'due 0')
  }),

  contract('an event reports that its workflow is ready, or has something to read', async (b) => {
    const job = await waiting(b)
    assert.equal(await hinted(b, () => send(b, job.id)), 'ready requested')
    const running = only(await b.claim(await b.worker()))
    assert.equal(await hinted(b, () => send(b, running.id)), 'requested')
  }),

  contract('a workflow that sleeps reports when it wakes, and a promotion that it did', async (b) => {
    const job = await inHand(b)
    const sleep = open('/sleep#0', { until: b.clock.now + 3_000 })
    const wakeAt = b.clock.now + 3_000
    const workflow = ended({ suspended: { waits: [], wakeAt }, rows: [sleep] })
    const end = { to: 'blocked', attempt: job.attempt, delayMs: 3_000, workflow } as const
    assert.equal(await hinted(b, () => b.settle(job, end)), 'due 3000')
    b.clock.now = wakeAt
    assert.equal(await hinted(b, () => b.store.jobs.promoteJobs(10)), 'ready')
  }),

  contract('the end of a called job reports that its caller is to be woken', async (b) => {
    const caller = await inHand(b)
    const { children } = await append(b, caller, { rows: [CALL], children: [child(b)] })
    await suspend(b, caller, 'blocked', { waits: [`call:${children[0]?.id}`] })
    const called = await claimChild(b)
    assert.match(await hinted(b, () => b.settle(called, { result: '1' })), /due 0 settled/)
    assert.match(await hinted(b, () => b.store.jobs.promoteJobs(10)), /ready/)
  }),
]
