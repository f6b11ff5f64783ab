import { afterAll, beforeAll, expect, test } from 'vitest'
import type { State } from '../../../job/rules/states.js'
import { ContractFixture } from '../../../../test/contract/fixture.js'
import { systemWorld } from '../../../world/world.js'
import type { FindQuery } from '../../find.js'
import type { OpenedFile } from '../connection/open.js'
import { openFile } from '../connection/open.js'
import { queries } from '../queries/queries.js'
import { SqliteStore } from '../sqlite-store.js'

const STATES: readonly State[] = ['scheduled', 'retrying', 'blocked', 'paused', 'parked', 'failed', 'cancelled']
/** More than one window of candidates. */
const JOBS = 12_000

let file: OpenedFile
let store: SqliteStore
beforeAll(async () => {
  const world = systemWorld()
  file = await openFile({ target: ':memory:', durability: 'power' }, true, world)
  store = new SqliteStore(file, world, { durability: 'power' })
  const b = new ContractFixture({ store, clock: { now: Date.now() } })
  await b.insert(Array.from({ length: JOBS }, () => b.job({ due: { inMs: 3_600_000 } })))
})
afterAll(() => store.close())

/** The query plan of a statement, one line per table. */
function planOf(sql: string): string[] {
  const rows = file.database.prepare(`explain query plan ${sql}`).all(
    ...sql
      .split('?')
      .slice(1)
      .map(() => null),
  )
  return (rows as { detail: string }[]).map(({ detail }) => detail).filter((detail) => detail.includes('millrace_'))
}

test.each(['asc', 'desc'] as const)('candidates are read from an index, %s', (way) => {
  const lists = {
    ...Object.fromEntries(STATES.map((state) => [state, queries.listStates([state], way)])),
    lanes: queries.listLanes(2, way),
    group: queries.listMembers(way),
    key: queries.listKeyed(way),
    label: queries.listLabelled(way),
  }
  for (const [name, sql] of Object.entries(lists))
    for (const line of planOf(sql)) expect(line, name).toMatch(/^SEARCH millrace_\w+ USING COVERING INDEX/)
  for (const sql of [queries.listAll(way), queries.listLive(way), queries.listStates(['done'], way)])
    for (const line of planOf(sql)) expect(line).toMatch(/^SEARCH millrace_\w+ USING INTEGER PRIMARY KEY/)
  // SQLite does not see that an index by an expression has all that is read.
  for (const line of planOf(queries.listFailures(way)))
    expect(line).toMatch(/USING INDEX millrace_(live|history)_failure/)
  // The part that is sorted is bounded by what workers hold, and by READY_MAX.
  const readies = [...planOf(queries.listStates(['ready'], way)), ...planOf(queries.countReady)]
  for (const line of readies.filter((each) => each.includes('millrace_live')))
    expect(line).toMatch(/INDEX millrace_live_(ready|suspect)/)
})

test('candidates are looked up one by one, and nothing is sorted', () => {
  const rows = file.database.prepare(`explain query plan ${queries.findJobs(['j.key = ?'])}`).all('[]', 'k', 1)
  const details = (rows as { detail: string }[]).map(({ detail }) => detail)
  expect(details[0]).toMatch(/^SCAN each VIRTUAL TABLE/)
  for (const detail of details.slice(1))
    expect(detail).toMatch(/^SEARCH \w+ USING INTEGER PRIMARY KEY|^CORRELATED SCALAR SUBQUERY/)
})

test('a filter without matches ends with the first page if it has an index', async () => {
  const page = (filter: Partial<FindQuery>): Promise<object> =>
    store.findJobs({ order: 'newest', limit: 1, cursor: null, ...filter })
  const nothing = { rows: [], cursor: null }
  for (const state of ['failed', 'running', 'ready', 'done', 'parked'] as const)
    expect(await page({ states: [state] }), state).toEqual(nothing)
  expect(await page({ states: ['scheduled'], queues: ['nowhere'] })).toEqual(nothing)
  expect(await page({ states: ['failed'], names: ['mail'] })).toEqual(nothing)
  expect(await page({ key: 'none', names: ['mail'] })).toEqual(nothing)
  expect(await page({ label: 'none' })).toEqual(nothing)
})

test('a time filter finds all its jobs after more clock steps than it searches, and old steps are swept', async () => {
  const clock = { now: Date.now() }
  const own = await openFile({ target: ':memory:', durability: 'power' }, true, systemWorld())
  const b = new ContractFixture({
    store: new SqliteStore(own, systemWorld(), { durability: 'power', now: () => clock.now }),
    clock,
  })
  const steps = (): number => own.database.prepare('select seq from millrace_clock_steps').all().length
  const found = async (createdAfter: number): Promise<string[]> => {
    const page = await b.store.jobs.findJobs({ order: 'oldest', limit: 1_000, cursor: null, createdAfter })
    return page.rows.map(({ id }) => id)
  }
  const late: string[] = []
  for (const times of [200, 100]) {
    for (let i = 0; i < times; i += 1) {
      clock.now += 1_000
      late.push(await b.one())
      clock.now -= 1_000
      await b.one()
    }
    expect(await found(clock.now)).toEqual(late)
  }
  expect(steps()).toBe(300)
  for (const { id } of (await b.store.jobs.findJobs({ order: 'oldest', limit: 399, cursor: null })).rows)
    await b.store.jobs.changeJob({ id, from: 'ready', to: 'gone', keepMs: 0 })
  await b.prune(1)
  expect(steps()).toBe(100)
  expect(await found(clock.now)).toEqual(late.slice(200))
  await b.store.close()
})

test('the labels of a job are deleted with it: by a delete, by pruning, and when it is kept for no time', async () => {
  const clock = { now: Date.now() }
  const own = await openFile({ target: ':memory:', durability: 'power' }, true, systemWorld())
  const b = new ContractFixture({
    store: new SqliteStore(own, systemWorld(), { durability: 'power', now: () => clock.now }),
    clock,
  })
  const labels = (): unknown[] => own.database.prepare('select label from millrace_labels order by seq, label').all()
  const labelled = (label: string) => b.job({ options: JSON.stringify({ labels: [label, label, 'all'] }) })
  // Every third job is kept, so the rest are pruned both in runs and one by one.
  await b.insert(Array.from({ length: 40 }, (_, i) => labelled(`l${i}`)))
  const { jobs } = await b.claim(await b.worker())
  expect(labels()).toHaveLength(80)
  await b.store.leases.settleJobs(
    jobs.map((job, i) => b.settled(job, { keepMs: i === 1 ? 0 : i > 30 && i % 3 > 0 ? Infinity : 1 })),
    [],
  )
  expect(labels()).toHaveLength(78)
  clock.now += 1
  const kept = jobs.filter((_, i) => i > 30 && i % 3 > 0)
  expect(await b.prune(100)).toBe(39 - kept.length)
  expect(labels()).toHaveLength(2 * kept.length)
  for (const { id } of kept) await b.store.jobs.changeJob({ id, from: 'done', to: 'gone', keepMs: 0 })
  expect(labels()).toEqual([])
  await b.store.close()
})
