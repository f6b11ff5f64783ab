import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { MillraceError, StoreError } from '../../../errors.js'
import { systemWorld } from '../../../world/world.js'
import type { SqliteConstructor } from './driver.js'
import { chooseLibrary, SAFE_VERSION } from './library.js'
import { SCHEMA_VERSION, schemaVersion } from '../migrations/migrate.js'
import type { OpenedFile } from './open.js'
import { openFile } from './open.js'

const require = createRequire(import.meta.url)
const Libsql = require('libsql') as SqliteConstructor
// The library that the store itself uses here: another one in this process would drop its locks.
const DatabaseSync = chooseLibrary().open

const folder = mkdtempSync(join(tmpdir(), 'millrace-open-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const fresh = (): string => join(folder, `${(files += 1)}.db`)
const isRoot = process.getuid?.() === 0

const open = (target: string | object, autoMigrate = true): Promise<OpenedFile> =>
  openFile({ target, durability: 'power' }, autoMigrate, systemWorld())

async function refusal(opening: Promise<OpenedFile>): Promise<MillraceError> {
  const error = await opening.then(
    (file) => file.close(),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(MillraceError)
  return error as MillraceError
}

/** The file and the files beside it whose names begin with its name. */
const beside = (path: string): string[] =>
  readdirSync(join(path, '..')).filter((name) => join(path, '..', name).startsWith(path))

describe('a new file', () => {
  test('is created with our tables, readable by its owner only', async () => {
    const path = fresh()
    const file = await open(path)
    expect(schemaVersion(file.database)).toBe(SCHEMA_VERSION)
    expect(file.path).toBe(path)
    expect(file.warnings).toEqual([])
    for (const name of beside(path)) expect(statSync(join(folder, name)).mode & 0o777, name).toBe(0o600)
    file.close()
  })

  test('uses a WAL of limited size, and flushes every commit', async () => {
    const file = await open(fresh())
    const pragma = (name: string): unknown => Object.values(file.database.prepare(`pragma ${name}`).get() as object)[0]
    expect(pragma('journal_mode')).toBe('wal')
    expect(pragma('synchronous')).toBe(2)
    expect(pragma('busy_timeout')).toBe(0)
    expect(pragma('journal_size_limit')).toBe(67_108_864)
    file.close()
  })

  test('may be given by a path relative to the working directory', async () => {
    const before = process.cwd()
    process.chdir(folder)
    try {
      const file = await open('relative.db')
      expect(file.path).toBe(join(process.cwd(), 'relative.db'))
      file.close()
    } finally {
      process.chdir(before)
    }
  })

  test('in a missing folder is created with its folder', async () => {
    const path = join(folder, 'nowhere', 'yet', 'jobs.db')
    ;(await open(path)).close()
    expect(existsSync(path)).toBe(true)
  })

  test('is not migrated when autoMigrate is false: E_SCHEMA_OLD', async () => {
    const path = fresh()
    const error = await refusal(open(path, false))
    expect(error.code).toBe('E_SCHEMA_OLD')
    expect(error.message).toContain('autoMigrate')
    expect(existsSync(path) ? statSync(path).size : 0).toBe(0)
  })

  test('leaves no empty file behind when it is refused', async () => {
    const path = fresh()
    await refusal(open(path, false))
    expect(beside(path)).toEqual([])
  })
})

describe('an existing file', () => {
  test('that is a folder is refused with advice', async () => {
    const path = join(folder, 'a-folder')
    mkdirSync(path)
    const error = await refusal(open(path))
    expect(error.code).toBe('E_CANNOT_OPEN')
    expect(error.message).toContain('is a folder')
    expect(readdirSync(path)).toEqual([])
  })

  test.each([
    ['a text', Buffer.from('Dear diary,\n'.repeat(500))],
    ['two bytes', Buffer.from('xy')],
    ['a broken header', Buffer.concat([Buffer.from('SQLite format 3\u0001'), Buffer.alloc(4_080, 7)])],
  ])('that is not a database but %s is refused, and keeps its bytes and mode', async (_, bytes) => {
    const path = fresh()
    writeFileSync(path, bytes)
    chmodSync(path, 0o644)
    const error = await refusal(open(path))
    expect(error).toBeInstanceOf(StoreError)
    expect(error.code).toBe('E_NOT_A_DATABASE')
    expect(readFileSync(path).equals(bytes)).toBe(true)
    expect(statSync(path).mode & 0o777).toBe(0o644)
    expect(beside(path)).toHaveLength(1)
  })

  test('that is empty becomes a store', async () => {
    const path = fresh()
    writeFileSync(path, '')
    const file = await open(path)
    expect(schemaVersion(file.database)).toBe(SCHEMA_VERSION)
    file.close()
  })

  test('with the schema of a newer Millrace is refused and not changed', async () => {
    const path = fresh()
    const newer = new DatabaseSync(path)
    newer.exec(`create table millrace_migrations (version integer primary key, name text, applied_at integer)`)
    newer.exec(`insert into millrace_migrations values (${SCHEMA_VERSION + 1}, 'of tomorrow', 0)`)
    newer.close()
    const before = readFileSync(path)
    const error = await refusal(open(path))
    expect(error.code).toBe('E_SCHEMA_NEWER')
    expect(error.message).toContain(String(SCHEMA_VERSION + 1))
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(beside(path)).toHaveLength(1)
  })

  test('with tables of another program opens, and those tables stay', async () => {
    const path = fresh()
    const theirs = new DatabaseSync(path)
    theirs.exec(`create table users (id integer primary key, name text); insert into users values (1, 'Ada')`)
    theirs.close()
    const file = await open(path)
    expect(file.database.prepare('select * from users').all()).toMatchObject([{ id: 1, name: 'Ada' }])
    expect(schemaVersion(file.database)).toBe(SCHEMA_VERSION)
    file.close()
  })

  test('with tables of another program and autoMigrate false is refused, and keeps its bytes', async () => {
    const path = fresh()
    const theirs = new DatabaseSync(path)
    theirs.exec(`create table users (id integer primary key)`)
    theirs.close()
    const before = readFileSync(path)
    expect((await refusal(open(path, false))).code).toBe('E_SCHEMA_OLD')
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('that was migrated before opens with autoMigrate false', async () => {
    const path = fresh()
    ;(await open(path)).close()
    const file = await open(path, false)
    expect(schemaVersion(file.database)).toBe(SCHEMA_VERSION)
    file.close()
  })

  // Root may write any file, so as root the test switches to another user.
  test.skipIf(isRoot && process.seteuid === undefined)(
    'that the user may not write is refused as read-only',
    async () => {
      const place = join(folder, 'read-only')
      mkdirSync(place)
      const path = join(place, 'jobs.db')
      ;(await open(path)).close()
      for (const name of readdirSync(place)) if (name !== 'jobs.db') rmSync(join(place, name))
      chmodSync(folder, 0o755)
      chmodSync(path, 0o444)
      chmodSync(place, 0o555)
      if (isRoot) process.seteuid?.(65_534)
      try {
        expect((await refusal(open(path))).code).toBeOneOf(['E_READ_ONLY', 'E_CANNOT_OPEN'])
      } finally {
        if (isRoot) process.seteuid?.(0)
        chmodSync(place, 0o755)
      }
    },
  )

  test('that another connection has locked to create the tables is waited for', async () => {
    const path = fresh()
    const other = new DatabaseSync(path)
    other.exec('pragma journal_mode = wal; create table t (x); begin immediate')
    const opening = open(path)
    const order: string[] = []
    const opened = opening.then((file) => {
      order.push('opened')
      file.close()
    })
    await new Promise<void>((next) => setImmediate(next))
    order.push('let go')
    other.exec('commit')
    await opened
    expect(order).toEqual(['let go', 'opened'])
    other.close()
  })
})

test('a warning says what the faster mode can lose', async () => {
  const file = await openFile({ target: fresh(), durability: 'process' }, true, systemWorld())
  expect(file.warnings).toHaveLength(1)
  expect(file.warnings[0]).toMatch(/durability 'process'.*power cut may lose/)
  file.close()
})

describe('a handle of the user', () => {
  test('on a file makes the store open its own connection, and closing that leaves the handle open', async () => {
    const path = fresh()
    const handle = new DatabaseSync(path)
    const file = await open(handle)
    expect(file.path).toBe(path)
    expect(file.database).not.toBe(handle)
    file.close()
    expect(handle.prepare('select count(*) as n from millrace_jobs').get()).toMatchObject({ n: 0 })
    handle.close()
  })

  test('in memory is used directly, and the store never closes it', async () => {
    const handle = new DatabaseSync(':memory:')
    const file = await open(handle)
    expect(file.database).toBe(handle)
    file.close()
    expect(handle.prepare('select count(*) as n from millrace_jobs').get()).toMatchObject({ n: 0 })
    handle.close()
  })

  test('of a library with an old SQLite warns that only this process may write', async () => {
    const path = fresh()
    const handle = new Libsql(path)
    const file = await open(handle)
    expect(file.warnings).toEqual([expect.stringContaining(`is older than ${SAFE_VERSION}`) as string])
    file.close()
    handle.close()
    expect(existsSync(`${path}-writer`)).toBe(false)
  })

  test('of a library with an old SQLite is refused while another process writes, and opens when that has exited', async () => {
    const path = fresh()
    const handle = new Libsql(path)
    // The other process implements only the protocol of the lock: its file, which contains the process id.
    const program = `
      const fs = require('node:fs')
      fs.writeFileSync(${JSON.stringify(`${path}-writer`)}, String(process.pid), { flag: 'wx' })
      process.stdout.write('held')
      setInterval(() => {}, 1000)`
    const other = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
    await new Promise<void>((next) => other.stdout.once('data', () => next()))
    const error = await refusal(open(handle))
    expect(error.code).toBe('E_OLD_SQLITE')
    expect(error.message).toContain(String(other.pid))
    other.kill('SIGKILL')
    await new Promise<void>((next) => other.once('exit', () => next()))
    const file = await open(handle)
    file.close()
    handle.close()
  })
})
