import assert from 'node:assert/strict'
import type { JobRow } from '../../src/store/store.js'
import { seeded } from '../../src/testing/simulation/random.js'
import { contract } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'
import { matches, pagesOf } from './find-pages.js'
import type { Filter } from './find-pages.js'

const SEEDS = 2
const BULKS = 40
const FILTERS = 40
/** More than a page reads, on either store. */
const BEYOND_A_WINDOW = 5_100

/** Finding jobs by the time of their enqueue, also after clock steps. */
export const timeCases: readonly ContractCase[] = [
  contract(
    'jobs of a time are found on the first page, in either order, and a time without jobs ends there',
    async (b) => {
      const began = b.clock.now
      const later = (): Promise<unknown> =>
        b.insert(Array.from({ length: BEYOND_A_WINDOW }, () => b.job({ due: { inMs: 3_600_000 } })))
      await later()
      b.clock.now = began + 1_000
      const middle = [await b.one(), await b.one()]
      b.clock.now = began + 2_000
      await later()
      const page = async (filter: Partial<Filter>): Promise<[string[], number | null]> => {
        const { rows, cursor } = await b.store.jobs.findJobs({ order: 'oldest', limit: 3, cursor: null, ...filter })
        return [rows.map(({ id }) => id), cursor]
      }
      const exact = { createdAfter: began + 999, createdBefore: began + 1_001 }
      assert.deepEqual(await page(exact), [middle, null])
      assert.deepEqual(await page({ ...exact, order: 'newest' }), [middle.toReversed(), null])
      for (const order of ['oldest', 'newest'] as const)
        for (const states of [undefined, ['scheduled'] as const]) {
          const none = async (filter: Partial<Filter>): Promise<void> =>
            assert.deepEqual(await page({ ...filter, order, states }), [[], null], JSON.stringify({ ...filter, order }))
          await none({ createdAfter: began + 2_000 })
          await none({ createdBefore: began })
          await none({ createdAfter: began, createdBefore: began + 1_000 })
          await none({ createdAfter: began + 1_000, createdBefore: began + 2_000 })
          await none({ createdAfter: began + 1_500, createdBefore: began + 500 })
        }
      assert.deepEqual((await page({ createdAfter: began }))[0].slice(0, 2), middle)
      assert.deepEqual(
        (await page({ createdBefore: began + 2_000, order: 'newest' }))[0].slice(0, 2),
        middle.toReversed(),
      )
      assert.deepEqual(await page({ ...exact, states: ['scheduled'] }), [[], null])
      assert.equal((await pagesOf(b, { createdAfter: began + 1_000, order: 'newest' }, 500)).length, BEYOND_A_WINDOW)
    },
  ),

  ...Array.from({ length: SEEDS }, (_, seed) =>
    contract(`a time finds all its jobs though clocks were set back and forth (seed ${seed})`, async (b) => {
      const random = seeded(seed)
      const ids: string[] = []
      for (let i = 0; i < BULKS; i += 1) {
        // Steps back and forth, small ones as of two clocks that differ, and sometimes none.
        b.clock.now += random.pick([-86_400_000, -5_000, -40, -1, 0, 1, 30, 30, 4_000, 90_000_000])
        const jobs = Array.from({ length: random.int(1, 8) }, () =>
          b.job({ name: random.pick(['mail', 'image']), due: { inMs: random.pick([0, 3_600_000]) } }),
        )
        await b.insert(jobs)
        ids.push(...jobs.map(({ id }) => id))
        // The newest job is deleted, and on SQLite the next job gets its number.
        if (random.chance(0.3)) await remove(b, ids.pop() as string)
        if (random.chance(0.3)) await remove(b, ids.splice(random.int(0, ids.length - 1), 1)[0] as string)
      }
      const rows = (await b.store.jobs.readJobs(ids)).filter((row) => row !== undefined)
      for (let i = 0; i < FILTERS; i += 1) {
        const time = (): number => (random.pick(rows) as JobRow).createdAt + random.pick([-1, 0, 1])
        await compare(b, rows, {
          order: random.pick(['oldest', 'newest'] as const),
          createdAfter: random.chance(0.7) ? time() : undefined,
          createdBefore: random.chance(0.7) ? time() : undefined,
          states: random.chance(0.3) ? ['scheduled'] : undefined,
          names: random.chance(0.3) ? ['image'] : undefined,
        })
      }
    }),
  ),
]

async function remove(b: ContractFixture, id: string): Promise<void> {
  const { state } = await b.read(id)
  await b.store.jobs.changeJob({ id, from: state, to: 'gone', keepMs: Infinity })
}

async function compare(b: ContractFixture, rows: readonly JobRow[], filter: Filter): Promise<void> {
  const expected = rows
    .filter((row) => matches(row, filter))
    .toSorted((one, other) => (filter.order === 'oldest' ? one.ref - other.ref : other.ref - one.ref))
  const found = await pagesOf(b, filter, 7)
  assert.deepEqual(
    found.map(({ id }) => id),
    expected.map(({ id }) => id),
    JSON.stringify(filter),
  )
}
