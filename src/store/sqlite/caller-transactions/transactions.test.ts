import { createRequire } from 'node:module'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { integer, sqliteTable } from 'drizzle-orm/sqlite-core'
import { Kysely, CamelCasePlugin, SqliteDialect } from 'kysely'
import type { SqliteDatabase as KyselyDatabase } from 'kysely'
import { afterEach, describe, expect, test } from 'vitest'
import { job, millrace, sqlite } from '../../../index.js'
import type { Context, Hooks, Mill } from '../../../index.js'
import { transactionOf } from './handles.js'
import type { SqliteConstructor, SqliteDatabase } from '../connection/driver.js'
import { isOlder } from '../connection/library.js'

/**
 * Every library that this Node can load: better-sqlite3 13 ends the process when a Node before 22.14 opens a file with
 * it.
 */
const require = createRequire(import.meta.url)
const host = process as { getBuiltinModule?: (name: string) => { DatabaseSync: SqliteConstructor } | undefined }
const libraries: { name: string; Database: SqliteConstructor; builders: boolean }[] = [
  { name: 'libsql', Database: require('libsql') as SqliteConstructor, builders: true },
  {
    name: '@photostructure/sqlite',
    Database: (require('@photostructure/sqlite') as { DatabaseSync: SqliteConstructor }).DatabaseSync,
    builders: false,
  },
]
const builtIn = host.getBuiltinModule?.('node:sqlite')
if (builtIn !== undefined) libraries.push({ name: 'node:sqlite', Database: builtIn.DatabaseSync, builders: false })
if (!isOlder(process.versions.node, '22.14.0'))
  libraries.push({ name: 'better-sqlite3', Database: require('better-sqlite3') as SqliteConstructor, builders: true })

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'millrace-tx-'))
  undo.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function open(Database: SqliteConstructor, path: string): SqliteDatabase {
  const db = new Database(path)
  undo.push(() => transactionOf(db) === 'closed' || db.close())
  // The heartbeat thread of a started mill locks the file for a moment now and then.
  db.exec('pragma busy_timeout = 5000; pragma journal_mode = wal')
  return db
}

interface Setting {
  readonly db: SqliteDatabase
  readonly mill: Mill
  readonly path: string
  readonly ran: number[]
}

const mail = job('mail', (p: { n: number }) => p.n)

/** A mill made with a handle that also has the app's table; it never polls, so only hints wake it. */
async function setUp(Database: SqliteConstructor, path = join(folder(), 'app.db')): Promise<Setting> {
  const db = open(Database, path)
  db.exec('create table if not exists orders (n integer primary key)')
  const ran: number[] = []
  const work = job('work', (p: { n: number }) => void ran.push(p.n))
  const mill = await millrace({ store: sqlite(db), jobs: [work, mail], logger: false, poll: '60s' })
  undo.push(() => mill.close({ deadline: 0 }))
  return { db, mill, path, ran }
}

async function all(mill: Mill): Promise<string[]> {
  const found: string[] = []
  for await (const each of mill.find({ order: 'oldest' })) found.push(`${each.job} ${each.state}`)
  return found
}

const count = (db: SqliteDatabase): number =>
  Number((db.prepare('select count(*) as n from orders').get() as { n: number | bigint }).n)

describe.each(libraries)('a transaction on a handle of $name', ({ Database }) => {
  test('writes a job with the data or not at all, synchronously', async () => {
    const { db, mill } = await setUp(Database)
    db.exec('begin')
    db.exec('insert into orders values (1)')
    const promise = mill.enqueue(mail, { n: 1 }, { tx: db })
    db.exec('rollback')
    const { id, isNew } = await promise
    expect([isNew, await mill.get(id), await all(mill), count(db)]).toEqual([true, undefined, [], 0])
    db.exec('begin immediate')
    db.exec('insert into orders values (2)')
    void mill.enqueue(mail, { n: 2 }, { tx: db })
    void mill.schedule(mail, { n: 3 }, '1h', { tx: db })
    void mill.enqueueMany(mail, [{ n: 4 }, { n: 5 }], { tx: db, queue: 'bulk' })
    db.exec('commit')
    expect([await all(mill), count(db)]).toEqual([['mail ready', 'mail scheduled', 'mail ready', 'mail ready'], 1])
  })

  test('starts its jobs as soon as it commits, without a poll', async () => {
    const { db, mill, ran } = await setUp(Database)
    await mill.start()
    await new Promise((next) => setTimeout(next, 100))
    db.exec('begin')
    const handle = await mill.enqueue('work', { n: 1 }, { tx: db })
    await new Promise((next) => setTimeout(next, 100))
    expect(ran).toEqual([])
    const start = performance.now()
    db.exec('commit')
    await handle.result({ timeout: '20s' })
    // Far below the poll interval, with room for a busy machine.
    expect(performance.now() - start).toBeLessThan(5_000)
    expect(ran).toEqual([1])
  })

  test('refuses synchronously, and a caught refusal leaves nothing', async () => {
    const { db, mill } = await setUp(Database)
    await mill.enqueue(mail, { n: 0 }, { key: 'held' })
    db.exec('begin')
    const refused: [() => unknown, string][] = [
      [() => mill.enqueue(mail, { n: 1 }, { tx: db, key: 'held', onDuplicate: 'reject' }), 'E_DUPLICATE_KEY'],
      [
        () =>
          mill.enqueueMany(mail, [{ n: 1 }, { n: 2 }, { n: 3 }], (p) => ({
            tx: db,
            key: p.n === 2 ? 'held' : `free-${p.n}`,
            onDuplicate: 'reject' as const,
          })),
        'E_DUPLICATE_KEY',
      ],
      [() => mill.enqueue(mail, { n: (() => 1) as never }, { tx: db }), 'E_INVALID_PAYLOAD'],
      [() => mill.enqueueMany(mail, [{ n: 1 }, { n: 1n ** 2n, f: () => 1 } as never], { tx: db }), 'E_INVALID_PAYLOAD'],
      [() => mill.enqueue('nobody', {}, { tx: db }), 'E_UNKNOWN_JOB'],
      [() => mill.enqueue(mail, { n: 1 }, { tx: db, priority: 0.5 }), 'E_INVALID_OPTIONS'],
      [() => mill.schedule(mail, { n: 1 }, 'never' as never, { tx: db }), 'E_INVALID_OPTIONS'],
      [() => mill.enqueue(mail, { n: 1 }, { tx: 'db' }), 'E_INVALID_OPTIONS'],
    ]
    for (const [call, code] of refused) expect(thrownBy(call)).toMatchObject({ code })
    db.exec('insert into orders values (1)')
    db.exec('commit')
    expect([await all(mill), count(db)]).toEqual([['mail ready'], 1])
  })

  test('may have the caller’s savepoints around the call, and each keeps or undoes its jobs', async () => {
    const { db, mill } = await setUp(Database)
    db.exec('begin; savepoint a')
    void mill.enqueue(mail, { n: 1 }, { tx: db })
    db.exec('savepoint b')
    void mill.enqueue(mail, { n: 2 }, { tx: db, queue: 'fleeting' })
    db.exec('rollback to b; release b')
    void mill.enqueue(mail, { n: 3 }, { tx: db, queue: 'lasting' })
    db.exec('release a; commit')
    const found: unknown[] = []
    for await (const each of mill.find({ order: 'oldest' })) found.push([each.payload, each.queue])
    expect(found).toEqual([
      [{ n: 1 }, 'default'],
      [{ n: 3 }, 'lasting'],
    ])
  })

  test('is refused when none is open, or its handle is closed', async () => {
    const { db, mill, path } = await setUp(Database)
    expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: db }))).toMatchObject({ code: 'E_TX_NOT_OPEN' })
    db.exec('begin; commit')
    expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: db }))).toMatchObject({ code: 'E_TX_NOT_OPEN' })
    const other = open(Database, path)
    other.exec('begin')
    void mill.enqueue(mail, { n: 1 }, { tx: other })
    other.exec('commit')
    other.close()
    expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: other }))).toMatchObject({ code: 'E_TX_CLOSED' })
    const never = open(Database, path)
    never.close()
    expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: never }))).toMatchObject({ code: 'E_TX_CLOSED' })
    expect(await all(mill)).toEqual(['mail ready'])
  })

  test('is refused on another file, and accepted under another name of the same file', async () => {
    const { mill, path } = await setUp(Database)
    const other = open(Database, join(folder(), 'other.db'))
    other.exec('begin')
    expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: other }))).toMatchObject({ code: 'E_TX_OTHER_FILE' })
    const attached = open(Database, ':memory:')
    attached.exec(`attach '${path}' as jobs; begin`)
    expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: attached }))).toMatchObject({ code: 'E_TX_OTHER_FILE' })
    attached.exec('rollback; detach jobs')
    expect(await all(mill)).toEqual([])
  })

  test('uses our tables, whatever other schemas have tables of these names, and whatever settings its handle has', async () => {
    const { mill, path } = await setUp(Database)
    const db = open(Database, path)
    const side = join(folder(), 'side.db')
    db.exec(`attach '${side}' as side; create table side.millrace_jobs (x); create temp table millrace_jobs (x)`)
    db.exec('create temp view millrace_live as select 1; pragma foreign_keys = on; pragma recursive_triggers = on')
    const habits = db as { defaultSafeIntegers?: (on: boolean) => unknown }
    habits.defaultSafeIntegers?.(true)
    db.exec('begin')
    void mill.schedule(mail, { n: 1 }, '1h', { tx: db, key: 'k' })
    void mill.schedule(mail, { n: 2 }, '2h', { tx: db, key: 'k' })
    void mill.enqueue(mail, { n: 3 }, { tx: db, key: 'k', onDuplicate: 'replace', queue: 'new' })
    db.exec('commit')
    expect(await all(mill)).toEqual(['mail cancelled', 'mail ready'])
  })

  test('reports what keeps it from writing: another writer, or its own old snapshot', async () => {
    const { db, mill, path } = await setUp(Database)
    const other = open(Database, path)
    db.exec('pragma busy_timeout = 0')
    other.exec('begin immediate')
    db.exec('begin')
    const busy = thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: db }))
    expect(busy).toMatchObject({ code: 'E_TX_BUSY', cause: expect.anything() as unknown })
    other.exec('insert into orders values (9)')
    db.exec('rollback; begin')
    expect(count(db)).toBe(0)
    other.exec('commit')
    const stale = thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: db }))
    expect(stale).toMatchObject({ code: 'E_TX_STALE', message: expect.stringContaining('begin immediate') as string })
    db.exec('rollback; begin')
    void mill.enqueue(mail, { n: 2 }, { tx: db })
    db.exec('commit')
    expect(await all(mill)).toEqual(['mail ready'])
  })

  test('that is read-only is refused as such, and one from before our tables as stale', async () => {
    const path = join(folder(), 'app.db')
    const early = open(Database, path)
    early.exec('create table if not exists orders (n integer primary key); begin')
    expect(count(early)).toBe(0)
    const { db, mill } = await setUp(Database, path)
    expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: early }))).toMatchObject({ code: 'E_TX_STALE' })
    early.exec('rollback')
    db.exec('pragma query_only = on; begin')
    const refused = thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: db }))
    expect(refused).toMatchObject({ code: 'E_TX_READ_ONLY', cause: expect.anything() as unknown })
    db.exec('rollback; pragma query_only = off; begin')
    void mill.enqueue(mail, { n: 1 }, { tx: db })
    db.exec('commit')
    expect(await all(mill)).toEqual(['mail ready'])
  })

  test('that is full by a limit of its own handle does not affect the mill', async () => {
    const { db, mill } = await setUp(Database)
    const { page_count: pages } = db.prepare('pragma page_count').get() as { page_count: number }
    db.exec(`pragma max_page_count = ${pages}; begin`)
    const big = 'x'.repeat(100_000)
    const refused = thrownBy(() => mill.enqueue(mail, { n: big as never }, { tx: db }))
    expect(refused).toMatchObject({ code: 'E_STORE_FULL' })
    if (transactionOf(db) === 'open') db.exec('rollback')
    expect((await mill.enqueue(mail, { n: 1 })).isNew).toBe(true)
  })

  test('on a handle with full column names is read correctly', async () => {
    const { db, mill } = await setUp(Database)
    db.exec('pragma full_column_names = on; pragma short_column_names = off; begin')
    for (const n of [1, 2]) void mill.schedule(mail, { n }, '1h', { tx: db, key: 'k', queue: `q${n}` })
    void mill.enqueue(mail, { n: 3 }, { tx: db, unique: { for: '1h' } })
    const again = mill.enqueue(mail, { n: 3 }, { tx: db, unique: { for: '1h' } })
    db.exec('commit')
    expect([(await again).isNew, await all(mill)]).toEqual([false, ['mail scheduled', 'mail ready']])
  })

  test('held open across an await delays other writes and does not stop them, in a file or in memory', async () => {
    for (const path of [undefined, ':memory:']) {
      const { db, mill, ran } = await setUp(Database, path)
      await mill.start()
      db.exec('begin immediate')
      db.exec('insert into orders values (1)')
      const inside = mill.enqueue('work', { n: 1 }, { tx: db })
      const outside = mill.enqueue('work', { n: 2 })
      await new Promise((next) => setTimeout(next, 30))
      expect(ran).toEqual([])
      db.exec('rollback')
      await (await outside).result({ timeout: '20s' })
      expect([ran, await mill.get((await inside).id), count(db)]).toEqual([[2], undefined, 0])
      await mill.close()
    }
  })

  test('of a mill in memory must be on its own handle', async () => {
    const { db, mill } = await setUp(Database, ':memory:')
    const other = open(Database, ':memory:')
    other.exec('begin')
    expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: other }))).toMatchObject({ code: 'E_TX_OTHER_FILE' })
    db.exec('begin')
    void mill.enqueue(mail, { n: 1 }, { tx: db })
    db.exec('commit')
    expect(await all(mill)).toEqual(['mail ready'])
  })

  test('after another on one handle keeps the jobs of commits only', async () => {
    const { db, mill } = await setUp(Database)
    for (let n = 0; n < 20; n += 1) {
      db.exec('begin')
      void mill.enqueue(mail, { n }, { tx: db, queue: `q${n}` })
      db.exec(n % 2 === 0 ? 'rollback' : 'commit')
    }
    const kept: unknown[] = []
    for await (const each of mill.find({ order: 'oldest' })) kept.push([each.payload, each.queue])
    expect(kept).toEqual(Array.from({ length: 10 }, (_, i) => [{ n: 2 * i + 1 }, `q${2 * i + 1}`]))
  })
})

test('a handle that reads rows as arrays and numbers as BigInt is read correctly', async () => {
  const { DatabaseSync } = (builtIn ?? require('@photostructure/sqlite')) as {
    DatabaseSync: new (path: string, options: object) => SqliteDatabase
  }
  const { mill, path } = await setUp(DatabaseSync as unknown as SqliteConstructor)
  const db = new DatabaseSync(path, { readBigInts: true, returnArrays: true })
  undo.push(() => db.close())
  db.exec('begin')
  void mill.schedule(mail, { n: 1 }, '1h', { tx: db, key: 'k' })
  void mill.schedule(mail, { n: 2 }, '2h', { tx: db, key: 'k' })
  db.exec('commit')
  expect(await all(mill)).toEqual(['mail scheduled'])
})

test('an error names a handle in memory that was closed before its mill', async () => {
  const { Database } = libraries[1] as { Database: SqliteConstructor }
  const { db, mill } = await setUp(Database, ':memory:')
  const { id } = await mill.enqueue(mail, { n: 1 })
  db.close()
  for (const call of [() => mill.enqueue(mail, { n: 2 }), () => mill.get(id), () => mill.cancel(id)])
    await expect(call()).rejects.toMatchObject({ code: 'E_STORE_CLOSED' })
  expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: db }))).toMatchObject({ code: 'E_TX_CLOSED' })
  await mill.close()
})

test('a handle that was closed and opened again is accepted', async () => {
  const { DatabaseSync } = (builtIn ?? require('@photostructure/sqlite')) as { DatabaseSync: SqliteConstructor }
  const { db, mill } = await setUp(DatabaseSync)
  for (let n = 0; n < 2; n += 1) {
    db.exec('begin')
    void mill.enqueue(mail, { n }, { tx: db })
    db.exec('commit')
    db.close()
    ;(db as unknown as { open(): void }).open()
  }
  expect(await all(mill)).toEqual(['mail ready', 'mail ready'])
})

test('a handle of a class that extends the library’s is of that library', async () => {
  const { Database } = libraries[0] as { Database: SqliteConstructor }
  class Mine extends Database {}
  const { mill, path } = await setUp(Database)
  const db = open(Mine, path)
  db.exec('begin')
  void mill.enqueue(mail, { n: 1 }, { tx: db })
  db.exec('commit')
  expect(await all(mill)).toEqual(['mail ready'])
})

test('a handle of another library is refused, with advice', async () => {
  const [one, two] = libraries as unknown as [{ Database: SqliteConstructor }, { Database: SqliteConstructor }]
  const { mill } = await setUp(one.Database)
  // On another file: two libraries must never open one file.
  const other = open(two.Database, join(folder(), 'other.db'))
  other.exec('begin')
  const error = thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: other }))
  expect(error).toMatchObject({ code: 'E_TWO_LIBRARIES', message: expect.stringContaining('sqlite(db)') as string })
})

test('the same file under a second name is the same file', async () => {
  const { Database } = libraries[1] as { Database: SqliteConstructor }
  const { mill, path } = await setUp(Database)
  const elsewhere = join(folder(), 'linked.db')
  symlinkSync(path, elsewhere)
  const db = open(Database, elsewhere)
  db.exec('begin')
  void mill.enqueue(mail, { n: 1 }, { tx: db })
  db.exec('commit')
  expect(await all(mill)).toEqual(['mail ready'])
})

test.each<[string, unknown, RegExp]>([
  ['an empty object', {}, /must be an open SQLite handle/],
  ['a function', () => 1, /must be an open SQLite handle/],
  ['a PostgreSQL client', { query: () => 1 }, /looks like a PostgreSQL client/],
  ['an asynchronous client', { execute: () => 1, batch: () => 1 }, /asynchronous client/],
])('a tx that is %s is refused, and the error says what it looks like', async (_, tx, message) => {
  const { mill } = await setUp((libraries[1] as { Database: SqliteConstructor }).Database)
  const error = thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx }))
  expect(error).toMatchObject({ code: 'E_TX_UNKNOWN', message: expect.stringMatching(message) as string })
})

test('a job whose check is asynchronous is refused with tx, and accepted without', async () => {
  const db = open((libraries[1] as { Database: SqliteConstructor }).Database, join(folder(), 'app.db'))
  const slow = job('slow', { run: () => 1, accepts: (async () => true) as never })
  const mill = await millrace({ store: sqlite(db), jobs: [slow], logger: false })
  undo.push(() => mill.close())
  db.exec('begin')
  for (const call of [
    () => mill.enqueue(slow, undefined, { tx: db }),
    () => mill.enqueueMany(slow, [undefined], { tx: db }),
  ])
    expect(thrownBy(call)).toMatchObject({
      code: 'E_TX_ASYNC_CHECK',
      message: expect.stringContaining('"slow"') as string,
    })
  db.exec('commit')
  expect(await all(mill)).toEqual([])
  expect((await mill.enqueue(slow)).isNew).toBe(true)
})

test('a bulk has one tx', async () => {
  const { db, mill } = await setUp((libraries[1] as { Database: SqliteConstructor }).Database)
  db.exec('begin')
  const error = thrownBy(() => mill.enqueueMany(mail, [{ n: 1 }, { n: 2 }], (_, i) => (i === 0 ? { tx: db } : {})))
  expect(error).toMatchObject({ code: 'E_INVALID_OPTIONS', problems: [{ path: 'options[1].tx' }] })
  const later = thrownBy(() => mill.enqueueMany(mail, [{ n: 1 }, { n: 2 }], (_, i) => (i === 1 ? { tx: db } : {})))
  expect(later).toMatchObject({ code: 'E_INVALID_OPTIONS', problems: [{ path: 'options[1].tx' }] })
  const throwing = (_: unknown, i: number): { tx: unknown } => {
    if (i === 1) throw new RangeError('mine')
    return { tx: db }
  }
  expect(thrownBy(() => mill.enqueueMany(mail, [{ n: 1 }, { n: 2 }], throwing))).toBeInstanceOf(RangeError)
  const calls: number[] = []
  const optionsOf = (_: unknown, i: number): { tx: unknown } => {
    calls.push(i)
    return { tx: db }
  }
  void mill.enqueueMany(mail, [{ n: 1 }, { n: 2 }, { n: 3 }], optionsOf)
  db.exec('commit')
  expect([calls, (await all(mill)).length]).toEqual([[0, 1, 2], 3])
})

test('a closed mill writes into no transaction', async () => {
  const { db, mill } = await setUp((libraries[1] as { Database: SqliteConstructor }).Database)
  await mill.close()
  db.exec('begin')
  expect(thrownBy(() => mill.enqueue(mail, { n: 1 }, { tx: db }))).toMatchObject({ code: 'E_CLOSED' })
})

const orders = sqliteTable('orders', { n: integer('n').primaryKey() })

describe.each(libraries.filter((each) => each.builders))('a query builder on a handle of $name', ({ Database }) => {
  test('Drizzle: its transaction accepts jobs, and its database only while a transaction is open', async () => {
    const { db, mill } = await setUp(Database)
    const orm = drizzle(db as never)
    orm.transaction((tx) => {
      tx.insert(orders).values({ n: 1 }).run()
      void mill.enqueue(mail, { n: 1 }, { tx })
      tx.transaction((nested) => void mill.enqueue(mail, { n: 2 }, { tx: nested }))
      void mill.enqueue(mail, { n: 3 }, { tx: orm })
    })
    const failing = (): void =>
      orm.transaction((tx) => {
        tx.insert(orders).values({ n: 2 }).run()
        void mill.enqueue(mail, { n: 4 }, { tx })
        throw new Error('undo')
      })
    expect(failing).toThrow('undo')
    expect([await all(mill), count(db)]).toEqual([['mail ready', 'mail ready', 'mail ready'], 1])
    expect(thrownBy(() => mill.enqueue(mail, { n: 5 }, { tx: orm }))).toMatchObject({ code: 'E_TX_NOT_OPEN' })
  })

  test('Drizzle: a refusal within its transaction rolls all of it back', async () => {
    const { db, mill } = await setUp(Database)
    const orm = drizzle(db as never)
    const refused = (): void =>
      orm.transaction((tx) => {
        tx.insert(orders).values({ n: 1 }).run()
        void mill.enqueue(mail, { n: 1 }, { tx, priority: 'high' as never })
      })
    expect(thrownBy(refused)).toMatchObject({ code: 'E_INVALID_OPTIONS' })
    expect([await all(mill), count(db)]).toEqual([[], 0])
  })

  test('Kysely: its transaction accepts jobs when the mill was made with its handle', async () => {
    const { db, mill } = await setUp(Database)
    const kysely = kyselyOn(db)
    await kysely.transaction().execute(async (tx) => {
      await tx.insertInto('orders').values({ n: 1 }).execute()
      const both = await Promise.all([
        mill.enqueue(mail, { n: 1 }, { tx }),
        mill.enqueueMany(mail, [{ n: 2 }, { n: 3 }], { tx }),
      ])
      expect(both[0].isNew).toBe(true)
    })
    const failing = kysely.transaction().execute(async (tx) => {
      await tx.insertInto('orders').values({ n: 2 }).execute()
      await mill.enqueue(mail, { n: 4 }, { tx })
      throw new Error('undo')
    })
    await expect(failing).rejects.toThrow('undo')
    expect([await all(mill), count(db)]).toEqual([['mail ready', 'mail ready', 'mail ready'], 1])
    const [limit] = db.prepare('pragma analysis_limit').all() as { analysis_limit: number }[]
    expect(limit?.analysis_limit).toBe(0)
  })

  test('Kysely: controlled transactions and plugins work, and an ended transaction is refused', async () => {
    const { db, mill } = await setUp(Database)
    const kysely = kyselyOn(db).withPlugin(new CamelCasePlugin())
    const trx = await kysely.startTransaction().execute()
    await mill.enqueue(mail, { n: 1 }, { tx: trx })
    const after = await trx.savepoint('here').execute()
    await mill.enqueue(mail, { n: 2 }, { tx: after })
    await (await after.rollbackToSavepoint('here').execute()).commit().execute()
    expect(await all(mill)).toEqual(['mail ready'])
    await expect(mill.enqueue(mail, { n: 3 }, { tx: trx })).rejects.toMatchObject({ code: 'E_TX_NOT_OPEN' })
  })

  test('Kysely: without await a job is in its own transaction or in none', async () => {
    const { db, mill } = await setUp(Database)
    const kysely = kyselyOn(db)
    for (const ending of ['commit', 'rollback'] as const) {
      const before = (await all(mill)).length
      let forgotten: Promise<unknown> | undefined
      const first = kysely.transaction().execute(async (tx) => {
        forgotten = mill.enqueue(mail, { n: 1 }, { tx }).then(
          () => 'written',
          (error: { code: string }) => error.code,
        )
        if (ending === 'rollback') throw new Error('undo')
      })
      const second = kysely.transaction().execute(async (tx) => {
        await tx.insertInto('orders').values({ n: 1 }).execute()
        await new Promise((next) => setTimeout(next, 20))
        if (ending === 'commit') throw new Error('undo')
      })
      await Promise.allSettled([first, second])
      // The call may come in time and then counts as awaited; it never joins the second transaction.
      const outcome = await forgotten
      const written = (await all(mill)).length - before
      if (outcome === 'written')
        expect([ending, written]).toEqual(ending === 'commit' ? ['commit', 1] : ['rollback', 0])
      else expect([outcome, written]).toEqual(['E_TX_NOT_OPEN', 0])
    }
    expect(transactionOf(db)).toBe('none')
  })

  test('Kysely: many concurrent calls in one transaction, beside its own writes, all belong to it', async () => {
    const { db, mill } = await setUp(Database)
    const kysely = kyselyOn(db)
    await kysely.transaction().execute(async (tx) => {
      const calls = Array.from({ length: 20 }, (_, n) => [
        mill.enqueue(mail, { n }, { tx }),
        tx.insertInto('orders').values({ n }).execute(),
      ])
      await Promise.all(calls.flat())
    })
    expect([(await all(mill)).length, count(db)]).toEqual([20, 20])
    const undone = kysely.transaction().execute(async (tx) => {
      await Promise.all([1, 2, 3].map((n) => mill.enqueue(mail, { n }, { tx })))
      throw new Error('undo')
    })
    await expect(undone).rejects.toThrow('undo')
    expect([(await all(mill)).length, transactionOf(db)]).toEqual([20, 'none'])
  })

  test('Kysely: refused when it is in no transaction, or on a handle that the mill does not know', async () => {
    const { mill, db, path } = await setUp(Database)
    await expect(mill.enqueue(mail, { n: 1 }, { tx: kyselyOn(db) })).rejects.toMatchObject({ code: 'E_TX_NOT_OPEN' })
    const stranger = kyselyOn(open(Database, path))
    const refused = stranger.transaction().execute((tx) => mill.enqueue(mail, { n: 1 }, { tx }))
    await expect(refused).rejects.toMatchObject({
      code: 'E_TX_UNREACHABLE',
      message: expect.stringContaining('sqlite(db)') as string,
    })
    expect(await all(mill)).toEqual([])
  })

  test('Kysely: a job that settles itself without await is settled in its transaction or fails, and no other transaction is affected', async () => {
    const { db, mill } = await setUp(Database)
    const kysely = kyselyOn(db)
    const hasty = job('hasty', async (p: { n: number }, ctx: Context) => {
      await kysely.transaction().execute(async (tx) => {
        await tx.insertInto('orders').values({ n: p.n }).execute()
        void ctx.settleIn(tx, 'settled')
      })
      return 'returned'
    })
    mill.register(hasty)
    await mill.start()
    let over = false
    const others = (async () => {
      while (!over) {
        const undone = kysely.transaction().execute(async (tx) => {
          await tx.insertInto('orders').values({ n: -1 }).execute()
          throw new Error('undo')
        })
        await undone.catch(() => undefined)
        await new Promise((next) => setTimeout(next, 1))
      }
    })()
    const outcomes = new Set<unknown>()
    for (let n = 0; n < 10; n += 1) {
      const handle = await mill.enqueue(hasty, { n }, { retry: { limit: 0 } })
      outcomes.add(await handle.result({ timeout: '20s' }).catch((error: Error) => (error.cause as Error).message))
    }
    over = true
    await others
    for (const outcome of outcomes) expect(outcome).toMatch(/^settled$|ended before anything was written; await/)
    expect(count(db)).toBe(10)
  })

  test('Kysely: the worker waits for the settleIn of a handler that has returned', async () => {
    const { db, mill } = await setUp(Database)
    const kysely = kyselyOn(db)
    let end: (() => Promise<void>) | undefined
    const early = job('early', async (_: undefined, ctx: Context) => {
      const trx = await kysely.startTransaction().execute()
      await trx.insertInto('orders').values({ n: 1 }).execute()
      void ctx.settleIn(trx, 'kept')
      end = () => trx.commit().execute()
    })
    mill.register(early)
    await mill.start()
    const handle = await mill.enqueue(early)
    await expect.poll(() => end, { timeout: 20_000 }).toBeDefined()
    await new Promise((next) => setTimeout(next, 50))
    await end?.()
    expect([await handle.result({ timeout: '20s' }), count(db)]).toEqual(['kept', 1])
  })

  test('Kysely: hooks around it may await, and their errors reject the promise', async () => {
    const { db } = await setUp(Database)
    const quota = job('quota', (n: number) => n)
    const hooks: Hooks = {
      enqueue: async (call, next) => {
        await Promise.resolve()
        await next()
        if (call.items[0]?.payload === 2) throw new Error('spent')
      },
    }
    const mill = await millrace({ store: sqlite(db), jobs: [quota], logger: false, hooks })
    undo.push(() => mill.close({ deadline: 0 }))
    const kysely = kyselyOn(db)
    await kysely.transaction().execute(async (tx) => void (await mill.enqueue(quota, 1, { tx })))
    const failing = kysely.transaction().execute(async (tx) => void (await mill.enqueue(quota, 2, { tx })))
    await expect(failing).rejects.toThrow('spent')
    expect(await all(mill)).toEqual(['quota ready'])
  })

  test('Kysely: a job settles itself in its transaction', async () => {
    const { db, mill } = await setUp(Database)
    const kysely = kyselyOn(db)
    const settling = job('settling', async (p: { fail: boolean }, ctx: Context) => {
      await kysely.transaction().execute(async (tx) => {
        await tx.insertInto('orders').values({ n: 1 }).execute()
        await ctx.settleIn(tx, 'kept')
        if (p.fail) throw new Error('undo')
      })
    })
    mill.register(settling)
    await mill.start()
    const failed = await mill.enqueue(settling, { fail: true }, { retry: { limit: 0 } })
    await expect(failed.result({ timeout: '20s' })).rejects.toThrow('undo')
    expect(count(db)).toBe(0)
    const done = await mill.enqueue(settling, { fail: false })
    expect([await done.result({ timeout: '20s' }), count(db)]).toEqual(['kept', 1])
  })
})

function kyselyOn(db: SqliteDatabase): Kysely<{ orders: { n: number } }> {
  return new Kysely({ dialect: new SqliteDialect({ database: db as unknown as KyselyDatabase }) })
}

function thrownBy(call: () => unknown): unknown {
  try {
    void (call() as Promise<unknown> | undefined)?.catch?.(() => undefined)
  } catch (error) {
    return error
  }
  throw new Error('it was not refused synchronously')
}
