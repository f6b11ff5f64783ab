import { describe, expect, test } from 'vitest'
import { ClockWatch, StepWatch } from './clock-step.js'

const DAY = 86_400_000

describe('a clock step', () => {
  test('is what the wall clock moved beyond the elapsed time', () => {
    const watch = new StepWatch()
    expect(watch.read(1_000_000, 0, 0)).toBe(0)
    expect(watch.read(1_005_000, 5_000, 5_000)).toBe(0)
    expect(watch.read(1_010_000 - DAY, 10_000, 10_000)).toBe(-DAY)
    expect(watch.read(1_015_000 - DAY, 15_000, 15_000)).toBe(0)
    expect(watch.read(1_020_000, 20_000, 20_000)).toBe(DAY)
  })

  test('is not reported for a slow reading, a small correction, or a suspended process', () => {
    const watch = new StepWatch()
    watch.read(0, 0, 0)
    expect(watch.read(30_000, 1_000, 30_000)).toBe(0)
    expect(watch.read(31_500, 30_000, 30_000)).toBe(0)
    expect(watch.read(31_500 + DAY, 30_000 + DAY, 30_000 + DAY)).toBe(0)
  })

  test('is reported for each of the two clocks separately', () => {
    const clock = { wall: 500, passed: 0, now: () => clock.wall, monotonic: () => clock.passed }
    const watch = new ClockWatch(clock)
    expect(watch.read(1_000, 0)).toBeUndefined()
    clock.passed = 10
    expect(watch.read(1_010 - DAY, 10)).toEqual({ databaseMs: -DAY, machineMs: 0 })
    clock.wall += DAY
    expect(watch.read(1_010 - DAY, 10)).toEqual({ databaseMs: 0, machineMs: DAY })
  })
})
