import { expect, test } from 'vitest'
import { LOOP_CELLS, NEVER, TICK_MS, WHO_BLOCKS } from '../../store/loop-watch.js'
import type { Blocking } from '../../store/loop-watch.js'
import type { World } from '../../world/world.js'
import type { Running } from '../attempt/running.js'
import { IndexedSet } from './indexed-set.js'
import { Watchdog } from './watchdog.js'

interface Attempt {
  readonly id: string
  readonly begunAt: number
  readonly settled: boolean
  readonly abortReason: unknown
  alarmAt: number
  slowAt: number
}

/** A watchdog whose clock and timers the test moves. */
function watching() {
  let now = 0
  let isDebugged = false
  let timers = 0
  let current: Running | undefined
  const armed = new Map<() => void, number>()
  const after = (ms: number, run: () => void, options?: { readonly idle?: boolean }): (() => void) => {
    expect(options).toEqual({ idle: true })
    armed.set(run, now + ms)
    timers += 1
    return () => void armed.delete(run)
  }
  const world = {
    clock: { now: () => now, monotonic: () => now },
    timers: { after, soon: (run: () => void) => run() },
    processes: { isDebugged: () => isDebugged },
  } as unknown as World
  const running = new IndexedSet<Running>()
  const due: [string, number][] = []
  const executor = { call: () => undefined, current: () => current }
  const watchdog = new Watchdog({ world, executor, blockGraceMs: 30 }, running, (each, at) => {
    due.push([each.id, at])
    Object.assign(each, { alarmAt: Infinity, slowAt: Infinity })
  })
  const cells = new Int32Array(watchdog.loop.share.memory)
  return {
    watchdog,
    running,
    due,
    timers: () => timers,
    armed: () => [...armed.values()].toSorted((one, other) => one - other),
    begin: (attempt: Partial<Attempt>): Running => {
      const given = { settled: false, abortReason: undefined, alarmAt: Infinity, slowAt: Infinity, begunAt: now }
      const each = { id: 'a', job: 'mail', claimed: { ref: 7 }, ...given, ...attempt } as unknown as Running
      running.add(each)
      watchdog.watch(each)
      return each
    },
    advance: (ms: number): void => {
      now += ms
      for (const [run, at] of armed) if (at <= now && armed.delete(run)) run()
    },
    left: () => [cells[LOOP_CELLS.shortestMs], cells[LOOP_CELLS.longestMs]],
    cell: (name: keyof typeof LOOP_CELLS) => cells[LOOP_CELLS[name]],
    debug: (is: boolean) => (isDebugged = is),
    runs: (each: Running | undefined) => (current = each),
    blocking: (worker: string, stack: string): Blocking | undefined =>
      (globalThis as unknown as Record<symbol, Map<string, (given: string) => Blocking | undefined>>)[
        Symbol.for(WHO_BLOCKS)
      ]?.get(worker)?.(stack),
  }
}

test('one timer is armed for the next moment of all attempts, and moved only to an earlier one', () => {
  const { begin, armed, advance, due, timers } = watching()
  begin({ id: 'a', alarmAt: 100 })
  begin({ id: 'late', slowAt: 500 })
  begin({ id: 'same', alarmAt: 100 })
  expect([armed(), timers()]).toEqual([[100], 1])
  begin({ id: 'b', slowAt: 40, alarmAt: 600 })
  expect(armed()).toEqual([40])
  advance(40)
  expect([due, armed()]).toEqual([[['b', 40]], [100]])
  advance(60)
  expect(due.slice(1)).toEqual([
    ['a', 100],
    ['same', 100],
  ])
  expect(armed()).toEqual([500])
  advance(400)
  expect([due.at(-1), armed()]).toEqual([['late', 500], []])
  begin({ id: 'c', alarmAt: 700 })
  expect(armed()).toEqual([700])
})

test('an attempt whose moment has passed is looked at again a millisecond later, not at once', () => {
  const { begin, armed, advance, running, watchdog } = watching()
  const each = begin({ alarmAt: 10 })
  running.delete(each)
  // Its times stay as they are, whatever is done about it.
  running.add(
    new Proxy(Object.assign(each, { alarmAt: 20 }), {
      set: (on, name, value) => name !== 'index' || Reflect.set(on, name, value),
    }),
  )
  advance(30)
  expect(armed()).toEqual([31])
  watchdog.stop()
  expect(armed()).toEqual([])
})

test('a stopped watchdog has no timer, and begins again with the next attempt', () => {
  const { begin, armed, watchdog, advance, due } = watching()
  begin({ alarmAt: 50 })
  watchdog.stop()
  expect(armed()).toEqual([])
  advance(100)
  expect(due).toEqual([])
  begin({ alarmAt: 200 })
  expect(armed()).toEqual([200])
})

test('the loop counts ticks and shares how long its attempts have left, only while some run and a thread watches', () => {
  const { begin, watchdog, left, cell, advance, armed, running } = watching()
  expect(left()).toEqual([NEVER, NEVER])
  const first = begin({ alarmAt: 1_000 })
  expect([left(), cell('tick')]).toEqual([[NEVER, NEVER], 0])
  watchdog.loop.attach('w1')
  expect([left(), cell('tick')]).toEqual([[1_030, 1_030], 1])
  const second = begin({ alarmAt: 400 })
  expect(left()).toEqual([400 + 30 + TICK_MS, 1_030])
  const third = begin({ alarmAt: Infinity })
  expect(left()).toEqual([400 + 30 + TICK_MS, NEVER])
  running.delete(third)
  Object.assign(second, { alarmAt: 5_000 })
  advance(TICK_MS)
  expect([left(), cell('tick')]).toEqual([[530, 4_530], 2])
  for (const each of [first, second]) running.delete(each)
  advance(TICK_MS)
  expect([left()[0], cell('tick')]).toEqual([NEVER, 2])
  begin({ alarmAt: 3_000 })
  expect([left(), cell('tick')]).toEqual([[2_030, 2_030], 3])
  watchdog.stop()
  expect([left()[0], armed()]).toEqual([NEVER, []])
})

test('an aborted attempt has the time to its alarm, a settled one the grace, and none less than the grace', () => {
  const { begin, watchdog, left, running } = watching()
  begin({ alarmAt: 500, abortReason: new Error('late') })
  watchdog.loop.attach('w2')
  expect(left()).toEqual([500, 500])
  begin({ alarmAt: 9_000, settled: true })
  expect(left()).toEqual([500, 30 + TICK_MS])
  for (const each of running) running.delete(each)
  running.add({ alarmAt: -100, slowAt: Infinity } as Running)
  watchdog.loop.attach('w2')
  expect(left()).toEqual([30, 30])
  watchdog.stop()
})

test('a debugger is shared with the thread', () => {
  const { begin, watchdog, cell, debug, advance } = watching()
  watchdog.loop.attach('w3')
  debug(true)
  begin({ alarmAt: 10_000 })
  expect(cell('isDebugged')).toBe(1)
  debug(false)
  advance(TICK_MS)
  expect(cell('isDebugged')).toBe(0)
  watchdog.stop()
})

test('the loop says which attempt blocks it, with the frames of its handler', () => {
  const { begin, watchdog, runs, blocking } = watching()
  const each = begin({ alarmAt: 1_000 })
  watchdog.loop.attach('w4')
  const frames = Array.from({ length: 15 }, (_, i) => `    at handler${i} (/app/jobs.js:${i + 2}:3)`)
  const stack = ['Error', '    at debugger eval code', '    at f (<anonymous>:1:5)', ...frames].join('\n')
  expect(blocking('w4', stack)).toBeUndefined()
  runs(each)
  const found = { ref: 7, id: 'a', name: 'mail', graceMs: 30, stack: frames.slice(0, 12).join('\n') }
  expect(blocking('w4', stack)).toEqual({ ...found, leftMs: 1_030 })
  Object.assign(each, { alarmAt: Infinity })
  expect(blocking('w4', stack)?.leftMs).toBeNull()
  watchdog.stop()
  expect(blocking('w4', stack)).toBeUndefined()
})
