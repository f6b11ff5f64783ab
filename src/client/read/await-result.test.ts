import { expect, test } from 'vitest'
import { defaultCodec } from '../../codec/codec.js'
import type { Hint, JobRow, Store } from '../../store/store.js'
import { rest, VirtualTime } from '../../testing/simulation/virtual-time.js'
import { systemWorld } from '../../world/world.js'
import { AwaitedResults } from './await-result.js'

/** Awaited results in virtual time, on a store that notes its reads. */
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
  const results = new AwaitedResults({ store, world, codecOf: () => defaultCodec })
  const isIdle = (): boolean => time.next === undefined && listeners.size === 0
  return { time, reads, rows, listeners, hint, results, isIdle }
}

const running = (id: string): JobRow => ({ id, name: 'mail', state: 'running' }) as JobRow
const done = (id: string): JobRow => ({ id, name: 'mail', state: 'done', result: null }) as JobRow
const CLOSED = new Error('closed')

/** Waits for a job that runs; the close of the test rejects it. */
function awaited({ rows, results }: ReturnType<typeof waiting>, id: string): Promise<unknown> {
  rows.set(id, running(id))
  return results.wait(id, undefined).catch((error: unknown) => error)
}

test('a hint that a job has ended causes a read at once, and another hint none', async () => {
  const bench = waiting()
  void awaited(bench, 'a')
  await rest()
  await rest()
  expect(bench.reads).toHaveLength(1)
  bench.hint(false)
  await rest()
  expect(bench.reads).toHaveLength(1)
  bench.hint(true)
  await rest()
  expect(bench.reads).toHaveLength(2)
})

test('awaited jobs are read together, more and more seldom, and every half second at least', async () => {
  const bench = waiting()
  void awaited(bench, 'a')
  void awaited(bench, 'b')
  await bench.time.advanceTo(5_000)
  const { listeners, reads } = bench
  expect(listeners.size).toBe(1)
  expect(reads.every(({ ids }) => ids.join() === 'a,b')).toBe(true)
  const pauses = reads.slice(1).map(({ at }, index) => at - (reads[index]?.at ?? 0))
  expect(pauses.slice(0, 3)).toEqual([15, 22.5, 33.75])
  expect(pauses.slice(-2)).toEqual([500, 500])
})

test('after the last answer nothing is read any more', async () => {
  const { time, reads, rows, results, isIdle } = waiting()
  for (const id of ['a', 'b']) rows.set(id, done(id))
  expect(await Promise.all([results.wait('a', undefined), results.wait('b', 1_000)])).toEqual([undefined, undefined])
  expect([reads.length, isIdle()]).toEqual([1, true])
  await time.advanceTo(1_000)
  expect(reads).toHaveLength(1)
})

test('a read covers 1,000 awaited jobs, and waits a moment when more than 500 are awaited', async () => {
  const few = waiting()
  for (let i = 0; i < 499; i += 1) void awaited(few, `job-${i}`)
  await rest()
  await rest()
  expect(few.reads.map(({ at, ids }) => [at, ids.length])).toEqual([[0, 499]])
  const many = waiting()
  for (let i = 0; i < 1_001; i += 1) void awaited(many, `job-${i}`)
  await many.time.advanceTo(1)
  // The first wait was alone when its read was planned.
  expect(many.reads.map(({ at, ids }) => [at, ids.length])).toEqual([
    [0, 1_000],
    [0, 1],
  ])
  await many.time.advanceTo(34)
  expect(many.reads).toHaveLength(2)
  await many.time.advanceTo(36)
  expect(many.reads).toHaveLength(4)
})

test('a result that is awaited with a limit leaves no timer, whether it comes or not', async () => {
  const { time, rows, results, isIdle } = waiting()
  rows.set('a', done('a'))
  expect(await results.wait('a', 1_000)).toBeUndefined()
  expect(isIdle()).toBe(true)
  rows.set('b', running('b'))
  const failed = expect(results.wait('b', 1_000)).rejects.toThrow('job b did not end within 1.0 s; it is running')
  await rest()
  await rest()
  await time.advanceTo(1_000)
  await failed
  expect(isIdle()).toBe(true)
  const closing = expect(results.wait('b', 1_000)).rejects.toThrow('closed')
  results.close(CLOSED)
  await closing
  expect(isIdle()).toBe(true)
  await expect(results.wait('b', undefined)).rejects.toBe(CLOSED)
})
