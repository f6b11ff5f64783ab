import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase } from '../../../../test/postgres/shared-postgres.js'
import { systemWorld } from '../../../world/world.js'
import { Connection } from './connection.js'
import { targetOf } from './target.js'

let database: Awaited<ReturnType<typeof freshDatabase>>
let sql: Client
beforeAll(async () => {
  database = await freshDatabase()
  sql = new Client({ connectionString: database.url, application_name: 'test' })
  await sql.connect()
  await sql.query('create table noted (n integer)')
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})

let connection: Connection
beforeEach(async () => {
  const target = await targetOf(database.url)
  connection = new Connection({
    world: systemWorld(),
    name: target.name,
    makeClient: target.makeClient,
    keepsSession: () => false,
  })
})
afterEach(async () => {
  await sql.query('rollback')
  await connection.close()
})

const bounds = { begin: 'begin', commit: 'commit', rollback: 'rollback' }

async function atWork(): Promise<string[]> {
  const { rows } = await sql.query<{ query: string }>(
    `select query from pg_stat_activity
     where datname = current_database() and application_name = 'millrace' and state = 'active'`,
  )
  return rows.map((row) => row.query)
}

describe('a statement that is not answered in time', () => {
  test('is cancelled, and writes nothing later', async () => {
    await sql.query('begin; lock table noted')
    const written = connection.transaction(bounds, (tx) => tx.query('insert into noted values (1)', []), 300)
    await expect(written).rejects.toMatchObject({ code: 'E_STORE_LOCKED' })
    await expect.poll(atWork).toEqual([])
    await sql.query('commit')
    expect((await sql.query('select from noted')).rowCount).toBe(0)
    expect(await connection.query('select 1 as one', [])).toEqual([{ one: 1 }])
  })

  test('is cancelled when the connection is closed', async () => {
    const slow = connection.query('select pg_sleep(60)', []).catch((error: unknown) => error)
    while ((await atWork()).length === 0);
    await connection.close()
    await slow
    await expect.poll(atWork).toEqual([])
  })
})

test('a slow statement is planned again, so a plan made for an empty table is replaced', async () => {
  const target = await targetOf(database.url)
  const parts = { world: systemWorld(), name: target.name, makeClient: target.makeClient, keepsSession: () => true }
  const prepared = new Connection({ ...parts, onConnect: (client) => client.query({ text: GENERIC, values: [] }) })
  await sql.query('create table grown (n integer primary key) with (autovacuum_enabled = off)')
  await sql.query('vacuum analyze grown')
  const looks = (): Promise<object[]> => prepared.query('select n from grown where n = $1::text::integer', ['1'])
  const planned = async (): Promise<string> =>
    JSON.stringify(await prepared.query(`explain execute millrace_0('1');`, []))
  await looks()
  await sql.query('insert into grown select generate_series(1, 10000)')
  await looks()
  expect(await planned()).toContain('Seq Scan')
  await prepared.query('select pg_sleep(0.26)::text', [])
  await looks()
  expect(await planned()).toContain('Index')
  await prepared.close()
})

const GENERIC = 'set plan_cache_mode = force_generic_plan'
