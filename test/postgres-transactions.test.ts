import { Client, Pool } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { postgres } from '../src/postgres.js'
import { emptyTables } from './postgres/empty-tables.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { libraries } from './postgres/libraries.js'
import type { Opened } from './postgres/libraries.js'

/** E4 and E5 through the public API: jobs in the transactions of every supported library, on a real server. */

let database: Awaited<ReturnType<typeof freshDatabase>>
let admin: Client
beforeAll(async () => {
  database = await freshDatabase()
  admin = new Client(database.url)
  await admin.connect()
})
afterAll(async () => {
  await admin.end()
  await database.drop()
})

const mills: Mill[] = []
let schemas = 0
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
  const used = Array.from({ length: schemas }, (_, i) => `tx${i + 1}`)
  await emptyTables(admin, used)
  schemas = 0
})

const ran: string[] = []
const mail = job('mail', async (p: { to: string }) => void ran.push(p.to))

async function open(jobs: Parameters<typeof millrace>[0] = {}): Promise<Mill> {
  schemas += 1
  const store = postgres(database.url, { schema: `tx${schemas}` })
  const mill = await millrace({ store, logger: false, poll: '1h', jobs: [mail], ...jobs })
  mills.push(mill)
  return mill
}

const count = async (mill: Mill): Promise<number> => {
  let found = 0
  for await (const _ of mill.find()) found += 1
  return found
}

describe.each(Object.entries(libraries))('in a transaction of %s', (_, openLibrary) => {
  let library: Opened
  beforeAll(async () => {
    library = await openLibrary(database.url)
  })
  afterAll(() => library.close())

  test('a job exists if and only if it commits, and then starts without a poll', async () => {
    const mill = await open()
    await mill.start()
    const undone = library.transaction(async (tx) => {
      await mill.enqueue(mail, { to: 'nobody' }, { tx })
      throw new Error('rolled back')
    })
    await expect(undone).rejects.toThrow('rolled back')
    const handle = await library.transaction(async (tx) => {
      const [first] = await mill.enqueueMany(mail, [{ to: 'ada' }, { to: 'bob' }], { tx })
      await mill.schedule(mail, { to: 'later' }, '1h', { tx, key: 'later' })
      expect(await count(mill)).toBe(0)
      return first
    })
    await handle?.result({ timeout: '20s' })
    expect(await count(mill)).toBe(3)
    expect(ran).not.toContain('nobody')
  })

  test('a refused bulk leaves nothing, and earlier writes stay', async () => {
    const mill = await open()
    await mill.enqueue(mail, { to: 'first' }, { key: 'k' })
    await library.transaction(async (tx) => {
      await mill.enqueue(mail, { to: 'kept' }, { tx })
      const bulk = mill.enqueueMany(mail, [{ to: 'a' }, { to: 'b' }], (p) => ({
        tx,
        onDuplicate: 'reject',
        key: p.to === 'b' ? 'k' : 'free',
      }))
      await expect(bulk).rejects.toMatchObject({ code: 'E_DUPLICATE_KEY' })
    })
    expect(await count(mill)).toBe(2)
  })

  test('settleIn: the job is done if and only if it commits', async () => {
    let tries = 0
    const charge = job('charge', {
      run: async (_: object, ctx) => {
        tries += 1
        const work = library.transaction(async (tx) => {
          await ctx.settleIn(tx, { receipt: tries })
          if (tries === 1) throw new Error('rolled back')
        })
        await work
      },
      retry: { limit: 3, backoff: () => 0, jitter: 0 },
    })
    const mill = await open({ jobs: [charge], poll: '50ms' })
    await mill.start()
    const handle = await mill.enqueue(charge, {})
    expect(await handle.result({ timeout: '20s' })).toEqual({ receipt: 2 })
    expect(tries).toBe(2)
  })
})

test('ctx.transaction commits the work and the job’s settlement together, or neither', async () => {
  let tries = 0
  const order = job('order', {
    run: async (p: { id: number }, ctx) => {
      tries += 1
      return ctx.transaction(async (tx) => {
        const client = tx as { query(text: string, values?: unknown[]): Promise<unknown> }
        await client.query('create table if not exists public.orders (id integer primary key)')
        await client.query('insert into public.orders values ($1)', [p.id])
        await ctx.enqueue(mail, { to: `order ${p.id}` }, { tx })
        if (tries === 1) throw new Error('not yet')
        return { stored: p.id }
      })
    },
    retry: { limit: 3, backoff: () => 0, jitter: 0 },
  })
  const mill = await open({ jobs: [order, mail], poll: '50ms' })
  await mill.start()
  const handle = await mill.enqueue(order, { id: 7 })
  expect(await handle.result({ timeout: '20s' })).toEqual({ stored: 7 })
  expect([tries, await count(mill)]).toEqual([2, 2])
})

test('ctx.transaction serves more concurrent handlers than it has connections, repeatedly', async () => {
  const failed: unknown[] = []
  const warned: string[] = []
  const hear = (warning: Error): unknown => warned.push(warning.message)
  process.on('warning', hear)
  const order = job('order', {
    run: (_: number, ctx) =>
      ctx
        .transaction(async (tx) => {
          await (tx as { query(text: string): Promise<unknown> }).query('select 1')
        })
        .catch((error: unknown) => failed.push(error)),
  })
  const mill = await open({ jobs: [order], concurrency: 12 })
  await mill.start()
  const handles = await mill.enqueueMany(
    order,
    Array.from({ length: 100 }, (_, index) => index),
  )
  for (const handle of handles) await handle.result({ timeout: '30s' })
  process.off('warning', hear)
  expect(failed).toEqual([])
  expect(warned).toEqual([])
})

test('ctx.transaction replaces a connection that was ended while it was idle', async () => {
  const order = job('order', {
    run: (_: number, ctx) =>
      ctx.transaction(async (tx) => {
        const client = tx as { query(text: string): Promise<{ rows: { pid: number }[] }> }
        return (await client.query('select pg_backend_pid() as pid')).rows[0]?.pid
      }),
    retry: { limit: 0 },
  })
  const mill = await open({ jobs: [order] })
  await mill.start()
  const run = async (): Promise<unknown> => (await mill.enqueue(order, 0)).result({ timeout: '20s' })
  const pid = await run()
  const other = new Client(database.url)
  await other.connect()
  await other.query('select pg_terminate_backend($1)', [pid])
  expect(await run()).not.toBe(pid)
  await other.end()
})

describe.each(['a URL', 'a pool'] as const)('the tx of ctx.transaction on %s', (kind) => {
  interface Tx {
    readonly query: (text: string) => Promise<unknown>
    readonly end: () => Promise<void>
  }
  const pool = (): Pool => new Pool({ connectionString: database.url, max: 1 })
  const pools: Pool[] = []
  afterEach(async () => {
    for (const each of pools.splice(0)) await each.end()
  })
  async function start(jobs: NonNullable<Parameters<typeof open>[0]>['jobs']): Promise<Mill> {
    const made = kind === 'a pool' ? pool() : undefined
    if (made !== undefined) pools.push(made)
    schemas += 1
    const store = postgres(made ?? database.url, { schema: `tx${schemas}` })
    const mill = await millrace({ store, logger: false, jobs, concurrency: 1 })
    mills.push(mill)
    await mill.start()
    return mill
  }

  test('is refused after its call, also while the connection serves another', async () => {
    let kept!: Tx
    let keptQuery!: Tx['query']
    const first = job('first', (_: number, ctx) =>
      ctx.transaction(async (tx) => {
        kept = tx as Tx
        keptQuery = kept.query
        expect(tx).toBeInstanceOf(Client)
        await kept.query('select 1')
      }),
    )
    const second = job('second', {
      retry: { limit: 0 },
      run: (_: number, ctx) =>
        ctx.transaction(async (tx) => {
          await (tx as Tx).query('select 1')
          const late = [kept.query('select 1'), keptQuery('select 1'), mill.enqueue(mail, { to: 'x' }, { tx: kept })]
          const answers = await Promise.allSettled(late)
          return answers.map((each) => (each.status === 'rejected' ? (each.reason as { code: string }).code : 'done'))
        }),
    })
    const mill = await start([first, second, mail])
    await (await mill.enqueue(first, 0)).result({ timeout: '20s' })
    const told = await (await mill.enqueue(second, 0)).result({ timeout: '20s' })
    expect(told).toEqual(['E_TX_NOT_OPEN', 'E_TX_NOT_OPEN', 'E_TX_NOT_OPEN'])
  })

  test('cannot be closed by the handler', async () => {
    const closing = job('closing', (_: number, ctx) =>
      ctx.transaction(async (tx) => {
        const told = await (tx as Tx).end().catch((error: { code: string }) => error.code)
        await (tx as Tx).query('select 1')
        return told
      }),
    )
    const mill = await start([closing])
    expect(await (await mill.enqueue(closing, 0)).result({ timeout: '20s' })).toBe('E_TX_IN_USE')
  })
})

test('a transaction in a copy of the database is refused', async () => {
  const mill = await open()
  const schema = `tx${schemas}`
  const copied = await freshDatabase()
  const original = new Client(database.url)
  const copy = new Client(copied.url)
  await Promise.all([original.connect(), copy.connect()])
  try {
    await (await millrace({ store: postgres(copied.url, { schema }), logger: false })).close()
    const { rows } = await original.query<{ token: string }>(`select token from ${schema}.identity`)
    await copy.query(`update ${schema}.identity set token = $1`, [rows[0]?.token])
    await copy.query('begin')
    const refused = mill.enqueue(mail, { to: 'ada' }, { tx: copy })
    await expect(refused).rejects.toMatchObject({ code: 'E_TX_OTHER_DATABASE' })
  } finally {
    await Promise.all([original.end(), copy.end()])
    await copied.drop()
  }
})
