import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { cpSync, mkdirSync, mkdtempSync, rmSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { build } from '../scripts/build.mjs'
import { root, runNode } from '../scripts/run.mjs'
import { Abort, job, millrace } from '../src/index.js'
import type { Mill, MillraceError } from '../src/index.js'
import { postgres } from '../src/postgres.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { startPostgres } from '../src/testing/postgres/start-postgres.js'

/** Wrong PostgreSQL servers, addresses and names. Real servers. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-postgres-bad-'))
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
  rmSync(folder, { recursive: true, force: true })
})

async function refusal(store: () => unknown): Promise<MillraceError> {
  const opened = await Promise.resolve()
    .then(() => millrace({ store: store() as string, logger: false }))
    .catch((error: unknown) => error as MillraceError)
  if (!(opened instanceof Error)) await opened.close()
  expect(opened).toBeInstanceOf(Error)
  return opened as MillraceError
}

/** The address of the database, changed. */
function address(change: Partial<Record<'username' | 'password' | 'port' | 'pathname' | 'hostname', string>>): string {
  return Object.assign(new URL(database.url), change).href
}

const name = (): string => decodeURIComponent(new URL(database.url).pathname.slice(1))
const setting = (change: string): Promise<unknown> => admin.query(`alter database "${name()}" ${change}`)

/** Calls until the ended connection is no longer used, and returns the result or the error. */
async function pastTheLoss(call: () => Promise<unknown>): Promise<unknown> {
  for (let left = 100; ; left -= 1) {
    const came = await call().catch((error: unknown) => error as MillraceError)
    if (left === 0 || !(came instanceof Error) || (came as MillraceError).code !== 'E_STORE_UNREACHABLE') return came
  }
}

/** The warnings that a mill logs when it is made. */
async function warnings(store: string): Promise<string[]> {
  const told: string[] = []
  const ignore = (): void => undefined
  const warn = (...parts: unknown[]): void => void told.push(parts.filter((part) => typeof part === 'string').join(' '))
  const mill = await millrace({ store, logger: { debug: ignore, info: ignore, warn, error: ignore } })
  await mill.close()
  return told
}

describe('a server', () => {
  test('that is read-only is refused before anything is written', async () => {
    await setting('set default_transaction_read_only = on')
    const error = await refusal(() => `${database.url}?schema=readonly`)
    await setting('reset default_transaction_read_only')
    expect(error.code).toBe('E_STORE_READ_ONLY')
    expect(error.message).toMatch(/is read-only \(default_transaction_read_only is on\); turn it off for this role/)
  })

  test('that becomes read-only refuses an enqueue by name, and accepts them again afterwards', async () => {
    const echo = job('echo', async (p: number) => p)
    const mill = await millrace({ store: database.url, jobs: [echo], logger: false })
    const reconnect = (): Promise<unknown> =>
      admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name = 'millrace'`,
        [name()],
      )
    await setting('set default_transaction_read_only = on')
    await reconnect()
    const error = await pastTheLoss(() => mill.enqueue(echo, 1))
    await setting('reset default_transaction_read_only')
    await reconnect()
    expect(error).toMatchObject({ code: 'E_STORE_READ_ONLY' })
    expect(await pastTheLoss(() => mill.enqueue(echo, 2))).toMatchObject({ isNew: true })
    await mill.close()
  })

  test('that may lose what it acknowledged causes a warning that names the setting', async () => {
    await using server = await startPostgres({ settings: { fsync: 'off', synchronous_commit: 'off' } })
    expect(await warnings(server.url)).toEqual([
      expect.stringMatching(/^postgres:\/\/127\.0\.0\.1:\d+\/postgres: synchronous_commit is off: /),
      expect.stringMatching(/^postgres:\/\/127\.0\.0\.1:\d+\/postgres: fsync is off: /),
    ])
  })

  test('that accepts no more connections is reported with what to do', async () => {
    const role = `${name()}_few`
    await admin.query(`create role ${role} login password 'few' connection limit 0`)
    const error = await refusal(() => address({ username: role, password: 'few' }))
    await admin.query(`drop role ${role}`)
    expect(error).toMatchObject({
      code: 'E_STORE_UNREACHABLE',
      message: expect.stringMatching(/too many connections.*; it takes no more connections: .*max_connections/),
    })
  })

  test('is not treated as unreachable because of the pool’s query_timeout', async () => {
    const pool = new Pool({ connectionString: database.url, query_timeout: 1 })
    const mill = await millrace({ store: postgres(pool, { schema: 'hasty' }), logger: false })
    expect(await first(mill.find())).toBeUndefined()
    await mill.close()
    await pool.end()
  })

  test('that flushes each commit causes no warning', async () => {
    await setting('set synchronous_commit = on')
    expect((await warnings(database.url)).filter((warning) => warning.includes('synchronous_commit'))).toEqual([])
    await setting('reset synchronous_commit')
  })
})

describe('a database', () => {
  test.each(['LATIN1', 'EUC_JP', 'SQL_ASCII'])(
    'in %s, which cannot hold every text, is refused before anything is written',
    async (encoding) => {
      const other = `${name()}_${encoding.toLowerCase()}`
      await admin.query(
        `create database ${other} encoding '${encoding}' lc_collate 'C' lc_ctype 'C' template template0`,
      )
      const error = await refusal(() => address({ pathname: `/${other}` }))
      await admin.query(`drop database ${other} with (force)`)
      expect(error).toMatchObject({
        code: 'E_STORE_ENCODING',
        message: expect.stringMatching(
          new RegExp(`"${other}" is in ${encoding} .* encoding 'UTF8' template template0`),
        ),
      })
    },
  )
})

describe('the address of a server', () => {
  test.each<[string, () => unknown, string, RegExp]>([
    [
      'a port where nothing listens',
      () => address({ port: '1' }),
      'E_STORE_UNREACHABLE',
      /ECONNREFUSED.*check that it runs/,
    ],
    [
      'a host that does not exist',
      () => address({ hostname: 'nowhere.invalid' }),
      'E_STORE_UNREACHABLE',
      /nowhere\.invalid/,
    ],
    [
      'a wrong password',
      () => address({ password: 'wrong-secret' }),
      'E_STORE_LOGIN',
      /check user and password of the URL/,
    ],
    ['no password', () => address({ password: '' }), 'E_STORE_LOGIN', /password must be a .*check user and password/],
    ['an unknown user', () => address({ username: 'nobody-we-know' }), 'E_STORE_LOGIN', /check user and password/],
    [
      'an unknown database',
      () => address({ pathname: '/nothing' }),
      'E_STORE_MISSING',
      /"nothing" does not exist; create it/,
    ],
    ['TLS that is not offered', () => `${database.url}?sslmode=require`, 'E_STORE_UNREACHABLE', /SSL.*; take sslmode/],
    [
      'a URL that cannot be read',
      () => 'postgres://u:wrong-secret#@h:port/x',
      'E_INVALID_OPTIONS',
      /URL that can be read.*%23/,
    ],
    ['an empty URL', () => 'postgres:', 'E_INVALID_OPTIONS', /must be a postgres:\/\/ URL/],
    [
      'another kind of URL',
      () => 'mysql://u:wrong-secret@h/x',
      'E_INVALID_OPTIONS',
      /must be a path or a postgres:\/\/ URL.*mysql: is no store of Millrace/,
    ],
    ...['"postgres://u:wrong-secret@h/x"', 'jdbc:postgresql://u:wrong-secret@h/x', 'u:wrong-secret@h/x'].map(
      (store): [string, () => unknown, string, RegExp] => [
        `what only looks like a URL, ${store.slice(0, 5)}…`,
        () => store,
        'E_INVALID_OPTIONS',
        /PostgreSQL’s begins with "postgres:\/\/".*\*\*\*/,
      ],
    ),
    [
      'a pool without a server',
      () => postgres(new Pool({ host: '127.0.0.1', port: 1 })),
      'E_STORE_UNREACHABLE',
      /127\.0\.0\.1:1/,
    ],
    ...['a,b', 'a:5432,b:5433', 'u:wrong-secret@a,b'].map((hosts): [string, () => unknown, string, RegExp] => [
      `several hosts, ${hosts.slice(-3)}`,
      () => `postgres://${hosts}/x`,
      'E_INVALID_OPTIONS',
      /must name one host, .*by DNS or a proxy/,
    ]),
    ['several hosts as a parameter', () => 'postgres:///x?host=a,b', 'E_INVALID_OPTIONS', /must name one host/],
    ['the pool itself', () => new Pool(), 'E_INVALID_OPTIONS', /store must be postgres\(pool\), .*got the pool itself/],
    ['a client', () => new Client(), 'E_INVALID_OPTIONS', /store must be .*postgres\(pool\), .*got one connection/],
    ['a URL object', () => new URL(address({ password: 'wrong-secret' })), 'E_INVALID_OPTIONS', /pass url\.href/],
    [
      'an object of settings',
      () => ({ url: address({}) }),
      'E_INVALID_OPTIONS',
      /must be the postgres:\/\/ URL itself/,
    ],
    ['a number as the store', () => 5, 'E_INVALID_OPTIONS', /sqlite\(…\) or postgres\(…\), got 5/],
    ['a number', () => postgres(5 as never), 'E_INVALID_OPTIONS', /must be a postgres:\/\/ URL or a pg\.Pool, got 5/],
  ])('with %s is refused in one sentence with the fix', async (_, store, code, message) => {
    const error = await refusal(store)
    expect(error.code).toBe(code)
    expect(error.message).toMatch(message)
    expect(error.message).not.toMatch(/\n|wrong-secret/)
    expect(error.message).not.toContain(new URL(database.url).password)
  })
})

test('a URL with surrounding white space is accepted', async () => {
  const mill = await millrace({ store: ` \n${database.url}\r\n`, logger: false })
  await mill.close()
  const { href } = new URL(database.url)
  await (await millrace({ store: postgres(`\n${href} `), logger: false })).close()
})

test('with tx every refusal rejects, and none is thrown', async () => {
  const echo = job('echo', async (p: number) => p)
  const hooks = { enqueue: (_: unknown, next: () => Promise<unknown>) => next() } as never
  for (const options of [{}, { hooks }]) {
    const mill = await millrace({ store: database.url, jobs: [echo], logger: false, ...options })
    const calls: (() => Promise<unknown>)[] = [
      () => mill.enqueue(echo, 1, { tx: 5 }),
      () => mill.enqueue(echo, 1, { tx: admin, priority: 'high' } as never),
      () => mill.enqueue('unknown', 1, { tx: admin }),
      () => mill.enqueueMany(echo, [1, 2], { tx: {} }),
      () => mill.schedule(echo, 1, 'never' as never, { tx: admin }),
      () => mill.enqueue(echo, 1, { tx: admin }),
    ]
    for (const call of calls) {
      const answer = call()
      await expect(answer).rejects.toMatchObject({ code: expect.stringMatching(/^E_(TX|INVALID|UNKNOWN)/) })
    }
    await mill.close()
  }
})

test.each([['PostgreSQL', () => database.url] as const, ['SQLite', () => join(folder, 'tx.db')] as const])(
  'a URL that is passed as tx is not shown with its password: %s',
  async (_, store) => {
    const echo = job('echo', async (p: number) => p)
    const mill = await millrace({ store: store(), jobs: [echo], logger: false })
    const tx = 'postgres://u:wrong-secret@h/x'
    const error = await (async () => mill.enqueue(echo, 1, { tx }))().catch(
      (thrown: unknown) => thrown as MillraceError,
    )
    await mill.close()
    expect(error).toMatchObject({ code: expect.stringMatching(/^E_/), message: expect.stringContaining('u:***@h') })
    expect((error as MillraceError).message).not.toContain('wrong-secret')
  },
)

test('a host that accepts connections and never replies is reported as unreachable', async () => {
  const silent = createServer(() => undefined)
  await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done))
  const { port } = silent.address() as AddressInfo
  const pool = new Pool({ host: '127.0.0.1', port, user: 'u', connectionTimeoutMillis: 100 })
  const error = await refusal(() => postgres(pool))
  silent.close()
  expect(error).toMatchObject({
    code: 'E_STORE_UNREACHABLE',
    message: expect.stringMatching(/timeout.*check that it runs/),
  })
})

/** A proxy to the server that changes the process id sent at login, as a pooler does. */
async function poolerBefore(url: string): Promise<{ url: string; close(): void }> {
  const target = new URL(url)
  const LOGIN = Buffer.from([0x4b, 0, 0, 0, 12]) // BackendKeyData, and its length.
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const behind = connect(Number(target.port), target.hostname)
    for (const socket of [client, behind])
      sockets.add(socket.on('error', () => [client, behind].map((each) => each.destroy())))
    client.pipe(behind)
    behind.on('end', () => client.end())
    behind.on('data', (data: Buffer) => {
      const at = data.indexOf(LOGIN)
      if (at >= 0) data.writeInt32BE(1 + data.readInt32BE(at + LOGIN.length), at + LOGIN.length)
      client.write(data)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: Object.assign(new URL(url), { hostname: '127.0.0.1', port: String((server.address() as AddressInfo).port) })
      .href,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

describe('a pooler', () => {
  test('is detected and logged, and work continues by polling', async () => {
    const pooler = await poolerBefore(database.url)
    const store = `${pooler.url}?schema=pooled`
    expect(await warnings(store)).toContainEqual(expect.stringMatching(/a connection pooler is in between/))
    const echo = job('echo', async (p: unknown) => p)
    const options = { store, jobs: [echo], poll: '50ms', logger: false } as const
    const [worker, producer] = [await millrace(options), await millrace(options)]
    await worker.start()
    const handle = await producer.enqueue(echo, 5)
    expect(await handle.result({ timeout: '30s' })).toBe(5)
    await Promise.all([worker.close(), producer.close()])
    pooler.close()
  })

  test('is not reported where there is none', async () => {
    expect((await warnings(`${database.url}?schema=pooled`)).filter((warning) => warning.includes('pooler'))).toEqual(
      [],
    )
  })
})

describe('the package pg', () => {
  test('is requested in one sentence where it is not installed, at start and by command', async () => {
    const built = await build()
    if (built.code !== 0) throw new Error(built.output)
    const modules = join(folder, 'without-pg', 'node_modules')
    mkdirSync(join(modules, 'millrace'), { recursive: true })
    for (const part of ['dist', 'package.json'])
      cpSync(join(root, part), join(modules, 'millrace', part), { recursive: true })
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }
    for (const name of Object.keys(dependencies))
      cpSync(join(root, 'node_modules', name), join(modules, name), { recursive: true })
    writeFileSync(
      join(modules, '..', 'app.mjs'),
      `import { millrace } from 'millrace'
       await millrace({ store: 'postgres://localhost/app' }).catch(({ code, message }) => console.log(code, message))`,
    )
    const app = await runNode(['app.mjs'], { cwd: join(modules, '..') })
    expect(app.output).toBe('E_NO_PG the package pg is not installed; run `npm install pg`\n')
    const command = join(modules, 'millrace', 'dist', 'cli', 'main.js')
    const migrate = await runNode([command, 'migrate', '--store', 'postgres://localhost/app'], { cwd: folder })
    expect(migrate).toMatchObject({
      code: 1,
      errors: 'millrace migrate: the package pg is not installed; run `npm install pg`\n',
    })
    const print = await runNode([command, 'migrate', '--print', '--store', 'postgres://localhost/app'], { cwd: folder })
    expect(print).toMatchObject({ code: 1, errors: expect.stringMatching(/npm install pg`; .*add --from 0\n$/) })
  })
})

/** Names that contain SQL statements. */
const HOSTILE = [
  `'; drop schema public cascade; --`,
  `"; drop schema public cascade; --`,
  `$1`,
  `$$; drop schema public cascade; $$`,
  `\\'; drop schema public cascade; --`,
  `%I %s {} \${s}`,
  `/* */ -- '' ""`,
  `Queue ٣ 🎉`,
]

const TROUBLE = 'a\u0000b\ud800c\udfffd'

describe('a schema', () => {
  test.each([
    '',
    'information_schema',
    'pg_jobs',
    'PG_jobs',
    'a\u0000b',
    'a\ud800b',
    'x'.repeat(64),
    'ß'.repeat(32),
    5,
    null,
    {},
  ])('of a name that PostgreSQL would refuse or cut is refused: %j', async (schema) => {
    const error = await refusal(() => postgres(database.url, { schema: schema as never }))
    expect(error).toMatchObject({
      code: 'E_INVALID_OPTIONS',
      message: expect.stringMatching(/^postgres\(\): options\.schema/),
    })
  })

  test('in the URL is checked like the option', async () => {
    const error = await refusal(() => `${database.url}?schema=pg_jobs`)
    expect(error).toMatchObject({ code: 'E_INVALID_OPTIONS', message: expect.stringContaining('"pg_"') })
  })

  test.each([...HOSTILE, 'x'.repeat(63), 'select', 'MixedCase', 'a.b', ' ', '\n--'])(
    'named %j is that schema and changes no SQL',
    async (schema) => {
      const echo = job('echo', async (p: unknown) => p)
      const mill = await millrace({ store: postgres(database.url, { schema }), jobs: [echo], logger: false })
      await mill.start()
      const handle = await mill.enqueue(echo, { schema }, { key: 'k' })
      expect(await handle.result({ timeout: '20s' })).toEqual({ schema })
      await mill.close()
      const { rows } = await admin.query(
        `select nspname from pg_class c join pg_namespace n on n.oid = relnamespace where relname = 'jobs' and nspname = $1`,
        [schema],
      )
      expect(rows).toEqual([{ nspname: schema }])
      const { rows: still } = await admin.query(`select from pg_namespace where nspname = 'public'`)
      expect(still).toHaveLength(1)
    },
  )

  test('does not see the jobs of another', async () => {
    const echo = job('echo', async (p: unknown) => p)
    const [one, other] = await Promise.all(
      ['one', 'One'].map((schema) =>
        millrace({ store: postgres(database.url, { schema }), jobs: [echo], logger: false }),
      ),
    )
    const { id } = await (one as Mill).enqueue(echo, 1)
    expect(await other?.get(id)).toBeUndefined()
    await Promise.all([one?.close(), other?.close()])
  })
})

async function first<T>(list: AsyncIterable<T>): Promise<T | undefined> {
  for await (const each of list) return each
  return undefined
}

/** The same calls on each store must leave the same records. */
const STORES: Readonly<Record<string, () => string>> = {
  SQLite: () => join(folder, 'same.db'),
  PostgreSQL: () => `${database.url}?schema=same`,
}

describe.each(Object.entries(STORES))('on %s', (_, store) => {
  test('hostile names of jobs, queues, keys and labels are stored as text', async () => {
    const jobs = HOSTILE.map((each) => job(each, async (p: unknown) => p))
    const mill = await millrace({
      store: store(),
      jobs,
      queues: Object.fromEntries(HOSTILE.map((each) => [each, 2])),
      logger: false,
    })
    await mill.start()
    for (const [i, text] of HOSTILE.entries()) {
      const options = {
        queue: text,
        key: text,
        labels: [text],
        title: text,
        meta: { [text]: text },
        unique: { by: () => text },
      }
      const handle = await mill.enqueue(jobs[i] as (typeof jobs)[0], { [text]: text }, options)
      expect(await handle.result({ timeout: '20s' })).toEqual({ [text]: text })
      const { unique: _unique, ...kept } = options
      expect(await handle.get()).toMatchObject({ ...kept, job: text })
      const found = []
      for await (const each of mill.find({ queue: text, label: text, job: text } as never)) found.push(each.id)
      expect(found).toEqual([handle.id])
      await mill.queue(text).pause()
      await mill.queue(text).resume()
    }
    await mill.close()
  })

  test.each(['a\u0000', '\ud800', '\udfff', 'a\nb'])(
    'names with %j are refused before anything is written',
    async (bad) => {
      const echo = job('echo', async (p: unknown) => p)
      const mill = await millrace({ store: store(), jobs: [echo], logger: false })
      const calls: (() => Promise<unknown>)[] = [
        () => mill.enqueue(echo, 1, { queue: bad }),
        () => mill.enqueue(echo, 1, { key: bad }),
        () => mill.enqueue(echo, 1, { labels: [bad] }),
        async () => job(bad, async () => 1),
        async () => mill.queue(bad).pause(),
        () => mill.unschedule(echo, bad),
        () => first(mill.find({ key: bad })),
        () => first(mill.find({ label: bad })),
        () => first(mill.find({ queue: bad })),
        () => first(mill.find({ job: bad })),
        () => first(mill.find({ job: ['fine', bad] })),
      ]
      for (const [i, call] of calls.entries()) {
        const error = await call().then(
          () => 'it was taken',
          (thrown: unknown) => thrown as MillraceError,
        )
        expect(error, `${i}`).toMatchObject({ code: expect.stringMatching(/^E_(INVALID_OPTIONS|DEFINITION)$/) })
      }
      await mill.close()
    },
  )

  test('NUL and lone surrogates are read back from every field that accepts text', async () => {
    const value = { [TROUBLE]: [TROUBLE, { deep: TROUBLE }] }
    const echo = job('echo', async (p: unknown) => p)
    const failing = job('failing', async (_p: undefined, ctx) => {
      ctx.log(TROUBLE, { t: TROUBLE })
      const error = new Error(TROUBLE, { cause: new Error(TROUBLE) })
      throw Object.assign(error, { name: TROUBLE, code: TROUBLE, stack: TROUBLE, extra: value })
    })
    const giving = job('giving-up', async () => {
      throw new Abort(TROUBLE)
    })
    const mill = await millrace({ store: store(), jobs: [echo, failing, giving], logger: false })
    await mill.start()
    const done = await mill.enqueue(echo, value, { title: TROUBLE, meta: value, unique: { by: () => TROUBLE } })
    expect(await done.result({ timeout: '20s' })).toEqual(value)
    expect(await done.get()).toMatchObject({ payload: value, result: value, title: TROUBLE, meta: value })
    const failed = await mill.enqueue(failing, undefined, { retry: { limit: 0 } })
    await failed.result({ timeout: '20s' }).catch(() => undefined)
    const record = await failed.get()
    expect(record).toMatchObject({ state: 'failed', error: { message: TROUBLE, cause: { message: TROUBLE } } })
    expect(record?.attempts[0]).toMatchObject({ error: { message: TROUBLE } })
    expect(record?.attempts[0]?.log?.[0]?.startsWith(TROUBLE)).toBe(true)
    const gaveUp = await mill.enqueue(giving)
    await gaveUp.result({ timeout: '20s' }).catch(() => undefined)
    expect(await gaveUp.get()).toMatchObject({ state: 'failed', error: { message: TROUBLE } })
    await mill.close()
  })
})
