import { expect, test } from 'vitest'
import { areaPath, chartShapes, columnsPath, linePath } from './chart-shapes.js'
import { niceMax, timeTicks, valueScale } from './scales.js'

const NOON = Date.UTC(2026, 10, 18, 12, 0, 0)

test('a line breaks where nothing is known, and is not drawn down to zero there', () => {
  const path = linePath([1, 2, null, 2], valueScale('count', 2, 1, 0))
  expect(path.match(/M/g)).toHaveLength(2)
  expect(path).not.toContain('NaN')
  expect(areaPath([null, null], valueScale('count', 2, 1, 0))).toBe('')
})

test('a bucket of zero has no column, one that is full reaches the top', () => {
  expect(columnsPath([0, 10], valueScale('count', 10, 10, 0))).toMatch(/^M550 100V0h400V100Z$/)
})

test('what is not known is one hatched stretch', () => {
  expect(
    chartShapes({ at: NOON, bucketMs: 60_000, kind: 'count', columns: [[null, null, 1, null]] }, 0, 'UTC').gaps,
  ).toEqual([
    { x: 0, width: 500 },
    { x: 750, width: 250 },
  ])
})

test('the top of a scale is 1, 2 or 5, grows at once, and shrinks only when it is far too large', () => {
  expect([0, 1, 3, 21, 1_400].map((value) => niceMax('count', value, 0))).toEqual([1, 1, 5, 50, 2_000])
  expect(niceMax('count', 60, 50)).toBe(100)
  expect(niceMax('count', 40, 100)).toBe(100)
  expect(niceMax('count', 20, 100)).toBe(20)
})

test('an axis of durations has lengths that read well, and is logarithmic when one run took far longer than the usual one', () => {
  expect(valueScale('duration', 45_000, 20_000, 0).grid.map(({ value }) => value)).toEqual([60_000, 30_000, 0])
  const wide = valueScale('duration', 400_000, 26, 0)
  expect(wide.isLog).toBe(true)
  expect([wide.y(0), wide.y(600_000)]).toEqual([100, 0])
  expect(wide.y(26)).toBeLessThan(80)
})

test('an axis of counts has no half job', () => {
  expect(valueScale('count', 1, 1, 0).grid.map(({ value }) => value)).toEqual([1, 0])
  expect(valueScale('count', 4, 1, 0).grid.map(({ value }) => value)).toEqual([5, 0])
})

test('at most eight ticks, on whole steps of the wall clock of the zone, none at the right end', () => {
  const ticks = timeTicks(NOON / 1_000, NOON / 1_000 + 3_600, 'UTC')
  expect(ticks).toHaveLength(6)
  expect(ticks.every((at) => at % 600 === 0)).toBe(true)
  // Kathmandu is 5 h 45 min ahead: its quarter hours are on whole ones of the clock on the wall.
  const nepal = timeTicks(NOON / 1_000 + 60, NOON / 1_000 + 3_660, 'Asia/Kathmandu')
  expect(nepal.every((at) => (at + 20_700) % 600 === 0)).toBe(true)
})
