import { expect } from 'vitest'
import { Abort, job } from '../../src/index.js'
import type { Bound } from './bound.js'
import { noop, refusedAbove, text } from './bound.js'

const INVALID = 'E_INVALID_OPTIONS'

/** Fails for good, with a message of this length. */
const failing = job('failing', (length: number) => {
  throw new Abort(text(length))
})

/** Limits of what people read and write about a store. */
export const observingLimits: readonly Bound[] = [
  {
    of: 'src/job/command-options.ts#REASON_MAX',
    at: 500,
    on: 'both',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const { id } = await mill.enqueue(noop)
      const given = { actor: 'ada', reason: text(size) }
      const refusal = { code: INVALID, text: /reason must have 1 to 500 characters, got 501/ }
      if ((await refusedAbove(size, 500, () => mill.cancel(id, given), refusal)) === undefined) return
      expect((await mill.get(id))?.reason).toBe(given.reason)
      expect((await mill.audit({ target: `job ${id}` })).rows[0]?.reason).toBe(given.reason)
    },
  },
  {
    of: 'src/client/read/why.ts#WHY_IDS_MAX',
    at: 50,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: INVALID, text: /ids must be at most 50, got 51/ }
      const answers = await refusedAbove(size, 50, () => mill.why(Array<string>(size).fill('none')), refusal)
      if (answers !== undefined) expect(answers).toHaveLength(size)
    },
  },
  {
    of: 'src/client/statistics/options.ts#SERIES_MAX',
    at: 2_000,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const to = new Date('2026-11-16T12:00:00Z')
      const from = new Date(to.getTime() - (size - 1) * 86_400_000)
      const refusal = { code: INVALID, text: /bucket must make at most 2000 points, got 2001/ }
      const points = await refusedAbove(size, 2_000, () => mill.stats.series({ from, to, bucket: '1d' }), refusal)
      if (points !== undefined) expect(points).toHaveLength(size)
    },
  },
  {
    of: 'src/client/statistics/options.ts#DAYS_MAX',
    at: 36_500,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: INVALID, text: /days must be a number of days above 0, up to 36500, or Infinity/ }
      await refusedAbove(size, 36_500, () => mill.stats.retries({ days: size }), refusal)
    },
  },
  {
    of: 'src/store/rows/attempt-counts.ts#SAMPLES_MAX',
    at: 5,
    on: 'both',
    holds: async (size, bench) => {
      const kit = await bench.kit({ jobs: [failing] })
      await bench.grow(size, (missing) => kit.mill.enqueueMany(failing, Array<number>(missing).fill(size)))
      await kit.drain()
      const [group] = (await kit.mill.stats.errorGroups()).rows
      expect([group?.count, group?.samples.length]).toEqual([size, Math.min(5, size)])
    },
  },
  {
    of: 'src/job/statistics/failure.ts#SAMPLE_MESSAGE_MAX',
    at: 300,
    on: 'none',
    holds: async (size, bench) => {
      const kit = await bench.kit({ jobs: [failing] })
      await kit.mill.enqueue(failing, size)
      await kit.drain()
      const [group] = (await kit.mill.stats.errorGroups()).rows
      expect(group?.samples.at(-1)?.message).toHaveLength(Math.min(300, size))
    },
  },
  {
    of: 'src/job/rules/value-path.ts#PATH_MAX',
    at: 200,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: INVALID, text: /is no path: it must have 1 to 200 characters/ }
      await refusedAbove(size, 200, () => mill.findPage({ payload: { [text(size)]: 1 } }), refusal)
    },
  },
  {
    of: 'src/job/rules/value-path.ts#STEPS_MAX',
    at: 8,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: INVALID, text: /is no path: it must have at most 8 steps/ }
      const path = Array<string>(size).fill('a').join('.')
      await refusedAbove(size, 8, () => mill.findPage({ payload: { [path]: 1 } }), refusal)
    },
  },
  {
    of: 'src/client/read/scan.ts#TEXT_MAX',
    at: 500,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: INVALID, text: /text must have 1 to 500 characters, got 501/ }
      await refusedAbove(size, 500, () => mill.findPage({ text: text(size) }), refusal)
    },
  },
  {
    of: 'src/client/read/page.ts#PAGE_LIMIT_MAX',
    at: 1_000,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: INVALID, text: /limit must be a whole number from 1 to 1000, got 1001/ }
      await refusedAbove(size, 1_000, () => mill.audit({ limit: size }), refusal)
    },
  },
  {
    of: 'src/client/read/page.ts#PAGE_LIMIT',
    at: 50,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      await bench.grow(size, async (missing) => {
        for (let n = 0; n < missing; n += 1) await mill.queue('mail').pause({ actor: 'ada' })
      })
      const { rows, cursor } = await mill.audit()
      expect([rows.length, cursor !== undefined]).toEqual([Math.min(size, 50), size > 50])
    },
  },
]
