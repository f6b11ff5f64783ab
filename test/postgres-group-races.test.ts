import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { PostgresStore } from '../src/store/postgres/postgres-store.js'
import { openDatabase } from '../src/store/postgres/connection/open.js'
import { targetOf } from '../src/store/postgres/connection/target.js'
import type { ClaimedJob, NewJob, SettledJob } from '../src/store/store.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { systemWorld } from '../src/world/world.js'

/**
 * The conflicts that decide whether a group is complete, stepped through: some statements run in transactions of plain clients, which wait
 * at a chosen point, others in the store. docs/decisions/groups.md says what decides each conflict.
 */
let database: Awaited<ReturnType<typeof freshDatabase>>
const clients: Client[] = []
const stores: PostgresStore[] = []
beforeAll(async () => {
  database = await freshDatabase()
}, 60_000)
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end()
  for (const store of stores.splice(0)) await store.close()
})
afterAll(() => database?.drop())

const world = systemWorld()
const OPTIONS = { onDuplicate: 'return', keepCancelledMs: 60_000 } as const
let schemas = 0

async function newStore(schema: string): Promise<PostgresStore> {
  const store = new PostgresStore(await openDatabase(await targetOf(database.url, schema), true, world), world)
  stores.push(store)
  return store
}

/** A transaction that stays open until the test ends it. */
async function begin(): Promise<Client> {
  const client = new Client(database.url)
  clients.push(client)
  await client.connect()
  await client.query('begin')
  return client
}

const aJob = (over: Partial<NewJob> = {}): NewJob => ({
  id: world.ids.jobId(Date.now()),
  name: 'work',
  queue: 'default',
  priority: 0,
  key: null,
  group: 'g',
  payload: '{"n":1}',
  options: null,
  due: { inMs: 0 },
  expires: null,
  ...over,
})

/** A group of running members, all claimed by one worker. */
async function running(members: number): Promise<{ store: PostgresStore; schema: string; jobs: ClaimedJob[] }> {
  const schema = `group_races_${(schemas += 1)}`
  const store = await newStore(schema)
  await store.addWorker({ id: 'w', host: 'h', pid: 1 })
  await store.insertJobs(
    Array.from({ length: members }, () => aJob()),
    OPTIONS,
  )
  return { store, schema, jobs: [...(await claim(store))] }
}

async function claim(store: PostgresStore): Promise<readonly ClaimedJob[]> {
  const request = { worker: 'w', fence: world.ids.fence(), names: ['work'], rooms: new Map<string, number>() }
  return (await store.claimJobs({ ...request, max: 10, starting: 10, suspects: 'none' })).jobs
}

const done = (job: ClaimedJob): SettledJob => ({
  ...job,
  to: 'done',
  delayMs: null,
  attempt: 1,
  startedAt: 1,
  hasBegun: true,
  worker: 'w',
  result: null,
  error: null,
  reason: null,
  keepMs: Infinity,
})

const seal = (store: PostgresStore): Promise<boolean> =>
  store.groups.sealGroup({
    group: 'g',
    whenDone: { job: aJob({ name: 'report', group: undefined }), options: OPTIONS },
  })

/** How many whenDone jobs exist, after every store has promoted. */
async function followed(...all: PostgresStore[]): Promise<number> {
  for (let looks = 0; looks < 2; looks += 1) await Promise.all(all.map((store) => store.promoteJobs(10)))
  const { rows } = await (all[0] as PostgresStore).findJobs({
    names: ['report'],
    order: 'newest',
    limit: 10,
    cursor: null,
  })
  return rows.length
}

test('two last members that end at the same time do not see each other, and whenDone is enqueued once', async () => {
  const { store, schema, jobs } = await running(2)
  const other = await newStore(schema)
  await seal(store)
  const [one, two] = [await begin(), await begin()]
  expect(await store.transactions.settleJobIn(one, done(jobs[0] as ClaimedJob))).toBe(true)
  expect(await store.transactions.settleJobIn(two, done(jobs[1] as ClaimedJob))).toBe(true)
  await one.query('commit')
  expect(await followed(store, other)).toBe(0)
  await two.query('commit')
  expect(await followed(store, other)).toBe(1)
})

test('a seal waits for an enqueue that is not committed yet, and the group for its job', async () => {
  const { store, jobs } = await running(1)
  const tx = await begin()
  await store.transactions.insertJobsIn(tx, [aJob()], OPTIONS)
  const sealing = seal(store)
  await store.settleJobs([done(jobs[0] as ClaimedJob)], [])
  expect(await followed(store)).toBe(0)
  expect((await store.groups.readGroup('g')).sealedAt).toBeNull()
  await tx.query('commit')
  expect(await sealing).toBe(true)
  expect(await followed(store)).toBe(0)
  await store.settleJobs((await claim(store)).map(done), [])
  expect(await followed(store)).toBe(1)
})

test('a group is not complete while a running member adds to it, though that member has ended meanwhile', async () => {
  const { store, jobs } = await running(1)
  const [member] = jobs as [ClaimedJob]
  await seal(store)
  const tx = await begin()
  await store.transactions.insertJobsIn(tx, [aJob()], { ...OPTIONS, claim: member })
  await store.settleJobs([done(member)], [])
  expect((await store.groups.readGroup('g')).counts).toEqual([{ queue: 'default', state: 'done', members: 1 }])
  expect(await followed(store)).toBe(0)
  await tx.query('commit')
  expect(await followed(store)).toBe(0)
  await store.settleJobs((await claim(store)).map(done), [])
  expect(await followed(store)).toBe(1)
})

test('a member that adds while its group completes waits for that, and is refused', async () => {
  const { store, schema, jobs } = await running(1)
  await seal(store)
  const tx = await begin()
  await tx.query(`update "${schema}".groups set completed_at = 1 where grp = 'g'`)
  const adding = store.insertJobs([aJob()], { ...OPTIONS, claim: jobs[0] })
  adding.catch(() => undefined)
  await tx.query('commit')
  await expect(adding).rejects.toMatchObject({ code: 'E_GROUP_SEALED' })
})

test('moves that many transactions fold at the same time are each counted once', async () => {
  const { store, schema } = await running(10)
  const others = [await newStore(schema), await newStore(schema), await newStore(schema)]
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(others.map((other) => other.insertJobs([aJob(), aJob()], OPTIONS)))
    await Promise.all([store, ...others].map((each) => each.promoteJobs(10)))
  }
  const { counts } = await store.groups.readGroup('g')
  expect(counts).toEqual([
    { queue: 'default', state: 'ready', members: 60 },
    { queue: 'default', state: 'running', members: 10 },
  ])
})
