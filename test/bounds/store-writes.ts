import { expect } from 'vitest'
import { job } from '../../src/index.js'
import type { Mill } from '../../src/index.js'
import type { Bound } from './bound.js'
import { noop, payloads, text } from './bound.js'
import { withUniqueSlot } from '../contract/fixture.js'
import type { ContractFixture } from '../contract/fixture.js'
import type { ClaimedJob } from '../../src/store/store.js'
import { openStore } from './stores.js'

const DAY_MS = 86_400_000

/** So many ended jobs, whose unique slots are over. */
async function endWithSlots(store: ContractFixture, count: number, prefix = 'a'): Promise<void> {
  for (let n = 0; n < count; n += 1)
    await store.one({ queue: 'ends', ...withUniqueSlot({ key: `${prefix} ends ${n}` }) })
  const { jobs } = await store.claim(await store.worker(), { queues: ['ends'], max: count })
  await store.store.leases.settleJobs(
    jobs.map((each) => store.settled(each)),
    [],
  )
}

/** Sweeps through all rows, from wherever the last sweep ended; returns how many it deleted. */
async function sweepAll(store: ContractFixture, limit: number): Promise<number> {
  let sum = 0
  for (let ends = 0; ends < 2;) {
    const { swept, more } = await store.store.jobs.sweepRows(limit)
    sum += swept
    if (!more) ends += 1
  }
  return sum
}

/** Every job of a bulk is there once, the first and the last ones with their payloads. */
async function isWhole(mill: Mill, queue: string, size: number): Promise<void> {
  expect(await mill.count({ queue })).toEqual({ count: size, exact: true })
  for (const [order, expected] of [
    ['oldest', [0, 1]],
    ['newest', [size - 1, size - 2]],
  ] as const) {
    const numbers: number[] = []
    for await (const { payload } of mill.find({ queue, order, limit: 2 })) numbers.push((payload as { n: number }).n)
    expect(numbers).toEqual(expected)
  }
}

/** A bulk whose jobs are alike, and one whose jobs differ: each is written by statements of its own. */
async function bulks(size: number, mill: Mill): Promise<void> {
  const [alike, mixed] = [`alike ${size}`, `mixed ${size}`]
  expect(await mill.enqueueMany(noop, payloads(size), { queue: alike })).toHaveLength(size)
  await isWhole(mill, alike, size)
  await mill.enqueueMany(noop, payloads(size), (_, n) => ({ queue: mixed, priority: n % 3, labels: [`l${n % 2}`] }))
  await isWhole(mill, mixed, size)
  expect((await mill.count({ queue: mixed, label: 'l0' })).count).toBe(Math.ceil(size / 2))
}

/** Statements and transactions of one write that hold a bounded number of rows. */
export const storeWrites: readonly Bound[] = [
  {
    of: 'src/store/sqlite/queries/insert.ts#ROWS_PER_INSERT',
    at: 20,
    on: 'sqlite',
    holds: async (size, bench) => bulks(size, (await bench.kit()).mill),
  },
  {
    of: 'src/store/sqlite/verbs/write.ts#JOBS_PER_RUN',
    at: 1_000,
    on: 'sqlite',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      await bulks(size, mill)
      // The last job of a run has another time than the others.
      const queue = `times ${size}`
      await mill.enqueueMany(noop, payloads(size), (_, n) => ({ queue, ...(n === size - 1 ? { in: '1h' } : {}) }))
      expect((await mill.count({ queue, state: 'ready' })).count).toBe(size - 1)
      expect((await mill.count({ queue, state: 'scheduled' })).count).toBe(1)
    },
  },
  {
    of: 'src/store/postgres/verbs/write.ts#INSERT_MAX',
    at: 5_000,
    on: 'postgres',
    isLong: true,
    holds: async (size, bench) => bulks(size, (await bench.kit()).mill),
  },
  {
    of: 'src/store/postgres/verbs/keyed-inserts.ts#CALLS_MAX',
    at: 500,
    on: 'postgres',
    isLong: true,
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      // The first call is written alone, and those that arrive meanwhile share a transaction.
      const keys = Array.from({ length: size + 1 }, (_, n) => `${size} ${n}`)
      const enqueueAll = () => Promise.all(keys.map((key) => mill.enqueue(noop, {}, { key })))
      const handles = await enqueueAll()
      expect(new Set(handles.map(({ id }) => id)).size).toBe(size + 1)
      expect((await enqueueAll()).map(({ id, isNew }) => [id, isNew])).toEqual(handles.map(({ id }) => [id, false]))
    },
  },
  {
    of: 'src/store/postgres/verbs/write.ts#CHARACTERS',
    at: 200,
    on: 'postgres',
    isLong: true,
    when: 'two payloads of which one statement holds both, or one',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const queue = `of ${size}`
      // 4,999 units and one payload that counts for one unit, or for two.
      const large = text(4_998 * 200 - 2)
      const handles = await mill.enqueueMany(noop, [large, text(size - 1 - 2)], { queue })
      const records = await Promise.all(handles.map((handle) => handle.get()))
      expect(records.map((record) => (record?.payload as string | undefined)?.length)).toEqual([large.length, size - 3])
    },
  },
  {
    of: 'src/store/postgres/verbs/links.ts#LINKS_PER_INSERT',
    at: 10_000,
    on: 'postgres',
    isLong: true,
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const parents = (bench.notes[0] ??= await mill.enqueueMany(noop, payloads(101), { in: '1h' })) as { id: string }[]
      // 99 children of 101 parents are 9,999 links.
      const children = await mill.enqueueMany(
        noop,
        payloads(size <= 10_000 ? (size === 9_999 ? 99 : 100) : 100),
        (_, i) => ({ after: size === 9_999 ? parents : parents.slice(0, size === 10_001 && i === 99 ? 101 : 100) }),
      )
      const last = await children.at(-1)?.get()
      expect(last).toMatchObject({ state: 'blocked' })
      expect(last?.after).toHaveLength(size === 10_000 ? 100 : 101)
    },
  },
  {
    of: 'src/store/sqlite/verbs/row-runs.ts#RUN_MIN',
    at: 4,
    on: 'sqlite',
    holds: async (size, bench) => {
      const store = await openStore(bench)
      // A run of consecutive rows of this length, and a row apart from it, are claimed, settled and pruned.
      const jobs = Array.from({ length: size + 2 }, (_, i) => store.job({ queue: i === size ? 'other' : 'one' }))
      await store.insert(jobs)
      const worker = await store.worker()
      const claimed = await store.claim(worker, { queues: ['one'] })
      expect(claimed.jobs.map(({ id }) => id)).toEqual(jobs.filter(({ queue }) => queue === 'one').map(({ id }) => id))
      const settled = claimed.jobs.map((each) => store.settled(each, { keepMs: 10 }))
      expect(await store.store.leases.settleJobs(settled, [])).toMatchObject({ refused: [] })
      store.clock.now += 10
      expect(await store.prune(100)).toBe(size + 1)
      expect(await store.state(jobs[size]?.id as string)).toBe('ready')
    },
  },
  {
    of: 'src/store/postgres/verbs/groups.ts#FOLD_MAX',
    at: 5_000,
    on: 'postgres',
    isLong: true,
    holds: async (size, bench) => {
      const kit = await bench.kit()
      // Each enqueue of one member leaves a move; a bulk of one group and queue leaves one.
      const group = `of ${size}`
      const queues = Array.from({ length: 50 }, (_, i) => `queue ${i}`)
      await kit.mill.enqueueMany(noop, payloads(size), (_, n) => ({ group: `${group} ${n}`, queue: queues[n % 50] }))
      await kit.advance(0)
      for (const n of [0, size - 1])
        expect(await kit.mill.group(`${group} ${n}`).progress()).toMatchObject({ total: 1, ready: 1 })
    },
  },
  {
    of: 'src/store/postgres/verbs/groups.ts#MOVES_MAX',
    at: 1_000,
    on: 'postgres',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const group = `of ${size}`
      // One move for each queue of the bulk.
      await mill.enqueueMany(noop, payloads(size), (_, n) => ({ group, queue: `queue ${n}` }))
      // The first read may fold the moves; the second reads what was folded.
      for (let reads = 0; reads < 2; reads += 1)
        expect(await mill.group(group).progress()).toMatchObject({ total: size, ready: size })
    },
  },
  {
    of: 'src/store/sqlite/verbs/find-by-time.ts#STEPS_MAX',
    at: 256,
    on: 'sqlite',
    holds: async (size, bench) => {
      const store = await openStore(bench)
      // Each job is a second older than the one before it: that many times the clock was set back.
      await bench.grow(size + 1, async (missing) => {
        for (let left = missing; left > 0; left -= 1) {
          store.clock.now -= 1_000
          await store.one()
        }
      })
      const query = { order: 'oldest', limit: 1_000, cursor: null } as const
      const since = await store.store.jobs.findJobs({ ...query, createdAfter: store.clock.now })
      expect(since.rows).toHaveLength(size)
      const before = await store.store.jobs.findJobs({ ...query, createdBefore: store.clock.now + 1_000 })
      expect(before.rows).toHaveLength(1)
    },
  },
  {
    of: 'src/store/postgres/verbs/find-by-time.ts#STRAYS_MAX',
    at: 2_000,
    on: 'postgres',
    isLong: true,
    holds: async (size, bench) => {
      const store = await openStore(bench)
      const [noon, count] = [store.clock.now, 3_000]
      if (bench.made === 0) await store.insert(Array.from({ length: count }, () => store.job()))
      // These have higher numbers and earlier times: for a search by time they are strays.
      store.clock.now = noon - 60_000
      await bench.grow(size, (missing) => store.insert(Array.from({ length: missing }, () => store.job())))
      store.clock.now = noon
      const counted = async (query: object): Promise<number> => {
        let [sum, cursor]: [number, number | null] = [0, null]
        do {
          const page: { count: number; cursor: number | null } = await store.store.jobs.countJobs({
            order: 'oldest',
            limit: 100_000,
            cursor,
            ...query,
          })
          ;[sum, cursor] = [sum + page.count, page.cursor]
        } while (cursor !== null)
        return sum
      }
      expect(await counted({ createdBefore: noon })).toBe(size)
      expect(await counted({ createdAfter: noon - 1 })).toBe(count)
    },
  },
  {
    of: 'src/store/postgres/queries/upkeep.ts#EXPIRING_SCAN',
    at: 100,
    on: 'postgres',
    isLong: true,
    holds: async (size, bench) => {
      const kit = await bench.kit()
      const queue = `of ${size}`
      // Jobs that ended before their expiry leave their entries; behind them is one that expires.
      const ended = await kit.mill.enqueueMany(noop, payloads(size), { queue, expires: '1m' })
      await Promise.all(ended.map(({ id }) => kit.mill.delete(id)))
      await kit.mill.queue(queue).pause()
      const last = await kit.mill.enqueue(noop, {}, { queue, expires: '2m' })
      await kit.advance('2m')
      expect(await last.get()).toMatchObject({ state: 'cancelled', reason: 'it expired before it began' })
    },
  },
  {
    of: 'src/store/groups.ts#GROUP_KEEP_MS',
    at: 7 * 86_400_000,
    on: 'both',
    holds: async (size, bench) => {
      const store = await openStore(bench)
      const group = `of ${size}`
      await store.one({ group })
      const [member] = (await store.claim(await store.worker())).jobs
      await store.settle(member as ClaimedJob, { keepMs: 10 })
      store.clock.now += 10
      // The first sweep marks the group as empty.
      await store.prune(100)
      store.clock.now += size
      await store.prune(100)
      const { counts } = await store.store.groups.readGroup(group)
      expect(counts).toHaveLength(size < 7 * 86_400_000 ? 1 : 0)
    },
  },
  {
    of: 'src/upkeep/prune.ts#SWEEP_STEP',
    at: 1_000,
    on: 'both',
    when: 'unique slots, with a smaller step',
    holds: async (size, bench) => {
      const store = await openStore(bench)
      const slots = 20 + size - 1_000
      await endWithSlots(store, slots)
      expect(await sweepAll(store, 20)).toBe(slots)
    },
  },
  ...(['sqlite', 'postgres'] as const).map((on): Bound => ({
    ...{
      sqlite: { of: 'src/store/sqlite/verbs/conflicts.ts#SCANS_PER_LIMIT', at: 4 },
      postgres: { of: 'src/store/postgres/verbs/prune.ts#SCANS_PER_LIMIT', at: 4 },
    }[on],
    on,
    holds: async (size, bench) => {
      const store = await openStore(bench)
      // Behind so many slots in use, which one sweep of five reads, there is one that is over.
      for (let n = 0; n < size * 5; n += 1) await store.one(withUniqueSlot({ key: `a ${size} ${n}` }))
      await endWithSlots(store, 1, 'b')
      let swept = 0
      for (let sweeps = 0; sweeps < 20 && swept === 0; sweeps += 1) swept += (await store.store.jobs.sweepRows(5)).swept
      expect(swept).toBe(1)
    },
  })),
  {
    of: 'src/store/postgres/days/day-scan.ts#SLICE',
    at: 2_000,
    on: 'postgres',
    isLong: true,
    holds: async (size, bench) => {
      const store = await openStore(bench)
      await sweepAll(store, 100)
      const jobs = Array.from({ length: size }, () => store.job())
      await store.insert(jobs)
      const claimed = await store.claim(await store.worker(), { max: size })
      // One of them is kept for longer than its day.
      const settled = claimed.jobs.map((each, i) => store.settled(each, { keepMs: (i === size - 1 ? 90 : 2) * DAY_MS }))
      await store.store.leases.settleJobs(settled, [])
      store.clock.now += 4 * DAY_MS
      expect(await sweepAll(store, 100)).toBe(size - 1)
      expect(await store.state(jobs.at(-1)?.id as string)).toBe('done')
      store.clock.now += 90 * DAY_MS
      await sweepAll(store, 100)
      await store.store.jobs.pruneJobs(1_000)
      expect(await store.state(jobs.at(-1)?.id as string)).toBe('gone')
    },
  },
  {
    of: 'src/job/attempt/attempt-log.ts#LATEST_KEPT',
    at: 20,
    on: 'both',
    isLong: 'postgres',
    also: ['src/job/attempt/attempt-log.ts#FIRST_KEPT'],
    holds: async (size, bench) => {
      const fails = job('fails', {
        run: async (_: unknown, ctx) => {
          ctx.log(`attempt ${ctx.attempt}`)
          throw new Error(`attempt ${ctx.attempt}`)
        },
        retry: { limit: Infinity, backoff: 'fixed', jitter: 0 },
      })
      const kit = await bench.kit({ jobs: [fails] })
      const handle = (bench.notes[0] ??= await kit.mill.enqueue(fails, {})) as { id: string }
      // The first five are kept always.
      await bench.grow(5 + size, async (missing) => {
        for (let left = missing; left > 0; left -= 1) {
          await kit.consume().catch(() => undefined)
          await kit.advance('1h')
        }
      })
      const { attempts } = (await kit.mill.get(handle.id)) ?? { attempts: [] }
      const kept = Array.from({ length: 5 + size }, (_, i) => i + 1).filter((n) => n <= 5 || n > 5 + size - 20)
      expect(attempts.map((each) => each.error?.message)).toEqual(kept.map((n) => `attempt ${n}`))
    },
  },
]
