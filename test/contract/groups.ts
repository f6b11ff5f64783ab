import assert from 'node:assert/strict'
import type { JobRow, NewJob } from '../../src/store/store.js'
import { GROUP_KEEP_MS } from '../../src/store/groups.js'
import { contract, only } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'

/** Groups: counters, the seal, and the `whenDone` job that is enqueued once. */
export const groupsCases: readonly ContractCase[] = [
  contract('a group counts its members by queue and state, running ones too', async (b) => {
    const worker = await b.worker()
    await b.insert([
      ...Array.from({ length: 3 }, () => b.job({ group: 'g' })),
      b.job({ group: 'g', queue: 'slow', due: { inMs: 60_000 } }),
      b.job({ group: 'other' }),
      b.job(),
    ])
    assert.deepEqual(await counts(b), { 'default ready': 3, 'slow scheduled': 1 })
    const claimed = await b.claim(worker, { starting: 1, max: 2 })
    assert.deepEqual(await counts(b), { 'default ready': 2, 'default running': 1, 'slow scheduled': 1 })
    for (const job of claimed.jobs) await b.settle(job, { to: job.group === 'g' ? 'failed' : 'done' })
    assert.deepEqual(await counts(b), { 'default ready': 1, 'default failed': 2, 'slow scheduled': 1 })
    assert.deepEqual(await counts(b, 'nobody'), {})
  }),

  contract('a member is read, claimed and found with its group', async (b) => {
    const worker = await b.worker()
    const id = await b.one({ group: 'g' })
    await b.insert(Array.from({ length: 30 }, () => b.job()))
    const others = (await b.insert([b.job({ group: 'g' }), b.job({ group: 'g', due: { inMs: 1_000 } })])).map(
      (o) => o.id,
    )
    assert.equal((await b.read(id)).group, 'g')
    const mine = (await b.claim(worker)).jobs.filter((job) => job.group === 'g').map((job) => job.id)
    assert.deepEqual(mine, [id, others[0]])
    assert.deepEqual(await found(b, { order: 'oldest', limit: 2 }), [id, ...others])
    assert.deepEqual(await found(b, { order: 'newest', limit: 1 }), [...others.toReversed(), id])
    assert.deepEqual(await found(b, { states: ['scheduled'] }), [others[1]])
  }),

  contract('pruned members stay counted, deleted ones do not', async (b) => {
    const worker = await b.worker()
    await b.insert(Array.from({ length: 4 }, () => b.job({ group: 'g' })))
    const [one, two, three, four] = (await b.claim(worker)).jobs
    await b.settle(one as never, { keepMs: 1_000 })
    await b.settle(two as never, { keepMs: 0 })
    await b.settle(three as never, { to: 'failed' })
    await b.settle(four as never, { to: 'scheduled', delayMs: 9_000 })
    b.clock.now += 1_000
    await b.prune(10)
    assert.deepEqual(await counts(b), { 'default done': 2, 'default failed': 1, 'default scheduled': 1 })
    await b.store.jobs.changeJob({ id: three?.id ?? '', from: 'failed', to: 'gone', keepMs: 0 })
    await b.store.jobs.changeJob({ id: four?.id ?? '', from: 'scheduled', to: 'gone', keepMs: 0 })
    assert.deepEqual(await counts(b), { 'default done': 2 })
  }),

  contract(
    'a sealed group refuses new members, whole bulks of them, and accepts what its running members add',
    async (b) => {
      const worker = await b.worker()
      await b.one({ group: 'g' })
      await b.one({ name: 'outsider' })
      const member = only(await b.claim(worker))
      const outsider = only(await b.claim(worker, { names: ['outsider'] }))
      assert.deepEqual([await seal(b), await seal(b)], [true, false])
      const refused = { code: 'E_GROUP_SEALED', group: 'g' }
      await assert.rejects(b.insert([b.job({ key: 'k' }), b.job({ group: 'g' })]), refused)
      await assert.rejects(under(b, outsider, b.job({ group: 'g' })), refused)
      assert.deepEqual([await b.store.jobs.readKeyed('mail', 'k'), (await b.found({})).length], [undefined, 2])
      await under(b, member, b.job({ group: 'g' }))
      await b.settle(member)
      assert.equal((await fired(b)).length, 0, 'the added member is unfinished')
      await b.settle(only(await b.claim(worker)))
      assert.equal((await fired(b)).length, 1)
      await assert.rejects(b.insert([b.job({ group: 'g' })]), /complete/)
    },
  ),

  contract('the whenDone job of a group is enqueued once, when it is sealed and no member is unfinished', async (b) => {
    const worker = await b.worker()
    await b.insert(Array.from({ length: 3 }, () => b.job({ group: 'g' })))
    const [one, two, three] = (await b.claim(worker)).jobs
    await b.settle(one as never)
    await seal(b, {
      payload: new Uint8Array([0, 255]),
      due: { inMs: 5_000 },
      queue: 'reports',
      options: '{"labels":["x"]}',
    })
    await b.settle(two as never, { to: 'parked' })
    assert.equal((await fired(b)).length, 0)
    await b.settle(three as never, { to: 'failed' })
    await b.store.jobs.changeJob({ id: two?.id ?? '', from: 'parked', to: 'gone', keepMs: 0 })
    b.clock.now += 100
    const [report] = await fired(b)
    assert.deepEqual(
      [report?.payload, report?.dueAt, report?.queue, report?.state, report?.options],
      [new Uint8Array([0, 255]), b.clock.now + 5_000, 'reports', 'scheduled', '{"labels":["x"]}'],
    )
    // A retried member ends again; whenDone is not enqueued again.
    await b.store.jobs.changeJob({ id: three?.id ?? '', from: 'failed', to: 'ready', keepMs: Infinity })
    assert.equal((await fired(b)).length, 1)
    await b.settle(only(await b.claim(worker)))
    assert.equal((await fired(b)).length, 1)
    const { sealedAt, completedAt } = await b.store.groups.readGroup('g')
    assert.deepEqual([sealedAt, completedAt], [b.clock.now - 100, b.clock.now])
  }),

  contract('an empty group is complete when it is sealed, also without whenDone', async (b) => {
    await seal(b, { payload: '"end"', key: 'k' })
    const { followUps } = await b.store.jobs.promoteJobs(10)
    const [report] = await fired(b)
    assert.deepEqual(
      followUps.map(({ group, job }) => [group, job.id, job.name, job.key, job.payload]),
      [['g', report?.id, 'report', 'k', '"end"']],
    )
    assert.deepEqual((await b.store.jobs.promoteJobs(10)).followUps, [])
    assert.equal(await b.store.groups.sealGroup({ group: 'h', whenDone: null }), true)
    await b.store.jobs.promoteJobs(10)
    assert.equal((await b.store.groups.readGroup('h')).completedAt, b.clock.now)
  }),

  contract(
    'a whenDone job that exists already under its key is not enqueued again, and blocks no other group',
    async (b) => {
      const there = await b.one({ name: 'report', key: 'k' })
      await b.store.groups.sealGroup({
        group: 'g',
        whenDone: {
          job: b.job({ name: 'report', key: 'k' }),
          options: { onDuplicate: 'reject', keepCancelledMs: Infinity },
        },
      })
      assert.deepEqual((await b.store.jobs.promoteJobs(10)).followUps, [])
      assert.deepEqual(
        (await fired(b)).map((row) => row.id),
        [there],
      )
      assert.equal((await b.store.groups.readGroup('g')).completedAt, b.clock.now)
    },
  ),

  contract('a seal refuses a whenDone job with a missing parent, and nothing is written', async (b) => {
    const there = await b.one()
    const [byId, byKey] = [{ id: b.job().id }, { name: 'mail', key: 'typo' }]
    const refused = { code: 'E_PARENT_MISSING', missing: [byId, byKey] }
    await assert.rejects(seal(b, { after: [{ id: there }, byId, byKey] }), refused)
    assert.equal((await b.store.groups.readGroup('g')).sealedAt, null)
    assert.deepEqual([await seal(b, { after: [{ id: there }] }), await seal(b, { after: [byId] })], [true, false])
    const [report] = await fired(b)
    assert.deepEqual([report?.state, report?.after], ['blocked', [there]])
  }),

  contract(
    'parents of a whenDone job that no longer exist when the group completes are treated as by links',
    async (b) => {
      const [gone, stays] = [await b.one({ key: 'k', due: { inMs: 9_000 } }), await b.one({ due: { inMs: 9_000 } })]
      const follows = async (group: string, change: Partial<NewJob>): Promise<void> => {
        const job = b.job({ name: 'report', queue: group, onParentFailure: 'wait', ...change })
        const whenDone = { job, options: { onDuplicate: 'return', keepCancelledMs: Infinity } } as const
        await b.one({ group, due: { inMs: 5_000 } })
        await b.store.groups.sealGroup({ group, whenDone })
      }
      await follows('waits', { after: [{ id: stays }, { id: gone }] })
      await follows('cancels', { after: [{ name: 'mail', key: 'k' }], onParentFailure: 'cancel', key: 'c' })
      await follows('runs', { after: [{ id: gone }], onParentFailure: 'run' })
      await follows('runs later', { after: [{ id: gone }, { id: stays }], onParentFailure: 'run' })
      await follows('forgets', { after: [{ id: gone }], keepCancelledMs: 0 })
      await b.store.jobs.changeJob({ id: gone, from: 'scheduled', to: 'gone', keepMs: 0 })
      await endMembers(b)
      const { cancelledByParents: calledOff, failedGroups } = await b.store.jobs.promoteJobs(10)
      assert.deepEqual(failedGroups, [])
      const reasonOf = (parent: string): string => `its parent ${parent} is gone: it was deleted or pruned`
      assert.deepEqual(calledOff.map(({ queue, reason }) => `${queue}: ${reason}`).toSorted(), [
        `cancels: ${reasonOf('mail k')}`,
        `forgets: ${reasonOf(gone)}`,
        `waits: ${reasonOf(gone)}`,
      ])
      const stand = (await fired(b)).map((row) => `${row.queue} ${row.state} ${row.reason ?? ''}`.trim())
      assert.deepEqual(stand.toSorted(), [
        `cancels cancelled ${reasonOf('mail k')}`,
        'runs later blocked',
        'runs ready',
        `waits cancelled ${reasonOf(gone)}`,
      ])
      // Its key is free again, and its links are deleted with it.
      assert.equal((await b.insert([b.job({ name: 'report', key: 'c' })]))[0]?.isNew, true)
      await b.store.jobs.changeJob({ id: stays, from: 'scheduled', to: 'gone', keepMs: 0 })
      assert.deepEqual((await b.store.jobs.promoteJobs(10)).cancelledByParents, [])
    },
  ),

  contract(
    'a group whose completion cannot be written blocks no other group, is reported, and is retried',
    async (b) => {
      assert.equal(await b.store.groups.sealGroup({ group: 'closed', whenDone: null }), true)
      // Refused at its enqueue: no running member of that group adds it.
      await seal(b, { group: 'closed', queue: 'new lane' })
      const options = { onDuplicate: 'return', keepCancelledMs: Infinity } as const
      await b.store.groups.sealGroup({ group: 'h', whenDone: { job: b.job({ name: 'report' }), options } })
      const later = await b.one({ due: { inMs: 1_000 } })
      b.clock.now += 1_000
      for (const follow of [1, 1]) {
        const { failedGroups } = await b.store.jobs.promoteJobs(10)
        assert.deepEqual(
          failedGroups.map(({ group, error }) => [group, (error as { code?: string }).code]),
          [['g', 'E_GROUP_SEALED']],
        )
        assert.deepEqual([await b.state(later), (await b.found({ names: ['report'] })).length], ['ready', follow])
      }
      const stand = await Promise.all(['g', 'h', 'closed'].map((group) => b.store.groups.readGroup(group)))
      assert.deepEqual(
        stand.map((group) => group.completedAt),
        [null, b.clock.now, b.clock.now],
      )
    },
  ),

  contract('a group is deleted some time after the last of its members, and never before', async (b) => {
    const worker = await b.worker()
    await b.one({ group: 'g' })
    await b.one({ group: 'h' })
    const [one] = (await b.claim(worker)).jobs
    await b.settle(one as never, { keepMs: 1_000 })
    b.clock.now += 1_000
    for (const wait of [0, GROUP_KEEP_MS - 1]) {
      b.clock.now += wait
      await b.store.jobs.promoteJobs(10)
      await b.prune(10)
      assert.deepEqual(await counts(b), { 'default done': 1 })
    }
    b.clock.now += GROUP_KEEP_MS
    await b.prune(10)
    assert.deepEqual([await counts(b), await counts(b, 'h')], [{}, { 'default running': 1 }])
  }),

  contract('a group that gets a member again in time is not deleted', async (b) => {
    const worker = await b.worker()
    await b.one({ group: 'g' })
    await b.settle(only(await b.claim(worker)), { keepMs: 0 })
    await b.prune(10)
    b.clock.now += GROUP_KEEP_MS - 1
    await b.one({ group: 'g' })
    await b.settle(only(await b.claim(worker)), { keepMs: 0 })
    b.clock.now += 2
    await b.prune(10)
    assert.deepEqual(await counts(b), { 'default done': 2 })
  }),
]

/** As `{ 'queue state': members }`. */
async function counts(b: ContractFixture, group = 'g'): Promise<Record<string, number>> {
  const row = await b.store.groups.readGroup(group)
  return Object.fromEntries(row.counts.map(({ queue, state, members }) => [`${queue} ${state}`, members]))
}

async function found(b: ContractFixture, query: Parameters<ContractFixture['found']>[0]): Promise<string[]> {
  return (await b.found({ ...query, group: 'g' })).map((row) => row.id)
}

function seal(b: ContractFixture, change: Partial<NewJob> = {}): Promise<boolean> {
  const whenDone = {
    job: b.job({ name: 'report', ...change }),
    options: { onDuplicate: 'return', keepCancelledMs: Infinity },
  } as const
  return b.store.groups.sealGroup({ group: 'g', whenDone })
}

/** The jobs that whenDone enqueued, after every process has promoted. */
async function fired(b: ContractFixture): Promise<JobRow[]> {
  for (let looks = 0; looks < 3; looks += 1) await b.store.jobs.promoteJobs(10)
  return b.found({ names: ['report'] })
}

/** Makes the members due, and ends them and everything else that is due. */
async function endMembers(b: ContractFixture): Promise<void> {
  const worker = await b.worker()
  b.clock.now += 5_000
  await b.store.jobs.promoteJobs(10)
  for (const job of (await b.claim(worker)).jobs) await b.settle(job)
}

function under(b: ContractFixture, { ref, fence }: { ref: number; fence: number }, job: NewJob): Promise<unknown> {
  return b.store.jobs.insertJobs([job], { onDuplicate: 'return', keepCancelledMs: Infinity, claim: { ref, fence } })
}
