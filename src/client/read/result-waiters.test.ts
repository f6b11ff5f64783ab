import { expect, test } from 'vitest'
import { defaultCodec } from '../../codec/codec.js'
import type { Hint, JobRow, Store } from '../../store/store.js'
import { rest, VirtualTime } from '../../testing/simulation/virtual-time.js'
import { systemWorld } from '../../world/world.js'
import { awaitResult } from './await-result.js'
import { ResultWaiters } from './result-waiters.js'

/** Waiters in virtual time on a store that notes its reads. */
function waiting() {
  const time = new VirtualTime(0)
  const [reads, listeners]: [{ at: number; ids: readonly string[] }[], Set<(hint: Hint) => void>] = [[], new Set()]
  const rows = new Map<string, JobRow>()
  const store = {
    changes: {
      onHint: (listener: (hint: Hint) => void) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    },
    jobs: {
      readJobs: async (ids: readonly string[]) => {
        reads.push({ at: time.now, ids })
        return ids.map((id) => rows.get(id))
      },
    },
  } as unknown as Store
  const system = systemWorld()
  const world = {
    ...system,
    timers: { ...system.timers, after: (ms: number, run: () => void) => time.at(time.now + ms, run) },
  }
  const hint = (settled: boolean): void => {
    for (const listener of listeners) listener({ ready: !settled, dueInMs: null, settled, requested: !settled })
  }
  const waiters = new ResultWaiters(store, world)
  const isIdle = (): boolean => time.next === undefined && listeners.size === 0
  return { time, reads, rows, listeners, hint, waiters, world, isIdle }
}

const running = (id: string): JobRow => ({ id, name: 'mail', state: 'running' }) as JobRow
const done = (id: string): JobRow => ({ id, name: 'mail', state: 'done', result: null }) as JobRow
const nothing = (): void => undefined
const never = (): boolean => false

test('a hint that a job has ended causes a read at once, and another hint none', async () => {
  const { reads, hint, waiters } = waiting()
  waiters.wait('a', never, nothing)
  await rest()
  await rest()
  expect(reads).toHaveLength(1)
  hint(false)
  await rest()
  expect(reads).toHaveLength(1)
  hint(true)
  await rest()
  expect(reads).toHaveLength(2)
})

test('waiters are read together, more and more seldom, and every half second at least', async () => {
  const { time, reads, listeners, waiters } = waiting()
  waiters.wait('a', never, nothing)
  waiters.wait('b', never, nothing)
  await time.advanceTo(5_000)
  expect(listeners.size).toBe(1)
  expect(reads.every(({ ids }) => ids.join() === 'a,b')).toBe(true)
  const pauses = reads.slice(1).map(({ at }, index) => at - (reads[index]?.at ?? 0))
  expect(pauses.slice(0, 3)).toEqual([15, 22.5, 33.75])
  expect(pauses.slice(-2)).toEqual([500, 500])
})

test('after the last answer or cancel nothing is read any more', async () => {
  const { time, reads, waiters, isIdle } = waiting()
  const cancel = waiters.wait('a', never, nothing)
  waiters.wait('b', () => true, nothing)
  await rest()
  await rest()
  expect(isIdle()).toBe(false)
  cancel()
  expect(isIdle()).toBe(true)
  const before = reads.length
  waiters.wait('c', () => true, nothing)
  await rest()
  await rest()
  expect(reads).toHaveLength(before + 1)
  expect(isIdle()).toBe(true)
  await time.advanceTo(1_000)
  expect(reads).toHaveLength(before + 1)
})

test('a read covers 500 waiters, and waits a moment when so many wait', async () => {
  const { time, reads, waiters } = waiting()
  for (let i = 0; i < 499; i += 1) waiters.wait(`job-${i}`, never, nothing)
  await rest()
  await rest()
  expect(reads.map(({ at, ids }) => [at, ids.length])).toEqual([[0, 499]])
  const many = waiting()
  for (let i = 0; i < 501; i += 1) many.waiters.wait(`job-${i}`, never, nothing)
  await many.time.advanceTo(1)
  // The first waiter was alone when its read was planned.
  expect(many.reads.map(({ at, ids }) => [at, ids.length])).toEqual([
    [0, 500],
    [0, 1],
  ])
  await many.time.advanceTo(24)
  expect(many.reads).toHaveLength(2)
  await many.time.advanceTo(26)
  expect(many.reads).toHaveLength(4)
  expect(time.now).toBe(0)
})

test('a result that is awaited with a limit leaves no timer, whether it comes or not', async () => {
  const { time, rows, waiters, world, isIdle } = waiting()
  const parts = { waiters, world, codecOf: () => defaultCodec }
  rows.set('a', done('a'))
  expect(await awaitResult('a', 1_000, parts)).toBeUndefined()
  expect(isIdle()).toBe(true)
  rows.set('b', running('b'))
  const late = awaitResult('b', 1_000, parts)
  const failed = expect(late).rejects.toThrow('job b did not end within 1.0 s; it is running')
  await time.advanceTo(1_000)
  await failed
  expect(isIdle()).toBe(true)
  const closing = expect(awaitResult('b', 1_000, parts)).rejects.toThrow('closed')
  waiters.close(new Error('closed'))
  await closing
  expect(isIdle()).toBe(true)
})
