import assert from 'node:assert/strict'
import type { State } from '../../src/job/rules/states.js'
import type { CountedPage } from '../../src/store/find.js'
import type { JobRow } from '../../src/store/store.js'
import type { Random } from '../../src/testing/simulation/random.js'
import { seeded } from '../../src/testing/simulation/random.js'
import { contract } from './fixture.js'
import type { ContractFixture, ContractCase } from './fixture.js'
import { matches, pagesOf } from './find-pages.js'
import type { Filter } from './find-pages.js'
import { timeCases } from './find-by-time.js'

const SEEDS = 2
const JOBS = 60
const FILTERS = 20
/** More than a page reads, on either store. */
const BEYOND_A_WINDOW = 5_100

const NAMES = ['mail', 'image', 'report']
const QUEUES = ['default', 'slow']
const LABELS = ['red', 'blue']
const STATES: readonly State[] = [
  'scheduled',
  'ready',
  'running',
  'retrying',
  'blocked',
  'paused',
  'parked',
  'done',
  'failed',
  'cancelled',
]

/** Finding jobs by any filter, page by page. */
export const findCases: readonly ContractCase[] = [
  ...Array.from({ length: SEEDS }, (_, seed) =>
    contract(`pages under change give every unchanged match once and in order (seed ${seed})`, async (b) => {
      const random = seeded(seed)
      const world = new Jobs(b, random)
      await world.make()
      for (let i = 0; i < FILTERS; i += 1) await comparePages(world, filterOf(random, b.clock.now), random)
    }),
  ),

  contract('a label finds jobs however they got it, and none that lost it', async (b) => {
    const labelled = (...labels: string[]) => ({ options: JSON.stringify({ labels }), due: { inMs: 1_000 } })
    const found = async (label: string, order: 'oldest' | 'newest' = 'oldest'): Promise<string[]> =>
      (await pagesOf(b, { label, order }, 7)).map(({ id }) => id)
    const expected = [await b.one(labelled('a', 'b', 'a'))]
    const alike = Array.from({ length: 30 }, () => b.job(labelled('a')))
    await b.insert(alike)
    const mixed = [
      b.job(),
      b.job({ ...labelled('a'), group: 'g' }),
      b.job({ options: '{"title":"a"}' }),
      b.job(labelled('a')),
    ]
    await b.insert(mixed)
    for (const { id, options } of [...alike, ...mixed]) if (options?.includes('labels') === true) expected.push(id)
    // The replaced one is kept, cancelled, with its label.
    for (const job of [b.job({ key: 'r', ...labelled('a') }), b.job({ key: 'r', ...labelled('a') })]) {
      await b.insert([job], 'replace')
      expected.push(job.id)
    }
    const moved = await b.one({ key: 'm', ...labelled('a', 'x') })
    await b.insert([b.job({ key: 'm', ...labelled('c') })], 'move')
    const edited = await b.one(labelled('a'))
    const change = { id: edited, from: 'scheduled', keepMs: Infinity } as const
    await b.store.jobs.changeJob({ ...change, to: 'scheduled', edit: { options: labelled('c', 'd').options } })
    assert.deepEqual(await found('a'), expected)
    assert.deepEqual(await found('a', 'newest'), expected.toReversed())
    assert.deepEqual(await found('b'), [expected[0]])
    assert.deepEqual(await found('c'), [moved, edited])
    assert.deepEqual(await found('d'), [edited])
    assert.deepEqual(await found('x'), [])
    await b.store.jobs.changeJob({ ...change, to: 'gone' })
    assert.deepEqual(await found('c'), [moved])
  }),

  contract('a label of one job is found on the first page, and a label without jobs ends there', async (b) => {
    await b.insert(Array.from({ length: BEYOND_A_WINDOW }, () => b.job({ due: { inMs: 1_000 } })))
    const id = await b.one({ options: '{"labels":["rare"]}' })
    await b.insert(Array.from({ length: BEYOND_A_WINDOW }, () => b.job({ due: { inMs: 1_000 } })))
    for (const order of ['newest', 'oldest'] as const) {
      const page = { order, limit: 5, cursor: null }
      const rare = await b.store.jobs.findJobs({ ...page, label: 'rare' })
      assert.deepEqual([rare.rows.map((row) => row.id), rare.cursor], [[id], null])
      assert.deepEqual(await b.store.jobs.findJobs({ ...page, label: 'none' }), { rows: [], cursor: null })
    }
  }),

  contract('an empty list of states, names or queues matches nothing', async (b) => {
    await b.one()
    const page = { order: 'newest', limit: 5, cursor: null } as const
    for (const filter of [{ states: [] }, { names: [] }, { queues: [] }]) {
      assert.deepEqual(await b.store.jobs.findJobs({ ...page, ...filter }), { rows: [], cursor: null })
      assert.deepEqual(await b.store.jobs.countJobs({ ...page, ...filter }), { count: 0, cursor: null })
    }
  }),

  contract('a count stops at its limit, and continues past one page', async (b) => {
    await b.insert(Array.from({ length: BEYOND_A_WINDOW }, () => b.job({ due: { inMs: 1_000 } })))
    const query = { states: ['scheduled'], order: 'newest', cursor: null } as const
    assert.deepEqual(await b.store.jobs.countJobs({ ...query, limit: 3 }), { count: 3, cursor: null })
    assert.equal(await countOf(b, { states: ['scheduled'], order: 'newest' }), BEYOND_A_WINDOW)
  }),

  contract('a match after more jobs than a page reads is found, by empty pages with a cursor', async (b) => {
    const rare = { due: { inMs: 1_000 } }
    b.clock.now += 1
    const first = await b.one(rare)
    b.clock.now -= 1
    await b.insert(Array.from({ length: BEYOND_A_WINDOW }, () => b.job({ due: { inMs: 1_000 } })))
    b.clock.now += 1
    const last = await b.one(rare)
    b.clock.now -= 1
    // No index has both: only their rows distinguish them from the others.
    const filter = { names: ['mail'], states: ['scheduled'], createdAfter: b.clock.now } as const
    const newest = (await pagesOf(b, { ...filter, order: 'newest' }, 10)).map((row) => row.id)
    const oldest = (await pagesOf(b, { ...filter, order: 'oldest' }, 10)).map((row) => row.id)
    assert.deepEqual(
      [newest, oldest],
      [
        [last, first],
        [first, last],
      ],
    )
    assert.equal((await pagesOf(b, { order: 'oldest', states: ['scheduled'] }, 500)).length, BEYOND_A_WINDOW + 2)
  }),

  ...timeCases,
]

async function countOf(b: ContractFixture, filter: Filter): Promise<number> {
  let [count, cursor]: [number, number | null] = [0, null]
  do {
    const page: CountedPage = await b.store.jobs.countJobs({ ...filter, limit: 100_000, cursor })
    count += page.count
    cursor = page.cursor
  } while (cursor !== null)
  return count
}

async function comparePages(jobs: Jobs, filter: Filter, random: Random): Promise<void> {
  const before = (await jobs.rows()).filter((row) => matches(row, filter))
  assert.equal(await countOf(jobs.fixture, filter), before.length, JSON.stringify(filter))
  jobs.touched.clear()
  const found = await pagesOf(jobs.fixture, filter, random.int(2, 9), () => jobs.change())
  const expected = before.filter(({ id }) => !jobs.touched.has(id)).map(({ id }) => id)
  if (filter.order === 'newest') expected.reverse()
  const ids = found.map(({ id }) => id)
  const said = JSON.stringify(filter)
  assert.deepEqual(
    ids.filter((id) => !jobs.touched.has(id)),
    expected,
    said,
  )
  assert.equal(new Set(ids).size, ids.length, `${said}: no job twice`)
  for (const row of found) assert.ok(matches(row, filter), `${said} gave ${row.id}, which is ${row.state}`)
}

function filterOf(random: Random, now: number): Filter {
  const maybe = <T>(share: number, make: () => T): T | undefined => (random.chance(share) ? make() : undefined)
  const some = <T>(from: readonly T[]): T[] => [random.pick(from), random.pick(from)]
  return {
    order: random.pick(['newest', 'oldest'] as const),
    states: maybe(0.6, () => some(STATES)),
    names: maybe(0.3, () => some([...NAMES, 'nobody'])),
    queues: maybe(0.3, () => some(QUEUES)),
    label: maybe(0.2, () => random.pick(LABELS)),
    key: maybe(0.1, () => random.pick(['a', 'b'])),
    group: maybe(0.2, () => 'g'),
    createdAfter: maybe(0.2, () => now - random.int(-10, 3_000)),
    createdBefore: maybe(0.2, () => now - random.int(-10, 3_000)),
  }
}

/** Jobs in every state, and changes to some of them. */
class Jobs {
  readonly fixture: ContractFixture
  readonly touched = new Set<string>()
  readonly #random: Random
  readonly #ids: string[] = []
  /** Children: the end of a parent may release or cancel them whenever upkeep runs. */
  readonly #children: string[] = []
  #worker = ''

  constructor(fixture: ContractFixture, random: Random) {
    this.fixture = fixture
    this.#random = random
  }

  async make(): Promise<void> {
    this.#worker = await this.fixture.worker()
    for (let i = 0; i < JOBS; i += 1) {
      // The clock is set back sometimes: neither order nor completeness may depend on it.
      this.fixture.clock.now += this.#random.chance(0.1) ? -500 : 50
      await this.#add()
      if (i % 4 === 0) await this.change()
    }
  }

  /** In the order of their enqueues. */
  async rows(): Promise<JobRow[]> {
    const rows = await this.fixture.store.jobs.readJobs(this.#ids)
    return rows.filter((row) => row !== undefined).toSorted((one, other) => one.ref - other.ref)
  }

  async change(): Promise<void> {
    const change = this.#random.pick(['add', 'run', 'run', 'command', 'command', 'promote'] as const)
    if (change === 'add') await this.#add()
    else if (change === 'run') await this.#run()
    else if (change === 'command') await this.#command()
    else await this.fixture.store.jobs.promoteJobs(1)
    for (const id of this.#children) this.touched.add(id)
  }

  async #add(): Promise<void> {
    const random = this.#random
    const parent = random.chance(0.1) ? this.#ids.at(-1) : undefined
    const job = this.fixture.job({
      name: random.pick(NAMES),
      queue: random.pick(QUEUES),
      key: random.chance(0.1) ? random.pick(['a', 'b']) : null,
      due: { inMs: random.chance(0.5) ? 0 : 1_000_000 },
      options: random.chance(0.3) ? JSON.stringify({ labels: [random.pick(LABELS)] }) : null,
      ...(random.chance(0.3) ? { group: 'g' } : {}),
      ...(parent === undefined ? {} : { after: [{ id: parent }], onParentFailure: 'wait' }),
    })
    const [inserted] = await this.fixture.insert([job])
    if (inserted?.isNew === true) this.#ids.push(job.id)
    if (parent !== undefined) this.#children.push(job.id)
    this.touched.add(job.id)
  }

  /** Claims a few, and settles some of those. */
  async #run(): Promise<void> {
    const max = this.#random.int(1, 3)
    const claim = { names: NAMES, max, starting: this.#random.int(0, max), suspects: 'first' } as const
    const { jobs } = await this.fixture.claim(this.#worker, claim)
    for (const job of jobs) {
      this.touched.add(job.id)
      const to = this.#random.pick(['done', 'done', 'failed', 'retrying', 'parked', 'ready', 'running'] as const)
      const delayMs = to === 'retrying' ? 1_000_000 : null
      const streak = to === 'ready' && this.#random.chance(0.5) ? 2 : 0
      if (to !== 'running') await this.fixture.settle(job, { to, delayMs, streak })
    }
  }

  async #command(): Promise<void> {
    // The newest stays: the next job may have it as a parent.
    const [row] = await this.fixture.store.jobs.readJobs([this.#random.pick(this.#ids.slice(0, -1))])
    if (row === undefined || row.state === 'running') return
    this.touched.add(row.id)
    const to = this.#random.pick(['paused', 'cancelled', 'gone'] as const)
    const isWaiting = !['done', 'failed', 'cancelled', 'parked', 'paused'].includes(row.state)
    if (isWaiting || to === 'gone')
      await this.fixture.store.jobs.changeJob({ id: row.id, from: row.state, to, keepMs: Infinity })
  }
}
