import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BUNDLE, bundle, urlInBundle } from '../scripts/bundle.mjs'
import { runNode } from '../scripts/run.mjs'
import { job, millrace } from '../src/index.js'
import { chooseLibrary } from '../src/store/sqlite/connection/library.js'
import { freshDatabase } from './postgres/shared-postgres.js'

/** `millrace migrate` as a real command: a process, its two streams and its exit code, on both stores. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-migrate-'))
const MAIN = join(BUNDLE, 'cli', 'main.js')

let database: Awaited<ReturnType<typeof freshDatabase>>
let admin: Client
beforeAll(async () => {
  await bundle()
  database = await freshDatabase()
  admin = new Client(database.url)
  await admin.connect()
})
afterAll(async () => {
  await admin.end()
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs the command line in an empty environment, but for what is given. */
function cli(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [MAIN, ...args], { cwd: folder, env: { PATH: process.env['PATH'], ...env } })
    const [out, err]: [string[], string[]] = [[], []]
    child.stdout.on('data', (data: Buffer) => out.push(data.toString()))
    child.stderr.on('data', (data: Buffer) => err.push(data.toString()))
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, out: out.join(''), err: err.join('') }))
  })
}

const migrate = (...args: readonly string[]): Promise<Ran> => cli(['migrate', ...args])

let stores = 0
/** A new store of either kind, as the options that name it. */
const STORES = {
  SQLite: () => ['--store', join(folder, `${(stores += 1)}.db`)],
  PostgreSQL: () => ['--store', database.url, '--schema', `Place "${(stores += 1)}"; --'`],
}

async function refusalOf(opening: Promise<{ close(): Promise<void> }>): Promise<{ code: string; message: string }> {
  const mill = await opening.catch((error: unknown) => error as { code: string; message: string })
  if ('close' in mill) await mill.close()
  expect(mill).toBeInstanceOf(Error)
  return mill as { code: string; message: string }
}

describe.each(Object.entries(STORES))('on %s, millrace migrate', (kind, newStore) => {
  test('creates the tables, and then has nothing to do and says so', async () => {
    const where = newStore()
    const first = await migrate(...where)
    expect(first).toMatchObject({ code: 0, err: '' })
    expect(first.out).toMatch(/the tables went from version 0 to \d+\n$/)
    const second = await migrate(...where)
    expect(second).toMatchObject({ code: 0, err: '' })
    expect(second.out).toMatch(/nothing to do, the tables are at version \d+\n$/)
    expect(await migrate(...where, '--print')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^-- Nothing to do/),
    })
  })

  test('at once in many processes is done by one of them', async () => {
    const where = newStore()
    const ran = await Promise.all(Array.from({ length: 5 }, () => migrate(...where)))
    expect(ran.map(({ code, err }) => ({ code, err }))).toEqual(ran.map(() => ({ code: 0, err: '' })))
    expect(ran.filter(({ out }) => out.includes('went from version 0'))).toHaveLength(1)
    expect(ran.filter(({ out }) => out.includes('nothing to do'))).toHaveLength(4)
  })

  test('--print runs nothing, and what it prints is the migration', async () => {
    const where = newStore()
    const printed = await migrate(...where, '--print')
    expect(printed).toMatchObject({ code: 0, err: '' })
    expect(await migrate(...where, '--print')).toEqual(printed)
    if (kind === 'SQLite') {
      expect(existsSync(where[1] as string)).toBe(false)
      const file = new (chooseLibrary().open)(where[1] as string)
      file.exec(printed.out)
      file.close()
    } else await admin.query(printed.out)
    expect((await migrate(...where)).out).toContain('nothing to do')
  })

  test('--print --from 0 needs no database', async () => {
    const [, store, ...more] = newStore()
    const elsewhere = kind === 'SQLite' ? (store as string) : 'postgres://nobody:nothing@127.0.0.1:1/none'
    const { code, out, err } = await migrate('--print', '--from', '0', '--store', elsewhere, ...more)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    // For one schema and the next, which differ only in their names.
    const unnamed = (sql: string): string => sql.replaceAll(/Place [_"]+\d+[_"]+/g, 'Place')
    expect(unnamed(out)).toBe(unnamed((await migrate(...newStore(), '--print')).out))
  })
})

describe('autoMigrate: false', () => {
  test('refuses an SQLite file without tables, naming the command that creates them', async () => {
    const store = join(folder, 'it’s new.db')
    const error = await refusalOf(millrace({ store, autoMigrate: false, logger: false }))
    expect(error.code).toBe('E_SCHEMA_OLD')
    expect(error.message).toContain(`run \`npx millrace migrate --store '${store}'\` first`)
    expect(existsSync(store)).toBe(false)
    expect((await migrate('--store', store)).code).toBe(0)
    await (await millrace({ store, autoMigrate: false, logger: false })).close()
  })

  test('refuses a PostgreSQL schema without tables, naming the command without the password', async () => {
    const store = `${database.url}?schema=later`
    const error = await refusalOf(millrace({ store, autoMigrate: false, logger: false }))
    const { username, password, host, pathname } = new URL(database.url)
    expect(error.code).toBe('E_SCHEMA_OLD')
    expect(error.message).toContain(
      `run \`npx millrace migrate --store 'postgresql://${username}:***@${host}${pathname}' --schema later\`, as a role that owns the schema, first`,
    )
    expect(error.message).not.toContain(password)
    const { rows } = await admin.query(`select from pg_namespace where nspname = 'later'`)
    expect(rows).toEqual([])
    expect((await migrate('--store', database.url, '--schema', 'later')).code).toBe(0)
    await (await millrace({ store, autoMigrate: false, logger: false })).close()
  })
})

test('a program that is refused ends by itself: no connection is left open', async () => {
  const front = urlInBundle('index.js')
  const store = `${database.url}?schema=refused`
  writeFileSync(
    join(folder, 'refused.mjs'),
    `import { millrace } from ${JSON.stringify(front)}
     await millrace({ store: ${JSON.stringify(store)}, autoMigrate: false }).catch(({ code }) => console.log(code))`,
  )
  const ran = await runNode(['refused.mjs'], { cwd: folder, timeoutMs: 20_000 })
  expect(ran).toMatchObject({ code: 0, output: 'E_SCHEMA_OLD\n' })
})

describe('privileges', () => {
  /** A role that may connect, and has what else is granted. */
  async function role(name: string): Promise<string> {
    await admin.query(`drop role if exists ${name}`)
    await admin.query(`create role ${name} login password 'p'`)
    const url = new URL(database.url)
    Object.assign(url, { username: name, password: 'p' })
    return url.href
  }

  test('to create, when missing, give one sentence that says what to grant, by command and at start', async () => {
    const store = await role('millrace_test_reader')
    const { code, out, err } = await migrate('--store', store, '--schema', 'mine')
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(
      /^millrace migrate: .*the role "millrace_test_reader" may not create the tables; run `npx millrace migrate .*` as a role that owns the database, or let that one `grant create on database "\w+" to "millrace_test_reader"`\n$/,
    )
    const error = await refusalOf(millrace({ store: `${store}?schema=mine`, logger: false }))
    expect(error.code).toBe('E_STORE_RIGHTS')
    await admin.query('create schema mine; grant usage on schema mine to millrace_test_reader')
    expect((await migrate('--store', store, '--schema', 'mine')).err).toContain('grant create on schema "mine" to')
    await admin.query('drop schema mine; drop role millrace_test_reader')
  })

  test('in a schema that an owner made are enough to migrate it', async () => {
    const store = await role('millrace_test_guest')
    await admin.query('create schema guest authorization millrace_test_guest')
    expect(await migrate('--store', store, '--schema', 'guest')).toMatchObject({ code: 0, err: '' })
    await admin.query('drop schema guest cascade; drop role millrace_test_guest')
  })

  test('of a worker are those of the guide: the schema, its tables and its sequences', async () => {
    const store = await role('millrace_test_worker')
    expect((await migrate('--store', database.url, '--schema', 'shop')).code).toBe(0)
    const error = await refusalOf(millrace({ store: `${store}?schema=shop`, logger: false }))
    expect(error).toMatchObject({ code: 'E_STORE_RIGHTS', message: expect.stringContaining('grant the role usage') })
    await admin.query(`
      grant usage on schema shop to millrace_test_worker;
      grant select, insert, update, delete on all tables in schema shop to millrace_test_worker;
      grant usage on all sequences in schema shop to millrace_test_worker`)
    const ping = job('ping', async () => 7)
    const mill = await millrace({ store: `${store}?schema=shop`, jobs: [ping], autoMigrate: false, logger: false })
    await mill.start()
    expect(await (await mill.enqueue(ping)).result({ timeout: '20s' })).toBe(7)
    await mill.close()
    await admin.query('drop schema shop cascade; drop role millrace_test_worker')
  })
})

describe('the command line', () => {
  test('takes the store from $MILLRACE_STORE when none is named', async () => {
    const ran = await cli(['migrate'], { MILLRACE_STORE: join(folder, 'environment.db') })
    expect(ran).toMatchObject({ code: 0, out: expect.stringContaining('environment.db: the tables went') })
  })

  test.each<[string, string[], RegExp]>([
    ['no command', [], /USAGE/],
    ['an unknown command', ['migarte'], /"migarte" is not a command; did you mean "migrate"\?/],
    ['an inherited word', ['constructor'], /"constructor" is not a command; there is check, dashboard, migrate/],
    ['no store', ['migrate'], /--store is missing: .* MILLRACE_STORE/],
    ['a store without a value', ['migrate', '--store'], /--store needs a value/],
    ['an option in the place of a value', ['migrate', '--store', '--print'], /--store needs a value/],
    ['a misspelt option', ['migrate', '--stor=x.db'], /--stor is not an option; did you mean "--store"\?/],
    [
      'several things',
      ['migrate', 'x.db', '-f', '--dry'],
      /3 problems\n.*"x\.db" is not expected[^]*-f is not[^]*--dry/,
    ],
    ['a schema of SQLite', ['migrate', '--store', 'x.db', '--schema', 'a'], /--schema is of PostgreSQL/],
    ['memory', ['migrate', '--store', ':memory:'], /--store must be a file/],
    [
      'an invalid version',
      ['migrate', '--store', 'x.db', '--print', '--from', '99'],
      /--from must be a version from 0/,
    ],
    ['a version and no --print', ['migrate', '--store', 'x.db', '--from', '0'], /--from needs --print/],
    [
      'another database',
      ['migrate', '--store', 'mysql://u:secret@h/x'],
      /must be a path .*"mysql:\/\/u:\*\*\*@h\/x": mysql: is no store/,
    ],
    [
      'a schema that is misspelt',
      ['migrate', '--store', 'postgres://h/x?schemma=a'],
      /target\?schema has "schemma", which is no setting; did you mean "schema"\?/,
    ],
    ['two schemas', ['migrate', '--store', 'postgres://h/x?schema=a&schema=b'], /names several schemas, "a" and "b"/],
    [
      'a URL that cannot be read',
      ['migrate', '--store', 'postgres://u:sec#ret@h/x'],
      /u:\*\*\*@h\/x"; in a user or pass/,
    ],
    [
      'a schema of the server',
      ['migrate', '--store', 'postgres://h/x', '--schema', 'pg_x'],
      /must not begin with "pg_"/,
    ],
  ])('refuses %s with exit code 2', async (_, args, message) => {
    const { code, out, err } = await cli(args)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(message)
    expect(err).not.toMatch(/secret|sec#ret|\n +at /)
    expect(existsSync(join(folder, 'x.db'))).toBe(false)
  })

  test.each<[string, number, string[], RegExp]>([
    [
      'no server',
      4,
      ['--store', 'postgres://u:secret@127.0.0.1:1/x'],
      /cannot be reached: .*ECONNREFUSED.*; check that/,
    ],
    ['a path through a file', 1, ['--store', join(fileURLToPath(import.meta.url), 'x.db')], /is a file \(ENOTDIR\)/],
  ])('reports %s in one line with exit code %d', async (_, expected, args, message) => {
    const { code, out, err } = await migrate(...args)
    expect({ code, out }).toEqual({ code: expected, out: '' })
    expect(err).toMatch(message)
    expect(err).toMatch(/^millrace migrate: .*\n$/)
    expect(err).not.toContain('secret')
  })

  test('prints nothing where no database can be reached, and says how to print for an empty one', async () => {
    const { code, out, err } = await migrate('--print', '--store', 'postgres://u:secret@127.0.0.1:1/x')
    expect({ code, out }).toEqual({ code: 4, out: '' })
    expect(err).toMatch(/^millrace migrate: .*ECONNREFUSED.*; for the SQL of an empty database, .*add --from 0\n$/)
    expect(err).not.toContain('secret')
  })

  test.each(['--version', '-v'])('prints its version: %s', async (flag) => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8')) as {
      version: string
    }
    expect(await cli([flag])).toEqual({ code: 0, out: `${version}\n`, err: '' })
  })

  test.each([[['--help']], [['migrate', '--help']]])('prints help on standard output: %j', async (args) => {
    const { code, out, err } = await cli(args)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^[\x20-\x7e\n’]*USAGE millrace (check|migrate)/)
  })
})
