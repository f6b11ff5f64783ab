import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill, OutcomeUnknownError } from '../src/index.js'
import { startProxy } from './postgres/proxy.js'
import type { Proxy } from './postgres/proxy.js'
import { startRestartable } from './postgres/restartable.js'
import type { Restartable } from './postgres/restartable.js'

/** F1, L4, D1, D2, D6: the server stops and starts, and connections die with and without an error. */
let server: Restartable
let stray: unknown[] = []
const strayed = (error: unknown): void => void stray.push(error)
beforeAll(async () => {
  server = await startRestartable()
  process.on('unhandledRejection', strayed)
  process.on('uncaughtException', strayed)
}, 60_000)
afterAll(async () => {
  process.off('unhandledRejection', strayed)
  process.off('uncaughtException', strayed)
  await server?.end()
})

const open = new Set<Mill>()
const proxies = new Set<Proxy>()
afterEach(async () => {
  for (const mill of open) await mill.close({ deadline: 0 })
  for (const proxy of proxies) await proxy.close()
  open.clear()
  proxies.clear()
  const seen = stray
  stray = []
  expect(seen).toEqual([])
})

let schemas = 0
const newStore = (url = server.url): string => `${url}?schema=outage_${(schemas += 1)}`

async function proxied(): Promise<Proxy> {
  const proxy = await startProxy(server.url)
  proxies.add(proxy)
  return proxy
}

interface Notes {
  readonly runs: Map<number, number>
  readonly lost: string[]
}

async function worker(store: string, notes: Notes, holdMs = 5, options: object = {}): Promise<Mill> {
  const work = job('work', async (p: { n: number }) => {
    notes.runs.set(p.n, (notes.runs.get(p.n) ?? 0) + 1)
    await new Promise((next) => setTimeout(next, holdMs))
  })
  const logger = { debug() {}, info() {}, error() {}, warn: (_: object, text: string) => void notes.lost.push(text) }
  const mill = await millrace({
    store,
    jobs: { work },
    logger,
    poll: '500ms',
    lease: '3s',
    concurrency: 10,
    ...options,
  })
  open.add(mill)
  return mill
}

const newNotes = (): Notes => ({ runs: new Map(), lost: [] })
const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms))
const isLost = (text: string): boolean => /lost|dead|rescued/.test(text)

async function ask(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new Client(server.url)
  await client.connect()
  const { rows } = await client.query(text, values)
  await client.end()
  return rows as Record<string, unknown>[]
}

/** Enqueues one after the other until `isOver`; returns what was acknowledged, and the error codes of the rest. */
function enqueueUntil(mill: Mill, isOver: () => boolean): Promise<{ acked: Set<number>; codes: Set<string> }> {
  const acked = new Set<number>()
  const codes = new Set<string>()
  let n = 0
  const one = async (): Promise<void> => {
    while (!isOver()) {
      const mine = (n += 1)
      await mill.enqueue('work', { n: mine }).then(
        () => acked.add(mine),
        (error: { code?: string }) => codes.add(error.code ?? 'no code'),
      )
      await pause(2)
    }
  }
  return Promise.all(Array.from({ length: 4 }, one)).then(() => ({ acked, codes }))
}

async function untilDone(store: string, acked: ReadonlySet<number>, notes: Notes): Promise<void> {
  await expect
    .poll(() => [...acked].filter((n) => !notes.runs.has(n)).length, { timeout: 20_000, interval: 50 })
    .toBe(0)
  const schema = new URL(store).searchParams.get('schema') as string
  await expect
    .poll(
      async () =>
        Number(
          (
            await ask(`select (select count(*) from ${schema}.jobs) - (select count(*) from ${schema}.history) as left`)
          )[0]?.['left'],
        ),
      { timeout: 20_000 },
    )
    .toBe(0)
}

describe('a server that crashes under load', () => {
  test('loses nothing that was acknowledged, and work resumes within seconds', { timeout: 90_000 }, async () => {
    const store = newStore()
    const notes = newNotes()
    const mill = await worker(store, notes)
    await mill.start()
    let isOver = false
    const enqueued = enqueueUntil(mill, () => isOver)
    const resumed: number[] = []
    for (let round = 0; round < 3; round += 1) {
      await pause(700)
      await server.crash()
      await pause(500)
      const before = notes.runs.size
      await server.start()
      const upAt = Date.now()
      await expect.poll(() => notes.runs.size, { timeout: 15_000, interval: 10 }).toBeGreaterThan(before + 5)
      resumed.push(Date.now() - upAt)
    }
    isOver = true
    const { acked, codes } = await enqueued
    expect(acked.size).toBeGreaterThan(100)
    expect([...codes].filter((code) => !['E_STORE_UNREACHABLE', 'E_OUTCOME_UNKNOWN'].includes(code))).toEqual([])
    await untilDone(store, acked, notes)
    console.log(`resumed after ${resumed.join(', ')} ms; ${acked.size} acknowledged`)
    for (const ms of resumed) expect(ms).toBeLessThan(12_000)
  })

  test('for longer than two leases rescues nothing that still runs', { timeout: 90_000 }, async () => {
    const store = newStore()
    const notes = newNotes()
    const options = { lease: '2s' }
    const [first, second] = [await worker(store, notes, 9_000, options), await worker(store, notes, 9_000, options)]
    await first.start()
    await second.start()
    await first.enqueueMany(
      'work',
      Array.from({ length: 20 }, (_, n) => ({ n })),
    )
    await expect.poll(() => notes.runs.size, { timeout: 15_000 }).toBe(20)
    await pause(1_500) // A claim is flushed by the server within its own time; a crash before would undo it.
    await server.crash()
    await pause(5_000)
    await server.start()
    await untilDone(store, new Set(Array.from({ length: 20 }, (_, n) => n)), notes)
    expect([...notes.runs.values()].filter((runs) => runs !== 1)).toEqual([])
    expect(notes.lost.filter(isLost)).toEqual([])
  })

  test('is reported to callers at once, also during a first connection', { timeout: 60_000 }, async () => {
    const store = newStore()
    const mill = await worker(store, newNotes())
    await server.crash()
    try {
      await expect(mill.enqueue('work', { n: 1 })).rejects.toMatchObject({ code: 'E_STORE_UNREACHABLE' })
      await expect(mill.get('0198a000-0000-7000-8000-000000000001')).rejects.toMatchObject({
        code: 'E_STORE_UNREACHABLE',
      })
      await expect(millrace({ store: newStore(), logger: false })).rejects.toMatchObject({
        code: 'E_STORE_UNREACHABLE',
      })
    } finally {
      await server.start()
    }
    await mill.enqueue('work', { n: 2 })
  })

  test('does not keep a mill from closing, and the mill does not reconnect', { timeout: 60_000 }, async () => {
    const store = newStore()
    const mill = await worker(store, newNotes(), 60_000)
    await mill.start()
    await mill.enqueueMany(
      'work',
      Array.from({ length: 20 }, (_, n) => ({ n })),
    )
    await pause(300)
    await server.crash()
    const before = Date.now()
    await mill.close({ deadline: 500 })
    const tookMs = Date.now() - before
    await server.start()
    expect(tookMs).toBeLessThan(12_000)
    await pause(1_500)
    expect(await ask(`select pid from pg_stat_activity where application_name = 'millrace'`)).toEqual([])
  })
})

test('repeatedly ended connections cause no hot loop, and all work continues', { timeout: 60_000 }, async () => {
  const store = newStore()
  const notes = newNotes()
  const mill = await worker(store, notes)
  await mill.start()
  let isOver = false
  const enqueued = enqueueUntil(mill, () => isOver)
  const killer = new Client(server.url)
  await killer.connect()
  const [cpu, began] = [process.cpuUsage(), Date.now()]
  let ended = 0
  while (Date.now() - began < 4_000) {
    const { rows } = await killer.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millrace'`,
    )
    ended += rows.length
    await pause(20)
  }
  const { user, system } = process.cpuUsage(cpu)
  isOver = true
  const { acked } = await enqueued
  await untilDone(store, acked, notes)
  const { rows } = await killer.query(`select pid from pg_stat_activity where application_name = 'millrace'`)
  await killer.end()
  console.log(
    `${ended} connections ended in 4 s, ${Math.round((user + system) / 40_000)} % of a core, ${acked.size} acknowledged`,
  )
  expect(rows.length).toBeLessThanOrEqual(3)
  expect((user + system) / 4_000_000).toBeLessThan(0.9)
})

describe('a connection', () => {
  test(
    'that dies without an error is abandoned within seconds, and a close does not wait for it',
    { timeout: 60_000 },
    async () => {
      const proxy = await proxied()
      const notes = newNotes()
      const store = newStore(proxy.url)
      const mill = await worker(store, notes)
      await mill.start()
      // Its settlement is written too: statements queued after one without a reply wait for that one as well.
      await (await mill.enqueue('work', { n: 1 })).result({ timeout: '10s' })
      proxy.blackHole()
      const began = Date.now()
      await expect(mill.enqueue('work', { n: 2 })).rejects.toMatchObject({ code: 'E_OUTCOME_UNKNOWN' })
      expect(Date.now() - began).toBeLessThan(15_000)
      proxy.heal()
      await mill.enqueue('work', { n: 3 })
      await expect.poll(() => notes.runs.has(3), { timeout: 10_000 }).toBe(true)
      proxy.blackHole()
      const closing = Date.now()
      await mill.close({ deadline: 500 })
      expect(Date.now() - closing).toBeLessThan(15_000)
    },
  )

  test('that is dead delays a first connection for seconds, not for ever', { timeout: 60_000 }, async () => {
    const proxy = await proxied()
    proxy.blackHole()
    const began = Date.now()
    await expect(millrace({ store: newStore(proxy.url), logger: false })).rejects.toMatchObject({
      code: 'E_STORE_UNREACHABLE',
    })
    expect(Date.now() - began).toBeLessThan(15_000)
  })

  test('that is cut while the server still runs a claim leaves no job behind', { timeout: 60_000 }, async () => {
    const proxy = await proxied()
    const notes = newNotes()
    const store = newStore(proxy.url)
    const schema = new URL(store).searchParams.get('schema') as string
    const mill = await worker(store, notes)
    await mill.start()
    const holder = new Client(server.url)
    await holder.connect()
    await holder.query(`begin; lock table ${schema}.leases in share row exclusive mode`)
    await mill.enqueue('work', { n: 1 })
    const waiting = `select 1 from pg_locks where relation = '${schema}.leases'::regclass and not granted`
    await expect.poll(() => ask(waiting), { timeout: 15_000 }).not.toEqual([])
    proxy.reset()
    // By then the worker has checked the outcome of its claim, or waits for that.
    await pause(2_000)
    await holder.query('commit')
    await holder.end()
    await untilDone(store, new Set([1]), notes)
    await mill.close()
    expect(notes.runs.get(1)).toBe(1)
    expect(await ask(`select fence from ${schema}.leases`)).toEqual([])
  })

  test('that is reset repeatedly loses nothing and doubles nothing', { timeout: 60_000 }, async () => {
    const proxy = await proxied()
    const notes = newNotes()
    const store = newStore(proxy.url)
    const mill = await worker(store, notes)
    await mill.start()
    let isOver = false
    const enqueued = enqueueUntil(mill, () => isOver)
    for (let round = 0; round < 20; round += 1) {
      await pause(150)
      proxy.reset()
    }
    isOver = true
    const { acked } = await enqueued
    await untilDone(store, acked, notes)
    expect([...notes.runs].filter(([, runs]) => runs !== 1)).toEqual([])
  })

  test(
    'that loses the reply of a commit leaves an enqueue unknown, and retry() finds it or writes it once',
    { timeout: 60_000 },
    async () => {
      const proxy = await proxied()
      const store = newStore(proxy.url)
      const schema = new URL(store).searchParams.get('schema') as string
      const mill = await worker(store, newNotes())
      await mill.enqueue('work', { n: 'warm' })
      for (let round = 0; round < 5; round += 1) {
        proxy.loseAnswerTo(`secret ${round} 1`)
        // Calls that arrive while the first is written share a statement.
        const answers = await Promise.allSettled(
          Array.from({ length: 8 }, (_, i) => mill.enqueue('work', { n: `secret ${round} ${i}` })),
        )
        const found = await ask(
          `select payload, count(*)::int as times from ${schema}.jobs where payload like '%secret ${round}%' group by 1`,
        )
        const times = new Map(
          found.map((row) => [(JSON.parse(row['payload'] as string) as { n: string }).n, row['times']]),
        )
        for (const [i, answer] of answers.entries()) {
          const there = times.get(`secret ${round} ${i}`) ?? 0
          if (answer.status === 'fulfilled') expect(there).toBe(1)
          else {
            expect(answer.reason).toMatchObject({ code: 'E_OUTCOME_UNKNOWN' })
            expect([0, 1]).toContain(there)
            await (answer.reason as OutcomeUnknownError).retry()
          }
        }
        const rows = await ask(`select payload from ${schema}.jobs where payload like '%secret ${round}%'`)
        expect(new Set(rows.map((row) => row['payload'])).size).toBe(8)
        expect(rows).toHaveLength(8)
      }
      expect(proxy.lost).toBe(5)
    },
  )

  test(
    'that loses the reply of a settlement reports no lost claim, and the job is done once',
    { timeout: 60_000 },
    async () => {
      const proxy = await proxied()
      const notes = newNotes()
      const store = newStore(proxy.url)
      const work = job('answer', async (p: { n: number }) => `result ${p.n}`)
      const lost: string[] = []
      const logger = { debug() {}, info() {}, error() {}, warn: (_: object, text: string) => void lost.push(text) }
      const mill = await millrace({ store, jobs: { work }, logger, poll: '500ms' })
      open.add(mill)
      await mill.start()
      for (let n = 0; n < 3; n += 1) {
        proxy.loseAnswerTo(`result ${n}`)
        const handle = await mill.enqueue(work, { n })
        expect(await handle.result({ timeout: '10s' })).toBe(`result ${n}`)
      }
      await pause(500)
      expect(proxy.lost).toBe(3)
      expect(lost.filter(isLost)).toEqual([])
      expect(notes.lost).toEqual([])
    },
  )
})
