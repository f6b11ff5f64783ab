import { expect, test } from 'vitest'
import { ObservedPromise } from './observed-promise.js'

const failing = (): ObservedPromise<never> => ObservedPromise.of(Promise.reject(new Error('boom')))

test('a rejection that nobody listens to is told, and is no unhandled one', async () => {
  const unhandled: unknown[] = []
  const note = (error: unknown): unknown => unhandled.push(error)
  process.on('unhandledRejection', note)
  const heard = failing()
  await new Promise((next) => setTimeout(next, 10))
  process.off('unhandledRejection', note)
  expect([await heard.failure(), unhandled]).toEqual([{ error: new Error('boom') }, []])
})

test.each<[string, (heard: ObservedPromise<never>) => unknown]>([
  ['awaited', async (heard) => await heard],
  ['returned', async (heard) => heard],
  ['caught', (heard) => heard.catch(() => undefined)],
  ['among others', (heard) => Promise.all([heard, Promise.resolve()])],
])('one that is %s is its listener’s', async (_, listen) => {
  const heard = failing()
  await Promise.resolve(listen(heard)).catch(() => undefined)
  expect(await heard.failure()).toBeUndefined()
})

test('what it comes to is passed on as it is', async () => {
  const heard = ObservedPromise.of(Promise.resolve(7))
  expect([await heard.failure(), heard.isObserved, await heard]).toEqual([undefined, false, 7])
})
