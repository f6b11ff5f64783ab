import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Abort, job, millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { openDatabase } from '../src/store/postgres/connection/open.js'
import { targetOf } from '../src/store/postgres/connection/target.js'
import { freshDatabase } from './postgres/shared-postgres.js'
import { systemWorld } from '../src/world/world.js'

/** F1: the default settings of a role or a database, meant for an app, do not change how jobs run. */
let database: Awaited<ReturnType<typeof freshDatabase>>
let sql: Client
beforeEach(async () => {
  database = await freshDatabase()
  sql = new Client(database.url)
  await sql.connect()
})
afterEach(async () => {
  await sql.end()
  await database.drop()
})

const SETTINGS = {
  jit: 'on',
  enable_seqscan: 'on',
  statement_timeout: '1s',
  idle_session_timeout: '1s',
  default_transaction_isolation: 'serializable',
}

async function byDefault(settings: Readonly<Record<string, string>>): Promise<void> {
  const { pathname } = new URL(database.url)
  for (const [name, value] of Object.entries(settings))
    await sql.query(`alter database ${pathname.slice(1)} set ${name} = '${value}'`)
}

test('the engine’s sessions have their own settings, and so has each of its transactions', async () => {
  await byDefault(SETTINGS)
  const opened = await openDatabase(await targetOf(database.url), true, systemWorld())
  const names = Object.keys(SETTINGS).map((name) => `current_setting('${name}') as ${name}`)
  const text = `select ${names.join(', ')}, current_setting('transaction_isolation') as isolation`
  const own = { jit: 'off', statement_timeout: '0' }
  for (const kind of ['work', 'writes'] as const)
    expect(await opened.connection(kind).query(text, [])).toEqual([
      {
        ...own,
        enable_seqscan: 'off',
        idle_session_timeout: '0',
        default_transaction_isolation: 'read committed',
        isolation: 'read committed',
      },
    ])
  const plain = new Client(database.url)
  await plain.connect()
  await plain.query(opened.queries.beginBounded)
  expect((await plain.query(text)).rows).toMatchObject([{ ...own, isolation: 'read committed' }])
  await plain.end()
  await opened.close()
})

describe.each(['serializable', 'repeatable read'])('where transactions are %s by default', (level) => {
  test(
    'every job of a fleet runs once, and is read, cancelled and retried correctly',
    { timeout: 60_000 },
    async () => {
      await byDefault({ default_transaction_isolation: level, statement_timeout: '1s' })
      const told: string[] = []
      const runs = new Map<number, number>()
      const mills: Mill[] = []
      for (let each = 0; each < 3; each += 1) mills.push(await open(runs, told))
      const [mill] = mills as [Mill]
      for (const each of mills) await each.start()
      const numbers = Array.from({ length: 300 }, (_, n) => n)
      await Promise.all(
        numbers.map((n) =>
          (mills[n % 3] as Mill).enqueue('work', { n }, n % 3 === 0 ? { key: `k${n % 30}`, group: 'g' } : {}),
        ),
      )
      const later = await mill.enqueue('work', { n: 1_000 }, { in: '1h' })
      await mill.cancel(later.id)
      await mill.retry(later.id)
      await expect.poll(async () => (await mill.get(later.id))?.state, { timeout: 30_000 }).toBe('done')
      await expect.poll(() => unfinished(mill), { timeout: 30_000 }).toBe(0)
      expect([...runs.values()].every((count) => count === 1)).toBe(true)
      for (const each of mills) await each.close()
      expect(told).toEqual([])
    },
  )

  test('no job is charged because of conflicts in its ctx.transaction', { timeout: 60_000 }, async () => {
    await byDefault({ default_transaction_isolation: level })
    const empty = job('empty', {
      retry: { limit: 0 },
      run: (n: number, ctx) => ctx.transaction(async () => n),
    })
    const mill = await millrace({ store: database.url, jobs: { empty }, logger: false, concurrency: 50 })
    await mill.start()
    const numbers = Array.from({ length: 50 }, (_, n) => n)
    const handles = await mill.enqueueMany(empty, numbers)
    expect(await Promise.all(handles.map((handle) => handle.result({ timeout: '50s' })))).toEqual(numbers)
    const records = await Promise.all(handles.map((handle) => handle.get()))
    expect(records.filter((record) => record?.attempt !== 1)).toEqual([])
    await mill.close()
  })
})

describe('a serialization failure in ctx.transaction', { timeout: 60_000 }, () => {
  const conflict = (): Error => Object.assign(new Error('could not serialize access'), { code: '40001' })

  /** How often `work` ran, and how the job ended. */
  async function run(work: (times: number) => unknown): Promise<[times: number, state: string | undefined]> {
    let times = 0
    const one = job('one', {
      retry: { limit: 0 },
      run: (_: undefined, ctx) => ctx.transaction(async () => work((times += 1))),
    })
    const mill = await millrace({ store: database.url, jobs: { one }, logger: false })
    await mill.start()
    const handle = await mill.enqueue(one, undefined)
    await handle.result({ timeout: '40s' }).catch(() => undefined)
    const state = (await handle.get())?.state
    await mill.close()
    return [times, state]
  }

  test('runs its work again, in a new transaction and in the same attempt', async () => {
    const conflicts = async (times: number): Promise<void> => {
      if (times < 4) throw conflict()
    }
    expect(await run(conflicts)).toEqual([4, 'done'])
  })

  test('fails the attempt when it occurs twenty times in a row', async () => {
    expect(
      await run(() => {
        throw conflict()
      }),
    ).toEqual([20, 'failed'])
  })

  test('is not run again when the handler throws an Abort', async () => {
    expect(
      await run(() => {
        throw new Abort('no more', { cause: conflict() })
      }),
    ).toEqual([1, 'failed'])
  })
})

function open(runs: Map<number, number>, told: string[]): Promise<Mill> {
  const work = job('work', async ({ n }: { n: number }) => void runs.set(n, (runs.get(n) ?? 0) + 1))
  const tell = (_: object, text: string): void => void (/fsync/.test(text) || told.push(text))
  const logger = { debug() {}, info() {}, warn: tell, error: tell }
  return millrace({ store: database.url, jobs: { work }, logger, poll: '200ms' })
}

async function unfinished(mill: Mill): Promise<number> {
  let count = 0
  for await (const each of mill.find({ state: ['ready', 'running', 'scheduled', 'retrying'] }))
    if (each.id !== '') count += 1
  return count
}
