import { describe, expect, test } from 'vitest'
import { systemTimers } from './timers.js'

const turn = (): Promise<void> => new Promise((next) => systemTimers.soon(next))
const fired = (ms: number): Promise<void> => new Promise((next) => void systemTimers.after(ms, next))

describe('a timer', () => {
  test.each([2 ** 31, 2 ** 31 + 1, 2 ** 32, 1e15, Infinity])('of %d ms does not fire at once', async (ms) => {
    let calls = 0
    const cancel = systemTimers.after(ms, () => (calls += 1))
    // A timer that overflowed fires after 1 ms: before one of 5 ms that is set after it.
    await fired(5)
    await turn()
    expect(calls).toBe(0)
    cancel()
  })

  test('fires once', async () => {
    let calls = 0
    systemTimers.after(0, () => (calls += 1))
    await fired(3)
    expect(calls).toBe(1)
  })

  test('with a negative delay fires', async () => {
    await fired(-5)
  })

  test('does not fire before its time', async () => {
    const start = performance.now()
    await fired(20)
    expect(performance.now() - start).toBeGreaterThanOrEqual(20)
  })

  test('that was cancelled never fires, and may be cancelled again', async () => {
    let calls = 0
    const cancel = systemTimers.after(1, () => (calls += 1))
    cancel()
    cancel()
    await fired(5)
    expect(calls).toBe(0)
  })

  test('may be cancelled after it fired', async () => {
    let cancel = (): void => undefined
    await new Promise<void>((next) => {
      cancel = systemTimers.after(0, next)
    })
    expect(() => cancel()).not.toThrow()
  })

  test('with idle does not keep the process alive, and without it does', () => {
    const active = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = active()
    const cancelIdle = systemTimers.after(60_000, () => undefined, { idle: true })
    expect(active()).toBe(before)
    const cancel = systemTimers.after(60_000, () => undefined)
    expect(active()).toBe(before + 1)
    cancel()
    cancelIdle()
    expect(active()).toBe(before)
  })
})

test('soon runs after all microtasks and ticks of this turn', async () => {
  const order: string[] = []
  const done = new Promise<void>((next) =>
    systemTimers.soon(() => {
      order.push('soon')
      next()
    }),
  )
  await Promise.resolve()
  order.push('a microtask')
  await new Promise<void>((next) => process.nextTick(next))
  order.push('a tick')
  await done
  expect(order).toEqual(['a microtask', 'a tick', 'soon'])
})
