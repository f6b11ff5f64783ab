import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase } from './postgres/shared-postgres.js'
import { useProcesses } from './processes/child.js'
import type { Child } from './processes/child.js'
import { asPooler, startProxy } from './postgres/proxy.js'
import type { Proxy } from './postgres/proxy.js'

/** X13, D1, D3, D13 on real processes: an idle worker, and this process, which enqueues. Every poll is a minute away. */
const processes = useProcesses()
let database: Awaited<ReturnType<typeof freshDatabase>>
let admin: Client
const proxies: Proxy[] = []
beforeAll(async () => {
  database = await freshDatabase()
  admin = new Client(database.url)
  await admin.connect()
}, 120_000)
afterEach(async () => {
  for (const proxy of proxies.splice(0)) await proxy.close()
})
afterAll(async () => {
  await admin?.end()
  await database?.drop()
})

/** Far sooner than the poll: a job that starts within this time was started by a notification, however slow the machine is. */
const POLL_MS = 60_000
const SOON_MS = POLL_MS / 2

let schemas = 0
const newSchema = (): string => `wake_${(schemas += 1)}`

const WORK = `const work = job('work', async (p) => { say('ran', { n: p.n, tookMs: Date.now() - p.at }) })`

async function worker(store: string, options = '', then = ''): Promise<Child> {
  const child = processes().run(
    `${WORK}
    const mill = await millrace({ store: file, jobs: { work }, logger: false, poll: ${POLL_MS}, ${options} })
    await mill.start(); ${then}; say('up')`,
    store,
  )
  await child.receives('up')
  return child
}

/** Enqueues in another process, one after the other. */
const producer = (store: string, count: number, how: string, before = ''): Child =>
  processes().run(
    `import pg from ${JSON.stringify(import.meta.resolve('pg'))}
    ${WORK}
    const mill = await millrace({ store: file, jobs: { work }, logger: false, poll: ${POLL_MS} })
    const tx = new pg.Client(file.split('?')[0]); await tx.connect()
    ${before}
    for (let n = 0; n < ${count}; n += 1) {
      await new Promise((next) => setTimeout(next, 30))
      ${how}
    }
    say('did'); await tx.end(); await mill.close()`,
    store,
  )

const ran = (child: Child): number[] => child.messages.filter((s) => s.what === 'ran').map((s) => s['tookMs'] as number)

async function untilRan(child: Child, count: number, timeout = SOON_MS): Promise<number[]> {
  await expect.poll(() => ran(child).length, { timeout, interval: 20 }).toBe(count)
  return ran(child).sort((a, b) => a - b)
}

async function connections(): Promise<number> {
  const { rows } = await admin.query(
    `select pid from pg_stat_activity where application_name = 'millrace' and datname = current_database()`,
  )
  return rows.length
}

describe('an idle worker', () => {
  test('starts what another process enqueues at once', { timeout: 2 * POLL_MS }, async () => {
    const store = `${database.url}?schema=${newSchema()}`
    const idle = await worker(store)
    producer(store, 40, `await mill.enqueue(work, { n, at: Date.now() })`)
    const times = await untilRan(idle, 40)
    console.log(`enqueue to start in another process: p50 ${times[20]} ms, p90 ${times[36]} ms`)
    expect(times.at(-1)).toBeLessThan(SOON_MS)
  })

  test(
    'starts what a transaction of the caller enqueued when it commits, and nothing of a transaction that was rolled back',
    { timeout: 2 * POLL_MS },
    async () => {
      const store = `${database.url}?schema=${newSchema()}`
      const idle = await worker(store)
      const program = `
      const at = { at: 0 }
      await tx.query('begin')
      await mill.enqueue(work, { n, at: Date.now() + 60 }, { tx })
      await new Promise((next) => setTimeout(next, 60))
      await tx.query(n % 2 === 0 ? 'commit' : 'rollback')`
      await producer(store, 20, program).receives('did')
      const times = await untilRan(idle, 10)
      console.log(`commit to start in another process: p50 ${times[5]} ms`)
      expect(times[0]).toBeGreaterThanOrEqual(-2)
      expect(times.at(-1)).toBeLessThan(SOON_MS)
      expect(idle.messages.filter((s) => s.what === 'ran').every((s) => Number(s['n']) % 2 === 0)).toBe(true)
    },
  )

  test('that lost its listener reconnects by itself, and finds what it missed', { timeout: 2 * POLL_MS }, async () => {
    const store = `${database.url}?schema=${newSchema()}`
    const idle = await worker(store)
    for (let round = 0; round < 3; round += 1) {
      await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'millrace' and query like '%pg_listening_channels%'`,
      )
      const one = producer(store, 1, `await mill.enqueue(work, { n, at: Date.now() })`)
      await one.receives('did')
      await untilRan(idle, round + 1)
    }
    const slowest = Math.max(...ran(idle))
    console.log(`slowest start with its listener ended: ${slowest} ms`)
    expect(slowest).toBeLessThan(SOON_MS)
  })

  test(
    'whose connection died without an error is late by one poll at most, and listens again',
    { timeout: 2 * POLL_MS },
    async () => {
      const proxy = await startProxy(database.url)
      proxies.push(proxy)
      const schema = newSchema()
      const idle = await worker(`${proxy.url}?schema=${schema}`, `lease: '3s',`)
      proxy.blackHole()
      const before = producer(`${database.url}?schema=${schema}`, 1, `await mill.enqueue(work, { n, at: Date.now() })`)
      await before.receives('did')
      await new Promise((next) => setTimeout(next, 1_000))
      proxy.heal()
      await untilRan(idle, 1)
      await producer(`${database.url}?schema=${schema}`, 1, `await mill.enqueue(work, { n, at: Date.now() })`).receives(
        'did',
      )
      const times = await untilRan(idle, 2)
      expect(times.at(-1)).toBeLessThan(SOON_MS)
    },
  )
})

describe('behind a pooler that assigns sessions per transaction', () => {
  test(
    'everything works by polling, nothing is prepared and no connection listens',
    { timeout: 2 * POLL_MS },
    async () => {
      const proxy = await startProxy(database.url, asPooler)
      proxies.push(proxy)
      const store = `${proxy.url}?schema=${newSchema()}`
      const idle = await worker(
        store,
        `poll: '200ms',`,
        `await mill.enqueueMany(work, Array.from({ length: 200 }, (_, n) => ({ n, at: Date.now() })))`,
      )
      await producer(store, 20, `await mill.enqueue(work, { n, at: Date.now() }, { key: 'k' + n })`).receives('did')
      const times = await untilRan(idle, 220)
      expect(times.at(-1)).toBeLessThan(SOON_MS)
      const { rows } = await admin.query(
        `select query from pg_stat_activity where application_name = 'millrace' and datname = current_database() and query ilike '%listen%'`,
      )
      expect(rows).toEqual([])
      const prepared = processes().run(
        `const mill = await millrace({ store: file, logger: false, jobs: [job('x', () => 1)] })
      await mill.enqueue('x'); say('did', { ok: true }); await mill.close()`,
        store,
      )
      await prepared.receives('did')
    },
  )
})

describe('connections', () => {
  test(
    'are three a process, whatever the concurrency, also after all were lost',
    { timeout: 2 * POLL_MS },
    async () => {
      const store = `${database.url}?schema=${newSchema()}`
      await expect.poll(connections, { timeout: 10_000 }).toBe(0)
      const busy = processes().run(
        `const work = job('work', async (p) => { await new Promise((next) => setTimeout(next, 5)) })
      const mill = await millrace({ store: file, jobs: { work }, logger: false, poll: '100ms', concurrency: 100 })
      await mill.start(); say('up')
      let isOver = false
      process.on('SIGTERM', () => { isOver = true })
      const waits = []
      while (!isOver) {
        const handles = await mill.enqueueMany(work, Array.from({ length: 100 }, () => ({}))).catch(() => [])
        await Promise.all(handles.slice(0, 3).map((handle) => handle.result().catch(() => undefined)))
        await mill.enqueue(work, {}, { key: 'k' }).catch(() => undefined)
      }
      await mill.close(); say('closed')`,
        store,
      )
      await busy.receives('up')
      let most = 0
      for (let round = 0; round < 40; round += 1) {
        most = Math.max(most, await connections())
        if (round % 10 === 9)
          await admin.query(
            `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'millrace'`,
          )
        await new Promise((next) => setTimeout(next, 50))
      }
      expect(most).toBe(3)
      busy.process.kill('SIGTERM')
      await busy.receives('closed')
      expect(await busy.exited).toBe(0)
      await expect.poll(connections, { timeout: 15_000 }).toBe(0)
    },
  )

  test('for handlers’ transactions are extra, ten at most', { timeout: 2 * POLL_MS }, async () => {
    const store = `${database.url}?schema=${newSchema()}`
    await expect.poll(connections, { timeout: 10_000 }).toBe(0)
    const busy = processes().run(
      `const work = job('work', async (p, ctx) => ctx.transaction(async (tx) => { await tx.query('select pg_sleep(0.05)'); return 1 }))
      const mill = await millrace({ store: file, jobs: { work }, logger: false, concurrency: 100 })
      await mill.start(); say('up')
      const handles = await mill.enqueueMany(work, Array.from({ length: 200 }, () => ({})))
      await Promise.all(handles.map((handle) => handle.result({ timeout: '30s' })))
      say('done'); process.on('SIGTERM', () => mill.close())`,
      store,
    )
    await busy.receives('up')
    let most = 0
    while (!busy.messages.some((said) => said.what === 'done')) {
      most = Math.max(most, await connections())
      await new Promise((next) => setTimeout(next, 20))
    }
    expect(most).toBeGreaterThan(3)
    expect(most).toBeLessThanOrEqual(13)
    busy.process.kill('SIGTERM')
    expect(await busy.exited).toBe(0)
  })

  test('of a mill that only enqueues do not keep its process alive', { timeout: 2 * POLL_MS }, async () => {
    const store = `${database.url}?schema=${newSchema()}`
    await worker(store)
    const child = processes().run(
      `${WORK}
      const mill = await millrace({ store: file, jobs: { work }, logger: false })
      await (await mill.enqueue(work, { n: 1, at: Date.now() })).result(); say('did')`,
      store,
    )
    await child.receives('did')
    expect(await child.exited).toBe(0)
  })
})

describe('a close', () => {
  test('under load ends soon, and leaves no connection and no timer', { timeout: 2 * POLL_MS }, async () => {
    const store = `${database.url}?schema=${newSchema()}`
    await expect.poll(connections, { timeout: 10_000 }).toBe(0)
    const child = processes().run(
      `const work = job('work', async () => { await new Promise((next) => setTimeout(next, 5)) })
      const mill = await millrace({ store: file, jobs: { work }, logger: false, concurrency: 50 })
      await mill.start()
      await mill.enqueueMany(work, Array.from({ length: 5_000 }, () => ({})))
      const late = Array.from({ length: 50 }, () => mill.enqueue(work, {}).catch((error) => error.code))
      await new Promise((next) => setTimeout(next, 300))
      const began = Date.now()
      await mill.close({ deadline: 1_000 })
      say('closed', { tookMs: Date.now() - began, codes: [...new Set((await Promise.all(late)).filter((x) => typeof x === 'string'))] })`,
      store,
    )
    const closed = await child.receives('closed')
    expect(closed['tookMs']).toBeLessThan(15_000)
    expect(await child.exited).toBe(0)
    await expect.poll(connections, { timeout: 15_000 }).toBe(0)
  })

  test('leaves nothing behind when the open is refused', { timeout: 2 * POLL_MS }, async () => {
    await expect.poll(connections, { timeout: 10_000 }).toBe(0)
    const child = processes().run(
      `const error = await millrace({ store: file, logger: false, autoMigrate: false }).catch((error) => error)
      say('refused', { code: error.code })`,
      `${database.url}?schema=${newSchema()}`,
    )
    expect(await child.receives('refused')).toMatchObject({ code: 'E_SCHEMA_OLD' })
    expect(await child.exited).toBe(0)
  })
})
