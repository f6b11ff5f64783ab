import { expect, test } from 'vitest'
import { VirtualTime } from '../../testing/simulation/virtual-time.js'
import type { Driver } from '../../workflow/driver.js'
import { systemWorld } from '../../world/world.js'
import { StickyRuns } from './sticky-runs.js'

const KEPT_MAX_MS = 300_000

function kept(max: () => number) {
  const time = new VirtualTime(0)
  const world = {
    ...systemWorld(),
    clock: { now: () => time.now, monotonic: () => time.now },
    timers: {
      ...systemWorld().timers,
      after: (ms: number, run: () => void, options?: { idle?: boolean }) => time.at(time.now + ms, run, options),
    },
  }
  const runs = new StickyRuns(world, max)
  const keep = (...ids: readonly string[]): void => {
    for (const id of ids) runs.keep(id, {} as Driver, 1)
  }
  return { time, runs, keep, has: (id: string) => runs.take(id) !== undefined }
}

test('a run is taken once, with the fence of its claim', () => {
  const { runs } = kept(() => 2)
  const driver = {} as Driver
  runs.keep('a', driver, 7)
  expect(runs.take('a')).toMatchObject({ driver, fence: 7 })
  expect(runs.take('a')).toBeUndefined()
})

test('the runs that were kept first are removed first, and one that is kept again is the newest', () => {
  const { keep, has } = kept(() => 2)
  keep('a', 'b', 'a', 'c')
  expect([has('a'), has('b'), has('c')]).toEqual([true, false, true])
})

test('where none may be kept, a run that was kept before is removed too', () => {
  let max = 1
  const { keep, has } = kept(() => max)
  keep('a')
  max = 0
  keep('a')
  expect(has('a')).toBe(false)
})

test('a run is kept for no longer than its time, and a later one for its own', async () => {
  const { keep, has, time } = kept(() => 9)
  keep('a')
  await time.advanceTo(KEPT_MAX_MS / 2)
  keep('b')
  await time.advanceTo(KEPT_MAX_MS - 1)
  keep('c')
  await time.advanceTo(KEPT_MAX_MS)
  expect([has('a'), time.next]).toEqual([false, KEPT_MAX_MS * 1.5])
  await time.advanceTo(KEPT_MAX_MS * 1.5)
  expect([has('b'), has('c')]).toEqual([false, true])
})

test('a clear removes the runs and the timer', () => {
  const { runs, keep, has, time } = kept(() => 9)
  keep('a')
  runs.clear()
  expect([has('a'), time.next]).toEqual([false, undefined])
  keep('b')
  expect(time.next).toBe(KEPT_MAX_MS)
})
