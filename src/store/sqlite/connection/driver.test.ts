import { createRequire } from 'node:module'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { SqliteConstructor, SqliteDatabase } from './driver.js'
import { isBusy, SQLITE, sqliteCode, Statements } from './driver.js'

const require = createRequire(import.meta.url)
const { DatabaseSync } = require('@photostructure/sqlite') as { DatabaseSync: SqliteConstructor }
const Libsql = require('libsql') as SqliteConstructor

const folder = mkdtempSync(join(tmpdir(), 'millrace-driver-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function thrown(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('it went through')
}

const drivers: [string, SqliteConstructor][] = [
  ['@photostructure/sqlite', DatabaseSync],
  ['libsql', Libsql],
]
const builtIn = (
  process as { getBuiltinModule?: (name: string) => { DatabaseSync: SqliteConstructor } | undefined }
).getBuiltinModule?.('node:sqlite')
if (builtIn !== undefined) drivers.push(['node:sqlite', builtIn.DatabaseSync])

describe.each(drivers)('an error of %s', (name, Driver) => {
  const file = (kind: string): string => join(folder, `${name.replace(/\W/g, '-')}-${kind}.db`)

  test('for a file that another connection has locked is busy', () => {
    const path = file('busy')
    const [a, b] = [new Driver(path), new Driver(path)]
    a.exec('pragma busy_timeout = 0; create table t (x); begin immediate')
    b.exec('pragma busy_timeout = 0')
    const byExec = thrown(() => b.exec('begin immediate'))
    const byStatement = thrown(() => b.prepare('insert into t values (1)').run())
    expect([sqliteCode(byExec), sqliteCode(byStatement)]).toEqual([SQLITE.busy, SQLITE.busy])
    expect(isBusy(byExec)).toBe(true)
    a.exec('rollback')
    a.close()
    b.close()
  })

  test('for a file that is not a database has the code of that', () => {
    const path = file('text')
    writeFileSync(path, 'this is no database, only a text that is long enough to look like a header\n'.repeat(10))
    let database: SqliteDatabase | undefined
    const error = thrown(() => {
      database = new Driver(path)
      database.prepare('select * from sqlite_schema').all()
    })
    expect(sqliteCode(error)).toBe(SQLITE.notADatabase)
    database?.close()
  })

  test('of a constraint has its code, and is not busy', () => {
    const database = new Driver(':memory:')
    database.exec('create table t (x integer primary key); insert into t values (1)')
    const error = thrown(() => database.prepare('insert into t values (1)').run())
    expect(isBusy(error)).toBe(false)
    expect(sqliteCode(error)).not.toBe(SQLITE.full)
    database.close()
  })

  test('for a full database has the code of that', () => {
    const database = new Driver(':memory:')
    database.exec('pragma max_page_count = 2; create table t (x)')
    const fill = database.prepare('insert into t values (zeroblob(100000))')
    expect(sqliteCode(thrown(() => fill.run()))).toBe(SQLITE.full)
    database.close()
  })

  test('for a read-only database has the code of that', () => {
    const path = file('query-only')
    const database = new Driver(path)
    database.exec('create table t (x); pragma query_only = 1')
    expect(sqliteCode(thrown(() => database.prepare('insert into t values (1)').run()))).toBe(SQLITE.readOnly)
    database.close()
  })
})

test('the library chosen for paths reports a file that cannot be opened', () => {
  const error = thrown(() => new DatabaseSync(join(folder, 'no', 'such', 'folder.db')))
  expect(sqliteCode(error)).toBe(SQLITE.cannotOpen)
})

describe('the error shapes of other drivers', () => {
  test.each<[unknown, number | undefined]>([
    [{ code: 'SQLITE_BUSY' }, SQLITE.busy],
    [{ code: 'SQLITE_BUSY_SNAPSHOT' }, SQLITE.busy],
    [{ code: 'SQLITE_BUSY_RECOVERY' }, SQLITE.busy],
    [{ code: 'SQLITE_LOCKED_SHAREDCACHE' }, SQLITE.locked],
    [{ code: 'SQLITE_IOERR_WRITE' }, SQLITE.ioError],
    [{ code: 'SQLITE_READONLY_DBMOVED' }, SQLITE.readOnly],
    [{ code: 'SQLITE_CORRUPT_VTAB' }, SQLITE.corrupt],
    [{ code: 'SQLITE_FULL' }, SQLITE.full],
    [{ code: 'SQLITE_CANTOPEN' }, SQLITE.cannotOpen],
    [{ code: 'SQLITE_NOTADB' }, SQLITE.notADatabase],
    [{ errcode: 517 }, SQLITE.busy],
    [{ code: 'SQLITE_IOERR', rawCode: 778 }, SQLITE.ioError],
    [{ code: 'ENOENT' }, undefined],
    [{ code: 5 }, undefined],
    [new Error('busy'), undefined],
    ['SQLITE_BUSY', undefined],
    [null, undefined],
    [undefined, undefined],
  ])('number %# is read', (error, code) => {
    expect(sqliteCode(error)).toBe(code)
  })
})

test('a statement is prepared once for its text', () => {
  let prepared = 0
  const database: SqliteDatabase = {
    exec: () => undefined,
    close: () => undefined,
    prepare: () => {
      prepared += 1
      return { run: () => ({ changes: 0, lastInsertRowid: 0 }), get: () => undefined, all: () => [] }
    },
  }
  const statements = new Statements(database)
  expect(statements.of('select 1')).toBe(statements.of('select 1'))
  expect(statements.of('select 2')).not.toBe(statements.of('select 1'))
  expect(prepared).toBe(2)
  expect(statements.database).toBe(database)
})
