import assert from 'node:assert/strict'
import { contract, only } from './fixture.js'
import type { ContractCase } from './fixture.js'

/** The census, which the simulator's checkers read: it must not depend on how a store keeps its rows. */
export const censusCases: readonly ContractCase[] = [
  contract('a census has every job once, in its state, with its key, links, group, lease and request', async (b) => {
    const worker = await b.worker()
    const running = await b.one({ key: 'k', group: 'g' })
    const claimed = only(await b.claim(worker))
    await b.store.jobs.requestChange({ id: running, verb: 'pause', reason: '', keepMs: 1_000 })
    const scheduled = await b.one({ due: { inMs: 60_000 }, group: 'g' })
    const blocked = await b.one({ after: [{ id: running }] })
    const done = await b.one({ queue: 'other' })
    const other = only(await b.claim(worker))
    await b.settle(other, { to: 'done', log: '[{"startedAt":1,"endedAt":2,"worker":"w"}]' })
    await b.store.queues.pauseQueue({ queue: 'mail', until: null })

    const census = await b.store.readCensus()
    const byId = new Map(census.jobs.map((job) => [job.id, job]))
    const shown = [running, scheduled, blocked, done].map((id) => {
      const job = byId.get(id)
      return [job?.state, job?.tableCount, job?.key, job?.group, job?.fence ?? null, job?.logEntries]
    })
    assert.deepEqual(shown, [
      ['running', 1, 'k', 'g', claimed.fence, 0],
      ['scheduled', 1, null, 'g', null, 0],
      ['blocked', 1, null, null, null, 0],
      ['done', 1, null, null, null, 1],
    ])
    assert.deepEqual(byId.get(blocked)?.after, [running])
    assert.deepEqual(
      census.links.map(({ parent, child, policy }) => [parent, child, policy]),
      [[running, byId.get(blocked)?.seq, 'wait']],
    )
    assert.deepEqual(census.keys, [{ name: 'mail', key: 'k', seq: claimed.ref }])
    assert.deepEqual(census.requests, [{ seq: claimed.ref, kind: 'pause' }])
    assert.deepEqual(census.pauses, [{ queue: 'mail', until: null }])
    assert.deepEqual(
      census.groups.map(({ group, unfinished, sealedAt }) => [group, Number(unfinished), sealedAt]),
      [['g', 2, null]],
    )
    assert.deepEqual(
      new Map(census.counts.map(({ group, state, members }) => [`${group} ${state}`, Number(members)])),
      new Map([
        ['g ready', 1],
        ['g scheduled', 1],
      ]),
    )
    const lease = census.leases.find(({ fence }) => fence === claimed.fence)
    assert.deepEqual([lease?.worker, lease?.jobs], [worker, [claimed.ref]])
    // PostgreSQL notes a parent that got a child, so that its end is not missed.
    assert.ok(census.todos.every((parent) => parent === running))
    assert.equal(census.strays, 0)
  }),
]
