import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { job, millrace, StoreGoneError } from '../src/index.js'
import type { Mill, MillOptions } from '../src/index.js'
import { postgres } from '../src/postgres.js'
import { freshDatabase } from './postgres/shared-postgres.js'

/** Processes that keep running while the tables are recreated: lane numbers that they cached mean something else then. */

let database: Awaited<ReturnType<typeof freshDatabase>>
let sql: Client
beforeAll(async () => {
  database = await freshDatabase()
  sql = new Client(database.url)
  await sql.connect()
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})

let schemas = 0
let schema: string
let ran: string[] = []
const note = (name: string) => job(name, async (_payload: unknown) => void ran.push(name))
type Note = ReturnType<typeof note>
const [mail, purge] = [note('mail'), note('purge')]

const mills: Mill[] = []
beforeEach(() => {
  schemas += 1
  schema = `remade${schemas}`
  ran = []
})
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

async function open(options: MillOptions = {}): Promise<Mill> {
  const mill = await millrace({ store: postgres(database.url, { schema }), logger: false, poll: '200ms', ...options })
  mills.push(mill)
  return mill
}

const ways = {
  'dropped and migrated again': async () => {
    await sql.query(`drop schema ${schema} cascade`)
    await open()
  },
  'emptied, and counted from one again': async () => {
    const { rows } = await sql.query<{ names: string }>(
      `select string_agg(format('%I.%I', schemaname, tablename), ', ') as names from pg_tables
       where schemaname = $1 and tablename not in ('migrations', 'identity')`,
      [schema],
    )
    await sql.query(`truncate ${rows[0]?.names ?? ''} restart identity`)
  },
  'emptied, and not filled again': async () => {
    await sql.query(`truncate ${schema}.lanes, ${schema}.jobs, ${schema}.ready, ${schema}.waiting`)
  },
}

type Enqueue = (mill: Mill, mail: Note) => Promise<readonly { readonly id: string }[]>

const enqueues: Readonly<Record<string, Enqueue>> = {
  one: async (mill, mail) => [await mill.enqueue(mail, 1)],
  'one for later': async (mill, mail) => [await mill.enqueue(mail, 1, { in: '1h' })],
  'many at once': (mill, mail) => Promise.all([1, 2, 3, 4].map((each) => mill.enqueue(mail, each))),
  'a bulk': (mill, mail) => mill.enqueueMany(mail, [1, 2, 3]),
  'a bulk of all kinds': (mill, mail) => mill.enqueueMany(mail, [1, new Uint8Array([2]), 3]),
  'a key': async (mill, mail) => [await mill.enqueue(mail, 1, { key: 'k' })],
  'one in a transaction': (mill, mail) => inTransaction('begin', async (tx) => [await mill.enqueue(mail, 1, { tx })]),
  'a key in a transaction': (mill, mail) =>
    inTransaction('begin', async (tx) => [await mill.enqueue(mail, 1, { tx, key: 'k' })]),
  'one in a transaction with a fixed snapshot': (mill, mail) =>
    inTransaction('begin isolation level repeatable read', async (tx) => [await mill.enqueue(mail, 1, { tx })]),
}

/** Tables take longer to make than all these enqueues: they are remade once, with a producer and a pair of jobs for each enqueue. */
describe.each(Object.entries(ways))('when the tables are %s: an enqueue', (_, remake) => {
  const each = Object.keys(enqueues).map((kind, i) => ({ kind, mail: note(`mail${i}`), purge: note(`purge${i}`) }))
  const producers = new Map<string, Mill>()
  let worker: Mill
  const opened: Mill[] = []
  /** Each producer has cached the number of its mail, which then is that of the purge. */
  beforeAll(async () => {
    schema = `enqueued${(schemas += 1)}`
    for (const { kind, mail } of each) {
      const producer = await open({ jobs: [mail] })
      await producer.enqueue(mail, 'before', { in: '1h' })
      producers.set(kind, producer)
    }
    await remake()
    worker = await open({ jobs: each.flatMap(({ mail, purge }) => [mail, purge]) })
    for (const { purge } of each) await worker.enqueue(purge, 'first', { in: '1h' })
    await worker.start()
    opened.push(...mills.splice(0))
  })
  afterAll(async () => {
    for (const mill of opened) await mill.close({ deadline: 0 })
  })

  test.each(each.map((one) => [one.kind, one.mail] as const))('of %s runs as its own job', async (kind, mail) => {
    const [enqueue, producer] = [enqueues[kind] as Enqueue, producers.get(kind) as Mill]
    const handles = await enqueue(producer, mail)
    for (const { id } of handles) {
      const record = await worker.get(id)
      expect(record?.job).toBe(mail.name)
      if (record?.state !== 'scheduled') await worker.handle(id).result({ timeout: '20s' })
    }
    expect(ran.filter((name) => name.startsWith('purge'))).toEqual([])
  })
})

describe.each(Object.entries(ways))('when the tables are %s', (_, remake) => {
  test('a waiting job is moved into the right queue', async () => {
    const producer = await open({ jobs: [mail] })
    await producer.edit((await producer.enqueue(mail, 1, { in: '1h' })).id, { queue: 'slow' })
    await remake()
    const other = await open()
    await other.enqueue(purge, 'first', { in: '1h' })
    await other.enqueue(purge, 'second', { in: '1h', queue: 'slow' })
    const { id } = await other.enqueue(mail, 2, { in: '1h', key: 'k' })
    await producer.edit(id, { queue: 'slow' })
    expect(await producer.get(id)).toMatchObject({ job: 'mail', queue: 'slow' })
    await producer.schedule(mail, 3, '1h', { key: 'k', queue: 'default' })
    expect(await producer.get(id)).toMatchObject({ job: 'mail', queue: 'default' })
  })

  test('a worker that kept running calls the right handler for each job', async () => {
    const worker = await open({ jobs: [mail, purge] })
    await worker.start()
    await (await worker.enqueue(mail, 0)).result({ timeout: '10s' })
    await (await worker.enqueue(purge, 0)).result({ timeout: '10s' })
    ran = []
    await remake()
    const other = await open()
    const handles = [await other.enqueue(purge, 1), await other.enqueue(mail, 1), await other.enqueue(purge, 2)]
    for (const handle of handles) await handle.result({ timeout: '30s' })
    expect(ran.toSorted()).toEqual(['mail', 'purge', 'purge'])
  })
})

async function inTransaction<T>(begin: string, work: (tx: Client) => Promise<T>): Promise<T> {
  const tx = new Client(database.url)
  await tx.connect()
  try {
    await tx.query(begin)
    await tx.query('select 1')
    const done = await work(tx)
    await tx.query('commit')
    return done
  } finally {
    await tx.end()
  }
}

test('a transaction that does not see a new name yet can enqueue it', async () => {
  const mill = await open()
  await mill.enqueue(purge, 0, { in: '1h' })
  for (const [index, options] of [{}, { key: 'k' }].entries()) {
    const found = await inTransaction('begin isolation level serializable', (tx) =>
      mill.enqueue(note(`new${index}`), 1, { ...options, tx }),
    )
    expect(await mill.get(found.id)).toMatchObject({ job: `new${index}` })
  }
  const { id } = await mill.schedule(purge, 1, '1h', { key: 'k' })
  await inTransaction('begin isolation level serializable', (tx) =>
    mill.schedule(purge, 2, '1h', { key: 'k', queue: 'new', tx }),
  )
  expect(await mill.get(id)).toMatchObject({ job: 'purge', queue: 'new', payload: 2 })
})

test('a transaction that has written a new name itself, by SQL, can enqueue it too', async () => {
  const mill = await open()
  for (const end of ['rollback', 'commit']) {
    const { id } = await inTransaction('begin', async (tx) => {
      await tx.query(`select ${schema}.add_job('young', '1', run_in => '1 hour')`)
      const handle = await mill.enqueue(note('young'), 2, { tx, in: '1h' })
      await tx.query(end)
      return handle
    })
    expect(await mill.get(id)).toEqual(end === 'commit' ? expect.objectContaining({ job: 'young' }) : undefined)
  }
  const after = await mill.enqueue(note('young'), 3, { in: '1h' })
  expect(await mill.get(after.id)).toMatchObject({ job: 'young' })
})

describe('while the schema is dropped', () => {
  // Made by the first test and used by all: a mill finds it as it was before it was dropped.
  beforeEach(() => void (schema = 'dropped'))
  const drop = (): Promise<unknown> => sql.query(`alter schema ${schema} rename to ${schema}_away`)
  const restore = (): Promise<unknown> => sql.query(`alter schema ${schema}_away rename to ${schema}`)

  test.each<[string, (mill: Mill, id: string) => Promise<unknown>]>([
    ['enqueue', (mill) => mill.enqueue(mail, 1)],
    ['enqueue of a new name', (mill) => mill.enqueue(note('young'), 1)],
    ['enqueue with a key', (mill) => mill.enqueue(mail, 1, { key: 'k' })],
    ['enqueueMany', (mill) => mill.enqueueMany(mail, [1, 2])],
    ['enqueue({ tx })', (mill) => inTransaction('begin', (tx) => mill.enqueue(mail, 1, { tx }))],
    ['get', (mill, id) => mill.get(id)],
    ['find', (mill) => mill.find().next()],
    ['cancel', (mill, id) => mill.cancel(id)],
    ['pause', (mill) => mill.queue('default').pause()],
    ['recurring', (mill) => mill.recurring('tick', mail, 1, { every: '1h' })],
    ['progress', (mill) => mill.group('g').progress()],
  ])('%s is refused with E_STORE_GONE', async (_, call) => {
    const mill = await open()
    const { id } = await mill.enqueue(mail, 'before', { in: '1h' })
    await drop()
    const outcome = await call(mill, id).catch((error: unknown) => error)
    await restore()
    expect(outcome).toBeInstanceOf(StoreGoneError)
    expect(outcome).toMatchObject({ code: 'E_STORE_GONE', message: expect.stringContaining('schema') })
  })

  test('a worker continues when it is restored, and acknowledged jobs run', async () => {
    const lines: string[] = []
    const write = (_fields: unknown, message: string): void => void lines.push(message)
    const logger = { debug: () => undefined, info: () => undefined, warn: write, error: write }
    const mill = await open({ jobs: [mail], logger })
    await mill.start()
    await (await mill.enqueue(mail, 0)).result({ timeout: '10s' })
    const kept = await mill.enqueue(mail, 1, { in: '1s' })
    await drop()
    await expect(mill.enqueue(mail, 2)).rejects.toBeInstanceOf(StoreGoneError)
    await expect.poll(() => lines.some((line) => line.startsWith('cannot claim')), { timeout: 15_000 }).toBe(true)
    await restore()
    await kept.result({ timeout: '20s' })
    await (await mill.enqueue(mail, 3)).result({ timeout: '20s' })
    expect(ran).toEqual(['mail', 'mail', 'mail'])
  })
})
