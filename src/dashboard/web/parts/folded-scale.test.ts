import fc from 'fast-check'
import { expect, test } from 'vitest'
import { foldedScale } from './folded-scale.js'

const instants = fc.array(fc.integer({ min: 0, max: 1e13 }), { minLength: 2, maxLength: 40 })

test('a later instant is never drawn before an earlier one, folded or not', () => {
  fc.assert(
    fc.property(
      instants,
      fc.option(fc.array(fc.integer({ min: 1, max: 1e6 })), { nil: undefined }),
      (points, lengths) => {
        const { x } = foldedScale(points, lengths)
        const places = [...points].sort((a, b) => a - b).map(x)
        expect(places.every((place, i) => i === 0 || place >= (places[i - 1] as number) - 1e-6)).toBe(true)
        expect(Math.min(...places)).toBeGreaterThanOrEqual(0)
        expect(Math.max(...places)).toBeLessThanOrEqual(100 + 1e-6)
      },
    ),
  )
})

test('an empty stretch of three days between steps of a second is folded, and a linear scale folds nothing', () => {
  const points = [0, 1_000, 2_000, 3_000, 259_203_000, 259_204_000]
  const lengths = [1_000, 1_000, 1_000, 259_200_000]
  expect(foldedScale(points, lengths).folds).toMatchObject([{ from: 3_000, to: 259_203_000 }])
  expect(foldedScale(points, lengths).x(3_000)).toBeGreaterThan(40)
  expect(foldedScale(points).folds).toEqual([])
  expect(foldedScale(points).x(3_000)).toBeLessThan(1)
})

test('one instant alone is drawn at the left', () => {
  expect(foldedScale([5], [1]).x(5)).toBe(0)
})
