import { expect, test } from 'vitest'
import { Drainer, handleEach } from './drainer.js'
import { Fifo } from './fifo.js'

test('a fifo returns its items in order, across growth and unshift', () => {
  const fifo = new Fifo<number>()
  const out: number[] = []
  for (let i = 0; i < 10_000; i++) {
    fifo.push(i)
    if (i % 3 === 0) out.push(fifo.shift() as number)
  }
  fifo.unshift(-1)
  expect(fifo.peek()).toBe(-1)
  fifo.shift()
  expect(fifo.toArray().length).toBe(fifo.length)
  while (fifo.length > 0) out.push(fifo.shift() as number)
  expect(out).toEqual(Array.from({ length: 10_000 }, (_, i) => i))
  expect(fifo.shift()).toBe(undefined)
  fifo.unshift(7)
  expect(fifo.toArray()).toEqual([7])
})

test('a session may be a group commit: events that arrive during a commit go into the next one', async () => {
  const commits: number[][] = []
  const isWaiting: (() => void)[] = []
  const drainer = new Drainer<number>({
    schedule: (session) => queueMicrotask(session),
    session: async (take) => {
      const group: number[] = []
      for (let row = take(); row !== undefined; row = take()) group.push(row)
      commits.push(group)
      await new Promise<void>((resolve) => isWaiting.push(resolve))
      return { count: group.length, paused: false }
    },
    failed: () => undefined,
  })
  const add = (row: number): void => {
    drainer.enqueue(row)
    drainer.trigger()
  }
  add(1)
  add(2)
  await Promise.resolve()
  expect(commits).toEqual([[1, 2]])
  add(3)
  add(4)
  await Promise.resolve()
  expect([commits, drainer.pending, drainer.isDraining, drainer.drain()]).toEqual([[[1, 2]], 2, true, 0])
  isWaiting.shift()?.()
  while (commits.length < 2) await Promise.resolve()
  expect(commits).toEqual([
    [1, 2],
    [3, 4],
  ])
})

test('a session that throws or rejects is reported, the lock is released and the rest is handled', async () => {
  const failures: unknown[] = []
  const handled: number[] = []
  let mode: 'throw' | 'reject' | 'work' = 'throw'
  const drainer = new Drainer<number>({
    schedule: (session) => queueMicrotask(session),
    session: (take) => {
      const before = mode
      mode = before === 'throw' ? 'reject' : 'work'
      if (before === 'throw') throw new Error('thrown')
      if (before === 'reject') return Promise.reject(new Error('rejected'))
      return handleEach(take, { handle: (row) => void handled.push(row), failed: () => undefined })
    },
    failed: (error) => failures.push((error as Error).message),
  })
  drainer.enqueue(1)
  drainer.trigger()
  while (handled.length === 0) await Promise.resolve()
  expect([failures, handled]).toEqual([['thrown', 'rejected'], [1]])
})

test('an error of schedule or of failed leaves the drainer usable', async () => {
  const handled: number[] = []
  const wrong = new Set(['schedule', 'session', 'failed'])
  const fail = (what: string): void => {
    if (wrong.delete(what)) throw new Error(what)
  }
  const drainer = new Drainer<number>({
    schedule: (session) => {
      fail('schedule')
      queueMicrotask(session)
    },
    session: (take) => {
      fail('session')
      return handleEach(take, { handle: (row) => void handled.push(row), failed: () => undefined })
    },
    failed: () => fail('failed'),
  })
  drainer.enqueue(1)
  expect(() => drainer.trigger()).toThrow('schedule')
  expect(() => drainer.drain()).toThrow('failed')
  expect(drainer.isDraining).toBe(false)
  drainer.enqueue(2)
  while (handled.length < 2) await Promise.resolve()
  expect(handled).toEqual([1, 2])
})

test('an error of one event does not affect the next, and a spent budget pauses', () => {
  const failed: unknown[] = []
  const queue = [1, 2, 3, 4]
  const run = (events: number): unknown =>
    handleEach(
      () => queue.shift(),
      {
        handle: (row) => {
          if (row === 1) throw new Error('first')
        },
        failed: (row, error) => void failed.push([row, (error as Error).message]),
      },
      { events, ms: 60_000, monotonic: () => 0 },
    )
  expect(run(2)).toEqual({ count: 2, paused: true })
  expect(run(10)).toEqual({ count: 2, paused: false })
  expect(failed).toEqual([[1, 'first']])
})
