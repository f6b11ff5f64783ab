import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { StoreError } from '../../../errors.js'
import { systemWorld } from '../../../world/world.js'
import { CommitQueue } from './commit-queue.js'
import type { SqliteDatabase, SqliteStatement } from './driver.js'
import { Statements } from './driver.js'
import { chooseLibrary } from './library.js'
import { queries } from '../queries/queries.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-commit-queue-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A real database that records, through the driver port, which statements are executed on it. */
class Noted implements SqliteDatabase {
  readonly executed: string[] = []
  readonly #inner: SqliteDatabase
  constructor(inner: SqliteDatabase) {
    this.#inner = inner
  }
  exec(sql: string): unknown {
    this.executed.push(sql.trim())
    return this.#inner.exec(sql)
  }
  prepare(sql: string): SqliteStatement {
    const statement = this.#inner.prepare(sql)
    return {
      run: (...values) => {
        this.executed.push(sql.trim())
        return statement.run(...values)
      },
      get: (...values) => statement.get(...values),
      all: (...values) => statement.all(...values),
    }
  }
  close(): unknown {
    return this.#inner.close()
  }
  count(sql: string): number {
    return this.executed.filter((each) => each === sql).length
  }
}

let files = 0
let path: string
let database: Noted
let statements: Statements
let commits: CommitQueue
let committed: number
let rolledBack: number
let failures: unknown[]

function queue(durability: 'power' | 'process' = 'power', now?: () => number): CommitQueue {
  return new CommitQueue(statements, queries, systemWorld(), {
    name: path,
    durability,
    now,
    onCommit: () => (committed += 1),
    onRollback: () => (rolledBack += 1),
    onFailure: (error) => failures.push(error),
  })
}

beforeEach(() => {
  path = join(folder, `${(files += 1)}.db`)
  database = new Noted(new (chooseLibrary().open)(path))
  database.exec('pragma journal_mode = wal; pragma busy_timeout = 0; create table t (x integer primary key)')
  database.executed.length = 0
  statements = new Statements(database)
  committed = 0
  rolledBack = 0
  failures = []
  commits = queue()
})
afterEach(async () => {
  await commits.close()
  database.close()
})

const add = (x: number) => () => {
  statements.of('insert into t values (?)').run(x)
  return x
}
const rows = (): number[] =>
  (statements.of('select x from t order by rowid').all() as { x: number }[]).map((row) => row.x)
const boom = (): never => {
  throw new Error('boom')
}

describe('the writes of one turn', () => {
  test('are one transaction, and each caller gets its own result', async () => {
    const answers = await Promise.all([1, 2, 3, 4, 5].map((x) => commits.write(add(x))))
    expect(answers).toEqual([1, 2, 3, 4, 5])
    expect(rows()).toEqual([1, 2, 3, 4, 5])
    expect([database.count('begin immediate'), database.count('commit')]).toEqual([1, 1])
    expect(committed).toBe(1)
  })

  test('are done in the order of the calls', async () => {
    const order: number[] = []
    await Promise.all([3, 1, 2].map((x) => commits.write(() => order.push(x))))
    expect(order).toEqual([3, 1, 2])
  })

  test('resolve only when the transaction is committed', async () => {
    let inside = true
    await commits.write(() => {
      const other = new (chooseLibrary().open)(path)
      inside = (other.prepare('select count(*) as n from t').get() as { n: number }).n > 0
      other.close()
      add(1)()
    })
    expect(inside).toBe(false)
    const other = new (chooseLibrary().open)(path)
    expect(other.prepare('select count(*) as n from t').get()).toMatchObject({ n: 1 })
    other.close()
  })

  test('are another transaction in another turn', async () => {
    await commits.write(add(1))
    await commits.write(add(2))
    expect(database.count('commit')).toBe(2)
  })

  test('have one now, the database’s', async () => {
    const before = Date.now()
    const [a, b] = await Promise.all([commits.write((now) => now), commits.write((now) => now)])
    expect(a).toBe(b)
    expect(Math.abs(a - before)).toBeLessThan(60_000)
  })

  test('have the now of the simulator when it provides one', async () => {
    const simulated = queue('power', () => 42)
    expect(await simulated.write((now) => now)).toBe(42)
    expect(await simulated.read((now) => now)).toBe(42)
  })

  test('do not include a write made when they resolve: it joins the next transaction', async () => {
    const both = commits.write(add(1)).then(() => commits.write(add(2)))
    expect(await both).toBe(2)
    expect(database.count('commit')).toBe(2)
  })
})

describe('a write that throws', () => {
  test('rejects only its own call', async () => {
    const settled = await Promise.allSettled([commits.write(add(1)), commits.write(boom), commits.write(add(3))])
    expect(settled.map((each) => each.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(rows()).toEqual([1, 3])
    expect(failures).toMatchObject([{ message: 'boom' }])
  })

  test('reports the rollback before the other writes are retried', async () => {
    const seen: number[] = []
    const settled = await Promise.allSettled([
      commits.write(() => seen.push(rolledBack)),
      commits.write(boom),
      commits.write(() => seen.push(rolledBack)),
    ])
    expect(settled.map((each) => each.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    // The first write ran in the shared transaction, then again after the rollback.
    expect(seen[0]).toBe(0)
    expect(seen.slice(1).every((count) => count > 0)).toBe(true)
    expect(rolledBack).toBe(2)
  })

  test('leaves none of its rows', async () => {
    const half = commits.write(() => {
      add(7)()
      boom()
    })
    await expect(half).rejects.toThrow('boom')
    expect(rows()).toEqual([])
    expect(await commits.write(add(1))).toBe(1)
  })

  test('keeps the order of the others', async () => {
    const order: number[] = []
    const all = [1, 2, 0, 3].map((x) =>
      commits.write(() => {
        if (x === 0) boom()
        order.push(x)
      }),
    )
    await Promise.allSettled(all)
    expect(order.slice(-3)).toEqual([1, 2, 3])
  })

  test('with a driver’s error rejects with a store error that has it as its cause', async () => {
    await commits.write(add(1))
    const error = await commits.write(add(1)).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(StoreError)
    expect(error).toMatchObject({ code: 'E_STORE', message: expect.stringContaining(path) as string })
    expect((error as Error).cause).toBeInstanceOf(Error)
  })
})

describe('while another connection holds the write lock', () => {
  test('writes wait, and are done in order once the lock is released', async () => {
    const other = new (chooseLibrary().open)(path)
    other.exec('begin immediate')
    const order: string[] = []
    const first = commits.write(add(1)).then(() => order.push('first'))
    // The queue tries and finds the file busy; later writes come after.
    await new Promise<void>((next) => setImmediate(() => setImmediate(next)))
    const second = commits.write(add(2)).then(() => order.push('second'))
    await new Promise<void>((next) => setImmediate(() => setImmediate(next)))
    expect(database.count('begin immediate')).toBeGreaterThan(0)
    expect(order).toEqual([])
    order.push('let go')
    other.exec('commit')
    await Promise.all([first, second])
    expect(order).toEqual(['let go', 'first', 'second'])
    expect(rows()).toEqual([1, 2])
    expect(failures).toEqual([])
    other.close()
  })

  test('the event loop is not blocked', async () => {
    const other = new (chooseLibrary().open)(path)
    other.exec('begin immediate')
    const written = commits.write(add(1))
    let turns = 0
    for (; turns < 100; turns += 1) await new Promise<void>((next) => setImmediate(next))
    other.exec('commit')
    await written
    expect(turns).toBe(100)
    other.close()
  })

  test('a read succeeds', async () => {
    const other = new (chooseLibrary().open)(path)
    other.exec('begin immediate; insert into t values (9)')
    expect(await commits.read(rows)).toEqual([])
    other.exec('rollback')
    other.close()
  })

  test('closing waits for pending writes', async () => {
    const other = new (chooseLibrary().open)(path)
    other.exec('begin immediate')
    const written = commits.write(add(1))
    await new Promise<void>((next) => setImmediate(() => setImmediate(next)))
    const order: string[] = []
    const closed = commits.close().then(() => order.push('closed'))
    other.exec('commit')
    await written
    order.push('written')
    await closed
    expect(order).toEqual(['written', 'closed'])
    expect(rows()).toEqual([1])
    other.close()
  })
})

describe('a write that reads first', () => {
  const readFirst = {
    durable: false,
    readFirst: (): string | undefined => (rows().length === 0 ? 'nothing' : undefined),
  }
  const work = (): string => `wrote ${rows().length}`

  test('takes no lock when the read finds nothing to write', async () => {
    const other = new (chooseLibrary().open)(path)
    other.exec('begin immediate')
    expect(await commits.write(work, readFirst)).toBe('nothing')
    expect(database.count('begin immediate')).toBe(0)
    expect(committed).toBe(0)
    other.exec('rollback')
    other.close()
  })

  test('writes when the read finds something', async () => {
    await commits.write(add(1))
    expect(await commits.write(work, readFirst)).toBe('wrote 1')
    expect(database.count('commit')).toBe(2)
  })

  test('joins a transaction of other writes without reading first', async () => {
    expect(await Promise.all([commits.write(add(1)), commits.write(work, readFirst)])).toEqual([1, 'wrote 1'])
    expect(database.count('commit')).toBe(1)
  })

  test('reads again after the file was busy, because another process may have done the work', async () => {
    await commits.write(add(1))
    const other = new (chooseLibrary().open)(path)
    other.exec('begin immediate; delete from t')
    const answer = commits.write(work, readFirst)
    await expect.poll(() => database.count('begin immediate')).toBeGreaterThan(1)
    other.exec('commit')
    expect(await answer).toBe('nothing')
    other.close()
  })

  test('whose read throws fails alone, and the next write succeeds', async () => {
    await expect(commits.write(work, { durable: false, readFirst: boom })).rejects.toThrow('boom')
    expect(await commits.write(add(1))).toBe(1)
  })
})

describe('a closed queue', () => {
  test('finishes the writes of the same turn', async () => {
    const written = commits.write(add(1))
    await commits.close()
    expect(await written).toBe(1)
    expect(rows()).toEqual([1])
  })

  test('refuses later writes with E_CLOSED', async () => {
    await commits.close()
    await expect(commits.write(add(1))).rejects.toMatchObject({ code: 'E_CLOSED' })
    await expect(commits.read(rows)).rejects.toMatchObject({ code: 'E_CLOSED' })
  })
})

describe('flushing', () => {
  const modes = (): string[] => database.executed.filter((sql) => sql.startsWith('pragma synchronous'))

  test('is skipped for a batch of writes that may be lost', async () => {
    await commits.write(add(1), { durable: false })
    expect(modes()).toEqual(['pragma synchronous = normal'])
  })

  test('is done for a batch with one durable write', async () => {
    await Promise.all([
      commits.write(add(1), { durable: false }),
      commits.write(add(2)),
      commits.write(add(3), { durable: false }),
    ])
    expect(modes()).toEqual([])
    expect(database.count('commit')).toBe(1)
  })

  test('is turned on again after a batch without it', async () => {
    await commits.write(add(1), { durable: false })
    await commits.write(add(2))
    expect(modes()).toEqual(['pragma synchronous = normal', 'pragma synchronous = full'])
  })

  test('is off with the durability of a process', async () => {
    const faster = queue('process')
    await faster.write(add(1))
    await faster.write(add(2), { durable: false })
    expect(modes()).toEqual(['pragma synchronous = normal'])
  })
})
