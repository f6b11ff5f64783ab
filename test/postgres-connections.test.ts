import { Client, Pool } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill, MillOptions } from '../src/index.js'
import { postgres } from '../src/postgres.js'
import { startPostgres } from '../src/testing/index.js'

/** F1, D13: a server with few connections. A handler that needs one waits for it; a job is not charged for that. */
let server: Awaited<ReturnType<typeof startPostgres>>
const MAX = 20
const mills = new Set<Mill>()
const fillers: Client[] = []
const pools: Pool[] = []
const warnings: string[] = []

beforeAll(async () => {
  server = await startPostgres({
    settings: { max_connections: String(MAX), superuser_reserved_connections: '1', fsync: 'off' },
  })
}, 60_000)
afterEach(async () => {
  for (const mill of mills) await mill.close({ deadline: 0 })
  mills.clear()
  await release()
  for (const pool of pools.splice(0)) await pool.end()
  warnings.length = 0
})
afterAll(() => server?.stop())

/** Takes connection slots until `free` are left. */
async function leave(free: number): Promise<void> {
  await release()
  for (;;) {
    const client = new Client(server.url)
    client.on('error', () => undefined)
    const isIn = await client.connect().then(
      () => true,
      () => false,
    )
    if (!isIn) break
    fillers.push(client)
  }
  await release(free)
}

async function release(count = fillers.length): Promise<void> {
  for (const client of fillers.splice(0, count)) await client.end()
}

let schemas = 0
const newSchema = (): string => `few_${(schemas += 1)}`

async function open(schema: string, options: Omit<MillOptions, 'store'>, pool?: Pool): Promise<Mill> {
  const warn = (_: object, text: string): void => void warnings.push(text)
  const logger = { debug() {}, info() {}, warn, error: warn }
  const store = postgres(pool ?? server.url, { schema })
  const mill = await millrace({ store, logger, poll: '200ms', lease: '5s', ...options })
  mills.add(mill)
  return mill
}

function newPool(options: object): Pool {
  const pool = new Pool({ connectionString: server.url, ...options })
  pool.on('error', () => undefined)
  pools.push(pool)
  return pool
}

const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms))
const writes = job('writes', async (_: { n: number }, ctx) =>
  ctx.transaction(async (tx) => {
    await (tx as Client).query('select pg_sleep(0.01)')
    return 'written'
  }),
)
const shortages = (): string[] => warnings.filter((text) => /no connection left/.test(text))

async function attemptsOf(mill: Mill): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  for await (const { state, attempt } of mill.find({ job: 'writes' }))
    found[`${state} ${attempt}`] = (found[`${state} ${attempt}`] ?? 0) + 1
  return found
}

test('ctx.transaction waits for a slot of the server, and no job is charged', { timeout: 60_000 }, async () => {
  const mill = await open(newSchema(), { jobs: { writes }, concurrency: 20 })
  await mill.start()
  await leave(2)
  const handles = await mill.enqueueMany(
    writes,
    Array.from({ length: 80 }, (_, n) => ({ n })),
  )
  await Promise.all(handles.map((handle) => handle.result({ timeout: '40s' })))
  expect(await attemptsOf(mill)).toEqual({ 'done 1': 80 })
  expect(shortages()).toHaveLength(1)
})

test('ctx.transaction waits for a client of the app’s pool, and no job is charged', { timeout: 60_000 }, async () => {
  const pool = newPool({ max: 1, connectionTimeoutMillis: 500 })
  const slow = job('writes', async (_: { n: number }, ctx) =>
    ctx.transaction(async (tx) => {
      await (tx as Client).query('select pg_sleep(0.2)')
    }),
  )
  const mill = await open(newSchema(), { jobs: { slow }, concurrency: 10 }, pool)
  await mill.start()
  const handles = await mill.enqueueMany(
    slow,
    Array.from({ length: 10 }, (_, n) => ({ n })),
  )
  await Promise.all(handles.map((handle) => handle.result({ timeout: '40s' })))
  expect(await attemptsOf(mill)).toEqual({ 'done 1': 10 })
})

describe('when there is no connection for as long as the attempt may take', () => {
  const short = job('writes', {
    run: async (_: { n: number }, ctx) => ctx.transaction(async () => 'written'),
    timeout: '300ms',
    retry: { limit: 0 },
  })

  test('it fails by its timeout, while it waits for the server', { timeout: 30_000 }, async () => {
    const mill = await open(newSchema(), { jobs: { short } })
    await mill.start()
    await leave(0)
    const handle = await mill.enqueue(short, { n: 1 })
    await expect(handle.result({ timeout: '10s' })).rejects.toMatchObject({
      code: 'E_JOB_FAILED',
      message: expect.stringContaining('longer than its timeout'),
    })
    await release()
    await mill.retry(handle.id)
    expect(await handle.result({ timeout: '10s' })).toBe('written')
  })

  test('it fails by its timeout, while it waits for a pool without a limit', { timeout: 30_000 }, async () => {
    const pool = newPool({ max: 1 })
    const mill = await open(newSchema(), { jobs: { short } }, pool)
    await mill.start()
    const held = await pool.connect()
    const handle = await mill.enqueue(short, { n: 1 })
    await expect(handle.result({ timeout: '10s' })).rejects.toMatchObject({ code: 'E_JOB_FAILED' })
    held.release()
    await mill.retry(handle.id)
    expect(await handle.result({ timeout: '10s' })).toBe('written')
    // A client that arrived too late was returned to the pool.
    await expect.poll(() => pool.idleCount, { timeout: 15_000 }).toBe(1)
  })
})

test('a process closes its idle connections when another one waits', { timeout: 60_000 }, async () => {
  const schema = newSchema()
  const [first, second] = [await open(schema, { jobs: { writes }, concurrency: 5 }), await open(schema, { jobs: {} })]
  await first.start()
  const other = job('other', async (_: object, ctx) => ctx.transaction(async () => 'had one'))
  second.register(other)
  await second.start()
  const handles = await first.enqueueMany(
    writes,
    Array.from({ length: 10 }, (_, n) => ({ n })),
  )
  await Promise.all(handles.map((handle) => handle.result({ timeout: '10s' })))
  // The first mill keeps its handler connection for ten seconds; no other is free.
  await leave(0)
  const began = performance.now()
  expect(await (await second.enqueue(other, {})).result({ timeout: '20s' })).toBe('had one')
  expect(performance.now() - began).toBeLessThan(7_000)
})

test('a call that must reconnect waits for a slot', { timeout: 60_000 }, async () => {
  const mill = await open(newSchema(), { jobs: { writes } })
  await mill.enqueue(writes, { n: 1 })
  await leave(0)
  const [filler] = fillers as [Client]
  const { rowCount } = await filler.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millrace'`,
  )
  expect(rowCount).toBeGreaterThan(0)
  // Other clients have taken all its connections.
  await expect
    .poll(
      async () => {
        const client = new Client(server.url)
        client.on('error', () => undefined)
        return client.connect().then(
          () => void fillers.push(client),
          () => 'full',
        )
      },
      { timeout: 5_000, interval: 1 },
    )
    .toBe('full')
  const enqueuing = mill.enqueue(writes, { n: 2 })
  await expect.poll(() => shortages().length, { timeout: 5_000, interval: 5 }).toBe(1)
  await pause(300)
  await release()
  expect((await enqueuing).isNew).toBe(true)
  expect(shortages()).toHaveLength(1)
})
