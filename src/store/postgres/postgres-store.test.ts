import { describe, test } from 'vitest'
import { storeContract } from '../../testing/store-contract.js'
import { systemWorld } from '../../world/world.js'
import { openDatabase } from './open.js'
import { PostgresStore } from './postgres-store.js'
import { targetOf } from './target.js'

const url = process.env['MILLRACE_POSTGRES_URL'] ?? 'postgres://postgres:pw@127.0.0.1:54999/postgres'
let schemas = 0

async function open() {
  const world = systemWorld()
  const clock = { now: 1_800_000_000_000 }
  schemas += 1
  const opened = await openDatabase(await targetOf(url, `t${process.pid}_${schemas}`), true, world)
  return { store: new PostgresStore(opened, world, { now: () => clock.now }), clock }
}

describe('the store contract on PostgreSQL', () => {
  for (const { name, run } of storeContract) test(name, async () => run(await open()))
})
