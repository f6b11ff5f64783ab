import { expect } from 'vitest'
import { YEAR_MS } from '../../src/job/duration/duration-units.js'
import type { Bench, Bound } from './bound.js'
import { noop, refusedAbove } from './bound.js'

const INVALID = 'E_INVALID_OPTIONS'

/** The schedule with this rule, or its refusal. */
async function recurring(bench: Bench, rule: unknown, options: object = {}): Promise<unknown> {
  const { mill } = await bench.kit()
  return mill.recurring('one', noop, {}, rule as never, options)
}

/** Limits of durations, instants and the rules of schedules. */
export const timeLimits: readonly Bound[] = [
  {
    of: 'src/job/duration/duration.ts#DURATION_MAX_MS',
    at: 10 * YEAR_MS,
    on: 'both',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      const refusal = { code: INVALID, text: /more than 10 years/ }
      const handle = await refusedAbove(size, 10 * YEAR_MS, () => kit.mill.enqueue(noop, {}, { in: size }), refusal)
      if (handle !== undefined) expect((await handle.get())?.dueAt.getTime()).toBe(kit.now.getTime() + size)
    },
  },
  {
    of: 'src/job/duration/duration.ts#AWAY_MAX_MS',
    at: 100 * YEAR_MS,
    on: 'both',
    holds: async (size, bench) => {
      const kit = await bench.kit()
      const until = new Date(kit.now.getTime() + size)
      const refusal = { code: INVALID, text: /more than 100 years away/ }
      await refusedAbove(size, 100 * YEAR_MS, () => kit.mill.queue('far').pauseUntil(until), refusal)
      const paused = await kit.mill.queue('far').get()
      if (size <= 100 * YEAR_MS) expect(paused.pausedUntil).toEqual(until)
      const calls = [
        () => kit.mill.schedule(noop, {}, until),
        () => kit.mill.enqueue(noop, {}, { at: until }),
        async () => (await kit.mill.enqueueMany(noop, [{}], { at: until }))[0],
      ]
      for (const call of calls) {
        const handle = await refusedAbove(size, 100 * YEAR_MS, call, refusal)
        if (handle !== undefined) expect((await handle.get())?.dueAt).toEqual(until)
      }
      const later = await kit.mill.enqueue(noop, {}, { in: '1h' })
      await refusedAbove(size, 100 * YEAR_MS, () => kit.mill.edit(later.id, { at: until }), refusal)
      await refusedAbove(size, 100 * YEAR_MS, () => kit.mill.enqueue(noop, {}, { expires: until }), refusal)
      await refusedAbove(size, 100 * YEAR_MS, () => kit.mill.flow((f) => f.add(noop, {}, { at: until })), refusal)
    },
  },
  {
    of: 'src/job/duration/duration-instant.ts#DATE_MAX_MS',
    at: 8.64e15,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: INVALID, text: /out of range/ }
      const call = (epochMilliseconds: number) => mill.find({ createdAfter: { epochMilliseconds } }).next()
      for (const at of [size, -size]) await refusedAbove(size, 8.64e15, () => call(at), refusal)
    },
  },
  {
    of: 'src/job/duration/duration-instant.ts#TEXT_MAX',
    at: 64,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const instant = `2026-11-01T08:00:00.${'0'.repeat(size - 21)}Z`
      const error = await mill.enqueue(noop, {}, { at: instant as never }).catch((refused: unknown) => refused)
      expect((error as Error).message.includes('longer than 64 characters')).toBe(size > 64)
    },
  },
  {
    of: 'src/job/duration/duration-text.ts#TEXT_MAX',
    at: 64,
    on: 'none',
    holds: async (size, bench) => {
      const { mill } = await bench.kit()
      const refusal = { code: INVALID, text: /longer than 64 characters/ }
      const span = `${'0'.repeat(size - 2)}5s`
      await refusedAbove(size, 64, () => mill.enqueue(noop, {}, { in: span as never }), refusal)
    },
  },
  {
    of: 'src/schedule/calendar.ts#EVERY_MIN_MS',
    at: 1_000,
    on: 'none',
    holds: async (size, bench) => {
      const call = recurring(bench, { every: size })
      if (size >= 1_000) return expect(await call).toMatchObject({ rule: { every: size } })
      return expect(call).rejects.toThrow(/1000 ms|1 s|a second/)
    },
  },
  {
    of: 'src/schedule/cron.ts#CRON_TEXT_MAX',
    at: 256,
    on: 'none',
    holds: async (size, bench) => {
      const rule = `0 9 * * *${' '.repeat(size - 9)}`
      const refusal = { code: INVALID, text: /must have at most 256 characters, got 257/ }
      await refusedAbove(size, 256, () => recurring(bench, rule), refusal)
    },
  },
  {
    of: 'src/schedule/zone.ts#ZONE_TEXT_MAX',
    at: 40,
    on: 'none',
    holds: async (size, bench) => {
      // No zone has so long a name; a text that is not too long is looked up and compared.
      const timezone = `Europe/Oslo${'o'.repeat(size - 11)}`
      const error = await recurring(bench, '0 9 * * *', { timezone }).catch((refused: unknown) => refused)
      expect((error as Error).message).toMatch(/options\.timezone must be a time zone/)
    },
  },
]
