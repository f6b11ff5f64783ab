import { expect } from 'vitest'
import type { Bound } from './bound.js'
import { noop, refusedAbove, text } from './bound.js'

const INVALID = 'E_INVALID_OPTIONS'

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
