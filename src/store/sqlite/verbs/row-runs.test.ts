import fc from 'fast-check'
import { expect, test } from 'vitest'
import { rowRunsOf } from './row-runs.js'

const refOf = (ref: number): number => ref
const always = (): boolean => true

test.each([
  ['nothing', [], [], []],
  ['one', [7], [], [7]],
  ['three consecutive rows are too few', [7, 8, 9], [], [7, 8, 9]],
  ['four are a run', [7, 8, 9, 10], [[7, 8, 9, 10]], []],
  [
    'a gap ends a run',
    [1, 2, 3, 4, 6, 7, 8, 9, 11],
    [
      [1, 2, 3, 4],
      [6, 7, 8, 9],
    ],
    [11],
  ],
  ['descending rows are no run', [4, 3, 2, 1], [], [4, 3, 2, 1]],
  ['a duplicate is no run', [1, 2, 2, 3], [], [1, 2, 2, 3]],
])('%s', (_, refs, runs, rest) => {
  expect(rowRunsOf(refs, refOf, always)).toEqual({ runs, rest })
})

test('consecutive rows of different groups are not one run', () => {
  const tens = (before: number, ref: number): boolean => Math.floor(before / 10) === Math.floor(ref / 10)
  expect(rowRunsOf([5, 6, 7, 8, 9, 10, 11, 12, 13], refOf, tens)).toEqual({
    runs: [
      [5, 6, 7, 8, 9],
      [10, 11, 12, 13],
    ],
    rest: [],
  })
})

test('every row is in one run or in the rest, and a run has all rows between its ends', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(60)), (refs) => {
      const { runs, rest } = rowRunsOf(refs, refOf, always)
      expect([...runs.flat(), ...rest].sort((a, b) => a - b)).toEqual([...refs].sort((a, b) => a - b))
      for (const run of runs) expect((run.at(-1) as number) - (run[0] as number) + 1).toBe(run.length)
    }),
  )
})
