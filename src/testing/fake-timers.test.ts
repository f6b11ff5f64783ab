import { afterEach, expect, test, vi } from 'vitest'
import { job } from '../index.js'
import { startMill, testing, waitFor } from './index.js'
import type { TestKit } from './index.js'

afterEach(() => {
  vi.useRealTimers()
  vi.resetModules()
})

const greet = job('greet', async (p: { name: string }) => `hello ${p.name}`)
const flaky = job('flaky', {
  run: async (_: undefined, ctx) => {
    if (ctx.attempt === 1) throw new Error('not yet')
    return ctx.attempt
  },
  retry: { limit: 1, backoff: { start: '1m' }, jitter: 0 },
})

/** All that a user does with the kit. */
async function useKit(t: TestKit): Promise<void> {
  await t.mill.enqueue(greet, { name: 'Ada' })
  await t.expectEnqueued(greet, { name: 'Ada' })
  expect(await t.consume()).toBe('hello Ada')
  expect(await t.forceRetry()).toBe('hello Ada')
  await t.mill.schedule(greet, { name: 'Bob' }, '1h')
  await t.mill.enqueue(flaky)
  expect(await t.drain()).toEqual({ ran: 1, done: 0, failed: 0, retrying: 1, snoozed: 0 })
  await t.advance('1h')
  expect(await t.drain()).toEqual({ ran: 2, done: 2, failed: 0, retrying: 0, snoozed: 0 })
  const handle = await t.mill.enqueue(greet, { name: 'Eve' })
  await t.drain()
  expect(await handle.result()).toBe('hello Eve')
  await t.close()
}

test('the kit works when fake timers come before it', async () => {
  vi.useFakeTimers()
  await useKit(await testing({ jobs: [greet, flaky] }))
})

test('the kit works when fake timers come after it', async () => {
  const t = await testing({ jobs: [greet, flaky] })
  vi.useFakeTimers()
  await useKit(t)
})

test('the kit works when everything that can be faked is, and it is loaded afterwards', async () => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'setInterval', 'setImmediate', 'Date', 'performance', 'hrtime', 'queueMicrotask'],
  })
  vi.resetModules()
  const { testing: loadedLater } = await import('./index.js')
  await useKit(await loadedLater({ jobs: [greet, flaky] }))
})

test('a real mill works under fake timers too', async () => {
  vi.useFakeTimers()
  const mill = await startMill({ jobs: [greet] })
  expect(await waitFor(await mill.enqueue(greet, { name: 'Ada' }))).toBe('hello Ada')
  await mill.close()
})
