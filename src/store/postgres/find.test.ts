import { afterAll, beforeAll, expect, test } from 'vitest'
import type { State } from '../../job/states.js'
import { freshDatabase } from '../../testing/shared-postgres.js'
import { systemWorld } from '../../world/world.js'
import type { Opened } from './open.js'
import { openDatabase } from './open.js'
import type { ListedBy } from './queries/find.js'
import { targetOf } from './target.js'

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

/** The scans of the plan that a prepared statement keeps, made while the tables are empty. */
async function scansOf(lists: readonly ListedBy[], way: 'asc' | 'desc', values: readonly string[]): Promise<string[]> {
  const db = opened.connection('work')
  await db.query('set plan_cache_mode = force_generic_plan', [])
  const sql = `explain ${opened.queries.listJobs(lists, way)}`
  const rows = await db.query<Record<string, string>>(sql, ['2000', '9223372036854775807', '-1', ...values])
  return rows
    .map((row) => row['QUERY PLAN'] as string)
    .filter((line) => / on (jobs|history|labels|waiting|ready)/.test(line))
}

/** What a plan names a partition's index after. */
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
