import assert from 'node:assert/strict'
import { contract, only, withUniqueSlot } from './fixture.js'
import type { ContractCase } from './fixture.js'
import { due, fire, fired, ledger, planned, read, skipped, tick } from './schedule-fixture.js'

/** Recurring jobs: each tick once, with its job, whichever process fires it. */
export const scheduleCases: readonly ContractCase[] = [
  contract('a schedule is written once, and then only over the revision that was read', async (b) => {
    const schedule = planned(b, { id: 'nightly', nextAt: b.clock.now + 60_000 })
    assert.equal(await b.store.schedules.putSchedule(schedule, null), true)
    assert.equal(await b.store.schedules.putSchedule(schedule, null), false, 'it exists already')
    const first = await read(b, 'nightly')
    assert.deepEqual(
      [first.spec, first.createdAt, first.pausedAt, first.nextAt, first.lastAt, first.open],
      ['{"n":1}', b.clock.now, null, b.clock.now + 60_000, null, []],
    )
    assert.equal(await b.store.schedules.putSchedule({ ...schedule, spec: '2' }, first.revision), true)
    assert.equal(
      await b.store.schedules.putSchedule({ ...schedule, spec: '3' }, first.revision),
      false,
      'its revision has changed',
    )
    assert.equal((await read(b, 'nightly')).spec, '2')
    assert.equal((await b.store.schedules.readSchedule('another')).schedule, undefined)
  }),

  contract('schedules are listed in pages, in the order of their ids, hostile ones too', async (b) => {
    const ids = ['Z', 'a', 'ä', "'; drop table", '%_\\', '🌙'].sort(byBytes)
    for (const id of ids) await b.store.schedules.putSchedule(planned(b, { id }), null)
    const first = await b.store.schedules.listSchedules('', 4)
    const rest = await b.store.schedules.listSchedules(first.schedules.at(-1)?.id ?? '', 4)
    assert.deepEqual(
      [...first.schedules, ...rest.schedules].map((row) => row.id),
      ids,
    )
  }),

  contract('due schedules are returned, the longest waiting first, and when the next one is due', async (b) => {
    const now = b.clock.now
    const due = { late: now - 5_000, now, soon: now + 3_000 }
    for (const [id, nextAt] of Object.entries(due))
      await b.store.schedules.putSchedule(planned(b, { id, nextAt }), null)
    await b.store.schedules.putSchedule(planned(b, { id: 'over' }), null)
    await b.store.schedules.putSchedule(planned(b, { id: 'paused', pausedAt: now }), null)
    const told = await b.store.schedules.dueSchedules(10)
    assert.deepEqual([told.now, told.due.map((row) => row.id), told.nextInMs], [now, ['late', 'now'], 3_000])
    assert.deepEqual(
      (await b.store.schedules.dueSchedules(1)).due.map((row) => row.id),
      ['late'],
    )
  }),

  contract('a tick and its job are written together, and a second process writes nothing', async (b) => {
    const { row, at } = await due(b)
    const firing = fire(row, [tick(b, at)], { nextAt: at + 60_000 })
    const [first, second] = await Promise.all([
      b.store.schedules.fireTicks(firing),
      b.store.schedules.fireTicks({ ...firing, ticks: [tick(b, at)] }),
    ])
    assert.equal([first, second].filter((fired) => fired === 'stale').length, 1)
    const jobs = await b.found({})
    assert.equal(jobs.length, 1)
    const [told] = await ledger(b)
    assert.deepEqual([told?.at, told?.outcome, told?.job, told?.firedAt], [at, 'ran', jobs[0]?.id, b.clock.now])
    const after = await read(b, 'nightly')
    assert.deepEqual([after.nextAt, after.lastAt, after.open], [at + 60_000, at, [jobs[0]?.id]])
  }),

  contract('a tick that has its job is never fired again, whatever the revision', async (b) => {
    const { row, at } = await due(b)
    await fired(b, fire(row, [tick(b, at)], {}))
    const again = await fired(b, fire(await read(b, 'nightly'), [tick(b, at), tick(b, at + 1)], {}))
    assert.deepEqual(
      again.map((one) => one.at),
      [at + 1],
    )
    assert.equal((await b.found({})).length, 2)
  }),

  contract('a skipped tick is recorded with its reason, and may be backfilled later', async (b) => {
    const { row, at } = await due(b)
    await fired(b, fire(row, [{ ...tick(b, at), outcome: 'skipped', reason: 'why not', job: null }], {}))
    assert.deepEqual((await ledger(b))[0], skipped(b, at, 'why not'))
    await fired(b, fire(await read(b, 'nightly'), [{ ...tick(b, at), outcome: 'backfilled' }], {}))
    const [told] = await ledger(b)
    assert.deepEqual([told?.outcome, told?.reason], ['backfilled', null])
    assert.equal((await b.found({})).length, 1)
  }),

  contract('a run by hand may share its instant with a tick of the rule', async (b) => {
    const { row, at } = await due(b)
    const byHand = { ...tick(b, at), byHand: true, outcome: 'run now' as const }
    await fired(b, fire(row, [byHand], { nextAt: at }))
    assert.equal((await read(b, 'nightly')).lastAt, null)
    await fired(b, fire(await read(b, 'nightly'), [tick(b, at)], {}))
    assert.deepEqual(
      (await ledger(b)).map((one) => [one.at, one.byHand]),
      [
        [at, true],
        [at, false],
      ],
    )
  }),

  contract('while an earlier job is unfinished: allow runs beside it', async (b) => {
    const { row, at } = await due(b)
    const many = Array.from({ length: 3 }, (_, i) => tick(b, at + i))
    await fired(b, fire(row, many, { overlap: 'allow' }))
    assert.equal((await b.found({ states: ['ready'] })).length, 3)
    assert.equal((await read(b, 'nightly')).open.length, 3)
  }),

  contract('while an earlier job is unfinished: skip skips the tick, and names that job', async (b) => {
    const worker = await b.worker()
    const { row, at } = await due(b)
    const [first] = await fired(b, fire(row, [tick(b, at), tick(b, at + 1)], { overlap: 'skip' }))
    assert.deepEqual((await ledger(b))[0]?.reason, `job ${first?.job} of an earlier tick is unfinished`)
    const held = only(await b.claim(worker))
    await fired(b, fire(await read(b, 'nightly'), [tick(b, at + 2)], { overlap: 'skip' }))
    await b.settle(held, { to: 'failed' })
    await fired(b, fire(await read(b, 'nightly'), [tick(b, at + 3)], { overlap: 'skip' }))
    assert.deepEqual(
      (await ledger(b)).map((one) => one.outcome),
      ['ran', 'skipped', 'skipped', 'ran'],
    )
  }),

  contract('a parked job, which waits for an operator, blocks no tick', async (b) => {
    const worker = await b.worker()
    const { row, at } = await due(b)
    await fired(b, fire(row, [tick(b, at)], { overlap: 'skip' }))
    await b.settle(only(await b.claim(worker)), { to: 'parked' })
    const [next] = await fired(b, fire(await read(b, 'nightly'), [tick(b, at + 1)], { overlap: 'skip' }))
    assert.equal(next?.outcome, 'ran')
  }),

  contract('while an earlier job is unfinished: cancel cancels a waiting job at once', async (b) => {
    const { row, at } = await due(b)
    const [first] = await fired(b, fire(row, [tick(b, at)], { overlap: 'cancel' }))
    const [second] = await fired(b, fire(await read(b, 'nightly'), [tick(b, at + 1)], { overlap: 'cancel' }))
    const old = await b.read(String(first?.job))
    assert.deepEqual([old.state, old.reason], ['cancelled', 'the next tick of schedule "nightly" came'])
    assert.equal(await b.state(String(second?.job)), 'ready')
  }),

  contract('while an earlier job is unfinished: cancel requests the cancel of a running job', async (b) => {
    const worker = await b.worker()
    const { row, at } = await due(b)
    await fired(b, fire(row, [tick(b, at)], { overlap: 'cancel' }))
    const held = only(await b.claim(worker))
    await fired(b, fire(await read(b, 'nightly'), [tick(b, at + 1), tick(b, at + 2)], { overlap: 'cancel' }))
    assert.deepEqual(await b.requests(), [
      { ref: held.ref, fence: held.fence, kind: 'cancel', reason: 'the next tick of schedule "nightly" came' },
    ])
    assert.deepEqual(
      (await ledger(b)).map((one) => one.outcome),
      ['ran', 'skipped', 'ran'],
      'of two ticks at once the later one runs',
    )
  }),

  contract('a tick that waits is released by a parked job, and a child of that job is not', async (b) => {
    const { row, at } = await due(b)
    await fired(b, fire(row, [tick(b, at)], { overlap: 'wait' }))
    const held = only(await b.claim(await b.worker()))
    const child = await b.one({ after: [{ id: held.id }], onParentFailure: 'run' })
    const [next] = await fired(b, fire(await read(b, 'nightly'), [tick(b, at + 1)], { overlap: 'wait' }))
    assert.equal(await b.state(String(next?.job)), 'blocked')
    await b.settle(held, { to: 'parked' })
    while ((await b.store.jobs.promoteJobs(10)).again);
    assert.deepEqual([await b.state(String(next?.job)), await b.state(child)], ['ready', 'blocked'])
    await b.settle(only(await b.claim(await b.worker())))
    const [last] = await fired(b, fire(await read(b, 'nightly'), [tick(b, at + 2)], { overlap: 'wait' }))
    assert.equal(await b.state(String(last?.job)), 'ready')
  }),

  contract('a held key skips the tick and stops nothing', async (b) => {
    const { row, at } = await due(b)
    const holder = await b.one({ key: 'k' })
    for (const onDuplicate of ['return', 'reject'] as const) {
      const keyed = tick(b, at + (onDuplicate === 'return' ? 0 : 1), { key: 'k' })
      const now = await read(b, 'nightly')
      const [told] = await fired(b, fire(now, [keyed], { onDuplicate, nextAt: row.nextAt }))
      assert.equal(told?.outcome, 'skipped')
      assert.ok(told?.reason?.includes(holder), told?.reason ?? '')
    }
    assert.equal((await b.found({})).length, 1)
  }),

  contract(
    'the job of a tick is a member of its group, and a sealed group skips the tick and stops nothing',
    async (b) => {
      const { row, at } = await due(b)
      const members = [tick(b, at, { group: 'g' }), tick(b, at + 1, { group: 'g' })]
      await fired(b, fire(row, members, { nextAt: row.nextAt }))
      const { counts } = await b.store.groups.readGroup('g')
      assert.deepEqual(
        counts.map(({ state, members: many }) => [state, many]),
        [['ready', 2]],
      )
      await b.store.groups.sealGroup({ group: 'g', whenDone: null })
      for (const overlap of ['allow', 'wait'] as const) {
        const late = tick(b, at + (overlap === 'allow' ? 2 : 3), { group: 'g' })
        const now = await read(b, 'nightly')
        const [told] = await fired(b, fire(now, [late], { overlap, nextAt: row.nextAt }))
        assert.deepEqual([told?.outcome, told?.job], ['skipped', null])
        assert.match(told?.reason ?? '', /group "g" is sealed/)
      }
      assert.equal((await b.found({})).length, 2)
    },
  ),

  contract('a job that a later tick postpones stays the job of its own tick', async (b) => {
    const { row, at } = await due(b)
    const options = (n: number): string => JSON.stringify({ title: `${n}`, tick: { schedule: 'nightly', at: n } })
    const moves = [
      { ...withUniqueSlot({ onDuplicate: 'reschedule' }), due: { inMs: 5_000 } },
      { key: 'k', due: { inMs: 5_000 } },
    ]
    for (const [i, change] of moves.entries()) {
      const [one, two] = [at + 2 * i, at + 2 * i + 1]
      const ticks = [
        tick(b, one, { ...change, options: options(one) }),
        tick(b, two, { ...change, options: options(two) }),
      ]
      const told = await fired(b, fire(await read(b, 'nightly'), ticks, { onDuplicate: 'move', nextAt: row.nextAt }))
      assert.deepEqual(
        told.map(({ outcome }) => outcome),
        ['ran', 'skipped'],
      )
      const stored = JSON.parse((await b.read(String(told[0]?.job))).options ?? '{}') as Record<string, unknown>
      assert.deepEqual([stored['title'], stored['tick']], [`${two}`, { schedule: 'nightly', at: one }])
    }
  }),

  contract('a schedule is deleted with its ledger, and its jobs stay', async (b) => {
    const { row, at } = await due(b)
    await fired(b, fire(row, [tick(b, at)], {}))
    assert.equal(await b.store.schedules.dropSchedule('nightly'), true)
    assert.equal(await b.store.schedules.dropSchedule('nightly'), false)
    assert.equal(await b.store.schedules.fireTicks(fire(row, [tick(b, at + 1)], {})), 'stale')
    assert.deepEqual([await ledger(b), (await b.found({})).length], [[], 1])
  }),

  contract('the ledger is read from the newest on, in pages', async (b) => {
    const { row, at } = await due(b)
    await fired(
      b,
      fire(
        row,
        [0, 1, 2, 3].map((i) => tick(b, at + i)),
        {},
      ),
    )
    const page = await b.store.schedules.readTicks('nightly', null, 2)
    const next = await b.store.schedules.readTicks('nightly', page.at(-1)?.at ?? null, 2)
    assert.deepEqual(
      [...page, ...next].map((one) => one.at - at),
      [3, 2, 1, 0],
    )
  }),

  contract('jobs that are due within a time span are returned in the order of their times', async (b) => {
    const worker = await b.worker()
    await b.one()
    await b.claim(worker)
    const later = await b.one({ due: { inMs: 3_000 } })
    const ready = await b.one()
    const sooner = await b.one({ due: { inMs: 1_000 } })
    await b.one({ due: { inMs: 9_000 } })
    const paused = await b.one({ due: { inMs: 2_000 } })
    await b.pause(paused, 'scheduled')
    const told = await b.store.schedules.upcomingJobs(5_000, 10)
    assert.deepEqual(
      told.jobs.map((job) => [job.id, job.state, job.dueAt - told.now]),
      [
        [ready, 'ready', 0],
        [sooner, 'scheduled', 1_000],
        [later, 'scheduled', 3_000],
      ],
    )
    assert.equal((await b.store.schedules.upcomingJobs(5_000, 2)).jobs.length, 2)
  }),
]

const byBytes = (a: string, c: string): number => Buffer.compare(Buffer.from(a), Buffer.from(c))
