import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ContractFixture } from '../../../../test/contract/fixture.js'
import { freshDatabase } from '../../../../test/postgres/shared-postgres.js'
import { systemWorld } from '../../../world/world.js'
import type { SqlExecutor } from '../connection/sql-executor.js'
import { Lanes } from './lanes.js'
import { openDatabase } from '../connection/open.js'
import type { Opened } from '../connection/open.js'
import { PostgresStore } from '../postgres-store.js'
import { findJobs } from './find.js'
import { readJobs } from './read.js'
import { Session } from '../connection/session.js'
import { targetOf } from '../connection/target.js'

/** Payloads and results of the largest size: a page of a few hundred would be hundreds of megabytes in one answer. */

const MEBIBYTE = 1_024 * 1_024
const JOBS = 12

let database: Awaited<ReturnType<typeof freshDatabase>>
let opened: Opened
let store: PostgresStore
let ids: string[]
beforeAll(async () => {
  database = await freshDatabase()
  const world = systemWorld()
  opened = await openDatabase(await targetOf(database.url), true, world)
  store = new PostgresStore(opened, world)
  const b = new ContractFixture({ store, clock: { now: Date.now() } })
  // Bytes count, not characters.
  const text = JSON.stringify('éx'.repeat(MEBIBYTE / 3 - 10))
  const jobs = Array.from({ length: JOBS }, () => b.job({ payload: text }))
  ids = jobs.map(({ id }) => id)
  await b.insert(jobs)
  const { jobs: claimed } = await b.claim(await b.worker())
  await store.settleJobs(
    claimed.map((job) => b.settled(job, { result: text, keepMs: Infinity })),
    [],
  )
})
afterAll(async () => {
  await store.close()
  await database.drop()
})

/** A session that records the size of each answer. */
function watched(): { readonly session: Session; readonly bytes: number[] } {
  const bytes: number[] = []
  const db: SqlExecutor = {
    query: async <R extends object>(text: string, values: readonly (string | null)[]) => {
      const rows = await opened.connection('work').query<R>(text, values)
      bytes.push(Buffer.byteLength(JSON.stringify(rows)))
      return rows
    },
  }
  const { queries, self } = opened
  const now = undefined
  return { session: new Session({ db, queries, lanes: new Lanes(db, queries), now, from: self }), bytes }
}

describe('large jobs', () => {
  test.each(['oldest', 'newest'] as const)('are all found, the %s first, and no answer is large', async (order) => {
    const { session, bytes } = watched()
    const found: string[] = []
    let cursor: number | null = null
    do {
      const page = await findJobs(session, { order, cursor, limit: 100 })
      found.push(...page.rows.map(({ id }) => id))
      cursor = page.cursor
    } while (cursor !== null)
    expect(found).toEqual(order === 'newest' ? ids.toReversed() : ids)
    expect(Math.max(...bytes)).toBeLessThan(7 * MEBIBYTE)
  })

  test('are all read, and no answer is large', async () => {
    const { session, bytes } = watched()
    const unknown = '01a1df16-49a3-761f-98f1-0dde9b233416'
    const rows = await readJobs(session, [...ids, unknown])
    expect(rows.map((row) => row?.id)).toEqual([...ids, undefined])
    expect(rows[7]?.result).toHaveLength(rows[7]?.payload.length ?? 0)
    expect(Math.max(...bytes)).toBeLessThan(7 * MEBIBYTE)
  })

  test('are found one at a time with a limit of one', async () => {
    const { session } = watched()
    expect((await findJobs(session, { order: 'oldest', cursor: null, limit: 1 })).rows.map(({ id }) => id)).toEqual([
      ids[0],
    ])
  })
})
