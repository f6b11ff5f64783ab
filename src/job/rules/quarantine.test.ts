import { describe, expect, test } from 'vitest'
import { chooseSuspects, isSuspect, otherWorkFirstMs, quarantineMs, streakAfterCrash } from './quarantine.js'

const suspects = (count: number, streak: number, queue = 'default') =>
  Array.from({ length: count }, (_, i) => ({ ref: streak * 1_000 + i, queue, streak }))
const chosen = (...given: Parameters<typeof chooseSuspects>): number[] => chooseSuspects(...given).map(({ ref }) => ref)

describe('a quarantine', () => {
  test('is for jobs in flight at two crashes in a row', () => {
    expect([0, 1, 2, 3].map(isSuspect)).toEqual([false, false, true, true])
  })

  test('doubles with each further crash in a row, up to a bound', () => {
    expect([2, 3, 4, 5].map((streak) => quarantineMs(streak, 60_000))).toEqual([60_000, 120_000, 240_000, 480_000])
    expect(quarantineMs(1_000, 60_000)).toBe(quarantineMs(17, 60_000))
  })

  test('begins, in a new process, after other jobs had as long as the previous quarantine may have lasted', () => {
    expect([2, 3, 4, 5].map((streak) => otherWorkFirstMs(streak, 1_000))).toEqual([0, 1_000, 2_000, 4_000])
  })
})

test('a crash lengthens the streak of a job that had begun, and raises that of a held job to 1 at most', () => {
  expect([0, 1, 2].map((streak) => streakAfterCrash(streak, true))).toEqual([1, 2, 3])
  expect([0, 1, 2].map((streak) => streakAfterCrash(streak, false))).toEqual([1, 1, 2])
})

describe('the next quarantine takes', () => {
  test.each([
    [1, 1],
    [8, 1],
    [9, 5],
    [10, 5],
    [100, 50],
  ])('of %d suspects %d', (waiting, taken) => {
    expect(chosen(suspects(waiting, 2), 1_000, new Map())).toHaveLength(taken)
  })

  test('the shortest streak first, and halves only the suspects of one streak', () => {
    expect(chosen([...suspects(20, 3), ...suspects(3, 2)], 100, new Map())).toEqual([2_000])
    expect(chosen([...suspects(20, 3), ...suspects(9, 2)], 100, new Map())).toEqual([2_000, 2_001, 2_002, 2_003, 2_004])
  })

  test('no more than the free slots, and no more of a queue than its bound', () => {
    expect(chosen(suspects(50, 2), 10, new Map())).toHaveLength(10)
    expect(chosen([...suspects(20, 2, 'tight'), ...suspects(2, 2)], 100, new Map([['tight', 3]]))).toHaveLength(5)
    expect(chosen(suspects(20, 2, 'full'), 100, new Map([['full', 0]]))).toEqual([])
  })

  test('nothing when no suspect waits', () => {
    expect(chosen([], 10, new Map())).toEqual([])
  })
})
