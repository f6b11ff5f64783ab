import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { postgres } from '../src/postgres.js'
import { freshDatabase } from './postgres/shared-postgres.js'

/** Another session holds locks: a migration tool, `vacuum full`, a forgotten session. */

let database: Awaited<ReturnType<typeof freshDatabase>>
let other: Client
beforeAll(async () => {
  database = await freshDatabase()
  other = new Client({ connectionString: database.url, application_name: 'another session' })
  await other.connect()
})
afterAll(async () => {
  await other.end()
  await database.drop()
})

const mills: Mill[] = []
afterEach(async () => {
  await other.query('rollback')
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})

const noop = job('noop', async (p: number) => p)
let schemas = 0

async function open(): Promise<{ mill: Mill; schema: string }> {
  schemas += 1
  const schema = `locks${schemas}`
  const mill = await millrace({
    store: postgres(database.url, { schema }),
    logger: false,
    jobs: [noop],
    poll: '1s',
    lease: '3s',
  })
  mills.push(mill)
  await mill.start()
  await (await mill.enqueue(noop, 0)).result({ timeout: '10s' })
  return { mill, schema }
}

async function sessions(): Promise<number> {
  const { rows } = await other.query<{ n: number }>(
    `select count(*)::integer as n from pg_stat_activity where datname = current_database() and application_name = 'millrace'`,
  )
  return rows[0]?.n ?? 0
}

async function count(mill: Mill): Promise<number> {
  let found = 0
  for await (const _ of mill.find()) found += 1
  return found
}

test('the engine waits for a short lock', async () => {
  const { mill, schema } = await open()
  await other.query(`begin; lock table ${schema}.jobs, ${schema}.workers in access exclusive mode`)
  const enqueued = mill.enqueue(noop, 1)
  await new Promise((next) => setTimeout(next, 1_500))
  await other.query('commit')
  expect(await (await enqueued).result({ timeout: '20s' })).toBe(1)
})

test('a long lock is reported after ten seconds, however many calls wait for it', async () => {
  const { mill, schema } = await open()
  const ids = (await mill.enqueueMany(noop, [1, 2, 3, 4, 5, 6], { in: '1h' })).map(({ id }) => id)
  await other.query(`begin; lock table ${schema}.jobs, ${schema}.waiting in access exclusive mode`)
  const timed = async (call: Promise<unknown>): Promise<[code: string, ms: number]> => {
    const since = performance.now()
    const error = await call.then(
      () => ({ code: 'done' }),
      (thrown: unknown) => thrown as { code: string },
    )
    return [error.code, performance.now() - since]
  }
  const calls: Promise<[string, number]>[] = []
  for (const id of ids) {
    // One after the other, so that each waits for those before it.
    calls.push(timed(mill.enqueue(noop, 7)), timed(mill.cancel(id)))
    for (let i = 0; i < 10; i += 1) calls.push(timed(mill.enqueue(noop, 8, { key: `${id} ${i}` })))
    await new Promise((next) => setTimeout(next, 100))
  }
  const answers = await Promise.all(calls)
  expect(new Set(answers.map(([code]) => code))).toEqual(new Set(['E_STORE_LOCKED']))
  for (const [, ms] of answers) {
    expect(ms).toBeGreaterThan(9_500)
    expect(ms).toBeLessThan(18_000)
  }
}, 120_000)

test('a long lock is reported as such; a refused write is never written, and sessions do not accumulate', async () => {
  const { mill, schema } = await open()
  const before = await sessions()
  await other.query(`begin; lock table ${schema}.jobs, ${schema}.workers, ${schema}.leases in access exclusive mode`)
  const enqueues = [
    mill.enqueue(noop, 1),
    mill.enqueueMany(noop, [2, 3]),
    mill.enqueue(noop, 4, { key: 'k' }),
    mill.enqueue(noop, 5),
  ]
  const answers = await Promise.allSettled(enqueues)
  for (const answer of answers) expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'E_STORE_LOCKED' } })
  expect(await sessions()).toBeLessThanOrEqual(before)
  await other.query('commit')
  expect(await (await mill.enqueue(noop, 6)).result({ timeout: '20s' })).toBe(6)
  await new Promise((next) => setTimeout(next, 500))
  expect(await count(mill)).toBe(2)
}, 60_000)
