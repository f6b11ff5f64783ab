import { Client } from 'pg'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { reason } from '../../src/codec/show.js'
import { MillraceError } from '../../src/errors.js'
import { createDatabase } from '../../src/testing/postgres/fresh-database.js'
import type { FreshDatabase } from '../../src/testing/postgres/fresh-database.js'
import { startPostgres } from '../../src/testing/postgres/start-postgres.js'
import type { TestPostgres } from '../../src/testing/postgres/start-postgres.js'

/**
 * For our own tests: one server for a whole run, and a database for each file of tests. Most runs of one file need no
 * PostgreSQL at all, so nothing is started in advance. The run's main process listens on a socket, and the first test that connects
 * causes the server to start; the others, in any process, get the same one.
 */
const DOOR = 'MILLRACE_TEST_POSTGRES_DOOR'

/** These tests cut no power, and a flush for each commit would be most of their time; files have pools of their own. */
const SETTINGS = { fsync: 'off', max_connections: '300' }

/** Opens the socket, in the process whose children run the tests; the returned function closes it and stops the server. */
export async function openDoor(): Promise<() => Promise<void>> {
  if (process.env[DOOR] !== undefined) return async () => {} // Another project of the same run holds it.
  let starting: Promise<TestPostgres> | undefined
  const start = (): Promise<TestPostgres> =>
    (starting ??= process.env['MILLRACE_POSTGRES_URL'] ? startPostgres() : startOwn())
  const door = createServer((_, response) => {
    start().then(
      ({ url }) => response.end(url),
      (error: unknown) => response.writeHead(500).end(reason(error)),
    )
  })
  process.env[DOOR] = `http://127.0.0.1:${await listen(door)}`
  return async () => {
    delete process.env[DOOR]
    door.close()
    door.closeAllConnections()
    await (await starting)?.stop()
  }
}

/** Each connection proves its password with 4,096 hashes by default, and each mill opens several connections. */
async function startOwn(): Promise<TestPostgres> {
  const server = await startPostgres({ settings: SETTINGS })
  const client = new Client(server.url)
  await client.connect()
  // Older servers than PostgreSQL 16 have no such setting.
  await client.query(`select set_config(name, '1', false) from pg_settings where name = 'scram_iterations'`)
  await client.query(`alter role postgres password '${new URL(server.url).password}'`)
  await client.end()
  return server
}

/** A database for this test alone, in the server that the run shares. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const door = process.env[DOOR]
  if (door === undefined)
    throw new MillraceError(
      'E_NO_POSTGRES',
      'freshDatabase(): only a run of vitest with our global set-up has a server',
    )
  const response = await fetch(door)
  const text = await response.text()
  if (!response.ok) throw new MillraceError('E_POSTGRES_NOT_STARTED', text)
  return createDatabase(text)
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}
