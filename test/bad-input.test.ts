import { AsyncLocalStorage } from 'node:async_hooks'
import { createRequire } from 'node:module'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { codec, defaults, job, millrace, sqlite } from '../src/index.js'
import type { JobRecord, Mill, MillOptions, MillraceError, Problem } from '../src/index.js'
import { useProcesses } from './processes/child.js'
import { freshStore, onPostgres, passingStore } from './support/fresh-store.js'

/** Wrong input through the public API: it is refused before anything is written. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-bad-input-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const processes = useProcesses()

const MIB = 1024 * 1024
const TROUBLE = 'a\u0000b\ud800c\udfffd'

const send = job('send', async (p: { to: string }) => p.to)
const echo = job('echo', async (p: unknown) => p)
const positive = job('positive', { run: async (p: { n: number }) => p.n, accepts: (p) => p.n > 0 })
const checked = job('checked', {
  run: async (p: { to: string }) => p.to,
  input: {
    '~standard': {
      version: 1,
      vendor: 'us',
      validate: (value: unknown) =>
        typeof (value as { to?: unknown } | undefined)?.to === 'string'
          ? { value }
          : { issues: [{ message: 'must be an address', path: ['to'] }] },
    },
  },
} as never) as typeof send

/**
 * In memory each test has a new mill. On PostgreSQL one mill serves all tests and is emptied in between: opening one takes as
 * long as most of these tests.
 */
const home = passingStore()
let mill: Mill
const open = async (): Promise<void> => {
  mill = await millrace({ store: home, jobs: [send, echo, positive, checked], logger: false })
}
if (onPostgres) {
  beforeAll(open)
  const known = 4
  afterEach(async () => {
    await mill.stop()
    for (const { id } of await all()) await mill.delete(id)
    if (mill.jobs().length === known) return
    await mill.close()
    await open()
  })
  afterAll(() => mill.close())
} else {
  beforeEach(open)
  afterEach(() => mill.close())
}

type Refused = MillraceError & { readonly problems?: readonly Problem[] }

async function refused(work: () => unknown): Promise<Refused> {
  try {
    await work()
  } catch (error) {
    expect((error as Refused).code, String(error)).toMatch(/^E_/)
    return error as Refused
  }
  throw new Error('it was not refused')
}

async function all(from: Mill = mill): Promise<JobRecord[]> {
  const found: JobRecord[] = []
  for await (const each of from.find({ order: 'oldest' })) found.push(each)
  return found
}

/** Refused with this code, and the store is unchanged. */
async function refusedUnwritten(work: () => unknown, code: string): Promise<Refused> {
  const before = await all()
  const error = await refused(work)
  expect(error.code).toBe(code)
  expect(await all()).toEqual(before)
  return error
}

const paths = (error: Refused): (string | undefined)[] => (error.problems ?? []).map((p) => p.path)

const many = Array.from({ length: 17 }, (_, i) => [`store-${i}`, new AsyncLocalStorage()] as const)

describe('millrace()', () => {
  test.each<[string, object, RegExp]>([
    ['concurrency', { concurrency: 0 }, /concurrency must be a whole number from 1 to 100000, got 0/],
    ['concurrency', { concurrency: 1.5 }, /got 1\.5/],
    ['concurrency', { concurrency: '5' }, /got "5"/],
    ['queues', { queues: { mail: 0 } }, /queues\.mail must be a whole number .* got 0/],
    ['queues', { queues: [1] }, /queues must be an object of queue names/],
    [
      'queues',
      { queues: { mail: { concurency: 5 } } },
      /queues\.mail\.concurency is not an option; did you mean "concurrency"\?/,
    ],
    ['queues', { queues: { mail: {} } }, /queues\.mail must have concurrency, limit or rate, got \{\}/],
    [
      'queues',
      { queues: { mail: { concurrency: 1, rate: '10/s', bogus: 1 } } },
      /queues\.mail\.rate must be an object, got "10\/s"[\s\S]*queues\.mail\.bogus is not an option/,
    ],
    ['retry', { retry: 3 }, /retry must be an object, got 3; did you mean \{ limit: 3 \}\?/],
    ['connection', { connection: { host: 'x' } }, /connection is not an option; use store: a path/],
    ['poll', { poll: '1 second' }, /poll must be a duration/],
    ['poll', { poll: 1 }, /poll must be 10 ms or more, got 1/],
    ['lease', { lease: '1ms' }, /lease must be 500 ms or more/],
    ['crashBudget', { crashBudget: 0 }, /crashBudget must be a whole number/],
    ['retry', { retry: { limit: -1 } }, /retry\.limit must be/],
    ['retry', { retry: { backof: 'fixed' } }, /retry\.backof is not an option; did you mean "backoff"\?/],
    ['timeout', { timeout: '1M' }, /timeout must be a duration/],
    ['slowAfter', { slowAfter: -1 }, /slowAfter must be a duration/],
    ['keep', { keep: 'some' }, /keep must be a duration/],
    ['autoMigrate', { autoMigrate: 'yes' }, /autoMigrate must be true or false, got "yes"/],
    ['logger', { logger: 'loud' }, /logger must be false, a level, or a logger/],
    ['logger', { logger: { info: () => 1 } }, /debug, warn, error missing/],
    ['codec', { codec: {} }, /codec must be a codec with encode and decode/],
    ['unknown', { unknown: 'x' }, /unknown must be a function/],
    ['a typo', { concurency: 5 }, /concurency is not an option; did you mean "concurrency"\?/],
    ['capture', { capture: true }, /capture must be false or an object of AsyncLocalStorages by name.* got true/],
    ['capture', { capture: new AsyncLocalStorage() }, /capture must be false or an object .* got an AsyncLocalStorage/],
    ['capture', { capture: { tenant: 'acme' } }, /capture\.tenant must be an AsyncLocalStorage.* got "acme"/],
    ['capture', { capture: { tenant: true } }, /capture\.tenant must be an AsyncLocalStorage.* got true/],
    ['capture', { capture: { tenant: { getStore() {} } } }, /capture\.tenant must be .* getStore\(\) and run/],
    ['capture', { capture: { trace: 'on' } }, /capture\.trace must be .* or true or false, got "on"/],
    ['capture', { capture: { 'a\nb': new AsyncLocalStorage() } }, /capture\."a\\nb" must not have control characters/],
    ['capture', { capture: Object.fromEntries(many) }, /capture must be at most 16 stores, got 17/],
    ['hooks', { hooks: 5 }, /hooks must be an object, got 5/],
    ['hooks', { hooks: { strat() {} } }, /hooks\.strat is not an option; did you mean "start"\?/],
    ['hooks', { hooks: { settle: true } }, /hooks\.settle must be a function, got true/],
    ['hooks', { hooks: [{}, { enqueue: 'x' }] }, /hooks\[1\]\.enqueue must be a function, got "x"/],
    [
      'hooks',
      {
        hooks: new (class Mine {
          start = 5
          own = 1
        })(),
      },
      /hooks\.start must be a function, got 5$/,
    ],
    [
      'hooks',
      {
        hooks: new (class Mine {
          strat = () => 5
        })(),
      },
      /hooks\.strat is not an option; did you mean "start"\?/,
    ],
    ['hooks', { hooks: [null] }, /hooks\[0\] must be an object, got null/],
    ['hooks', { hooks: Array(17).fill({}) }, /hooks must be at most 16 objects of hooks, got 17/],
    ['a typo', { sotre: 'x' }, /sotre is not an option; did you mean "store"\?/],
  ])('refuses a wrong %s: %#', async (_, options, message) => {
    const error = await refused(() => millrace({ store: home, ...options }))
    expect(error.code).toBe('E_INVALID_OPTIONS')
    expect(error.message).toMatch(message)
  })

  test.each(['executor', 'partition'])('refuses %s by name, as not yet built', async (name) => {
    const error = await refused(() => millrace({ store: home, [name]: { some: 'thing' } }))
    expect(error.message).toContain(`${name} is not yet part of this version; until then: `)
  })

  test('accepts options that are not yet built at their only supported value', async () => {
    const same = { executor: 'loop' }
    const opened = await millrace({ store: home, logger: false, ...same } as MillOptions)
    await opened.close()
  })

  test('reports all problems in one error', async () => {
    const error = await refused(() =>
      millrace({
        store: home,
        concurrency: 0,
        poll: 'x',
        keep: { doen: '1d' },
        partition: () => 'a',
        lese: 1,
      } as never),
    )
    expect(paths(error)).toEqual(['concurrency', 'poll', 'keep.doen', 'partition', 'lese'])
    expect(error.message).toContain('5 problems')
  })

  // Otherwise it was accepted, and a running handler was logged as slow once a millisecond.
  test('refuses a slowAfter of nothing', async () => {
    await refused(async () => (await millrace({ store: home, slowAfter: 0, logger: false })).close())
  })

  // Otherwise store and jobs were checked one after the other, each with an error of its own.
  test('reports a wrong store and wrong jobs in the same error as the rest', async () => {
    const error = await refused(() => millrace({ store: 5, jobs: 'all', concurrency: 0 } as never))
    expect(error.message).toMatch(/concurrency/)
    expect(error.message).toMatch(/store/)
    expect(error.message).toMatch(/jobs/)
  })

  test.each([null, 5, 'app.db', []])('refuses options that are no object: %#', async (options) => {
    expect((await refused(() => millrace(options as never))).code).toBe('E_INVALID_OPTIONS')
  })

  test.each<[string, unknown]>([
    ['a number', 5],
    ['nothing', ''],
    ['a NUL', 'a\u0000b'],
    ['an object that is no handle', {}],
    ['true', true],
  ])('refuses a store that is %s', async (_, store) => {
    expect((await refused(() => millrace({ store: store as string, logger: false }))).code).toBe('E_INVALID_OPTIONS')
  })

  test.each([
    ['redis://localhost:6379', /redis: is no store of Millrace, which keeps jobs in a SQLite file or in PostgreSQL/],
    ['rediss://user:secret@host', /rediss: is no store/],
    ['redis:', /redis: is no store/],
    ['mongodb+srv://host/db', /mongodb\+srv: is no store/],
    ['file:jobs.db', /must be the path itself, got "file:jobs\.db"; did you mean "jobs\.db"\?/],
    ['sqlite://data/jobs.db', /did you mean "data\/jobs\.db"\?/],
  ])('refuses %s as a store, and says what to pass', async (store, message) => {
    const error = await refused(() => millrace({ store, logger: false }))
    expect(error.message).toMatch(message)
    expect(error.message).not.toContain('secret')
    expect(error.code).toBe('E_INVALID_OPTIONS')
  })

  // Otherwise null was ignored like undefined, and the jobs were written to ./millrace.db, which the caller did not choose.
  test('refuses a store that is null', async () => {
    const before = process.cwd()
    const somewhere = mkdtempSync(join(folder, 'null-'))
    process.chdir(somewhere)
    try {
      const error = await refused(async () => (await millrace({ store: null as never, logger: false })).close())
      expect(error.code).toBe('E_INVALID_OPTIONS')
    } finally {
      process.chdir(before)
    }
  })

  test('refuses wrong jobs before the file is created', async () => {
    const store = join(folder, 'never.db')
    for (const jobs of [null, 'send', [5], { send: () => 1 }, [send, job('send', async () => 2)]])
      expect((await refused(() => millrace({ store, jobs: jobs as never, logger: false }))).code).toBe('E_DEFINITION')
    expect(existsSync(store)).toBe(false)
  })

  test('refuses wrong options of sqlite()', async () => {
    expect((await refused(() => sqlite('x.db', { durability: 'none' as never }))).message).toContain(
      '"power" or "process"',
    )
    expect((await refused(() => sqlite('x.db', { durabilty: 'power' } as never))).message).toContain(
      'did you mean "durability"?',
    )
  })
})

describe('enqueue()', () => {
  const enqueue = (options: unknown, payload: unknown = { to: 'a' }) =>
    mill.enqueue(send, payload as never, options as never)

  test.each<[string, unknown, RegExp]>([
    ['title', { title: 5 }, /options\.title must be text/],
    ['labels', { labels: 'a' }, /options\.labels must be an array/],
    ['labels', { labels: ['a\u0000'] }, /control characters/],
    ['labels', { labels: ['\ud800'] }, /well-formed/],
    ['queue', { queue: '' }, /options\.queue must have 1 to 200 characters/],
    ['priority', { priority: 0.5 }, /options\.priority must be a whole number/],
    ['key', { key: 5 }, /options\.key must be text, got 5/],
    ['key', { key: 'a\u0000' }, /control characters/],
    ['key', { key: '\udfff' }, /well-formed/],
    ['onDuplicate', { key: 'k', onDuplicate: 'merge' }, /options\.onDuplicate must be/],
    ['onDuplicate', { onDuplicate: 'reject' }, /needs a key/],
    ['in', { in: '5 minutes' }, /options\.in must be a duration/],
    ['in', { in: '1M' }, /options\.in/],
    ['in', { in: 'P1M' }, /options\.in/],
    ['in', { in: 1e13 }, /did you mean a Date/],
    ['at', { at: '2026-11-01' }, /options\.at/],
    ['in and at', { in: '1s', at: new Date() }, /has both in and at/],
    ['retry', { retry: { when: () => true } }, /has a function, which cannot be stored/],
    ['timeout', { timeout: 'soon' }, /options\.timeout must be a duration/],
    ['expires', { expires: 'x' }, /options\.expires/],
    ['a typo', { lables: ['a'] }, /options\.lables is not an option; did you mean "labels"\?/],
    ['group', { group: '' }, /options\.group must have 1 to 200 characters, got 0/],
    ['after', { after: ['x', ['mail', 5]] }, /2 problems[^]*options\.after\[0\][^]*options\.after\[1\]/],
    ['onParentFailure', { onParentFailure: 'fail' }, /options\.onParentFailure must be "wait" or "cancel" or "run"/],
    ['unique', { unique: { by: [], for: 'x' } }, /2 problems[^]*options\.unique\.by[^]*options\.unique\.for/],
    ['tx', { tx: 'db' }, /options\.tx must be the handle/],
    ['null', null, /options must be an object, got null/],
    ['a number', 5, /options must be an object, got 5/],
  ])('refuses a wrong %s: %#', async (_, options, message) => {
    const error = await refusedUnwritten(() => enqueue(options), 'E_INVALID_OPTIONS')
    expect(error.message).toMatch(message)
    expect(error.message).toContain('job "send"')
  })

  test('reports all problems of options and payload in one error', async () => {
    const wrong = { titel: 'x', priority: 1.5, in: 'x', group: '' }
    const error = await refusedUnwritten(() => mill.enqueue(checked, {} as never, wrong as never), 'E_INVALID_OPTIONS')
    expect(paths(error)).toEqual(['options.titel', 'options.priority', 'options.in', 'options.group', 'payload.to'])
  })

  test('reports a payload that cannot be written in the same error as wrong options', async () => {
    const error = await refused(() => mill.enqueue(echo, { db: () => 1 }, { priority: 1.5 }))
    expect(error.message).toContain('options.priority')
    expect(error.message).toContain('payload.db')
  })

  test.each<[string, unknown, RegExp]>([
    ['a field that is missing', { by: 'cc' }, /payload\.cc is missing, and the job is unique by it/],
    ['a field of a missing field', { by: ['to', 'cc.name'] }, /payload\.cc\.name is missing/],
    ['an inherited field', { by: 'constructor' }, /payload\.constructor is missing/],
    ['a function that throws', { by: (p: { cc: { x: 1 } }) => p.cc.x }, /payload .*unique\.by threw Cannot read/],
    ['a function that returns nothing', { by: () => undefined }, /unique\.by returned undefined/],
    ['a function that returns a promise', { by: async () => 1 }, /unique\.by must be synchronous/],
    ['a function that returns a function', { by: () => () => 1 }, /what unique\.by returned is a function/],
  ])('refuses a job that is unique by %s', async (_, unique, message) => {
    const error = await refusedUnwritten(() => enqueue({ unique }), 'E_INVALID_PAYLOAD')
    expect(error.message).toMatch(message)
    const many = () => mill.enqueueMany(send, [{ to: 'a' }, { to: 'b' }], { unique } as never)
    expect(paths(await refusedUnwritten(many, 'E_INVALID_PAYLOAD'))[1]).toMatch(/^payloads\[1\]/)
  })

  test('refuses a payload that its schema or accepts refuses, with the path', async () => {
    const bySchema = await refusedUnwritten(() => mill.enqueue(checked, { to: 5 } as never), 'E_INVALID_PAYLOAD')
    expect(bySchema.problems).toEqual([{ path: 'payload.to', message: 'must be an address' }])
    const byAccepts = await refusedUnwritten(() => mill.enqueue(positive, { n: 0 }), 'E_INVALID_PAYLOAD')
    expect(byAccepts.message).toContain('accepts() returned false')
  })

  // Otherwise the error of the user's own check was thrown unwrapped, without the job's name and without a code.
  test('refuses a payload at which accepts throws', async () => {
    const error = await refused(() => mill.enqueue(positive, null as never))
    expect(error.code).toBe('E_INVALID_PAYLOAD')
    expect(paths(error)).toEqual(['payload'])
  })

  test('refuses a payload at which the job’s title throws', async () => {
    const titled = job('titled', { run: async (p: { to: string }) => p.to, title: (p) => p.to.toUpperCase() })
    expect((await refused(() => mill.enqueue(titled, {} as never))).message).toContain('job "titled"')
  })

  test.each<[string, unknown, string]>([
    ['a function', { a: { b: () => 1 } }, 'payload.a.b'],
    ['a symbol', [1, Symbol('x')], 'payload[1]'],
    ['an instance of a class', { conn: new (class Socket {})() }, 'payload.conn'],
    ['a promise', { p: Promise.resolve(1) }, 'payload.p'],
    ['a WeakMap', { deep: [{ w: new WeakMap() }] }, 'payload.deep[0].w'],
  ])('refuses a payload with %s, naming the path', async (_, payload, path) => {
    const error = await refusedUnwritten(() => mill.enqueue(echo, payload), 'E_INVALID_PAYLOAD')
    expect(paths(error)).toEqual([path])
  })

  test('refuses a payload that contains itself', async () => {
    const loop: Record<string, unknown> = {}
    loop['self'] = loop
    expect(paths(await refusedUnwritten(() => mill.enqueue(echo, loop), 'E_INVALID_PAYLOAD'))).toEqual(['payload.self'])
  })

  test('names the path of a meta that cannot be written, also in a bulk', async () => {
    const meta = (_: unknown, i: number): object => (i === 1 ? { meta: { fn: () => 1 } } : {})
    const error = await refusedUnwritten(() => mill.enqueueMany(echo, [1, 2], meta), 'E_INVALID_OPTIONS')
    expect(error.message).toContain('options[1].meta')
  })

  test.each<[unknown, string]>([
    [5, 'E_DEFINITION'],
    [null, 'E_DEFINITION'],
    [{}, 'E_DEFINITION'],
    [() => 1, 'E_DEFINITION'],
    ['sned', 'E_UNKNOWN_JOB'],
    ['', 'E_UNKNOWN_JOB'],
    ['constructor', 'E_UNKNOWN_JOB'],
    ['__proto__', 'E_UNKNOWN_JOB'],
  ])('refuses what is not a job: %#', async (given, code) => {
    await refusedUnwritten(() => mill.enqueue(given as never, { to: 'a' } as never), code)
  })

  test('suggests the nearest spelling of an unknown name', async () => {
    expect((await refused(() => mill.enqueue('sned'))).message).toContain('did you mean "send"?')
  })
})

describe('a payload’s size', () => {
  // JSON text of a string of n ASCII characters has n + 2 bytes.
  test.each([
    ['one less than the limit', 'x'.repeat(MIB - 3)],
    ['the limit', 'x'.repeat(MIB - 2)],
    ['the limit in letters of two bytes', 'ß'.repeat((MIB - 2) / 2)],
    ['the limit in letters of three bytes', `${'日'.repeat((MIB - 4) / 3)}xx`],
    ['the limit in letters of four bytes', `${'🎉'.repeat((MIB - 4) / 4)}xx`],
  ])('of %s is accepted and read back', async (_, payload) => {
    const handle = await mill.enqueue(echo, payload)
    expect((await handle.get())?.payload).toBe(payload)
  })

  test.each([
    ['one more than the limit', 'x'.repeat(MIB - 1), MIB + 1],
    ['one more in letters of two bytes', `${'ß'.repeat((MIB - 2) / 2)}x`, MIB + 1],
    ['one more in letters of four bytes', `${'🎉'.repeat((MIB - 4) / 4)}xxx`, MIB + 1],
    ['ten times the limit', 'x'.repeat(10 * MIB), 10 * MIB + 2],
  ])('of %s is refused with its size and advice', async (_, payload, bytes) => {
    const error = await refusedUnwritten(() => mill.enqueue(echo, payload), 'E_PAYLOAD_TOO_LARGE')
    expect(error.message).toContain(`${bytes} bytes`)
    expect(error.message).toContain(`${MIB}`)
    expect(error.message).toContain('reference')
    expect((error as unknown as { bytes: number }).bytes).toBe(bytes)
  })

  test('is the number of bytes that a binary codec writes', async () => {
    const raw = job('raw', {
      run: async (p: Uint8Array) => p.length,
      codec: codec({ encode: (value) => value as Uint8Array, decode: (bytes) => bytes }),
    })
    const handle = await mill.enqueue(raw, new Uint8Array(MIB))
    expect((await refused(() => mill.enqueue(raw, new Uint8Array(MIB + 1)))).code).toBe('E_PAYLOAD_TOO_LARGE')
    expect((await all()).map((each) => each.id)).toEqual([handle.id])
  })
})

test.each(['cancel', 'pause', 'resume', 'retry', 'delete'] as const)(
  '%s(id) commits by itself, so it refuses tx',
  async (verb) => {
    const { id } = await mill.enqueue(echo, 1)
    const error = await refused(() => (mill[verb] as (...args: unknown[]) => unknown)(id, { tx: {} }))
    expect([error.code, error.message]).toEqual([
      'E_INVALID_OPTIONS',
      expect.stringContaining(`${verb}(): options.tx is not an option; the command commits by itself`),
    ])
    expect((await mill.get(id))?.state).toBe('ready')
    expect(await Promise.all([id].map((...args: [string]) => mill.cancel(...args)))).toEqual([true])
  },
)

describe('what must be synchronous', () => {
  test('unique.by that returns a promise is refused by name, and its rejection does not end the process', async () => {
    const unique = { by: async () => Promise.reject(new Error('nobody’s')) } as never
    const error = await refusedUnwritten(() => mill.enqueue(echo, 1, { unique }), 'E_INVALID_PAYLOAD')
    expect(error.message).toContain('unique.by must be synchronous, and it returned a promise')
  })

  test('a captured storage that returns a promise is refused by name, and its rejection does not end the process', async () => {
    const user = {
      getStore: async () => Promise.reject(new Error('nobody’s')),
      run: (_: never, call: () => unknown) => call(),
    }
    const capturing = await millrace({ store: home, jobs: [echo], logger: false, capture: { user } })
    const error = await refused(() => capturing.enqueue(echo, 1))
    expect(error).toMatchObject({ code: 'E_INVALID_OPTIONS', problems: [{ path: 'captured.user' }] })
    expect(error.message).toContain('captured.user must be synchronous')
    await capturing.close()
  })
})

describe('enqueueMany()', () => {
  test('with one bad payload writes nothing and names its index', async () => {
    const payloads = Array.from({ length: 100 }, (_, i) => (i === 57 ? { to: 5 } : { to: 'a' }))
    const error = await refusedUnwritten(() => mill.enqueueMany(checked, payloads as never), 'E_INVALID_PAYLOAD')
    expect(paths(error)).toEqual(['payloads[57].to'])
  })

  test('with one payload that cannot be written names its index and the path in it', async () => {
    const error = await refusedUnwritten(() => mill.enqueueMany(echo, [1, { f: () => 1 }, 3]), 'E_INVALID_PAYLOAD')
    expect(paths(error)).toEqual(['payloads[1].f'])
  })

  test('with one payload too large names its index', async () => {
    const error = await refusedUnwritten(() => mill.enqueueMany(echo, [1, 2, 'x'.repeat(MIB)]), 'E_PAYLOAD_TOO_LARGE')
    expect(error.message).toContain('payloads[2]')
  })

  test('with one payload too large and one that cannot be written names both', async () => {
    const payloads = [{ f: () => 1 }, 'x'.repeat(MIB)]
    const error = await refusedUnwritten(() => mill.enqueueMany(echo, payloads), 'E_INVALID_PAYLOAD')
    expect(paths(error)).toEqual(['payloads[0].f', 'payloads[1]'])
  })

  test('with options that are wrong for one names its index', async () => {
    const error = await refusedUnwritten(
      () => mill.enqueueMany(echo, [1, 2, 3], (_, i) => ({ priority: i === 2 ? 0.5 : 1 })),
      'E_INVALID_OPTIONS',
    )
    expect(paths(error)).toEqual(['options[2].priority'])
  })

  test('whose options function throws writes nothing', async () => {
    const before = await all()
    const calling = mill.enqueueMany(echo, [1, 2], (_, i) => {
      if (i === 1) throw new RangeError('mine')
      return {}
    })
    await expect(calling).rejects.toThrow('mine')
    expect(await all()).toEqual(before)
  })

  test('whose options function is asynchronous is refused, and its rejection does not end the process', async () => {
    const optionsOf = (async () => Promise.reject(new Error('nobody’s'))) as never
    const error = await refusedUnwritten(() => mill.enqueueMany(echo, [1, 2], optionsOf), 'E_INVALID_OPTIONS')
    expect(paths(error)).toEqual(['options[0]', 'options[1]'])
  })

  test('with a key that is held and rejected names its index and writes nothing', async () => {
    const held = await mill.enqueue(echo, 0, { key: 'b' })
    const error = await refusedUnwritten(
      () =>
        mill.enqueueMany(echo, [1, 2, 3], (p) => ({ key: 'abc'[(p as number) - 1] as string, onDuplicate: 'reject' })),
      'E_DUPLICATE_KEY',
    )
    expect(error.message).toContain('item 1')
    expect((error as unknown as { existingId: string }).existingId).toBe(held.id)
  })

  test('with different policies for held keys is refused', async () => {
    const policies = ['return', 'replace'] as const
    const error = await refusedUnwritten(
      () => mill.enqueueMany(echo, [1, 2], (_, i) => ({ key: `k${i}`, onDuplicate: policies[i] })),
      'E_INVALID_OPTIONS',
    )
    expect(paths(error)).toEqual(['options[1].onDuplicate'])
  })

  test.each([undefined, null, 5, 'abc', {}, new Set([1])])(
    'refuses payloads that are no array: %#',
    async (payloads) => {
      const error = await refusedUnwritten(() => mill.enqueueMany(echo, payloads as never), 'E_INVALID_OPTIONS')
      expect(error.message).toMatch(/payloads must be an array/)
    },
  )

  test('of no payloads writes nothing and returns an empty list', async () => {
    expect(await mill.enqueueMany(echo, [])).toEqual([])
    expect(await all()).toEqual([])
  })

  test('with two bad items names both', async () => {
    const error = await refused(() => mill.enqueueMany(checked, [{ to: 1 }, { to: 'a' }, { to: 2 }] as never))
    expect(paths(error)).toEqual(['payloads[0].to', 'payloads[2].to'])
  })
})

describe('schedule()', () => {
  test.each<[unknown, RegExp]>([
    ['5 minutes', /when must be a duration/],
    ['1M', /when must be/],
    ['P1Y', /when must be/],
    [-5, /negative/],
    [NaN, /when must be/],
    [1e13, /did you mean a Date/],
    [new Date(NaN), /invalid/],
    ['2026-02-30T00:00:00Z', /no such day/],
    [null, /got null/],
    [undefined, /got undefined/],
    [{}, /when must be/],
    [new Date(8.64e15), /more than 100 years away/],
  ])('refuses an invalid time: %#', async (when, message) => {
    const error = await refusedUnwritten(() => mill.schedule(send, { to: 'a' }, when as never), 'E_INVALID_OPTIONS')
    expect(error.message).toMatch(message)
  })

  test('refuses a second time in the options', async () => {
    for (const options of [{ in: '1s' }, { at: new Date() }])
      expect(
        (await refusedUnwritten(() => mill.schedule(send, { to: 'a' }, '1h', options as never), 'E_INVALID_OPTIONS'))
          .message,
      ).toContain('the time is the third argument')
  })

  test('refuses wrong options and payloads like enqueue', async () => {
    await refusedUnwritten(() => mill.schedule(send, { to: 'a' }, '1h', { kye: 'x' } as never), 'E_INVALID_OPTIONS')
    await refusedUnwritten(() => mill.schedule(checked, {} as never, '1h'), 'E_INVALID_PAYLOAD')
  })

  test('reports a wrong time, wrong options and a wrong payload in one error', async () => {
    const error = await refused(() => mill.schedule(checked, {} as never, 'soon' as never, { kye: 'x' } as never))
    for (const part of ['when', 'options.kye', 'payload.to']) expect(error.message).toContain(part)
  })

  test.each([null, 5, true])('refuses options that are no object: %#', async (options) => {
    await refusedUnwritten(() => mill.schedule(send, { to: 'a' }, '1h', options as never), 'E_INVALID_OPTIONS')
  })

  test('unschedule refuses what is not a job and a key that is not text', async () => {
    expect((await refused(() => mill.unschedule('sned', 'k'))).code).toBe('E_UNKNOWN_JOB')
    expect((await refused(() => mill.unschedule(send as never, 5 as never))).code).toBe('E_INVALID_OPTIONS')
    expect(await mill.unschedule('send', 'nothing there')).toBe(false)
  })
})

describe('an id', () => {
  const texts = ['', 'x', 'nonsense', '0190-nope', "' or 1=1 --", '\u0000']
  const wrong: unknown[] = [5, null, undefined, {}]
  const verbs: [string, (id: never) => unknown][] = [
    ['get', (id) => mill.get(id)],
    ['cancel', (id) => mill.cancel(id)],
    ['pause', (id) => mill.pause(id)],
    ['resume', (id) => mill.resume(id)],
    ['retry', (id) => mill.retry(id)],
    ['delete', (id) => mill.delete(id)],
    ['edit', (id) => mill.edit(id, { priority: 1 })],
    ['handle', (id) => mill.handle(id)],
  ]

  test.each(verbs)('that is not text is refused by %s', async (_, verb) => {
    await mill.enqueue(send, { to: 'a' })
    for (const id of wrong) {
      const error = await refusedUnwritten(() => verb(id as never), 'E_INVALID_OPTIONS')
      expect(error.message).toContain("must be a job's id (a UUID)")
    }
  })

  test.each(verbs.slice(0, 7))('that is any other text is treated as unknown by %s', async (_, verb) => {
    await mill.enqueue(send, { to: 'a' })
    const before = await all()
    for (const id of texts) expect(await verb(id as never)).toBeOneOf([false, undefined])
    expect(await all()).toEqual(before)
  })

  test('that is any other text is refused by handle(): there is no job to wait for', async () => {
    for (const id of texts) expect((await refused(() => mill.handle(id))).code).toBe('E_INVALID_OPTIONS')
  })

  test('that is a handle is refused, and the error suggests handle.id', async () => {
    const handle = await mill.enqueue(send, { to: 'a' })
    expect((await refused(() => mill.get(handle as never))).message).toContain('pass handle.id')
  })

  test.each(verbs.slice(0, 5))('of no job changes nothing in %s', async (_, verb) => {
    const before = await all()
    expect(await verb('00000000-0000-7000-8000-000000000000' as never)).toBeOneOf([false, undefined])
    expect(await all()).toEqual(before)
  })
})

describe('edit(), find(), configure(), register(), run(), stop() and result()', () => {
  let id: string
  beforeEach(async () => {
    id = (await mill.enqueue(checked, { to: 'a' })).id
  })

  test.each<[object, string]>([
    [{ priorty: 1 }, 'priorty'],
    [{ priority: 0.5 }, 'priority'],
    [{ in: 'x' }, 'in'],
    [{ key: 'k' }, 'key'],
    [{ expires: '1h' }, 'expires'],
    [{ onDuplicate: 'reject', key: 'k' }, 'onDuplicate'],
    [{ group: 'g' }, 'group'],
  ])('edit refuses %j', async (change, path) => {
    const error = await refusedUnwritten(() => mill.edit(id, change), 'E_INVALID_OPTIONS')
    expect(paths(error)).toContain(path)
  })

  test('edit refuses a payload that does not fit or cannot be written', async () => {
    await refusedUnwritten(() => mill.edit(id, { payload: { to: 5 } }), 'E_INVALID_PAYLOAD')
    const other = await mill.enqueue(echo, 1)
    await refusedUnwritten(() => mill.edit(other.id, { payload: () => 1 }), 'E_INVALID_PAYLOAD')
    await refusedUnwritten(() => mill.edit(other.id, { payload: 'x'.repeat(MIB) }), 'E_PAYLOAD_TOO_LARGE')
  })

  test('edit refuses what is not a change', async () => {
    for (const change of [null, undefined, 5, 'x'])
      await refusedUnwritten(() => mill.edit(id, change as never), 'E_INVALID_OPTIONS')
  })

  test('edit refuses an array, also an empty one', async () => {
    await refusedUnwritten(() => mill.edit(id, [] as never), 'E_INVALID_OPTIONS')
  })

  test('edit refuses a meta that cannot be written as wrong options', async () => {
    await refusedUnwritten(() => mill.edit(id, { meta: () => 1 }), 'E_INVALID_OPTIONS')
  })

  test.each<[object, string]>([
    [{ sate: 'ready' }, 'sate is not an option; did you mean "state"?'],
    [{ state: 'sleeping' }, 'state must be one of'],
    [{ state: ['ready', 'nope'] }, 'state must be one of'],
    [{ queue: 5 }, 'queue must be text'],
    [{ label: '' }, 'label must have'],
    [{ key: 5 }, 'key must be text'],
    [{ createdAfter: 'yesterday' }, 'createdAfter must be an instant such as a Date'],
    [{ createdBefore: new Date(NaN) }, 'createdBefore must be an instant such as a Date'],
    [{ order: 'random' }, 'order must be "newest" or "oldest"'],
    [{ limit: -1 }, 'limit must be a whole number'],
    [{ group: 5 }, 'group must be text'],
  ])('find refuses %j', async (filter, message) => {
    const error = await refused(async () => {
      for await (const _ of mill.find(filter)) throw new Error('it found something')
    })
    expect(error.message).toContain(message)
  })

  test('find reports all problems at once', async () => {
    const error = await refused(() => mill.find({ sate: 1, limit: -1, order: 'x' } as never).next())
    expect(paths(error)).toEqual(['sate', 'limit', 'order'])
  })

  test('find refuses what is not a job', async () => {
    expect((await refused(() => mill.find({ job: 5 as never }).next())).code).toBe('E_DEFINITION')
  })

  test('configure refuses wrong options and options that need a new mill, and says so', async () => {
    expect((await refused(() => mill.configure({ concurrency: 0 }))).message).toContain('concurrency must be')
    expect((await refused(() => mill.configure({ concurrrency: 1 } as never))).message).toContain('did you mean')
    const fixed = await refused(() => mill.configure({ store: 'x', lease: '5s' } as never))
    expect(paths(fixed)).toEqual(['store', 'lease'])
    expect(fixed.message).toContain('make a new one')
    expect((await refused(() => mill.configure(null as never))).code).toBe('E_INVALID_OPTIONS')
  })

  test('register refuses what is not a job and a name that is in use', async () => {
    expect((await refused(() => mill.register((() => 1) as never))).code).toBe('E_DEFINITION')
    expect((await refused(() => mill.register(job('send', async () => 'other')))).message).toContain(
      'two different jobs are named "send"',
    )
  })

  test('run refuses a name it does not know and a payload that does not fit', async () => {
    expect((await refused(() => mill.run('sned'))).message).toContain('did you mean "send"?')
    expect((await refused(() => mill.run('checked', { to: 5 }))).code).toBe('E_INVALID_PAYLOAD')
    expect(mill.has('sned')).toBe(false)
  })

  test('stop and close refuse an invalid deadline', async () => {
    expect((await refused(() => mill.stop({ deadline: 'soon' as never }))).message).toContain(
      'deadline must be a duration',
    )
    expect((await refused(() => mill.close({ deadline: -1 }))).message).toContain('deadline must be a duration')
  })

  // Otherwise a misspelt name, or the time without its object, was ignored and the default of 30 s was used.
  test.each<unknown>([{ deadlin: '1s' }, '1s', 5])('stop refuses options it does not know: %#', async (options) => {
    await refused(() => mill.stop(options as never))
  })

  test('result refuses an invalid timeout', async () => {
    expect((await refused(() => mill.handle(id).result({ timeout: 'soon' as never }))).message).toContain(
      'timeout must be',
    )
  })

  test('result refuses options it does not know', async () => {
    await mill.start()
    await refused(() => mill.handle(id).result({ timout: '1m' } as never))
  })

  test.each<unknown>(['', 5, null, undefined, 'a\nb', 'q'.repeat(201), {}])(
    'queue refuses the name %j',
    async (name) => {
      expect((await refused(() => mill.queue(name as never))).message).toMatch(/^queue\(\): name must/)
    },
  )

  test.each<unknown>([undefined, null, '', 'soon', -1, NaN, Infinity, new Date(NaN), '1 month', {}, Date.now()])(
    'pauseUntil refuses %s, and pauses nothing',
    async (when) => {
      const error = await refused(() => mill.queue('mail').pauseUntil(when as never))
      expect(error.message).toMatch(/^queue "mail"\.pauseUntil\(\): when must be a duration .* or an instant/)
      expect((await mill.queue('mail').get()).paused).toBe(false)
    },
  )

  test('pauseUntil says what to call when there is no end', async () => {
    expect((await refused(() => mill.queue('mail').pauseUntil(Infinity))).message).toContain('call pause()')
  })
})

describe('NUL and lone surrogates', () => {
  test('round-trip in a payload, a result, a title, meta and keys of objects', async () => {
    await mill.start()
    const value = { [TROUBLE]: [TROUBLE, { deep: TROUBLE }], text: TROUBLE }
    const handle = await mill.enqueue(echo, value, { title: TROUBLE, meta: value })
    expect(await handle.result()).toEqual(value)
    expect(await handle.get()).toMatchObject({ payload: value, result: value, title: TROUBLE, meta: value })
  })

  test('in a title do not prevent that its labels are found and its unique slot is freed', async () => {
    const options = { title: TROUBLE, meta: TROUBLE, labels: ['odd-title'], unique: { by: 'n' } } as const
    const first = await mill.enqueue(echo, { n: 1 }, { ...options, in: '1h' })
    const found = []
    for await (const each of mill.find({ label: 'odd-title', job: echo })) found.push(each.id)
    expect(found).toEqual([first.id])
    expect(await first.cancel()).toBe(true)
    expect(await mill.enqueue(echo, { n: 1 }, { ...options, in: '1h' })).toMatchObject({ isNew: true })
  })

  test('round-trip in an error’s message and in what was logged', async () => {
    const failing = job('failing', async (_: undefined, ctx) => {
      ctx.log(TROUBLE, { t: TROUBLE })
      throw new Error(TROUBLE, { cause: new Error(TROUBLE) })
    })
    mill.register(failing)
    await mill.start()
    const handle = await mill.enqueue(failing, undefined, { retry: { limit: 0 } })
    const error = (await handle.result().catch((thrown: unknown) => thrown)) as Error
    expect((error.cause as Error).message).toBe(TROUBLE)
    const record = await handle.get()
    expect(record?.error).toMatchObject({ message: TROUBLE, cause: { message: TROUBLE } })
    expect(record?.attempts[0]).toMatchObject({ error: { message: TROUBLE } })
    expect(record?.attempts[0]?.log?.[0]?.startsWith(TROUBLE)).toBe(true)
  })

  test('are read back by the next process', async () => {
    const store = freshStore(folder)
    const first = await millrace({ store, jobs: [echo], logger: false })
    const { id } = await first.enqueue(echo, { a: TROUBLE }, { title: TROUBLE, meta: TROUBLE })
    await first.close()
    const second = await millrace({ store, jobs: [echo], logger: false })
    await second.start()
    expect(await second.handle(id).result()).toEqual({ a: TROUBLE })
    expect(await second.get(id)).toMatchObject({ title: TROUBLE, meta: TROUBLE, payload: { a: TROUBLE } })
    await second.close()
  })

  test('in a job’s name, a queue and a label are refused, since they are names', async () => {
    for (const bad of ['a\u0000', '\ud800', 'a\nb', '\u001b[2J']) {
      await refused(() => job(bad, async () => 1))
      await refusedUnwritten(() => mill.enqueue(echo, 1, { queue: bad }), 'E_INVALID_OPTIONS')
      await refusedUnwritten(() => mill.enqueue(echo, 1, { labels: [bad] }), 'E_INVALID_OPTIONS')
    }
  })
})

describe('what a handler returns', () => {
  beforeEach(() => mill.start())

  test('an error message of 10 MiB is cut, says so, and the job settles', async () => {
    const shouting = job('shouting', async () => {
      throw new Error('x'.repeat(10 * MIB))
    })
    mill.register(shouting)
    const handle = await mill.enqueue(shouting, undefined, { retry: { limit: 0 } })
    await expect(handle.result()).rejects.toMatchObject({ code: 'E_JOB_FAILED' })
    const record = await handle.get()
    expect(record?.state).toBe('failed')
    expect(record?.error?.message.length).toBeLessThan(70_000)
    expect(record?.error?.message).toMatch(/more characters\]$/)
  })

  test.each<[string, unknown]>([
    ['a function', () => 1],
    ['a class instance', new (class Socket {})()],
    ['a text of 2 MiB', 'x'.repeat(2 * MIB)],
  ])('%s that cannot be kept is still a success, and the record says why', async (_, value) => {
    const giving = job('giving', async () => value)
    mill.register(giving)
    const handle = await mill.enqueue(giving)
    expect(await handle.result()).toBeUndefined()
    const record = await handle.get()
    expect(record).toMatchObject({ state: 'done', result: undefined, attempt: 1 })
    expect(record?.reason).toMatch(/^the result is not kept: /)
  })

  test('log lines are bounded, in number and in length', async () => {
    const chatty = job('chatty', async (_: undefined, ctx) => {
      ctx.log('x'.repeat(10_000))
      for (let i = 0; i < 1_000; i += 1) ctx.log(`line ${i}`)
    })
    mill.register(chatty)
    const handle = await mill.enqueue(chatty)
    await handle.result()
    const log = (await handle.get())?.attempts[0]?.log ?? []
    expect(log).toHaveLength(101)
    expect(log[0]).toHaveLength(2_000)
    expect(log[100]).toContain('more lines were logged')
  })

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a text', 'just text'],
    ['a number', 5],
    ['a symbol', Symbol('s')],
    ['an object without a prototype', Object.create(null)],
    [
      'a proxy that throws',
      new Proxy({}, { get: () => JSON.parse('{') as never, getPrototypeOf: () => JSON.parse('{') as never }),
    ],
  ])('throwing %s fails the attempt and nothing else', async (_, thrown) => {
    const odd = job('odd', async () => {
      throw thrown
    })
    mill.register(odd)
    const handle = await mill.enqueue(odd, undefined, { retry: { limit: 0 } })
    await expect(handle.result()).rejects.toMatchObject({ code: 'E_JOB_FAILED' })
    expect((await handle.get())?.error?.name).toEqual(expect.any(String))
    expect(await (await mill.enqueue(send, { to: 'still here' })).result()).toBe('still here')
  })
})

describe('hostile names', () => {
  const hostile = [
    "'; drop table millrace_jobs; --",
    '" or ""="',
    '$1',
    '?1',
    ':name',
    '%s%n',
    '../../etc/passwd',
    '<script>',
    '__proto__',
    '{to}',
    '日本🎉',
  ]

  test('in queue, key, label and the job’s name change no SQL, and are found again', async () => {
    const bystander = await mill.enqueue(send, { to: 'bystander' }, { key: 'k', labels: ['l'], queue: 'q' })
    await mill.start()
    await bystander.result()
    for (const name of hostile) {
      const named = job(name, async (p: { n: number }) => p.n)
      mill.register(named)
      const handle = await mill.enqueue(named, { n: 1 }, { queue: name, key: name, labels: [name], title: name })
      expect(await handle.result()).toBe(1)
      const found: JobRecord[] = []
      for await (const each of mill.find({ job: name, queue: name, key: name, label: name })) found.push(each)
      expect(found.map((each) => each.id)).toEqual([handle.id])
      expect(found[0]).toMatchObject({ job: name, queue: name, key: name, labels: [name] })
      expect(await mill.unschedule(name, name)).toBe(false)
    }
    expect((await all()).length).toBe(hostile.length + 1)
    expect(await bystander.get()).toMatchObject({ state: 'done', payload: { to: 'bystander' } })
  })
})

describe('in production', () => {
  test('a store must be chosen, and none is created', async () => {
    const child = processes().run(`
      process.chdir(${JSON.stringify(processes().folder)})
      process.env.NODE_ENV = 'production'
      delete process.env.MILLRACE_STORE
      const error = await millrace({ logger: false }).catch((thrown) => thrown)
      say('refused', { code: error.code, message: error.message })
      process.env.MILLRACE_STORE = file
      const mill = await millrace({ logger: false })
      await mill.close()
      say('chosen')`)
    expect(await child.receives('refused')).toMatchObject({
      code: 'E_INVALID_OPTIONS',
      message: expect.stringMatching(/store must be chosen when NODE_ENV is production/) as string,
    })
    await child.receives('chosen')
    expect(readdirSync(processes().folder)).not.toContain('millrace.db')
    if (!onPostgres) expect(readdirSync(processes().folder)).toContain('jobs.db')
  })
})

describe.skipIf(onPostgres)('a second process with an old SQLite', () => {
  test('is refused while the first process has the file open, and accepted when that has ended', async () => {
    const libsql = createRequire(import.meta.url).resolve('libsql')
    const program = `
      import { createRequire } from 'node:module'
      const Database = createRequire(import.meta.url)(${JSON.stringify(libsql)})
      const opened = await millrace({ store: sqlite(new Database(file)), logger: false }).catch((error) => error)
      say(opened.code ?? 'opened', { message: opened.message })
      setInterval(() => {}, 1000)`
    const first = processes().run(program)
    await first.receives('opened')
    const second = processes().run(program)
    expect((await second.receives('E_OLD_SQLITE'))['message']).toContain(`process ${first.process.pid}`)
    await first.kill()
    await processes().run(program).receives('opened')
  })
})

test.skipIf(!existsSync(new URL('../docs/options.md', import.meta.url)))('docs/options.md has every default', () => {
  const text = readFileSync(new URL('../docs/options.md', import.meta.url), 'utf8')
  for (const [name, value] of Object.entries(defaults)) {
    const row = text.split('\n').find((line) => line.includes(`\`${name}\``))
    expect(row, `${name} is in docs/options.md`).toBeDefined()
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      expect(row, `${name} has its default`).toContain(String(value).replace(/^(.*)$/, '$1'))
  }
})
