import assert from 'node:assert/strict'
import { test } from 'vitest'
import { BIN_MAX, DURATION_MAX, Sketch } from './sketch.js'

const PARTS = [0.5, 0.9, 0.95, 0.99, 1]

/** The same random numbers in every run. */
function randoms(count: number, make: (random: number) => number): number[] {
  let seed = 7
  return Array.from({ length: count }, () => {
    seed = (seed * 16_807) % 2_147_483_647
    return make(seed / 2_147_483_647)
  })
}

function sketchOf(values: readonly number[]): Sketch {
  const sketch = new Sketch()
  for (const value of values) sketch.add(value)
  return sketch
}

function exactQuantiles(values: readonly number[]): number[] {
  const sorted = values.map(Math.round).toSorted((a, b) => a - b)
  return PARTS.map((part) => sorted[Math.ceil(part * sorted.length) - 1] as number)
}

for (const [shape, make] of [
  ['the same everywhere', (r: number) => r * 100_000],
  ['log-normal', (r: number) => Math.exp(2 + 8 * r * r)],
  ['short', (r: number) => r * 60],
  ['two peaks', (r: number) => (r < 0.5 ? 3 + r : 900_000 + r * 1_000)],
] as const)
  test(`percentiles of durations that are ${shape} are within 2 %`, () => {
    const values = randoms(10_000, make)
    const sketch = sketchOf(values)
    for (const [i, exact] of exactQuantiles(values).entries()) {
      const found = sketch.quantiles(PARTS)[i] as number
      assert.ok(Math.abs(found - exact) <= 0.02 * exact, `${PARTS[i]}: ${found} for ${exact}`)
    }
    assert.equal(sketch.count, values.length)
    assert.equal(
      sketch.sum,
      values.reduce((sum, value) => sum + Math.round(value), 0),
    )
  })

test('sketches that are written, read and merged are the sketch of all values', () => {
  const values = randoms(3_000, (r) => 10 ** (r * 7))
  const merged = new Sketch()
  for (let from = 0; from < values.length; from += 500)
    merged.addWritten(sketchOf(values.slice(from, from + 500)).write())
  merged.addWritten(null)
  assert.equal(merged.write(), sketchOf(values).write())
  assert.deepEqual([merged.min, merged.max], [1, Math.max(...values.map(Math.round))])
})

test('durations outside of the range count at its edges, and the number of bins is bounded', () => {
  const sketch = sketchOf([-5, 0, 0.4, DURATION_MAX, DURATION_MAX * 2, Number.MAX_SAFE_INTEGER])
  assert.equal(sketch.write(), `6,${3 * DURATION_MAX},0,${DURATION_MAX},0,3,${BIN_MAX},3`)
  assert.ok(BIN_MAX < 700)
})

test('an empty sketch is written as null and has no percentile', () => {
  assert.equal(new Sketch().write(), null)
  assert.deepEqual(new Sketch().quantiles([0.5, 1]), [0, 0])
})
