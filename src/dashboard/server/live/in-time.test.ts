import { expect, test } from 'vitest'
import type { World } from '../../../world/world.js'
import { inTime, SlowStore } from './in-time.js'

/** Timers that fire when the test says so. */
function timed() {
  const timers = new Set<() => void>()
  const after = (_ms: number, call: () => void): (() => void) => {
    timers.add(call)
    return () => timers.delete(call)
  }
  const fire = (): void => {
    for (const call of timers) call()
  }
  return { world: { timers: { after } } as unknown as Pick<World, 'timers'>, timers, fire }
}

test('a read that hangs is reported, and a failure of it later is no unhandled rejection', async () => {
  const { world, timers, fire } = timed()
  let fail: (error: Error) => void = () => undefined
  const read = inTime(new Promise<never>((_, reject) => (fail = reject)), world)
  fire()
  await expect(read).rejects.toThrow(SlowStore)
  expect(timers.size).toBe(0)
  fail(new Error('the connection was lost'))
})

test('a read that answers or fails leaves no timer', async () => {
  const { world, timers } = timed()
  expect(await inTime(Promise.resolve(7), world)).toBe(7)
  await expect(inTime(Promise.reject(new Error('gone')), world)).rejects.toThrow('gone')
  expect(timers.size).toBe(0)
})
