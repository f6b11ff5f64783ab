import { expect, test } from 'vitest'
import { ObservedPromise } from './observed-promise.js'

const failing = (): ObservedPromise<never> => ObservedPromise.of(Promise.reject(new Error('boom')))

test('a rejection without a handler is returned by failure(), and is not an unhandled rejection', async () => {
  const unhandled: unknown[] = []
  const note = (error: unknown): unknown => unhandled.push(error)
  process.on('unhandledRejection', note)
  const observed = failing()
  await new Promise((next) => setTimeout(next, 10))
  process.off('unhandledRejection', note)
  expect([await observed.failure(), unhandled]).toEqual([{ error: new Error('boom') }, []])
})

test.each<[string, (observed: ObservedPromise<never>) => unknown]>([
  ['awaited', async (observed) => await observed],
  ['returned', async (observed) => observed],
  ['caught', (observed) => observed.catch(() => undefined)],
  ['among others', (observed) => Promise.all([observed, Promise.resolve()])],
])('failure() returns nothing for a promise that is %s', async (_, observe) => {
  const observed = failing()
  await Promise.resolve(observe(observed)).catch(() => undefined)
  expect(await observed.failure()).toBeUndefined()
})

test('a fulfilled promise keeps its value and has no failure', async () => {
  const observed = ObservedPromise.of(Promise.resolve(7))
  expect([await observed.failure(), observed.isObserved, await observed]).toEqual([undefined, false, 7])
})
