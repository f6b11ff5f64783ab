import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { Abort, job, millrace, Snooze, sqlite } from '../../index.js'
import type { Context, Job, Mill, MillOptions } from '../../index.js'
import { chooseLibrary } from '../../store/sqlite/connection/library.js'
import type { SqliteDatabase } from '../../store/sqlite/connection/driver.js'
import { testing } from '../../testing/index.js'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

interface Setting {
  readonly mill: Mill
  /** The business's own connection. */
  readonly db: SqliteDatabase
  readonly lines: string[]
}

type Handler = (p: { n: number }, ctx: Context) => unknown

/** A started mill that never polls, its one job, and a table of the business beside it. */
async function setUp(
  run: (setting: Setting) => Handler,
  options: MillOptions & { readonly given?: boolean; readonly memory?: boolean } = {},
): Promise<Setting & { work: Job<{ n: number }, unknown> }> {
  const { given = true, memory = false, ...rest } = options
  const folder = mkdtempSync(join(tmpdir(), 'millrace-settle-in-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  const path = memory ? ':memory:' : join(folder, 'app.db')
  const db = new (chooseLibrary().open)(path)
  undo.push(() => db.close())
  db.exec('pragma busy_timeout = 5000; pragma journal_mode = wal; create table ledger (n integer)')
  const lines: string[] = []
  const write = (level: string) => (fields: unknown, text?: unknown) => {
    lines.push(
      `${level} ${typeof fields === 'string' ? fields : `${String(text)} ${JSON.stringify(fields, withErrors)}`}`,
    )
  }
  const logger = { debug: () => undefined, info: write('info'), warn: write('warn'), error: write('error') }
  const setting = { db, lines } as { db: SqliteDatabase; lines: string[]; mill: Mill }
  const handler = run(setting)
  const work = job('work', {
    run: (p: { n: number }, ctx) => handler(p, ctx),
    retry: { limit: 1, backoff: { start: 1 } },
  })
  const store = given ? sqlite(db) : path
  setting.mill = await millrace({ store, jobs: [work, child], logger, poll: '60s', ...rest })
  undo.push(() => setting.mill.close({ deadline: 0 }))
  await setting.mill.start()
  return { ...setting, work }
}

/** JSON of an error is {}. */
const withErrors = (_: string, value: unknown): unknown => (value instanceof Error ? value.message : value)

const child = job('child', { run: (p: { n: number }) => p.n, queue: 'children' })
const count = (db: SqliteDatabase): number => (db.prepare('select count(*) as n from ledger').get() as { n: number }).n
const limit = { timeout: '20s' } as const

function inTransaction(db: SqliteDatabase, work: () => void): void {
  db.exec('begin immediate')
  try {
    work()
    db.exec('commit')
  } catch (error) {
    db.exec('rollback')
    throw error
  }
}

describe.each([{ memory: false }, { memory: true }])('settleIn (in memory: $memory)', ({ memory }) => {
  test('a job is done with its work when the transaction commits', async () => {
    let runs = 0
    const { mill, work, db, lines } = await setUp(
      ({ db: own }) =>
        (p, ctx) => {
          runs += 1
          ctx.log('at work')
          ctx.progress(1, 2)
          inTransaction(own, () => {
            own.exec(`insert into ledger values (${p.n})`)
            expect(ctx.settleIn(own, { kept: p.n })).toBeUndefined()
          })
          return 'ignored'
        },
      { memory },
    )
    const handle = await mill.enqueue(work, { n: 7 }, { key: 'k' })
    expect(await handle.result(limit)).toEqual({ kept: 7 })
    const record = await handle.get()
    expect(record).toMatchObject({ state: 'done', attempt: 1, result: { kept: 7 } })
    expect(record?.attempts.at(-1)).toMatchObject({ log: ['at work'] })
    await mill.stop()
    expect([runs, count(db), (await mill.enqueue(work, { n: 8 }, { key: 'k' })).isNew]).toEqual([1, 1, true])
    expect(lines.filter((line) => line.includes('done work'))).toHaveLength(1)
    expect(lines.filter((line) => /^(warn|error)/.test(line))).toEqual([])
  })

  test('a transaction that is rolled back behind it is a failed attempt, and tried again', async () => {
    let runs = 0
    const { mill, work, db } = await setUp(
      ({ db: own }) =>
        (_, ctx) => {
          runs += 1
          own.exec('begin')
          own.exec('insert into ledger values (1)')
          void ctx.settleIn(own, runs)
          own.exec(runs === 1 ? 'rollback' : 'commit')
        },
      { memory },
    )
    const handle = await mill.enqueue(work, { n: 1 })
    expect(await handle.result(limit)).toBe(2)
    const record = await handle.get()
    expect([record?.attempt, count(db)]).toEqual([2, 1])
    expect(record?.attempts[0]?.error).toMatchObject({ message: expect.stringContaining('was rolled back') as string })
  })

  test('a throw that rolls it back is the failure it is, whatever was thrown', async () => {
    const thrown: unknown[] = [new Error('boom'), new Abort('enough')]
    const { mill, work, db } = await setUp(
      ({ db: own }) =>
        (p, ctx) =>
          inTransaction(own, () => {
            own.exec('insert into ledger values (1)')
            void ctx.settleIn(own)
            throw thrown[p.n]
          }),
      { memory },
    )
    const failed = await mill.enqueue(work, { n: 0 }, { retry: { limit: 0 } })
    await expect(failed.result(limit)).rejects.toThrow('boom')
    const aborted = await mill.enqueue(work, { n: 1 })
    await expect(aborted.result(limit)).rejects.toThrow('enough')
    expect([(await aborted.get())?.attempt, count(db)]).toEqual([1, 0])
  })

  test('a throw after the commit is logged and changes nothing', async () => {
    const { mill, work, db, lines } = await setUp(
      ({ db: own }) =>
        (p, ctx) => {
          inTransaction(own, () => {
            own.exec('insert into ledger values (1)')
            void ctx.settleIn(own, 'kept')
          })
          throw p.n === 0 ? new Error('too late') : new Snooze('1h')
        },
      { memory },
    )
    for (const n of [0, 1]) {
      const handle = await mill.enqueue(work, { n })
      expect(await handle.result(limit)).toBe('kept')
    }
    await mill.stop()
    expect(count(db)).toBe(2)
    const logged = lines.filter((line) => line.includes('threw after it had settled itself'))
    expect(logged).toHaveLength(2)
    expect(logged[0]).toContain('too late')
    expect(logged[1]).toContain('the handler threw new Snooze()')
    expect(lines.filter((line) => line.includes('done work'))).toHaveLength(2)
  })
})

describe('settleIn', () => {
  test('of a job that was cancelled stands, and what its handler throws afterwards is logged', async () => {
    let begun: () => void = () => undefined
    const beginning = new Promise<void>((resolve) => (begun = resolve))
    const { mill, work, db, lines } = await setUp(({ db: own }) => async (_, ctx) => {
      begun()
      await new Promise((next) => ctx.signal.addEventListener('abort', next, { once: true }))
      inTransaction(own, () => void ctx.settleIn(own, 'kept'))
      throw ctx.signal.reason
    })
    const handle = await mill.enqueue(work, { n: 1 })
    await beginning
    expect(await handle.cancel()).toBe(true)
    expect(await handle.result(limit)).toBe('kept')
    await mill.stop()
    const logged = lines.filter((line) => line.includes('threw after it had settled itself'))
    expect(logged).toHaveLength(1)
    expect(logged[0]).toContain('cancel() was called')
    expect(count(db)).toBe(0)
  })

  test('twice is refused where the first stands, and fine where it was rolled back', async () => {
    const errors: unknown[] = []
    let late: Context | undefined
    const { mill, work, db } = await setUp(({ db: own }) => (_, ctx) => {
      own.exec('begin')
      void ctx.settleIn(own, 'undone')
      own.exec('rollback; begin')
      void ctx.settleIn(own, 'kept')
      errors.push(caught(() => ctx.settleIn(own, 'twice')))
      own.exec('commit; begin')
      errors.push(caught(() => ctx.settleIn(own, 'again')))
      own.exec('rollback')
      late = ctx
    })
    const handle = await mill.enqueue(work, { n: 1 })
    expect(await handle.result(limit)).toBe('kept')
    await mill.stop()
    db.exec('begin')
    errors.push(caught(() => late?.settleIn(db)))
    db.exec('rollback')
    expect(errors).toMatchObject(Array(3).fill({ code: 'E_ALREADY_SETTLED' }))
    await expect(late?.transaction(() => 1)).rejects.toMatchObject({ code: 'E_ALREADY_SETTLED' })
  })

  test('under a claim that was lost throws, so that the work is rolled back', async () => {
    const seen: unknown[] = []
    const { mill, work, db } = await setUp(({ db: own }) => (_, ctx) => {
      if (seen.length > 0) return 'by another'
      // Taken away by hand, as a rescuer would.
      own.exec(`update millrace_live set fence = null, state = 'ready'; delete from millrace_leases`)
      seen.push(
        caught(() =>
          inTransaction(own, () => {
            own.exec('insert into ledger values (1)')
            void ctx.settleIn(own, 'stolen')
          }),
        ),
      )
      throw seen[0]
    })
    const handle = await mill.enqueue(work, { n: 1 })
    await expect.poll(() => seen).toMatchObject([{ code: 'E_LEASE_LOST' }])
    expect(count(db)).toBe(0)
    mill.configure({ poll: '50ms' })
    await mill.stop()
    await mill.start()
    expect(await handle.result(limit)).toBe('by another')
  })

  test('takes the children along, before and after it', async () => {
    const { mill, work } = await setUp(
      ({ db: own }) =>
        (p, ctx) =>
          inTransaction(own, () => {
            void ctx.enqueue(child, { n: 1 }, { tx: own })
            void ctx.settleIn(own)
            void ctx.enqueue(child, { n: 2 }, { tx: own })
            if (p.n === 0) throw new Error('undo')
          }),
    )
    const undone = await mill.enqueue(work, { n: 0 }, { retry: { limit: 0 } })
    await expect(undone.result(limit)).rejects.toThrow('undo')
    await (await mill.enqueue(work, { n: 1 })).result(limit)
    const found: unknown[] = []
    for await (const each of mill.find({ job: child, order: 'oldest' })) found.push(each.payload)
    expect(found).toEqual([{ n: 1 }, { n: 2 }])
  })

  test('keeps nothing where nothing is to be kept', async () => {
    const { mill, work, lines } = await setUp(
      ({ db: own }) =>
        (_, ctx) =>
          inTransaction(own, () => void ctx.settleIn(own, 1)),
      { keep: 'none' },
    )
    const handle = await mill.enqueue(work, { n: 1 })
    await expect(handle.result(limit)).rejects.toMatchObject({ code: 'E_JOB_GONE' })
    await mill.stop()
    expect(lines.filter((line) => line.includes('done work'))).toHaveLength(1)
  })

  test('works for jobs held in advance whose start is not recorded in the store', async () => {
    const { mill, work, db, lines } = await setUp(
      ({ db: own }) =>
        (p, ctx) => {
          ctx.progress(1)
          inTransaction(own, () => {
            own.exec(`insert into ledger values (${p.n})`)
            void ctx.settleIn(own, p.n)
          })
        },
      { concurrency: 2 },
    )
    const handles = await mill.enqueueMany(
      work,
      Array.from({ length: 200 }, (_, n) => ({ n })),
    )
    const results = await Promise.all(handles.map((each) => each.result(limit)))
    await mill.stop()
    expect([results, count(db)]).toEqual([Array.from({ length: 200 }, (_, n) => n), 200])
    expect(lines.filter((line) => /^(warn|error)/.test(line))).toEqual([])
    expect(lines.filter((line) => line.includes('done work'))).toHaveLength(200)
  })
})

describe.each([
  { where: 'the user’s own handle', given: true, memory: false },
  { where: 'a connection of the engine’s', given: false, memory: false },
  { where: 'memory', given: true, memory: true },
])('ctx.transaction on $where', ({ given, memory }) => {
  test('commits work, children and the job’s end in one', async () => {
    const { mill, work, db } = await setUp(
      () => async (p, ctx) => {
        const value = await ctx.transaction((tx: SqliteDatabase) => {
          tx.exec(`insert into ledger values (${p.n})`)
          void ctx.enqueue(child, { n: p.n }, { tx })
          return { n: p.n }
        })
        return [value]
      },
      { given, memory },
    )
    const handle = await mill.enqueue(work, { n: 3 })
    expect(await handle.result(limit)).toEqual({ n: 3 })
    const found: unknown[] = []
    for await (const each of mill.find({ job: child })) found.push(each.payload)
    expect([found, count(db)]).toEqual([[{ n: 3 }], 1])
  })

  test('rolls back what throws, what returns a promise and what ends it itself, and each can be tried again', async () => {
    const errors: unknown[] = []
    const { mill, work, db } = await setUp(
      ({ db: own }) =>
        async (_, ctx) => {
          const failing: ((tx: SqliteDatabase) => unknown)[] = [
            () => {
              throw new Error('boom')
            },
            async () => {
              await Promise.resolve()
              throw new Error('nobody hears this')
            },
            function* (tx) {
              yield tx.exec('insert into ledger values (3)')
            },
            () => [1, 2].values(),
            (tx) => tx.exec('rollback'),
            (tx) => tx.exec('insert into nowhere values (1)'),
          ]
          for (const fail of failing)
            errors.push(
              await ctx
                .transaction((tx: SqliteDatabase) => {
                  tx.exec('insert into ledger values (1)')
                  return fail(tx)
                })
                .catch((error: unknown) => error),
            )
          expect(count(own)).toBe(0)
          await ctx.transaction((tx: SqliteDatabase) => tx.exec('insert into ledger values (2)') ?? 'kept')
          errors.push(await ctx.transaction(() => 1).catch((error: unknown) => error))
        },
      { given, memory },
    )
    const handle = await mill.enqueue(work, { n: 1 })
    await handle.result(limit)
    expect((await handle.get())?.attempt).toBe(1)
    expect(count(db)).toBe(1)
    expect(errors).toMatchObject([
      { message: 'boom' },
      { code: 'E_TX_PROMISE' },
      { code: 'E_TX_PROMISE', message: expect.stringContaining('generator') as string },
      { code: 'E_TX_PROMISE' },
      { code: 'E_TX_NOT_OPEN' },
      { message: expect.stringContaining('nowhere') as string },
      { code: 'E_ALREADY_SETTLED' },
    ])
    // What the user's own statement threw is the user's own error.
    expect((errors[5] as { name: string }).name).not.toBe('StoreError')
  })

  test('cannot be closed or replaced from within, and the file stays free for others', async () => {
    const { mill, work, db } = await setUp(
      () => (p, ctx) =>
        ctx.transaction((tx: SqliteDatabase) => {
          tx.exec('insert into ledger values (1)')
          if (p.n === 0) tx.close()
          if (p.n === 1) tx.exec('commit; begin immediate')
          return 'kept'
        }),
      { given, memory },
    )
    const once = { retry: { limit: 0 } }
    await expect((await mill.enqueue(work, { n: 0 }, once)).result(limit)).rejects.toThrow('cannot be closed')
    expect(count(db)).toBe(0)
    await expect((await mill.enqueue(work, { n: 1 }, once)).result(limit)).rejects.toThrow('ended the transaction')
    expect(count(db)).toBe(1)
    db.exec('insert into ledger values (2)')
    expect(await (await mill.enqueue(work, { n: 2 }, once)).result(limit)).toBe('kept')
    expect(count(db)).toBe(3)
  })
})

describe('ctx.transaction', () => {
  test('waits for its turn without blocking the loop, whatever patience the handle has', async () => {
    let ticks = 0
    const { mill, work, db } = await setUp(({ db: own }) => async (_, ctx) => {
      const { file } = own.prepare('pragma database_list').get() as { file: string }
      const other = new (chooseLibrary().open)(file)
      other.exec('begin immediate')
      own.exec('pragma busy_timeout = 10000')
      const waiting = ctx.transaction((tx: SqliteDatabase) => tx.exec('insert into ledger values (1)') ?? 'done')
      for (; ticks < 20; ticks += 1) await new Promise((next) => setTimeout(next, 1))
      expect(count(own)).toBe(0)
      other.exec('commit')
      other.close()
      return waiting
    })
    const handle = await mill.enqueue(work, { n: 1 })
    expect(await handle.result(limit)).toBe('done')
    expect([ticks, count(db), db.prepare('pragma busy_timeout').get()]).toEqual([20, 1, { timeout: 10_000 }])
  })

  test('whose promise the handler does not await is awaited by the worker, and its failure fails the attempt', async () => {
    const { mill, work, db } = await setUp(({ db: own }) => async (p, ctx) => {
      own.exec('begin')
      void ctx.transaction((tx: SqliteDatabase) => {
        tx.exec('insert into ledger values (1)')
        if (p.n === 1) throw new Error('without a handler')
        return 'kept'
      })
      setTimeout(() => own.exec('rollback'), 30)
      return 'returned'
    })
    expect(await (await mill.enqueue(work, { n: 0 })).result(limit)).toBe('kept')
    const failing = await mill.enqueue(work, { n: 1 }, { retry: { limit: 0 } })
    await expect(failing.result(limit)).rejects.toThrow('without a handler')
    expect(count(db)).toBe(1)
  })

  test('on a connection of the engine’s is over with its call, whatever was kept of it or changed on it', async () => {
    let escaped: SqliteDatabase | undefined
    let kept: ReturnType<SqliteDatabase['prepare']> | undefined
    const { mill, work, db } = await setUp(
      () => (p, ctx) =>
        ctx.transaction((tx: SqliteDatabase) => {
          if (p.n === 0) kept = tx.prepare('begin immediate')
          if (p.n === 0) tx.exec('pragma query_only = on')
          else tx.exec('insert into ledger values (1)')
          escaped = tx
          return p.n
        }),
      { given: false },
    )
    // After that its own settlement cannot be written either: the attempt fails, and later attempts are not affected.
    const spoilt = await mill.enqueue(work, { n: 0 }, { retry: { limit: 0 } })
    await expect(spoilt.result(limit)).rejects.toMatchObject({ code: 'E_JOB_FAILED' })
    expect(() => kept?.run()).toThrow()
    expect(await (await mill.enqueue(work, { n: 1 })).result(limit)).toBe(1)
    for (const use of [
      () => escaped?.exec('begin immediate'),
      () => escaped?.prepare('begin immediate'),
      () => escaped?.close(),
    ])
      expect(caught(use)).toMatchObject({ code: 'E_TX_NOT_OPEN' })
    expect(await (await mill.enqueue(work, { n: 2 })).result(limit)).toBe(2)
    expect(count(db)).toBe(2)
  })

  test('notices a transaction that a kept statement has begun on the engine’s connection', async () => {
    let kept: ReturnType<SqliteDatabase['prepare']> | undefined
    const { mill, work, db } = await setUp(
      () => (p, ctx) =>
        ctx.transaction((tx: SqliteDatabase) => {
          kept ??= tx.prepare('begin')
          tx.exec(`insert into ledger values (${p.n})`)
          return p.n
        }),
      { given: false },
    )
    expect(await (await mill.enqueue(work, { n: 1 })).result(limit)).toBe(1)
    kept?.run()
    expect(await (await mill.enqueue(work, { n: 2 })).result(limit)).toBe(2)
    expect(count(db)).toBe(2)
  })

  test('is given a function, and anything else is refused by name', async () => {
    const { mill, work } = await setUp(() => (_, ctx) => ctx.transaction('insert' as never))
    const handle = await mill.enqueue(work, { n: 1 }, { retry: { limit: 0 } })
    await expect(handle.result(limit)).rejects.toThrow(/work must be a function.*got "insert"/)
  })

  test('gives up waiting when its job is over', async () => {
    const { mill, work } = await setUp(({ db: own }) => (_, ctx) => {
      own.exec('begin')
      return ctx.transaction(() => 'never')
    })
    const handle = await mill.enqueue(work, { n: 1 }, { timeout: '50ms', retry: { limit: 0 } })
    await expect(handle.result(limit)).rejects.toThrow('longer than its timeout')
  })
})

test('the testing kit settles and rolls back for real, on a handle that you give it', async () => {
  const db = new (chooseLibrary().open)(':memory:')
  undo.push(() => db.close())
  db.exec('create table ledger (n integer)')
  const work = job('work', {
    run: (p: { n: number }, ctx): unknown =>
      p.n === 0
        ? ctx.transaction((tx: SqliteDatabase) => tx.exec('insert into ledger values (0)') ?? 'own')
        : inTransaction(db, () => {
            db.exec('insert into ledger values (1)')
            void ctx.settleIn(db, 'given')
            if (p.n === 2) throw new Error('undo')
          }),
    retry: { limit: 1, backoff: { start: 1 } },
  })
  const t = await testing({ jobs: [work, child], store: db })
  undo.push(() => t.close())
  const handles = await t.mill.enqueueMany(work, [{ n: 0 }, { n: 1 }, { n: 2 }])
  db.exec('begin')
  void t.mill.enqueue(child, { n: 1 }, { tx: db })
  db.exec('rollback')
  expect(await t.drain()).toEqual({ ran: 3, done: 2, failed: 0, retrying: 1, snoozed: 0 })
  const states: unknown[] = []
  for (const handle of handles) states.push([(await handle.get())?.state, (await handle.get())?.result])
  expect([states, count(db)]).toEqual([
    [
      ['done', 'own'],
      ['done', 'given'],
      ['retrying', undefined],
    ],
    2,
  ])
})

function caught(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  return undefined
}
