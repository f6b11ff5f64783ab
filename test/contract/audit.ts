import assert from 'node:assert/strict'
import type { AuditNote } from '../../src/job/command-options.js'
import type { AuditRow } from '../../src/store/observing/audit.js'
import type { Inserted, NewJob } from '../../src/store/store.js'
import { contract } from './fixture.js'
import type { ContractCase, ContractFixture } from './fixture.js'
import { planned } from './schedule-fixture.js'
import { sent, waiting } from './workflow-fixture.js'

/** The audit trail: a command with an actor writes a row in its own transaction. */
export const auditCases: readonly ContractCase[] = [
  contract('a change of a job with an actor writes what it was before and after', async (b) => {
    const id = await b.one()
    const change = { id, keepMs: Infinity, audit: by('pause') }
    assert.equal(await b.store.jobs.changeJob({ ...change, from: 'ready', to: 'paused' }), 'changed')
    assert.equal(await b.store.jobs.changeJob({ ...change, from: 'ready', to: 'paused' }), 'stale')
    assert.equal(
      await b.store.jobs.changeJob({ ...change, from: 'paused', to: 'gone', audit: by('delete') }),
      'changed',
    )
    assert.deepEqual((await trail(b)).map(shown), [
      `ada (admin) delete job ${id} 1: paused → deleted, because late`,
      `ada (admin) pause job ${id} 1: ready → paused, because late`,
    ])
  }),

  contract('concurrent changes each write their own row, and those without an actor none', async (b) => {
    const ids = (await b.insert(Array.from({ length: 30 }, () => b.job()))).map((one) => one.id)
    const changes = ids.map((id, n) => ({
      id,
      from: 'ready',
      to: 'cancelled',
      keepMs: Infinity,
      ...(n % 3 === 0 ? {} : { audit: by('cancel') }),
    }))
    await Promise.all(changes.map((change) => b.store.jobs.changeJob(change as never)))
    const wanted = ids.filter((_, n) => n % 3 !== 0).map((id) => `job ${id}`)
    assert.deepEqual(new Set((await trail(b)).map((row) => row.target)), new Set(wanted))
    assert.equal((await trail(b)).length, wanted.length)
  }),

  contract('a request to a running job, and the pause of a queue, write theirs', async (b) => {
    const id = await b.one()
    await b.claim(await b.worker())
    const request = { id, reason: '', keepMs: Infinity } as const
    await b.store.jobs.requestChange({ ...request, verb: 'cancel', audit: by('cancel') })
    await b.store.jobs.requestChange({ ...request, verb: 'pause', audit: by('pause') })
    await b.store.queues.pauseQueue({ queue: 'default', until: null, audit: by('pause') })
    await b.store.queues.pauseQueue({ queue: 'default', until: { inMs: 60_000 }, audit: by('pauseUntil') })
    await b.store.queues.resumeQueue('default', by('resume'))
    await b.store.queues.resumeQueue('default', by('resume'))
    const until = new Date(b.clock.now + 60_000).toISOString()
    assert.deepEqual((await trail(b)).map(shown).reverse(), [
      `ada (admin) cancel job ${id} 1: running → running, cancel requested, because late`,
      'ada (admin) pause queue default 1: open → paused, because late',
      `ada (admin) pauseUntil queue default 1: paused → paused until ${until}, because late`,
      `ada (admin) resume queue default 1: paused until ${until} → open, because late`,
    ])
  }),

  contract('an event of a workflow writes its row when it is sent, and none when it is refused', async (b) => {
    const { id } = await waiting(b)
    const audit = by('send')
    assert.equal(await sent(b, id, { eventId: 'one', audit }), 'sent')
    assert.equal(await sent(b, id, { eventId: 'one', audit }), 'known')
    assert.equal(await sent(b, await b.one({ name: 'other' }), { audit }), 'plain')
    assert.deepEqual((await trail(b)).map(shown), [
      `ada (admin) send job ${id} 1: blocked → blocked, event go, because late`,
    ])
  }),

  contract('an enqueue with an actor writes a row for each job, also where the key is taken', async (b) => {
    const insert = (jobs: readonly NewJob[], onDuplicate: 'return' | 'reject'): Promise<readonly Inserted[]> =>
      b.store.jobs.insertJobs(jobs, { onDuplicate, keepCancelledMs: Infinity, audit: by('enqueue') })
    const first = await insert([b.job(), b.job({ key: 'k' })], 'return')
    const again = await insert([b.job({ key: 'k' })], 'return')
    await assert.rejects(insert([b.job(), b.job({ key: 'k' })], 'reject'))
    assert.deepEqual((await trail(b)).map(shown).reverse(), [
      ...first.map(({ id }) => `ada (admin) enqueue job ${id} 1: null → null, because late`),
      ...again.map(({ id }) => `ada (admin) enqueue job ${id} 0: null → null, because late`),
    ])
  }),

  contract('a schedule that is put or deleted writes its own', async (b) => {
    const put = (revision: number | null, nextAt: number | null): Promise<boolean> =>
      b.store.schedules.putSchedule({ ...planned(b, { id: 'nightly', nextAt }), audit: by('recurring') }, revision)
    assert.equal(await put(null, b.clock.now), true)
    assert.equal(await put(7, null), false, 'another revision')
    assert.equal(await b.store.schedules.dropSchedule('nightly', by('deleteRecurring')), true)
    assert.equal(await b.store.schedules.dropSchedule('nightly', by('deleteRecurring')), false)
    assert.deepEqual((await trail(b)).map(shown).reverse(), [
      `ada (admin) recurring schedule nightly 1: null → next ${new Date(b.clock.now).toISOString()}, because late`,
      'ada (admin) deleteRecurring schedule nightly 1: null → deleted, because late',
    ])
  }),

  contract('the trail is read newest first by page, by actor, verb, target and time', async (b) => {
    const entry = { target: 'queue mail', count: 1, before: null, after: null }
    for (let n = 0; n < 5; n += 1) {
      await b.store.observing.addAudit({ ...by(n % 2 === 0 ? 'pause' : 'resume', `p${n}`), ...entry })
      b.clock.now += 1_000
    }
    const first = await b.store.observing.readAudit({ limit: 2, cursor: null })
    const second = await b.store.observing.readAudit({ limit: 2, cursor: first.cursor })
    const third = await b.store.observing.readAudit({ limit: 2, cursor: second.cursor })
    const actors = (rows: readonly AuditRow[]): string[] => rows.map((row) => row.actor)
    assert.deepEqual(
      [first, second, third].map(({ rows }) => actors(rows)),
      [['p4', 'p3'], ['p2', 'p1'], ['p0']],
    )
    assert.equal(third.cursor, null)
    const read = async (filter: object): Promise<string[]> =>
      actors((await b.store.observing.readAudit({ limit: 9, cursor: null, ...filter })).rows)
    assert.deepEqual(await read({ actor: 'p3' }), ['p3'])
    assert.deepEqual(await read({ verb: 'resume' }), ['p3', 'p1'])
    assert.deepEqual(await read({ target: 'queue sms' }), [])
    assert.deepEqual(await read({ since: b.clock.now - 2_000 }), ['p4', 'p3'])
  }),

  contract('rows whose time is over are not read, and later commands delete them', async (b) => {
    const entry = { target: 'queue mail', count: 1, before: null, after: null }
    for (let n = 0; n < 25; n += 1) await b.store.observing.addAudit({ ...by('pause'), ...entry, keepMs: 1_000 })
    b.clock.now += 1_000
    assert.deepEqual(await trail(b), [])
    await b.store.observing.addAudit({ ...by('resume'), ...entry, keepMs: Infinity })
    b.clock.now -= 1_000
    assert.equal((await trail(b)).length, 6, '20 of 25 were deleted')
  }),

  contract('texts that the database cannot keep are written as far as they go', async (b) => {
    const entry = { target: 'queue a\u0000b\ud800', count: 1, before: null, after: 'x' }
    await b.store.observing.addAudit({ ...by('pause'), ...entry, reason: 'nul \u0000' })
    assert.equal((await trail(b)).length, 1)
  }),
]

function by(verb: string, actor = 'ada'): AuditNote {
  return { actor, role: 'admin', verb, reason: 'late', keepMs: 86_400_000 }
}

async function trail(b: ContractFixture): Promise<readonly AuditRow[]> {
  return (await b.store.observing.readAudit({ limit: 100, cursor: null })).rows
}

function shown({ actor, role, verb, target, count, before, after, reason }: AuditRow): string {
  return `${actor} (${role}) ${verb} ${target} ${count}: ${before} → ${after}, because ${reason}`
}
