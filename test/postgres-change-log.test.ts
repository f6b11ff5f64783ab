import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { job, millrace } from '../src/index.js'
import type { Mill } from '../src/index.js'
import { freshDatabase } from './postgres/shared-postgres.js'

/** The order of the change log where transactions commit in another order than they took their numbers. */

let database: Awaited<ReturnType<typeof freshDatabase>>
let mill: Mill
beforeAll(async () => {
  database = await freshDatabase()
  const mail = job('mail', async () => undefined)
  mill = await millrace({ store: database.url, jobs: [mail], logger: false, changeLog: true })
})
afterAll(async () => {
  await mill?.close()
  await database?.drop()
})

test('a change with a lower number that is committed later is not skipped', async () => {
  // The transaction that enqueues the first job of a name is waited for by the others.
  await mill.enqueue('mail', 0)
  const changes = mill.changes('mirror')
  const first = changes.next()
  const early = new Client(database.url)
  await early.connect()
  await expect.poll(async () => (await early.query('select 1 from millrace.consumers')).rowCount).toBe(1)
  await early.query('begin')
  await early.query(`select millrace.add_job('mail', '1')`)
  await mill.enqueue('mail', 2)
  let isGiven = false
  void first.then(() => (isGiven = true))
  const { rows } = await early.query<{ count: unknown }>('select count(*) from millrace.changes')
  // Another test of this process may have set how big numbers are read.
  expect(Number(rows[0]?.count)).toBe(3)
  // Several reads of the log find the second change, and must not give it.
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(isGiven).toBe(false)
  await early.query('commit')
  const numbers = [(await first).value, (await changes.next()).value].map((change) =>
    change?.kind === 'change' ? change.number : undefined,
  )
  expect(numbers).toEqual([2, 3])
  await early.query('begin')
  await early.query(`select millrace.add_job('mail', '3')`)
  await mill.enqueue('mail', 4)
  await early.query('rollback')
  const last = (await changes.next()).value
  expect(last?.kind === 'change' && last.number).toBe(5)
  await early.end()
  await changes.return()
})
