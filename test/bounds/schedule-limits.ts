import { expect, vi } from 'vitest'
import { job } from '../../src/index.js'
import type { Mill } from '../../src/index.js'
import { clockedMill } from '../support/clocked-mill.js'
import type { TestClock } from '../support/clocked-mill.js'
import { passingStore } from '../support/fresh-store.js'
import type { Bench, Bound } from './bound.js'
import { lengthOf, noop, payloads, refusedAbove } from './bound.js'

const NOON = Date.UTC(2030, 0, 1, 12)
const [MINUTE, HOUR] = [60_000, 3_600_000]

/** A mill whose database's clock is the case's: it can pass ticks while no process fires them. */
async function stopped(bench: Bench): Promise<{ mill: Mill; clock: TestClock }> {
  const clock = { now: NOON }
  const mill = await clockedMill(passingStore(), clock, { jobs: [noop], keep: Infinity })
  bench.closeToo(() => mill.close({ deadline: 0 }))
  return { mill, clock }
}

/** Starts, and waits until every due tick is fired. */
async function fireAll(mill: Mill, clock: TestClock): Promise<void> {
  await mill.start()
  await vi.waitFor(
    async () => {
      for (const { nextAt } of await mill.schedules.list())
        expect(nextAt?.getTime() ?? Infinity).toBeGreaterThan(clock.now)
    },
    { timeout: 20_000, interval: 5 },
  )
}

/** So many schedules, whose ids sort in the order of their numbers. */
async function growSchedules(bench: Bench, mill: Mill, size: number, rule: unknown): Promise<void> {
  const id = (n: number): string => `s${String(n).padStart(6, '0')}`
  await bench.grow(size, async (missing) => {
    const numbers = Array.from({ length: missing }, (_, i) => size - missing + i)
    await Promise.all(numbers.map((n) => mill.recurring(id(n), noop, { n }, rule as never)))
  })
}

/** The items that `row` accepts: all while they are enqueued. The three runs of a case share their mill. */
const fitting = { below: Infinity }
const row = job('row', { accepts: (n: number) => n < fitting.below, run: (n) => n })

/** Limits of schedules: how many at once, how late, and how much of the ledger. */
export const scheduleLimits: readonly Bound[] = [
  {
    of: 'src/schedule/fire.ts#BATCH',
    at: 100,
    on: 'both',
    isLong: 'postgres',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      await growSchedules(bench, kit.mill, size, '0 * * * *')
      const before = await lengthOf(kit.mill.find())
      await kit.advance('1h')
      expect((await lengthOf(kit.mill.find())) - before).toBe(size)
    },
  },
  {
    of: 'src/mill/check-stored-jobs.ts#SCHEDULES_PAGE',
    at: 100,
    on: 'both',
    isLong: 'postgres',
    holds: async (size, bench) => {
      const { mill } = await bench.kit({ jobs: [] })
      await growSchedules(bench, mill, size, '0 * * * *')
      expect(await lengthOf(mill.check())).toBe(size)
    },
  },
  {
    of: 'src/mill/check-stored-jobs.ts#ROWS_PAGE',
    at: 200,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit({ jobs: [row] })
      fitting.below = Infinity
      const { id: made } = await mill.sequence(
        row,
        Array.from({ length: size }, (_, n) => n),
        { start: false },
      )
      fitting.below = size - 1
      const found: unknown[] = []
      for await (const { id, part, at } of mill.check()) if (id === made) found.push([part, at])
      expect(found).toEqual([['item', String(size - 1)]])
    },
  },
  {
    of: 'src/schedule/upcoming.ts#PAGE',
    at: 200,
    on: 'both',
    isLong: 'postgres',
    also: ['src/schedule/scheduler.ts#PAGE', 'src/schedule/upcoming-bins.ts#PAGE'],
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      await growSchedules(bench, mill, size, '0 * * * *')
      const schedules = (await mill.upcoming('1h')).map((each) => each.schedule)
      expect(new Set(schedules).size).toBe(size)
      const [bin] = (await mill.upcomingBins('1h', { bins: 1 })).queues
      expect(bin?.ticks).toEqual([size])
      expect(await mill.schedules.list()).toHaveLength(size)
    },
  },
  {
    of: 'src/schedule/scheduler.ts#PAGE',
    at: 200,
    on: 'sqlite',
    when: 'all are reviewed after the clock was set back',
    isLong: true,
    holds: async (size, bench) => {
      const { mill, clock } = await stopped(bench)
      bench.made = 0
      await growSchedules(bench, mill, size, { every: '1h' })
      clock.now -= 10 * HOUR
      await mill.start()
      // By the old count the next tick is eleven hours away; `every` counts again from now.
      await vi.waitFor(
        async () => {
          const late = (await mill.schedules.list()).filter(({ nextAt }) => (nextAt?.getTime() ?? 0) > clock.now + HOUR)
          expect(late.map(({ id }) => id)).toEqual([])
        },
        { timeout: 20_000, interval: 20 },
      )
      await mill.close({ deadline: 0 })
    },
  },
  {
    of: 'src/schedule/recurring.ts#LIST',
    at: 1_000,
    on: 'sqlite',
    isLong: true,
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      await growSchedules(bench, mill, size, '0 9 * * *')
      const first = await mill.schedules.list()
      expect(first).toHaveLength(Math.min(size, 1_000))
      const rest = await mill.schedules.list({ after: first.at(-1)?.id as string })
      expect([...first, ...rest].map(({ payload }) => (payload as { n: number }).n)).toEqual(
        payloads(size).map(({ n }) => n),
      )
    },
  },
  {
    of: 'src/schedule/check.ts#LIST_MAX',
    at: 10_000,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: 'E_INVALID_OPTIONS', text: /limit must be a whole number from 1 to 10000, got 10001/ }
      expect((await refusedAbove(size, 10_000, () => mill.schedules.list({ limit: size }), refusal)) ?? []).toEqual([])
      await refusedAbove(size, 10_000, () => mill.schedules.ticks('none', { limit: size }), refusal)
      await refusedAbove(size, 10_000, () => mill.upcoming('1h', { limit: size }), refusal)
    },
  },
  {
    of: 'src/schedule/upcoming-bins.ts#BINS_MAX',
    at: 500,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: 'E_INVALID_OPTIONS', text: /bins must be a whole number from 1 to 500, got 501/ }
      const divided = await refusedAbove(size, 500, () => mill.upcomingBins('500m', { bins: size }), refusal)
      if (divided !== undefined) expect(divided.binMs).toBe(Math.ceil(30_000_000 / size))
    },
  },
  {
    of: 'src/schedule/upcoming-bins.ts#BINNED_TICKS_MAX',
    at: 50_000,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      if (bench.made === 0) await mill.recurring('r', noop, {}, { every: '1s' })
      bench.made = 1
      const { queues, exact } = await mill.upcomingBins(`${size}s`, { bins: 1 })
      expect([queues[0]?.ticks, exact]).toEqual([[Math.min(size, 50_000)], size <= 50_000])
    },
  },
  {
    of: 'src/store/schedules.ts#BINNED_MAX',
    at: 50_000,
    on: 'both',
    isLong: true,
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      await bench.grow(size, async (missing) => {
        for (let left = missing; left > 0; left -= 10_000)
          await mill.enqueueMany(noop, payloads(Math.min(left, 10_000)), { in: '1m' })
      })
      const { queues, exact } = await mill.upcomingBins('1h', { bins: 1 })
      expect([queues[0]?.jobs, exact]).toEqual([[Math.min(size, 50_001)], size <= 50_000])
    },
  },
  {
    of: 'src/schedule/upcoming.ts#LIMIT',
    at: 1_000,
    on: 'both',
    isLong: 'postgres',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      await bench.grow(size, (missing) => kit.mill.enqueueMany(noop, payloads(missing), { in: '1m' }))
      // The jobs come first, and a tick just after them.
      await kit.mill.recurring('later', noop, {}, '2 12 * * *')
      const listed = await kit.mill.upcoming('1h')
      expect(listed).toHaveLength(Math.min(size + 1, 1_000))
      expect(listed.filter(({ schedule }) => schedule !== undefined)).toHaveLength(size < 1_000 ? 1 : 0)
      expect(await kit.mill.upcoming('1h', { limit: size })).toHaveLength(size)
    },
  },
  {
    of: 'src/schedule/upcoming.ts#LIMIT',
    at: 1_000,
    on: 'both',
    isLong: 'postgres',
    when: 'ready jobs of two queues',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      const isFirst = bench.made === 0
      await bench.grow(size, (missing) => kit.mill.enqueueMany(noop, payloads(missing), { queue: 'a', in: '1m' }))
      // It is due before them, and its queue is newer.
      if (isFirst) bench.notes[0] = await kit.mill.enqueue(noop, {}, { queue: 'b', in: '30s' })
      const first = bench.notes[0] as { readonly id: string }
      await kit.advance('2m')
      const listed = await kit.mill.upcoming('1h')
      expect(listed).toHaveLength(Math.min(size + 1, 1_000))
      expect(listed[0]?.id).toBe(first.id)
    },
  },
  {
    of: 'src/schedule/recurring.ts#TICKS',
    at: 100,
    on: 'both',
    isLong: 'postgres',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      if (bench.made === 0) await kit.mill.recurring('r', noop, {}, { every: '1m' })
      await bench.grow(size, (missing) => kit.advance(missing * MINUTE))
      const first = await kit.mill.schedules.ticks('r')
      expect(first).toHaveLength(Math.min(size, 100))
      const rest = await kit.mill.schedules.ticks('r', { before: first.at(-1)?.at as Date })
      expect(first.length + rest.length).toBe(size)
    },
  },
  {
    of: 'src/job/rules/missed.ts#MISSED_MAX',
    at: 1_000,
    on: 'sqlite',
    when: 'missed ticks that run',
    isLong: true,
    holds: async (size, bench) => {
      const { mill, clock } = await stopped(bench)
      await mill.recurring('r', noop, {}, { every: '1h' }, { missed: 'all' })
      clock.now += size * HOUR + 30 * MINUTE
      await fireAll(mill, clock)
      const ticks = await mill.schedules.ticks('r', { limit: 10_000 })
      expect(ticks.filter(({ outcome }) => outcome === 'caught up')).toHaveLength(Math.min(size, 1_000))
      expect(ticks.filter(({ outcome }) => outcome === 'skipped')).toHaveLength(size > 1_000 ? 1 : 0)
      expect(ticks[0]?.at).toEqual(new Date(NOON + size * HOUR))
      expect(await lengthOf(mill.find())).toBe(Math.min(size, 1_000))
      await mill.close({ deadline: 0 })
    },
  },
  {
    of: 'src/job/rules/missed.ts#MISSED_MAX',
    at: 1_000,
    on: 'both',
    when: 'a backfill',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      await kit.mill.recurring('r', noop, {}, { every: '1s' }, { from: new Date(NOON - 24 * HOUR) })
      const from = new Date(NOON - 24 * HOUR + (size - 998) * HOUR)
      const refusal = { code: 'E_INVALID_OPTIONS', text: /must leave at most 1000 ticks/ }
      const call = () => kit.mill.schedules.backfill('r', from, new Date(from.getTime() + size * 1_000))
      expect(await refusedAbove(size, 1_000, call, refusal)).toBe(size <= 1_000 ? size : undefined)
    },
  },
  {
    of: 'src/job/rules/missed.ts#ON_TIME_MS',
    at: 60_000,
    on: 'sqlite',
    holds: async (size, bench) => {
      const { mill, clock } = await stopped(bench)
      await mill.recurring('r', noop, {}, { every: '1h' }, { missed: 'skip' })
      clock.now += HOUR + size
      await fireAll(mill, clock)
      const [tick] = await mill.schedules.ticks('r')
      expect(tick?.outcome).toBe(size <= 60_000 ? 'ran' : 'skipped')
      await mill.close({ deadline: 0 })
    },
  },
  {
    of: 'src/schedule/ticks.ts#WALK_MAX',
    at: 5_000,
    on: 'sqlite',
    isLong: true,
    holds: async (size, bench) => {
      const { mill, clock } = await stopped(bench)
      await mill.recurring('r', noop, {}, { every: '1m' })
      clock.now += size * MINUTE + 30_000
      await fireAll(mill, clock)
      const [last, older] = await mill.schedules.ticks('r')
      expect(last).toMatchObject({ at: new Date(NOON + size * MINUTE), outcome: 'ran' })
      // The last of them runs; the others are one row, which counts them up to the bound.
      const count = size <= 5_000 ? `${size - 1} missed ticks` : 'more than 5000 missed ticks'
      expect(older).toMatchObject({ at: new Date(NOON + (size - 1) * MINUTE), outcome: 'skipped' })
      expect(older?.reason).toContain(count)
      expect(older?.reason).toContain(`from ${new Date(NOON + MINUTE).toISOString()}`)
      await mill.close({ deadline: 0 })
    },
  },
  {
    of: 'src/job/rules/overlap.ts#OPEN_MAX',
    at: 100,
    on: 'sqlite',
    isLong: true,
    holds: async (size, bench) => {
      const kit = await bench.kit()
      const id = `of ${size}`
      await kit.mill.recurring(id, noop, { id }, { every: '1m' })
      // So many unfinished jobs; then a tick that cancels those that the schedule remembers.
      await kit.advance(size * MINUTE)
      await kit.mill.recurring(id, noop, { id }, { every: '1m' }, { overlap: 'cancel' })
      await kit.advance('1m')
      const states: string[] = []
      for await (const { state, payload } of kit.mill.find({ order: 'oldest' }))
        if ((payload as { id: string }).id === id) states.push(state)
      const forgotten = Math.max(0, size - 100)
      expect(states.filter((state) => state === 'cancelled')).toHaveLength(size - forgotten)
      expect(states.slice(0, forgotten)).toEqual(Array.from({ length: forgotten }, () => 'ready'))
      await kit.mill.deleteRecurring(id)
    },
  },
  {
    of: 'src/store/schedules.ts#TICKS_KEPT',
    at: 10_000,
    on: 'both',
    isLong: true,
    also: ['src/store/schedules.ts#TRIM_EVERY'],
    holds: async (size, bench) => {
      const kit = await bench.kit()
      const { schedules } = kit.mill
      const began = NOON - 24 * HOUR
      if (bench.made === 0) await kit.mill.recurring('r', noop, {}, { every: '1s' }, { from: new Date(began) })
      let firings = (bench.notes[0] as number | undefined) ?? 0
      const backfill = async (from: number, to: number): Promise<void> => {
        await schedules.backfill('r', new Date(began + from * 1_000), new Date(began + to * 1_000))
        firings += 1
      }
      await bench.grow(size, async (missing) => {
        for (let from = size - missing; from < size; from += 1_000) await backfill(from, Math.min(from + 1_000, size))
      })
      // The ledger is trimmed at each hundredth firing; a pause and a resume fire nothing and count.
      expect(await ledgerLength(kit.mill)).toBe(size)
      while (firings % 100 !== 0) {
        await ((await schedules.get('r'))?.paused === true ? schedules.resume('r') : schedules.pause('r'))
        firings += 1
      }
      bench.notes[0] = firings
      expect(await ledgerLength(kit.mill)).toBe(Math.min(size, 10_000))
    },
  },
]

async function ledgerLength(mill: Mill): Promise<number> {
  const newest = await mill.schedules.ticks('r', { limit: 10_000 })
  const older = await mill.schedules.ticks('r', { limit: 10_000, before: newest.at(-1)?.at as Date })
  return newest.length + older.length
}
