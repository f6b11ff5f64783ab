import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ContractFixture, only } from './contract/fixture.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { openDatabase } from '../src/store/postgres/connection/open.js'
import { PostgresStore } from '../src/store/postgres/postgres-store.js'
import { targetOf } from '../src/store/postgres/connection/target.js'
import { systemWorld } from '../src/world/world.js'

/**
 * The conflicts of jobs with parents, stepped through on PostgreSQL: one side is a transaction of a plain client that
 * waits at a chosen point, the other is the store. docs/decisions/postgres-locks.md says what decides each conflict.
 */
const DAY_MS = 86_400_000
let database: Awaited<ReturnType<typeof freshDatabase>>
let client: Client
let schema = ''
let schemas = 0
let b: ContractFixture
let other: ContractFixture
const stores: PostgresStore[] = []

beforeAll(async () => {
  database = await freshDatabase()
}, 60_000)
afterAll(() => database?.drop())
beforeEach(async () => {
  schema = `link_races_${(schemas += 1)}`
  const clock = { now: Date.UTC(2040, 0, 10, 12) }
  b = new ContractFixture({ store: await open(clock), clock })
  other = new ContractFixture({ store: await open(clock), clock })
  client = new Client(database.url)
  await client.connect()
})
afterEach(async () => {
  await client.end()
  for (const store of stores.splice(0)) await store.close()
})

async function open(clock: { now: number }): Promise<PostgresStore> {
  const world = systemWorld()
  const opened = await openDatabase(await targetOf(database.url, schema), true, world)
  const store = new PostgresStore(opened, world, { now: () => clock.now })
  stores.push(store)
  return store
}

async function promote(fixture = b): Promise<void> {
  while ((await fixture.store.jobs.promoteJobs(100)).again);
}
const rows = async (sql: string): Promise<Record<string, unknown>[]> => (await client.query(sql)).rows
const todos = (): Promise<object[]> => rows(`select what from ${schema}.link_todos`)

describe('a child that is enqueued', () => {
  test('while its parent is claimed leaves its to-do, and then the claim is marked', async () => {
    const parent = await b.one()
    await client.query('begin')
    await client.query(`select * from ${schema}.ready for update`)
    const child = await b.one({ after: [{ id: parent }], name: 'child' })
    expect(await b.store.jobs.promoteJobs(10)).toMatchObject({ again: false, nextInMs: 0 })
    expect(await todos()).toEqual([{ what: 'recheck' }])
    await client.query('rollback')
    await promote()
    expect(await todos()).toEqual([])
    const claimed = only(await b.claim(await b.worker()))
    expect(claimed.isParent).toBe(true)
    await b.settle(claimed)
    await promote()
    expect(await b.state(child)).toBe('ready')
  })

  test('of a ready parent replaces its row: a claim that saw the old row cannot take it', async () => {
    const parent = await b.one()
    const [before] = await rows(`select ctid::text, ref from ${schema}.ready`)
    await b.one({ after: [{ id: parent }], name: 'child' })
    await promote()
    const [after] = await rows(`select ctid::text, ref from ${schema}.ready`)
    expect(after?.['ref']).toBe(before?.['ref'])
    expect(after?.['ctid']).not.toBe(before?.['ctid'])
  })

  test('while its parent ends is released by its to-do', async () => {
    const parent = await b.one()
    const claimed = only(await b.claim(await b.worker()))
    expect(claimed.isParent).toBe(false)
    await client.query('begin')
    await client.query(`select * from ${schema}.leases for share`)
    await client.query(`insert into ${schema}.history (ref, settled_at, state) values (${claimed.ref}, 1, 'done')`)
    const child = await b.one({ after: [{ id: parent }], name: 'child' })
    expect(await b.store.jobs.promoteJobs(10)).toMatchObject({ again: false, nextInMs: 0 })
    await client.query('commit')
    await promote()
    expect(await b.state(child)).toBe('ready')
    expect(await todos()).toEqual([])
  })

  test('of a running parent marks its lease, and the fast settlement leaves that job to the slow one', async () => {
    const parent = await b.one()
    const neighbour = await b.one()
    const { jobs } = await b.claim(await b.worker())
    const child = await b.one({ after: [{ id: parent }], name: 'child' })
    await promote()
    expect(await rows(`select has_request from ${schema}.leases`)).toEqual([{ has_request: true }])
    const written = await b.store.leases.settleJobs(
      jobs.map((job) => b.settled(job)),
      jobs.map((job) => job.fence),
    )
    expect(written.refused).toEqual([])
    await promote()
    expect([await b.state(child), await b.state(neighbour)]).toEqual(['ready', 'done'])
  })

  test('in a caller’s transaction blocks neither the claim nor the settlement of its parent', async () => {
    const parent = await b.one()
    const child = b.job({ after: [{ id: parent }], name: 'child' })
    await client.query('begin')
    await b.store.transactions.insertJobsIn(client, [child], { onDuplicate: 'return', keepCancelledMs: Infinity })
    const claimed = only(await b.claim(await b.worker()))
    expect(await b.settle(claimed, { to: 'retrying', delayMs: 0 })).toEqual([])
    await promote()
    expect(await b.settle(only(await b.claim(await b.worker())))).toEqual([])
    await client.query('commit')
    await promote()
    expect(await b.state(child.id)).toBe('ready')
  })

  test('keeps its parent from being deleted until its link is visible', async () => {
    const parent = await b.one()
    const claimed = only(await b.claim(await b.worker()))
    const child = b.job({ after: [{ id: parent }], name: 'child' })
    await client.query('begin')
    await b.store.transactions.insertJobsIn(client, [child], { onDuplicate: 'return', keepCancelledMs: Infinity })
    await expect(b.settle(claimed, { keepMs: 0 })).rejects.toMatchObject({ code: 'E_STORE_LOCKED' })
    await client.query('commit')
    expect(await b.settle(claimed, { keepMs: 0 })).toEqual([])
    await promote()
    expect([await b.state(parent), await b.state(child.id)]).toEqual(['gone', 'ready'])
  })

  test('of a failed parent does not stay blocked when that is pruned at the same time', async () => {
    const parent = await b.one()
    await b.settle(only(await b.claim(await b.worker())), { to: 'failed', keepMs: 1_000 })
    const child = b.job({ after: [{ id: parent }], name: 'child' })
    await client.query('begin')
    await b.store.transactions.insertJobsIn(client, [child], { onDuplicate: 'return', keepCancelledMs: Infinity })
    b.clock.now += 1_000
    expect(await b.prune(10), 'it is locked').toBe(0)
    await client.query('commit')
    expect(await b.prune(10)).toBe(1)
    await promote()
    expect(await b.state(child.id)).toBe('cancelled')
  })
})

describe('the last two parents of a child', () => {
  test('end at once and release it once, whichever process handles the to-do', async () => {
    const children: string[] = []
    for (let round = 0; round < 20; round += 1) {
      const [one, two] = [await b.one(), await b.one()]
      children.push(await b.one({ after: [{ id: one }, { id: two }], name: 'child' }))
      const { jobs } = await b.claim(await b.worker())
      const [first, second] = jobs
      if (first === undefined || second === undefined) throw new Error('two were ready')
      await Promise.all([b.settle(first).then(() => promote()), other.settle(second).then(() => promote(other))])
    }
    await promote()
    await expect.poll(() => Promise.all(children.map((id) => b.state(id)))).toEqual(children.map(() => 'ready'))
    expect((await b.claim(await b.worker(), { names: ['child'] })).jobs).toHaveLength(20)
  })

  test('do not wait for a lock on the child, and are processed later', async () => {
    const parent = await b.one()
    const child = await b.one({ after: [{ id: parent }], name: 'child' })
    await promote()
    await b.settle(only(await b.claim(await b.worker())))
    await client.query('begin')
    await client.query(`select * from ${schema}.waiting for update`)
    expect(await b.store.jobs.promoteJobs(10)).toMatchObject({ promoted: 0, again: false, nextInMs: 0 })
    await client.query('rollback')
    await promote()
    expect(await b.state(child)).toBe('ready')
  })
})

test('two late edges that would close a cycle are not both written', async () => {
  for (let round = 0; round < 10; round += 1) {
    const [one, two] = [await b.one({ due: { inMs: 60_000 } }), await b.one({ due: { inMs: 60_000 } })]
    const add = (fixture: ContractFixture, id: string, parent: string): Promise<unknown> =>
      fixture.store.jobs.changeJob({
        id,
        from: 'scheduled',
        to: 'scheduled',
        keepMs: Infinity,
        edit: { after: { parents: [{ id: parent }], onFailure: 'wait', keepMs: Infinity } },
      })
    const answers = await Promise.allSettled([add(b, one, two), add(other, two, one)])
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await rows(`select 1 as link from ${schema}.links`)).toHaveLength(round + 1)
  }
})

test('a day that is dropped leaves no child blocked', async () => {
  const [failed, done] = [await b.one(), await b.one()]
  const worker = await b.worker()
  const { jobs } = await b.claim(worker)
  for (const job of jobs)
    await b.settle(job, { to: job.id === failed ? 'failed' : 'done', keepMs: 2 * DAY_MS, attempt: 1 })
  const child = await b.one({ after: [{ id: failed }], name: 'child' })
  const after = await b.one({ after: [{ id: done }], name: 'child' })
  await promote()
  expect(await b.state(child)).toBe('blocked')
  b.clock.now += 20 * DAY_MS
  expect(await b.prune(100)).toBeGreaterThan(0)
  expect(await b.state(failed)).toBe('gone')
  await promote()
  expect([await b.state(child), await b.state(after)]).toEqual(['cancelled', 'ready'])
  expect((await b.read(child)).reason).toContain('is gone')
})
