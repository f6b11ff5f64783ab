import pg from 'pg'
import { expect, test } from 'vitest'
import { freshDatabase } from './postgres/shared-postgres.js'

test('each has a database of its own, in one server', async () => {
  const [one, other] = await Promise.all([freshDatabase(), freshDatabase()])
  expect(new URL(one.url).host).toBe(new URL(other.url).host)
  expect(one.url).not.toBe(other.url)
  for (const { url } of [one, other]) {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('create table mine (a int)')
    await client.end()
  }
  await Promise.all([one.drop(), other.drop()])
})
