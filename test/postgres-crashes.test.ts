import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { useProcesses } from './processes/child.js'
import type { Child } from './processes/child.js'

/** X10 and L1 to L11 on PostgreSQL: worker processes of one database, killed with -9 while they work. */
const processes = useProcesses()
let database: Awaited<ReturnType<typeof freshDatabase>>
let admin: Client
beforeAll(async () => {
  database = await freshDatabase()
  admin = new Client(database.url)
  await admin.connect()
}, 120_000)
afterAll(async () => {
  await admin?.end()
  await database?.drop()
})

let schemas = 0
const newStore = (): string => `${database.url}?schema=crash_${(schemas += 1)}`
const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms))
const OPTIONS = `logger: false, lease: '1s', poll: '100ms'`

const worker = (store: string, handler: string, options = ''): Child =>
  processes().run(
    `import pg from ${JSON.stringify(import.meta.resolve('pg'))}
    const work = job('work', { retry: { limit: 0 }, run: async (p, ctx) => { ${handler} } })
    const mill = await millrace({ store: file, jobs: { work }, ${OPTIONS}, ${options} })
    await mill.start(); say('up')`,
    store,
  )

/** In this process: it enqueues and reads, and runs nothing. */
async function onlooker(store: string): Promise<Mill> {
  return millrace({ store, jobs: [job('work', () => 1)], logger: false })
}

async function census(mill: Mill): Promise<{ n: number; state: string; crashed: number; crashes: number }[]> {
  const all = []
  for await (const found of mill.find({ order: 'oldest' }))
    all.push({
      n: (found.payload as { n: number }).n,
      state: found.state,
      crashes: found.crashes,
      crashed: found.attempts.filter((attempt) => attempt.exit === 'crashed').length,
    })
  return all
}

async function untilEnded(mill: Mill, count: number): Promise<void> {
  const left = async (): Promise<number> => count - (await census(mill)).filter(({ state }) => state === 'done').length
  await expect.poll(left, { timeout: 40_000, interval: 200 }).toBe(0)
}

/** `npm run torture -- kill --store postgres` kills more. */
const KILLS = 5

test(
  'workers killed repeatedly under load run every acknowledged job, and none twice without a crash',
  { timeout: 120_000 },
  async () => {
    const store = newStore()
    const mill = await onlooker(store)
    const handler = `say('ran', { n: p.n }); await new Promise((next) => setTimeout(next, p.n % 7))`
    const start = (): Child => worker(store, handler, 'concurrency: 10')
    const children = [start(), start(), start()]
    const everybody = [...children]
    let acked = 0
    let kills = 0
    const enqueue = async (): Promise<void> => {
      while (kills < KILLS) {
        const from = acked
        await mill.enqueueMany(
          'work',
          Array.from({ length: 20 }, (_, i) => ({ n: from + i })),
        )
        acked += 20
        await pause(50)
      }
    }
    const kill = async (): Promise<void> => {
      await Promise.all(children.map((child) => child.receives('up')))
      for (; kills < KILLS; kills += 1) {
        await pause(1_000)
        const victim = kills % 3
        await children[victim]?.kill()
        children[victim] = start()
        everybody.push(children[victim] as Child)
      }
    }
    await Promise.all([enqueue(), kill()])
    await untilEnded(mill, acked)
    const runs = new Map<number, number>()
    for (const child of everybody)
      for (const said of child.messages)
        if (said.what === 'ran') runs.set(said['n'] as number, (runs.get(said['n'] as number) ?? 0) + 1)
    const found = await census(mill)
    expect(found).toHaveLength(acked)
    // A killed process may have run a job without reporting it, never the other way round.
    expect(found.filter(({ n, crashed }) => (runs.get(n) ?? 0) > crashed + 1)).toEqual([])
    const again = found.filter(({ crashed }) => crashed > 0).length
    console.log(`${acked} jobs, ${KILLS} kills, ${again} jobs ran again`)
    await mill.close()
  },
)

describe('a job settled in a transaction', () => {
  const settle = (end: string): string => `
    const tx = new pg.Client(file.split('?')[0]); await tx.connect()
    await tx.query('begin')
    await tx.query('insert into public.effects values ($1)', [p.n])
    await ctx.settleIn(tx, 'settled')
    say('settled')
    ${end}`

  test(
    'that is rolled back by the death of its worker runs again, and has its effect once',
    { timeout: 60_000 },
    async () => {
      await admin.query('create table if not exists public.effects (n integer)')
      const store = newStore()
      const mill = await onlooker(store)
      const { id } = await mill.enqueue('work', { n: 1 })
      const first = worker(store, settle(`await new Promise(() => {})`))
      await first.receives('settled')
      await first.kill()
      expect((await mill.get(id))?.state).not.toBe('done')
      const second = worker(store, settle(`await tx.query('commit'); await tx.end()`))
      await untilEnded(mill, 1)
      expect(await mill.handle(id).result()).toBe('settled')
      expect((await admin.query('select n from public.effects where n = 1')).rows).toHaveLength(1)
      await second.kill()
      await mill.close()
    },
  )

  test('that commits late does not block the other jobs of its worker', { timeout: 60_000 }, async () => {
    await admin.query('create table if not exists public.effects (n integer)')
    const store = newStore()
    const mill = await onlooker(store)
    // The handler of the first returns at once, and its transaction is committed four seconds later.
    await mill.enqueue('work', { n: 100 })
    const late = worker(
      store,
      `if (p.n > 100) return p.n
       ${settle(`setTimeout(async () => { await tx.query('commit'); say('committed'); await tx.end() }, 4_000)`)}`,
    )
    await late.receives('settled')
    await mill.enqueueMany(
      'work',
      Array.from({ length: 29 }, (_, n) => ({ n: n + 101 })),
    )
    await expect
      .poll(async () => (await census(mill)).filter(({ state }) => state === 'done').length, {
        timeout: 3_000,
        interval: 50,
      })
      .toBe(29)
    expect(late.messages.some((said) => said.what === 'committed')).toBe(false)
    await untilEnded(mill, 30)
    expect((await admin.query('select n from public.effects where n = 100')).rows).toHaveLength(1)
    expect((await census(mill)).every(({ crashes }) => crashes === 0)).toBe(true)
    await mill.close()
  })
})

test(
  'a worker that was suspended within its transaction blocks other workers for at most a lease or ten seconds',
  { timeout: 90_000 },
  async () => {
    const store = newStore()
    const mill = await onlooker(store)
    await mill.enqueueMany(
      'work',
      Array.from({ length: 10 }, (_, n) => ({ n })),
    )
    // The first claim of the first worker begins a transaction in a handler, and then the process is suspended.
    const first = worker(
      store,
      `await ctx.transaction(async (tx) => { await tx.query('select 1'); say('in'); await new Promise((next) => setTimeout(next, 500)) })`,
      'concurrency: 1',
    )
    await first.receives('in')
    first.process.kill('SIGSTOP')
    const second = worker(store, `say('ran', { n: p.n })`)
    const began = Date.now()
    await expect
      .poll(async () => (await census(mill)).filter(({ state }) => state === 'done').length, {
        timeout: 30_000,
        interval: 100,
      })
      .toBeGreaterThanOrEqual(9)
    console.log(
      `all but the one in the open transaction were done ${Date.now() - began} ms after its worker stood still`,
    )
    await mill.enqueue('work', { n: 11 })
    first.process.kill('SIGCONT')
    await untilEnded(mill, 11)
    await second.kill()
    await mill.close()
  },
)
