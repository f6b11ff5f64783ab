import assert from 'node:assert/strict'
import { contract, only } from './fixture.js'
import type { ContractCase } from './fixture.js'
import type { ClaimedJob } from '../../src/store/store.js'

/** Requested changes of running jobs, and pauses. */
export const requestedChangeCases: readonly ContractCase[] = [
  contract(
    'a requested change of a running job is kept until the job ends, and is returned with its claim',
    async (b) => {
      const worker = await b.worker()
      const id = await b.one()
      assert.equal(await b.request(id, 'cancel'), 'stale', 'it is waiting, so it is cancelled at once instead')
      const job = only(await b.claim(worker))
      assert.equal(await b.request(id, 'resume'), 'refused')
      assert.equal(await b.request(id, 'pause'), 'noted')
      assert.equal(await b.request(id, 'cancel'), 'noted')
      assert.equal(await b.request(id, 'cancel'), 'noted', 'a second request changes nothing')
      assert.deepEqual([await b.request(id, 'pause'), await b.request(id, 'resume')], ['refused', 'refused'])
      assert.deepEqual(await b.requests(), [{ ref: job.ref, fence: job.fence, kind: 'cancel', reason: 'cancel it' }])
      assert.equal(await b.state(id), 'running')
      await b.settle(job, { result: '"done anyway"' })
      assert.equal(await b.state(id), 'done')
      assert.deepEqual([await b.requests(), await b.request(id, 'cancel')], [[], 'stale'])
    },
  ),

  contract('a cancelled job does not run again, however its claim ends', async (b) => {
    const worker = await b.worker()
    const ends = [
      { to: 'retrying', delayMs: 1_000, error: '{"name":"E"}' },
      { to: 'scheduled', delayMs: 1_000 },
      { to: 'ready', attempt: 0 },
      { to: 'ready', attempt: 0, streak: 2 },
      { to: 'failed', error: '{"name":"E"}' },
      { to: 'parked', reason: 'unreadable' },
    ] as const
    for (const end of ends) {
      const id = await b.one({ key: 'k' })
      const job = only(await b.claim(worker))
      await b.request(id, 'cancel')
      const { refused, changed: turned } = await b.store.leases.settleJobs([b.settled(job, end)], [job.fence])
      assert.deepEqual([refused, turned.map((each) => each.to)], [[], ['cancelled']])
      const row = await b.read(id)
      const error = 'error' in end ? end.error : null
      assert.deepEqual([row.state, row.reason, row.error, row.claimed], ['cancelled', 'cancel it', error, false])
      assert.deepEqual(await b.requests(), [])
    }
    assert.equal((await b.found({ states: ['ready', 'scheduled', 'retrying', 'parked'] })).length, 0)
  }),

  contract('a job that is cancelled while it runs is kept for as long as the command said', async (b) => {
    const worker = await b.worker()
    const [short, none] = [await b.one(), await b.one()]
    const { jobs } = await b.claim(worker)
    await b.store.jobs.requestChange({ id: short, verb: 'cancel', reason: 'r', keepMs: 1_000 })
    await b.store.jobs.requestChange({ id: none, verb: 'cancel', reason: 'r', keepMs: 0 })
    const ends = jobs.map((job) => b.settled(job, { to: 'failed', keepMs: 99_000 }))
    await b.store.leases.settleJobs(ends, [])
    assert.deepEqual([await b.state(short), await b.state(none)], ['cancelled', 'gone'])
    b.clock.now += 1_000
    assert.equal(await b.prune(10), 1)
    assert.equal(await b.state(short), 'gone')
  }),

  contract('a rescue applies the requested changes of the dead worker’s jobs', async (b) => {
    const worker = await b.worker()
    const [cancelled, paused, plain] = [await b.one(), await b.one(), await b.one()]
    await b.claim(worker)
    await b.request(cancelled, 'cancel')
    await b.request(paused, 'pause')
    const crashed = (await b.store.leases.readLeases(worker)).map((l) =>
      b.settled(l, { to: 'ready', attempt: 0, streak: 2 }),
    )
    const written = await b.store.leases.rescueJobs(worker, 0, crashed)
    assert.deepEqual(
      written?.changed.map((job) => [job.id, job.to]),
      [
        [cancelled, 'cancelled'],
        [paused, 'paused'],
      ],
    )
    assert.deepEqual(
      [await b.state(cancelled), await b.state(paused), await b.state(plain)],
      ['cancelled', 'paused', 'ready'],
    )
    assert.deepEqual(await b.requests(), [])
    await b.resume(paused)
    assert.equal((await b.read(paused)).streak, 2, 'a pause does not clear the streak')
  }),

  contract('a settlement under a lost fence removes no requested change', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    const job = only(await b.claim(worker))
    await b.request(id, 'cancel')
    const stale = await b.store.leases.settleJobs([b.settled({ ...job, fence: job.fence + 1 }, { to: 'ready' })], [])
    assert.deepEqual([stale.refused, stale.changed], [[job.ref], []])
    assert.equal((await b.requests()).length, 1)
    await b.settle(job, { to: 'retrying', delayMs: 5 })
    assert.deepEqual([await b.state(id), await b.requests()], ['cancelled', []])
  }),

  contract('a requested pause of a running job takes effect only if the job would be retried', async (b) => {
    const worker = await b.worker()
    const [again, done, failed] = [await b.one({ key: 'k' }), await b.one(), await b.one()]
    const { jobs } = await b.claim(worker)
    for (const id of [again, done, failed]) assert.equal(await b.request(id, 'pause'), 'noted')
    await b.settle(jobs[0] as ClaimedJob, { to: 'retrying', delayMs: 5_000, attempt: 1, retries: 1, error: '{}' })
    await b.settle(jobs[1] as ClaimedJob)
    await b.settle(jobs[2] as ClaimedJob, { to: 'failed' })
    assert.deepEqual([await b.state(again), await b.state(done), await b.state(failed)], ['paused', 'done', 'failed'])
    assert.deepEqual(await b.requests(), [])
    b.clock.now += 1_000
    await b.resume(again)
    const row = await b.read(again)
    assert.deepEqual([row.state, row.dueAt, row.attempt, row.retries], ['retrying', b.clock.now + 4_000, 1, 1])
  }),

  contract('a requested pause can be withdrawn', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    const job = only(await b.claim(worker))
    await b.request(id, 'pause')
    assert.equal(await b.request(id, 'resume'), 'noted')
    assert.deepEqual(await b.requests(), [])
    await b.settle(job, { to: 'retrying', delayMs: 5 })
    assert.equal(await b.state(id), 'retrying')
  }),

  contract('a paused job keeps its time, attempts, position and key, and does not begin', async (b) => {
    const worker = await b.worker()
    const first = await b.one({ key: 'k' })
    b.clock.now += 10
    const second = await b.one()
    const later = await b.one({ due: { inMs: 60_000 } })
    for (const [id, from] of [
      [first, 'ready'],
      [later, 'scheduled'],
    ] as const)
      assert.equal(await b.pause(id, from), 'changed')
    b.clock.now += 30_000
    await b.store.jobs.promoteJobs(10)
    assert.deepEqual([await b.state(first), await b.state(later)], ['paused', 'paused'])
    assert.equal((await b.insert([b.job({ key: 'k' })]))[0]?.id, first, 'it holds its key')
    await b.resume(first)
    assert.deepEqual(
      (await b.claim(worker)).jobs.map((job) => job.id),
      [first, second],
    )
    await b.resume(later)
    assert.deepEqual([await b.state(later), (await b.store.jobs.promoteJobs(10)).nextInMs], ['scheduled', 30_000])
    const exits = (JSON.parse((await b.read(first)).log ?? '[]') as { exit?: string }[]).map((line) => line.exit)
    assert.deepEqual(exits, ['paused', 'resumed'])
  }),

  contract('a paused job can be edited, moved by its key, expire, be cancelled and be deleted', async (b) => {
    const ids: string[] = []
    for (const key of ['edit', 'move', 'expire', 'cancel', 'delete']) {
      ids.push(await b.one({ key, due: { inMs: 60_000 }, expires: key === 'expire' ? { inMs: 500 } : null }))
      await b.pause(ids.at(-1) as string, 'scheduled')
    }
    const [edited, moved, expired, cancelled, deleted] = ids as [string, string, string, string, string]
    const edit = { id: edited, from: 'paused', to: 'paused', due: { inMs: 0 }, edit: { payload: '2' } } as const
    assert.equal(await b.store.jobs.changeJob({ ...edit, keepMs: Infinity }), 'changed')
    assert.deepEqual([await b.state(edited), (await b.read(edited)).payload], ['paused', '2'])
    await b.insert([b.job({ key: 'move', due: { inMs: 0 }, payload: '3' })], 'move')
    assert.deepEqual([await b.state(moved), (await b.read(moved)).payload], ['paused', '3'])
    b.clock.now += 500
    assert.deepEqual(
      (await b.store.jobs.promoteJobs(10)).expired.map((job) => [job.id, job.state]),
      [[expired, 'paused']],
    )
    for (const [id, to] of [
      [cancelled, 'cancelled'],
      [deleted, 'gone'],
    ] as const)
      assert.equal(await b.store.jobs.changeJob({ id, from: 'paused', to, keepMs: Infinity }), 'changed')
    assert.deepEqual([await b.state(cancelled), await b.state(deleted)], ['cancelled', 'gone'])
  }),

  contract('a held job can be paused, and its worker detects that before it begins', async (b) => {
    const worker = await b.worker()
    const id = await b.one()
    const held = only(await b.claim(worker, { starting: 0 }))
    assert.equal(await b.pause(id, 'ready'), 'taken')
    const { mine, paused } = await b.store.leases.confirmJobs([held])
    assert.deepEqual([mine.size, paused.size], [0, 0])
    assert.deepEqual(await b.settle(held, { to: 'ready' }), [held.ref], 'the worker has nothing to give back')
    assert.equal(await b.state(id), 'paused')
  }),

  contract('nothing of a paused queue is claimed, other queues are, and a resume sends a hint', async (b) => {
    const worker = await b.worker()
    const ids = [await b.one({ queue: 'slow' }), await b.one()]
    const { pause, held } = await b.store.queues.pauseQueue({ queue: 'slow', until: null })
    assert.deepEqual([pause, held], [{ pausedAt: b.clock.now, until: null }, false])
    await b.one({ queue: 'slow' })
    const claimed = await b.claim(worker)
    assert.deepEqual([claimed.jobs.map((job) => job.id), claimed.resumesInMs], [[ids[1]], null])
    assert.deepEqual(await b.store.queues.readPause('slow'), pause)
    const hints: boolean[] = []
    b.store.changes.onHint((hint) => hints.push(hint.ready))
    assert.deepEqual(
      [await b.store.queues.resumeQueue('slow'), await b.store.queues.resumeQueue('slow')],
      [true, false],
    )
    assert.deepEqual(hints, [true])
    assert.deepEqual([await b.store.queues.readPause('slow'), (await b.claim(worker)).jobs.length], [undefined, 2])
  }),

  contract('a queue paused until a time resumes by itself, and a claim returns when', async (b) => {
    const worker = await b.worker()
    await b.one()
    await b.store.queues.pauseQueue({ queue: 'default', until: { inMs: 1_000 } })
    b.clock.now += 400
    assert.deepEqual([(await b.claim(worker)).resumesInMs, (await b.claim(worker)).jobs.length], [600, 0])
    b.clock.now += 599
    assert.equal((await b.claim(worker)).jobs.length, 0)
    b.clock.now += 1
    assert.equal(await b.store.queues.readPause('default'), undefined)
    const claimed = await b.claim(worker)
    assert.deepEqual([claimed.jobs.length, claimed.resumesInMs], [1, null])
    const { pause } = await b.store.queues.pauseQueue({ queue: 'default', until: { at: b.clock.now + 5 } })
    assert.deepEqual(pause, { pausedAt: b.clock.now, until: b.clock.now + 5 }, 'the old pause is not kept')
    const past = await b.store.queues.pauseQueue({ queue: 'default', until: { at: b.clock.now } })
    assert.equal(past.pause, undefined, 'a time in the past resumes')
    assert.equal(await b.store.queues.readPause('default'), undefined)
  }),

  contract('suspects of a paused queue wait too, and do not block other jobs', async (b) => {
    const dead = await b.worker()
    await b.one({ queue: 'slow' })
    await b.claim(dead)
    const crashed = (await b.store.leases.readLeases(dead)).map((l) =>
      b.settled(l, { to: 'ready', attempt: 0, streak: 2 }),
    )
    await b.store.leases.rescueJobs(dead, 0, crashed)
    await b.store.queues.pauseQueue({ queue: 'slow', until: null })
    const worker = await b.worker()
    const claimed = await b.claim(worker, { suspects: 'first' })
    assert.deepEqual([claimed.jobs.length, claimed.suspectStreak], [0, null])
  }),

  contract('held jobs of a paused queue are listed, to be given back', async (b) => {
    const worker = await b.worker()
    await b.insert([b.job({ queue: 'slow' }), b.job()])
    const { jobs } = await b.claim(worker, { starting: 0 })
    const [slow, other] = jobs as [ClaimedJob, ClaimedJob]
    assert.equal((await b.store.queues.pauseQueue({ queue: 'slow', until: { inMs: 100 } })).held, true)
    const { mine, paused } = await b.store.leases.confirmJobs(jobs)
    assert.deepEqual([[...mine], [...paused]], [[other.ref], [slow.ref]])
    await b.settle(slow, { to: 'ready', attempt: 0 })
    assert.equal((await b.claim(worker)).jobs.length, 0)
    b.clock.now += 100
    assert.deepEqual(
      (await b.claim(worker)).jobs.map((job) => [job.id, job.attempt]),
      [[slow.id, 0]],
    )
  }),

  contract('a handler can lengthen a pause and not shorten it, and only while it has its claim', async (b) => {
    const worker = await b.worker()
    await b.one()
    const under = only(await b.claim(worker))
    const ask = async (inMs: number): Promise<number | null | undefined> =>
      (await b.store.queues.pauseQueue({ queue: 'default', until: { inMs }, claim: under })).pause?.until
    assert.equal(await ask(500), b.clock.now + 500)
    assert.equal(await ask(100), b.clock.now + 500)
    assert.equal(await ask(900), b.clock.now + 900)
    await b.store.queues.pauseQueue({ queue: 'default', until: null })
    assert.equal(await ask(900), null)
    await b.settle(under)
    await assert.rejects(ask(900), { code: 'E_LEASE_LOST' })
  }),

  contract('a requested change sends a hint to workers with jobs in flight', async (b) => {
    const worker = await b.worker()
    const [running, held, waiting] = [await b.one(), await b.one(), await b.one()]
    await b.claim(worker, { max: 2, starting: 1 })
    const asked: boolean[] = []
    b.store.changes.onHint((hint) => asked.push(hint.requested))
    await b.request(running, 'cancel')
    await b.store.jobs.changeJob({ id: held, from: 'ready', to: 'cancelled', keepMs: Infinity })
    await b.store.queues.pauseQueue({ queue: 'default', until: null })
    await b.store.jobs.changeJob({ id: waiting, from: 'ready', to: 'cancelled', keepMs: Infinity })
    assert.deepEqual(asked, [true, true, true, false])
  }),
]
