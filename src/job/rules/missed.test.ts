import { describe, expect, test } from 'vitest'
import { decideMissed, MISSED_MAX, ON_TIME_MS, ticksWanted } from './missed.js'

const NOW = Date.UTC(2030, 0, 1, 12)
const older = { count: 2, isMore: false, first: NOW - 300_000, last: NOW - 240_000 }
const outcomes = (missed: 'skip' | 'once' | 'all', newest: readonly number[], rest: typeof older | null): string[] =>
  decideMissed(missed, { newest, older: rest }, NOW).map((tick) => tick.outcome)

describe('due ticks', () => {
  test('run when they are on time, with every policy', () => {
    for (const missed of ['skip', 'once', 'all'] as const) {
      expect(outcomes(missed, [NOW], null)).toEqual(['ran'])
      expect(outcomes(missed, [NOW - ON_TIME_MS], null)).toEqual(['ran'])
    }
  })

  test('are skipped or caught up when they are late', () => {
    const late = [NOW - ON_TIME_MS - 1]
    expect(outcomes('skip', late, null)).toEqual(['skipped'])
    expect(outcomes('once', late, null)).toEqual(['caught up'])
    expect(outcomes('all', [NOW - 120_000, ...late, NOW], null)).toEqual(['caught up', 'caught up', 'ran'])
  })

  test('that are older share one skipped entry, at the last of them', () => {
    const [skipped, ran] = decideMissed('once', { newest: [NOW], older }, NOW)
    expect(skipped).toEqual({
      at: older.last,
      outcome: 'skipped',
      reason: '2 missed ticks from 2030-01-01T11:55:00.000Z up to 2030-01-01T11:56:00.000Z: a later tick ran for them',
    })
    expect(ran?.outcome).toBe('ran')
    const [many] = decideMissed('all', { newest: [NOW], older: { ...older, count: 5_000, isMore: true } }, NOW)
    expect(many?.reason).toContain('more than 5000 missed ticks')
    const [first] = decideMissed('skip', { newest: [NOW], older: { ...older, count: 1, isMore: true } }, NOW)
    expect(first?.reason).toMatch(/^more than 1 missed ticks from .* up to /)
    const [one] = decideMissed('skip', { newest: [NOW], older: { ...older, count: 1 } }, NOW)
    expect(one?.reason).toBe('a missed tick up to 2030-01-01T11:56:00.000Z: missed ticks are skipped')
  })

  test('are read in the number that may run', () => {
    expect([ticksWanted('skip'), ticksWanted('once'), ticksWanted('all')]).toEqual([1, 1, MISSED_MAX])
  })
})
