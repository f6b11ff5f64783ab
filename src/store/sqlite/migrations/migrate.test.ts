import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { StoreError } from '../../../errors.js'
import type { SqliteDatabase } from '../connection/driver.js'
import { chooseLibrary } from '../connection/library.js'
import { migrate, MIGRATIONS, refuseNewer, SCHEMA_VERSION, schemaVersion } from './migrate.js'

const SCHEMA_FILE = fileURLToPath(new URL('../schema.sql', import.meta.url))

const empty = (): SqliteDatabase => new (chooseLibrary().open)(':memory:')

function migrated(): SqliteDatabase {
  const database = empty()
  migrate(database, 1_000)
  return database
}

/** Every table and index of Millrace, as SQLite reports it. */
function dump(database: SqliteDatabase): string {
  const rows = database
    .prepare(
      `select sql from sqlite_schema where name like 'millrace\\_%' escape '\\' and sql is not null order by type, name`,
    )
    .all() as { sql: string }[]
  return rows.map((row) => `${row.sql};\n`).join('\n')
}

describe('migrations', () => {
  test('are numbered from 1 without a gap, and named', () => {
    expect(MIGRATIONS.map((m) => m.version)).toEqual(Array.from({ length: SCHEMA_VERSION }, (_, i) => i + 1))
    for (const { name } of MIGRATIONS) expect(name).toMatch(/^[a-z-]+$/)
  })

  test('bring an empty database to this version, and record each of them', () => {
    const database = migrated()
    expect(schemaVersion(database)).toBe(SCHEMA_VERSION)
    expect(database.prepare('select * from millrace_migrations order by version').all()).toMatchObject(
      MIGRATIONS.map(({ version, name }) => ({ version, name, applied_at: 1_000 })),
    )
    database.close()
  })

  test('run twice have no further effect', () => {
    const database = migrated()
    const before = dump(database)
    migrate(database, 2_000)
    expect(dump(database)).toBe(before)
    expect(
      database.prepare('select min(applied_at) as first, max(applied_at) as last from millrace_migrations').get(),
    ).toMatchObject({
      first: 1_000,
      last: 1_000,
    })
    database.close()
  })

  test('create only tables and indexes with the prefix millrace_', () => {
    const database = migrated()
    const names = database.prepare('select name from sqlite_schema').all() as { name: string }[]
    for (const { name } of names) expect(name).toMatch(/^(millrace_|sqlite_autoindex_millrace_)/)
    database.close()
  })
})

describe('the version of a file', () => {
  test('is 0 without tables of Millrace', () => {
    const database = empty()
    expect(schemaVersion(database)).toBe(0)
    database.exec('create table users (id integer)')
    expect(schemaVersion(database)).toBe(0)
    expect(dump(database)).toBe('')
    database.close()
  })

  test('is 0 when only the ledger exists', () => {
    const database = empty()
    database.exec('create table millrace_migrations (version integer primary key, name text, applied_at integer)')
    expect(schemaVersion(database)).toBe(0)
    database.close()
  })

  test('of a newer Millrace is refused, and this or an older one is not', () => {
    expect(() => refuseNewer(SCHEMA_VERSION, 'x.db')).not.toThrow()
    expect(() => refuseNewer(0, 'x.db')).not.toThrow()
    expect(() => refuseNewer(SCHEMA_VERSION + 1, 'x.db')).toThrow(StoreError)
    expect(() => refuseNewer(SCHEMA_VERSION + 1, 'x.db')).toThrow(/x\.db has schema version .* left untouched/)
  })
})

describe('the table forbids what the code forbids', () => {
  const refused = (sql: string): void => {
    const database = migrated()
    expect(() => database.exec(sql), sql).toThrow()
    database.close()
  }
  const live = (state: string, fence: string, more = ''): string =>
    `insert into millrace_live (seq, lane, state, sort, due_at, fence${more === '' ? '' : ', attempt'}) values (1, 1, '${state}', 0, 0, ${fence}${more})`

  test('an unknown state', () => refused(live('sleeping', 'null')))
  test('a final state of a live job', () => refused(live('done', 'null')))
  test('running without a fence', () => refused(live('running', 'null')))
  test('a fence on a waiting job', () => refused(live('scheduled', '5')))
  test('a negative number of attempts', () => refused(live('ready', 'null', ', -1')))
  test('an unfinished state in history', () =>
    refused(
      `insert into millrace_history (seq, state, due_at, attempt, retries, crashes, settled_at) values (1, 'ready', 0, 0, 0, 0, 0)`,
    ))
  test('two holders of one key', () =>
    refused(`insert into millrace_keys values ('a', 'k', 0, 1); insert into millrace_keys values ('a', 'k', 0, 2)`))
  test('one id twice', () =>
    refused(
      `insert into millrace_jobs (id, lane, priority, payload, created_at) values ('x', 1, 0, '1', 0);
       insert into millrace_jobs (id, lane, priority, payload, created_at) values ('x', 1, 0, '1', 0)`,
    ))
})

// MILLRACE_WRITE_SCHEMA=1 rewrites the dump after a migration was added.
test('schema.sql is the exact dump of a migrated database', () => {
  const database = migrated()
  const dumped = dump(database)
  database.close()
  if (process.env['MILLRACE_WRITE_SCHEMA'] === '1') writeFileSync(SCHEMA_FILE, dumped)
  expect(readFileSync(SCHEMA_FILE, 'utf8')).toBe(dumped)
})
