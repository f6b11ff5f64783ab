import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { freshDatabase } from '../src/testing/shared-postgres.js'
import { pgbouncer, startBouncer } from './postgres/pgbouncer.js'
import type { Bouncer } from './postgres/pgbouncer.js'

/** F1: through a real PgBouncer in transaction mode, where there is one. Elsewhere a stand-in serves: test/postgres-wake.test.ts. */
let database: Awaited<ReturnType<typeof freshDatabase>>
let bouncer: Bouncer
const mills = new Set<Mill>()

const runs = new Map<number, number>()
const warnings: string[] = []

async function open(): Promise<Mill> {
  const work = job('work', async (p: { n: number }) => {
    runs.set(p.n, (runs.get(p.n) ?? 0) + 1)
    await new Promise((next) => setTimeout(next, 5))
    return p.n
  })
  const tell = (_: object, text: string): void => void warnings.push(text)
  const logger = { debug() {}, info() {}, warn: tell, error: tell }
  const mill = await millrace({
    store: bouncer.url,
    jobs: { work },
    logger,
    poll: '200ms',
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
  test.skip('PgBouncer is tested where MILLRACE_PGBOUNCER names it, as test/postgres/pgbouncer.sh gets it')

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

  test('a fleet with more connections than there are sessions does every job once', { timeout: 60_000 }, async () => {
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

  test('a pooler that crashes again and again loses nothing and doubles nothing', { timeout: 60_000 }, async () => {
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
      await new Promise((next) => setTimeout(next, 500))
      await bouncer.restart()
    }
    isOver = true
    await enqueuing
    await untilRan(acked)
    expect(acked.length).toBeGreaterThan(50)
    expect([...codes].filter((code) => !['E_STORE_UNREACHABLE', 'E_OUTCOME_UNKNOWN'].includes(code as string))).toEqual(
      [],
    )
    expect([...runs.values()].filter((times) => times !== 1)).toEqual([])
  })
})
