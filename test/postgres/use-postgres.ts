import { Client } from 'pg'
import { afterAll, afterEach, beforeEach } from 'vitest'
import { forgetSchemas, startLending, takeBack } from '../support/schema-pool.js'
import { emptyTables } from './empty-tables.js'
import { freshDatabase } from './shared-postgres.js'

/** Before each file of the `postgres` project: the same tests of behaviour, on a database of its own. */
const database = await freshDatabase()
process.env['MILLRACE_TEST_POSTGRES'] = database.url
const client = new Client(database.url)
await client.connect()

// These hooks are the first to be added: the file's own run within them, and have closed what the test opened.
beforeEach(startLending)
afterEach(() => takeBack(emptySchemas))
afterAll(async () => {
  forgetSchemas()
  await client.end()
  await database.drop()
})

/** False when a connection is still open in the database: its owner may use a schema yet. */
async function emptySchemas(schemas: readonly string[]): Promise<boolean> {
  if (!(await isAlone())) return false
  await emptyTables(client, schemas)
  return true
}

/** The server takes a moment to end a session that its client has closed. */
const ALONE_TRIES = 10

async function isAlone(): Promise<boolean> {
  for (let tries = ALONE_TRIES; tries > 0; tries -= 1) {
    const { rows } = await client.query(
      `select from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
       limit 1`,
    )
    if (rows.length === 0) return true
    await new Promise((next) => setTimeout(next, 5))
  }
  return false
}
