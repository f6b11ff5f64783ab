import { afterAll, beforeAll, expect, test } from 'vitest'
import type { State } from '../../../job/rules/states.js'
import { freshDatabase } from '../../../../test/postgres/shared-postgres.js'
import { systemWorld } from '../../../world/world.js'
import type { Opened } from '../connection/open.js'
import { openDatabase } from '../connection/open.js'
import { DAY_MS, NUMBER_BITS } from '../numbers.js'
import type { ListedBy } from '../queries/find.js'
import { addSummaries } from '../days/summaries.js'
import { targetOf } from '../connection/target.js'

const STATES: readonly State[] = ['scheduled', 'retrying', 'blocked', 'paused', 'parked', 'failed', 'cancelled']

let database: Awaited<ReturnType<typeof freshDatabase>>
let opened: Opened
beforeAll(async () => {
  database = await freshDatabase()
  opened = await openDatabase(await targetOf(database.url), true, systemWorld())
})
afterAll(async () => {
  await opened.close()
  await database.drop()
})

/** The scans of the generic plan of a prepared statement, made while the tables are empty. */
async function scansOf(lists: readonly ListedBy[], way: 'asc' | 'desc', values: readonly string[]): Promise<string[]> {
  const db = opened.connection('work')
  await db.query('set plan_cache_mode = force_generic_plan', [])
  const sql = `explain ${opened.queries.listJobs(lists, way)}`
  const rows = await db.query<Record<string, string>>(sql, ['2000', '9223372036854775807', '-1', ...values])
  return rows
    .map((row) => row['QUERY PLAN'] as string)
    .filter((line) => / on (jobs|history|labels|waiting|ready)/.test(line))
}

/** The index names that a plan shows, of a table and of a partition. */
const indexOf = { scheduled: 'waiting_state', failed: '_state_ref_idx' }

test.each(['asc', 'desc'] as const)(
  'candidates are read from an index, %s, by a plan made on empty tables',
  async (way) => {
    for (const state of STATES) {
      const scans = await scansOf([{ by: 'states', states: [state] }], way, [])
      expect(scans.length, state).toBeGreaterThan(0)
      const index = state === 'failed' || state === 'cancelled' ? indexOf.failed : indexOf.scheduled
      for (const scan of scans) expect(scan, state).toMatch(new RegExp(`Index(?: Only)? Scan.* using \\w*${index}`))
    }
    const lanes: ListedBy = { by: 'lanes', names: '$4', queues: undefined }
    for (const scan of await scansOf([lanes], way, ['["mail"]']))
      expect(scan).toMatch(/Index(?: Only)? Scan.* using \w+_lane_ref_idx/)
    for (const by of ['grp', 'key', 'label'] as const)
      for (const scan of await scansOf([{ by, value: '$4' }], way, ['x']))
        expect(scan).toMatch(new RegExp(`Index(?: Only)? Scan.* using \\w+_${by}_ref_idx`))
    for (const list of [{ by: 'all' } as const, { by: 'states', states: ['done'] } as const])
      for (const scan of await scansOf([list], way, [])) expect(scan).toMatch(/Index(?: Only)? Scan.* using \w+_pkey/)
  },
)

test('a search by time and ref reads a few pages once upkeep has added the other ranges to the index', async () => {
  const db = opened.connection('work')
  const now = Date.now()
  const first = BigInt(Math.floor(now / DAY_MS)) << BigInt(NUMBER_BITS)
  await db.query(
    `insert into millrace.jobs (ref, id, created_at, due_at, lane, priority, payload)
     select ${first} + i, gen_random_uuid(), ${Math.floor(now / DAY_MS) * DAY_MS} + i, 0, 1, 0, repeat('x', 200) from generate_series(1, 40000) as i`,
    [],
  )
  const read = async (): Promise<number> => {
    const box = [Math.floor(now / DAY_MS) * DAY_MS + 20_000, now + DAY_MS, first, first + 20_000n].join(', ')
    const rows = await db.query<Record<string, string>>(
      `explain (analyze, buffers, costs off, timing off, summary off) select millrace.refs_within(${box}, 10)`,
      [],
    )
    // Of the first line with buffers, which includes all others. Beside other tests pages leave the cache, and are read again.
    const [, hit = '0', fetched = '0'] =
      /shared(?: hit=(\d+))?(?: read=(\d+))?/.exec(rows.map((row) => row['QUERY PLAN']).join('\n')) ?? []
    return Number(hit) + Number(fetched)
  }
  await read()
  const before = await read()
  const walk = { at: 0, next: new Map<string, number>() }
  for (let more = true; more;) more = await addSummaries(db, opened.days, now, walk)
  expect(walk.next.size).toBe(1)
  const after = await read()
  expect(before).toBeGreaterThan(1_000)
  expect(after).toBeLessThan(before / 5)
  expect(await addSummaries(db, opened.days, now + 4_999, walk)).toBe(false)
})
