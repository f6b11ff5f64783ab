import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { job, millrace, OutcomeUnknownError } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { postgres } from '../src/postgres.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { pgbouncer, startBouncer } from './postgres/pgbouncer.js'
import type { Bouncer } from './postgres/pgbouncer.js'

/** F1, D3: through a real PgBouncer in transaction mode, where it is installed. Elsewhere test/postgres-wake.test.ts uses a proxy that behaves like one. */
let database: Awaited<ReturnType<typeof freshDatabase>>
let bouncer: Bouncer
const mills = new Set<Mill>()

const runs = new Map<number, number>()
const warnings: string[] = []

async function open(options: { listen?: string; poll?: string } = {}): Promise<Mill> {
  const work = job('work', async (p: { n: number }) => {
    runs.set(p.n, (runs.get(p.n) ?? 0) + 1)
    await new Promise((next) => setTimeout(next, 5))
    return p.n
  })
  const tell = (_: object, text: string): void => void warnings.push(text)
  const logger = { debug() {}, info() {}, warn: tell, error: tell }
  const mill = await millrace({
    store: postgres(bouncer.url, { listen: options.listen }),
    jobs: { work },
    logger,
    poll: (options.poll ?? '200ms') as '200ms',
    lease: '3s',
    concurrency: 10,
  })
  mills.add(mill)
  return mill
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)
const untilRan = (numbers: readonly number[]): Promise<void> =>
  expect.poll(() => numbers.filter((n) => !runs.has(n)).length, { timeout: 20_000, interval: 20 }).toBe(0)

if (pgbouncer === undefined)
  test.skip(
    'PgBouncer is tested where pgbouncer is on the PATH, or MILLRACE_PGBOUNCER names it (test/postgres/pgbouncer.sh)',
  )

describe.runIf(pgbouncer !== undefined)('through PgBouncer in transaction mode', () => {
  beforeAll(async () => {
    database = await freshDatabase()
    bouncer = await startBouncer(pgbouncer as string, database.url)
  }, 60_000)
  afterEach(async () => {
    for (const mill of mills) await mill.close({ deadline: 500 })
    mills.clear()
    runs.clear()
    warnings.length = 0
  })
  afterAll(async () => {
    await bouncer?.end()
    await database?.drop()
  })

  test('a fleet with more connections than there are sessions runs every job once', { timeout: 60_000 }, async () => {
    const fleet = [await open(), await open(), await open()]
    expect(warnings.filter((text) => /pooler/.test(text))).toHaveLength(3)
    for (const mill of fleet) await mill.start()
    const [mill] = fleet as [Mill]
    const numbers = range(0, 400)
    await mill.enqueueMany(
      'work',
      range(0, 200).map((n) => ({ n })),
    )
    for (const n of range(200, 300)) await mill.enqueue('work', { n }, { key: `k${n}` })
    const client = new Client(bouncer.url)
    await client.connect()
    for (const n of range(300, 400)) {
      await client.query('begin')
      await mill.enqueue('work', { n }, { tx: client })
      await client.query('commit')
    }
    await client.end()
    await untilRan(numbers)
    const handle = await mill.enqueue('work', { n: 400 })
    expect(await handle.result({ timeout: '10s' })).toBe(400)
    expect([...runs.values()].filter((times) => times !== 1)).toEqual([])
    expect(warnings.filter((text) => !/pooler|fsync/.test(text))).toEqual([])
  })

  test('a pooler that crashes repeatedly loses nothing and doubles nothing', { timeout: 60_000 }, async () => {
    const mill = await open()
    await mill.start()
    const acked: number[] = []
    const codes = new Set<unknown>()
    let isOver = false
    const enqueuing = (async () => {
      for (let n = 0; !isOver; n += 1)
        await mill.enqueue('work', { n }).then(
          () => acked.push(n),
          (error: { code?: unknown }) => codes.add(error.code),
        )
    })()
    for (let round = 0; round < 5; round += 1) {
      const before = acked.length
      await expect.poll(() => acked.length).toBeGreaterThan(before + 50)
      await bouncer.restart()
    }
    isOver = true
    await enqueuing
    await untilRan(acked)
    expect([...codes].filter((code) => !['E_STORE_UNREACHABLE', 'E_OUTCOME_UNKNOWN'].includes(code as string))).toEqual(
      [],
    )
    expect([...runs.values()].filter((times) => times !== 1)).toEqual([])
  })

  test('with listen, what another mill enqueues starts long before the poll', { timeout: 60_000 }, async () => {
    const [worker, client] = [await open({ listen: database.url, poll: '5m' }), await open({ listen: database.url })]
    expect(warnings.filter((text) => /pooler|listen/.test(text))).toEqual([])
    await worker.start()
    for (const n of range(0, 30)) {
      await client.enqueue('work', { n })
      await untilRan([n])
    }
    expect(warnings.filter((text) => !/fsync/.test(text))).toEqual([])
  })

  test(
    'with a listen that cannot be reached, work continues by polling, and one line says so',
    { timeout: 60_000 },
    async () => {
      const nowhere = 'postgres://someone:secret@127.0.0.1:1/app'
      const worker = await open({ listen: nowhere })
      await worker.start()
      await worker.enqueueMany(
        'work',
        range(0, 20).map((n) => ({ n })),
      )
      await untilRan(range(0, 20))
      // The connection is retried every second, and not reported again.
      await new Promise((next) => setTimeout(next, 2_500))
      const lines = warnings.filter((text) => /listen/.test(text))
      expect(lines).toEqual([
        expect.stringMatching(/^listen: postgres:\/\/127\.0\.0\.1:1\/app cannot be reached: .*ECONNREFUSED/),
      ])
      expect(warnings.join()).not.toMatch(/secret/)
    },
  )

  test.each([
    [
      'another database',
      () => Object.assign(new URL(database.url), { pathname: '/postgres' }).href,
      /leads to another database/,
    ],
    ['the pooler', () => bouncer.url, /leads to a connection pooler as well/],
  ])('with a listen URL of %s, one line says so', { timeout: 60_000 }, async (_, where, line) => {
    const worker = await open({ listen: where() })
    await worker.start()
    await worker.enqueue('work', { n: 1 })
    await untilRan([1])
    await expect.poll(() => warnings.filter((text) => /listen/.test(text)), { timeout: 15_000 }).toHaveLength(1)
    expect(warnings.join()).toMatch(line)
  })

  test('an enqueue whose reply the pooler loses is unknown, and retry() converges', { timeout: 60_000 }, async () => {
    const mill = await open()
    const unknown: OutcomeUnknownError[] = []
    let [isOver, n] = [false, 0]
    const enqueuing = (async () => {
      while (!isOver)
        await mill.enqueue('work', { n: (n += 1) }).catch((error: unknown) => {
          if (error instanceof OutcomeUnknownError) unknown.push(error)
        })
    })()
    for (let round = 0; round < 20 && unknown.length < 3; round += 1) {
      await new Promise((next) => setTimeout(next, 100))
      await bouncer.restart()
    }
    isOver = true
    await enqueuing
    expect(unknown.length).toBeGreaterThan(0)
    const client = new Client(database.url)
    await client.connect()
    for (const error of unknown) {
      expect(await error.retry()).toMatchObject({ id: error.ids[0], isNew: true })
      const { rows } = await client.query('select ref from millrace.jobs where id = $1', [error.ids[0]])
      expect(rows).toHaveLength(1)
    }
    await client.end()
  })
})

test.each([
  ['no URL', 'db.example', /options\.listen must be the postgres:\/\/ URL of the server itself.*got "db\.example"/],
  ['a pool', {}, /options\.listen must be the postgres:\/\/ URL/],
  ['null', null, /options\.listen must be the postgres:\/\/ URL.*got null/],
  ['several hosts', 'postgres://u:secret@a,b/app', /options\.listen must name one host/],
  ['another schema', 'postgres://u:secret@a/app?schema=other', /options\.listen names the schema "other".*"millrace"/],
  ['a misspelt setting', 'postgres://u:secret@a/app?schem=x', /options\.listen has "schem"/],
])('listen is refused when it is %s, and no password is shown', (_, listen, message) => {
  const make = (): unknown => postgres('postgres://localhost/app', { listen: listen as string })
  expect(make).toThrow(message)
  expect(make).not.toThrow(/secret/)
})
