/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test, vi } from 'vitest'
import type { Context, Fault, Mailbox, Op, Spin } from '../index.js'
import {
  attempt,
  computed,
  createContext,
  createSimulation,
  debounce,
  deferred,
  iterate,
  mailbox,
  never,
  parallel,
  race,
  read,
  sample,
  signal,
  sleep,
  spin,
  supervise,
  throttle,
  timeout,
  waitFor,
} from '../index.js'
import { SpinNode } from '../spins/spin.js'

/** Records every result of a spin, with the time. */
function deliveries<T>(ctx: Context, make: () => Spin<T>): [number, T][] {
  const seen: [number, T][] = []
  ctx.spawn(
    function* () {
      const value = yield* waitFor(make())
      seen.push([ctx.now(), value])
    },
    { onError: () => undefined },
  )
  return seen
}

const given = <T>(value: T): Spin<T> =>
  spin(function* () {
    return value
  })

const failed = (message: string): Spin<never> =>
  spin(function* () {
    throw new Error(message)
  })

describe('time', () => {
  test('R51 a timeout gives the fallback, cancels the loser and clears its timer', () => {
    const ctx = createSimulation()
    const slow = ctx.enter(() => sleep(500, 'slow'))
    const seen = deliveries(ctx, () => timeout(slow, 50, 'f'))
    ctx.advanceTo(49)
    expect(seen).toEqual([])
    ctx.advanceTo(50)
    expect([seen, ctx.inspect().timers, slow.result()?.ok]).toEqual([[[50, 'f']], 0, false])
  })

  test('R51 the source wins with a value, an error, or the fallback itself', async () => {
    const ctx = createSimulation()
    const run = <T>(make: () => Spin<T>): Promise<T> => ctx.run(ctx.enter(make))
    expect(await run(() => timeout(given('f'), 50, 'f'))).toBe('f')
    expect(ctx.inspect().timers).toBe(0)
    await expect(run(() => timeout(failed('first'), 50, 'f'))).rejects.toThrow('first')
    const fast = run(() => timeout(sleep(10, 'fast'), 50, 'f'))
    ctx.advanceBy(10)
    expect([await fast, ctx.inspect().timers]).toEqual(['fast', 0])
    expect(() => ctx.enter(() => timeout(given(1), -1, 'f'))).toThrow(RangeError)
    expect(() => ctx.enter(() => timeout(5 as never, 1, 'f'))).toThrow(TypeError)
  })

  test('R51 a timeout whose source won updates with the source', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    const source = ctx.enter(() =>
      spin(function* () {
        return yield* read(s)
      }),
    )
    const guarded = ctx.enter(() => timeout(source, 50, 'late'))
    ctx.runSync(guarded)
    ctx.enter(() => s.set(2))
    expect(guarded.get()).toBe(2)
  })

  test('R51 a shared spin that lost its only waiter runs again for the next one', async () => {
    const ctx = createSimulation()
    const load = ctx.enter(() =>
      spin(function* () {
        yield* waitFor(sleep(10))
        return 'data'
      }),
    )
    const ask = (make: () => Spin<unknown>): Promise<unknown> => {
      const asked = ctx.run(ctx.enter(make)).catch((error: unknown) => error)
      ctx.advanceBy(1000)
      return asked
    }
    expect(await ask(() => timeout(load, 5, 'gave up'))).toBe('gave up')
    expect(ctx.inspect().timers).toBe(0)
    expect(await ask(() => timeout(load, 500, 'gave up'))).toBe('data')
  })

  test.each(['cancel', 'dispose'] as const)('R34 a shared spin survives the %s of its only waiter', async (end) => {
    const ctx = createSimulation()
    const load = ctx.enter(() => sleep(10, 'data'))
    const waiter = ctx.enter(() => parallel(load))
    ctx.spawn(waiter, { onError: () => undefined })
    waiter[end]()
    expect([load.running, ctx.inspect().timers]).toEqual([false, 0])
    const again = ctx.run(load)
    ctx.advanceBy(10)
    expect(await again).toBe('data')
  })

  test('R51 never ends only by cancellation', () => {
    const ctx = createSimulation()
    const each = ctx.enter(() => never())
    ctx.spawn(each, { onError: () => undefined })
    ctx.advanceBy(1e12)
    expect(each.running).toBe(true)
    each.cancel()
    expect(each.running).toBe(false)
  })

  test('R53 debounce delivers after the source was quiet', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal('a'))
    const seen = deliveries(ctx, () => debounce(s, 300))
    ctx.advanceTo(100)
    ctx.enter(() => s.set('b'))
    ctx.advanceTo(200)
    ctx.enter(() => s.set('c'))
    ctx.advanceTo(499)
    expect(seen).toEqual([])
    ctx.advanceTo(500)
    expect(seen).toEqual([[500, 'c']])
    ctx.advanceTo(1000)
    ctx.enter(() => s.set('d'))
    ctx.advanceTo(2000)
    expect(seen).toEqual([
      [500, 'c'],
      [1300, 'd'],
    ])
  })

  test('R53 throttle folds every value of an interval into one delivery', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    const seen = deliveries(ctx, () => throttle(s, 10, (acc: number[] | undefined, v) => [...(acc ?? []), v]))
    ctx.advanceTo(20)
    ctx.enter(() => s.set(2))
    ctx.advanceTo(40)
    ctx.enter(() => s.set(3))
    ctx.advanceTo(99)
    expect(seen).toEqual([])
    ctx.advanceTo(1000)
    expect(seen).toEqual([[100, [1, 2, 3]]])
    ctx.enter(() => s.set(4))
    ctx.advanceTo(2000)
    expect(seen).toEqual([
      [100, [1, 2, 3]],
      [1100, [4]],
    ])
  })

  test('R53 throttle also folds the values of a computed and of a spin', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    const twice = ctx.enter(() => computed(() => s.get() * 2))
    const thrice = ctx.enter(() =>
      spin(function* () {
        return (yield* read(s)) * 3
      }),
    )
    const sum = (acc: number | undefined, v: number): number => (acc ?? 0) + v
    const both = [deliveries(ctx, () => throttle(twice, 1, sum)), deliveries(ctx, () => throttle(thrice, 1, sum))]
    ctx.enter(() => s.set(2))
    ctx.advanceTo(1000)
    expect(both).toEqual([[[1000, 6]], [[1000, 9]]])
  })

  test('R53 sample delivers the latest value at each tick, if it changed', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal('a'))
    const seen = deliveries(ctx, () => sample(s, 100))
    ctx.advanceTo(110)
    ctx.enter(() => s.set('b'))
    ctx.advanceTo(150)
    ctx.enter(() => s.set('c'))
    ctx.advanceTo(500)
    expect(seen).toEqual([
      [100, 'a'],
      [200, 'c'],
    ])
  })

  test('R53 invalid rates are refused, and disposing clears the timers', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    expect(() => ctx.enter(() => debounce(s, -1))).toThrow(RangeError)
    expect(() => ctx.enter(() => sample(s, Number.NaN))).toThrow(RangeError)
    expect(() => ctx.enter(() => throttle(s, 0, (_, v) => v))).toThrow(RangeError)
    expect(() => ctx.enter(() => throttle(s, 1, 5 as never))).toThrow(TypeError)
    const paced = ctx.enter(() => [debounce(s, 10), sample(s, 10), throttle(s, 10, (_: unknown, v) => v)])
    for (const each of paced) ctx.spawn(each)
    expect(ctx.inspect().timers).toBe(3)
    for (const each of paced) each.dispose()
    ctx.enter(() => s.set(2))
    expect(ctx.inspect()).toMatchObject({ timers: 0, observers: 0, running: 0 })
  })
})

describe('parallel and race', () => {
  test('R52 parallel is reactive, also back to an earlier value', () => {
    const ctx = createSimulation()
    const cells = ctx.enter(() => ['x', 'y', 'z'].map((value) => signal(value)))
    const runs = [0, 0, 0]
    const arrays: unknown[] = []
    ctx.spawn(function* () {
      const readers = cells.map((cell, index) =>
        spin(function* () {
          runs[index]!++
          return yield* read(cell)
        }),
      )
      arrays.push(yield* waitFor(parallel(...readers)))
    })
    ctx.enter(() => cells[1]?.set('Y'))
    ctx.enter(() => cells[1]?.set('y'))
    expect([arrays, runs]).toEqual([
      [
        ['x', 'y', 'z'],
        ['x', 'Y', 'z'],
        ['x', 'y', 'z'],
      ],
      [1, 3, 1],
    ])
  })

  test('R52 parallel fails with the first error, at once, and cancels the rest', async () => {
    const ctx = createSimulation()
    const slow = ctx.enter(() => sleep(1000))
    const late = ctx.enter(() =>
      spin(function* () {
        yield* waitFor(sleep(10))
        throw new Error('second')
      }),
    )
    const outcome = ctx.run(ctx.enter(() => parallel(slow, late)))
    ctx.advanceBy(10)
    await expect(outcome).rejects.toThrow('second')
    expect([slow.result()?.ok, ctx.inspect().timers]).toEqual([false, 0])
  })

  test('R52 a later error of a child makes parallel fail, and a later value recovers it', async () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    const child = ctx.enter(() =>
      spin(function* () {
        const n = yield* read(s)
        if (n === 2) throw new Error('two')
        return n
      }),
    )
    const all = ctx.enter(() => parallel<[number, string]>(child, given('k')))
    expect(await ctx.run(all)).toEqual([1, 'k'])
    ctx.enter(() => s.set(2))
    await expect(ctx.run(all)).rejects.toThrow('two')
    ctx.enter(() => s.set(3))
    expect(await ctx.run(all)).toEqual([3, 'k'])
  })

  test('R52 race completes with the first value or error, cancels the others and is decided once', async () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal('now'))
    let runs = 0
    const winner = ctx.enter(() =>
      spin(function* () {
        runs++
        return yield* read(s)
      }),
    )
    const raced = ctx.enter(() => race(sleep(10, 'late'), winner))
    expect(ctx.runSync(raced)).toBe('now')
    expect(ctx.inspect().timers).toBe(0)
    ctx.enter(() => s.set('changed'))
    expect([raced.get(), winner.get(), runs]).toEqual(['now', 'changed', 2])
    await expect(ctx.run(ctx.enter(() => race(never(), failed('first'))))).rejects.toThrow('first')
    expect(() => ctx.enter(() => race())).toThrow(TypeError)
    expect(() => ctx.enter(() => race())).toThrow(/needs at least one/)
    expect(await ctx.run(ctx.enter(() => parallel()))).toEqual([])
  })

  test('R52 deferreds, mailboxes and promises take part, and losers stop waiting', async () => {
    const ctx = createSimulation()
    const { d, box } = ctx.enter(() => ({ d: deferred<number>(), box: mailbox<number>() }))
    const all = ctx.run(ctx.enter(() => parallel<[number, number, number]>(d, box, Promise.resolve(3))))
    ctx.enter(() => [d.deliver(1), box.post(2)])
    expect(await all).toEqual([1, 2, 3])
    const raced = ctx.run(ctx.enter(() => race(d, box)))
    expect([await raced, box.waiters]).toEqual([1, 0])
  })

  test('R52 the earlier message wins a race, and the other goes back to the front of its mailbox', async () => {
    const ctx = createContext()
    const { a, b } = ctx.enter(() => ({ a: mailbox<string>(), b: mailbox<string>() }))
    const raced = ctx.run(ctx.enter(() => race(a, b)))
    await ctx.idle({ timeoutMs: 0 })
    ctx.enter(() => {
      b.post('first')
      a.post('second')
      a.post('third')
    })
    expect([await raced, a.size, b.size]).toEqual(['first', 2, 0])
    expect(
      await ctx.run(function* () {
        return yield* waitFor(a)
      }),
    ).toBe('second')
    await ctx.close()
  })

  test('R52 a race or timeout that is cancelled after it took a message returns the message', async () => {
    const ctx = createContext()
    for (const make of [
      (box: Mailbox<string>) => race(box, never()),
      (box: Mailbox<string>) => timeout(box, 1e6, 'late'),
    ]) {
      const box = ctx.enter(() => mailbox<string>())
      const waiting = ctx.enter(() => make(box))
      const outcome = ctx.run(waiting)
      await ctx.idle({ timeoutMs: 0 })
      const end = ctx.trace((record) => {
        // The wrapper has taken the message, and the race has not processed its completion yet.
        if (record.type !== 'event' || record.event !== 'resume') return
        end()
        waiting.cancel()
      })
      ctx.enter(() => box.post('kept'))
      await expect(outcome).rejects.toThrow(/cancelled/)
      expect(box.size).toBe(1)
    }
    await ctx.close()
  })

  test('R52 waiting for many children checks each a few times, however many there are', async () => {
    const ctx = createSimulation()
    const count = 500
    const deferreds = ctx.enter(() => Array.from({ length: count }, () => deferred<number>()))
    const looks = vi.spyOn(SpinNode.prototype, 'isSettled', 'get')
    const all = ctx.run(ctx.enter(() => parallel<number[]>(...deferreds)))
    ctx.enter(() => deferreds.forEach((each, index) => each.deliver(index)))
    expect((await all).length).toBe(count)
    expect(looks.mock.calls.length).toBeLessThan(20 * count)
    looks.mockRestore()
  })

  test('R54 attempt always succeeds', () => {
    const ctx = createSimulation()
    const error = new Error('no')
    const fails = ctx.enter(() =>
      spin(function* () {
        throw error
      }),
    )
    expect(ctx.runSync(ctx.enter(() => attempt(fails)))).toEqual({ ok: false, error })
    expect(ctx.runSync(ctx.enter(() => attempt(given(1))))).toEqual({ ok: true, value: 1 })
  })
})

describe('supervision', () => {
  test('R54 a consumer that fails is restarted and loses one message only', () => {
    const ctx = createSimulation()
    const box = ctx.enter(() => mailbox<string>())
    const seen: string[] = []
    let starts = 0
    const consumer = function* (): Op<void> {
      starts++
      yield* iterate(undefined, function* () {
        const message = yield* waitFor(box)
        if (message === 'boom') throw new Error(message)
        seen.push(message)
        return { next: undefined }
      })
    }
    ctx.spawn(ctx.enter(() => supervise([{ body: consumer }])))
    ctx.enter(() => ['a', 'boom', 'c'].forEach((message) => box.post(message)))
    expect([seen, starts]).toEqual([['a', 'c'], 2])
  })

  test('R54 past the budget it calls onFatal once, cancels the rest and completes', async () => {
    const ctx = createSimulation()
    const fatal: string[] = []
    let starts = 0
    const failing = function* (): Op<void> {
      starts++
      throw new Error('always')
    }
    const options = { maxRestarts: 2, onFatal: (error: unknown) => fatal.push((error as Error).message) }
    const supervised = ctx.enter(() => supervise([{ body: failing }, { body: () => waitFor(never()) }], options))
    expect(await ctx.run(supervised)).toBe(undefined)
    expect([starts, fatal, ctx.isIdle()]).toEqual([3, ['always'], true])
  })

  test('R54 without onFatal the last error is a fault, and the failed child does not run again', async () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    const s = ctx.enter(() => signal(1))
    let starts = 0
    const child = function* (): Op<void> {
      starts++
      if ((yield* read(s)) === 1) throw new Error('db down')
      yield* waitFor(never())
    }
    await ctx.run(ctx.enter(() => supervise([{ body: child }], { maxRestarts: 0 })))
    expect(faults).toMatchObject([{ code: 'continuation-fault', site: 'supervise', error: { message: 'db down' } }])
    ctx.enter(() => s.set(2))
    expect([starts, ctx.inspect().running]).toEqual([1, 0])
  })

  test('R54 restarts outside the window do not count', () => {
    const ctx = createSimulation()
    const fatal: unknown[] = []
    let starts = 0
    const hourly = function* (): Op<void> {
      starts++
      yield* waitFor(sleep(100))
      throw new Error('again')
    }
    const options = { maxRestarts: 1, windowMs: 100, onFatal: (error: unknown) => fatal.push(error) }
    ctx.spawn(ctx.enter(() => supervise([{ body: hourly }], options)))
    ctx.advanceBy(1000)
    expect([starts, fatal]).toEqual([11, []])
  })

  test.each([
    ['one-for-one', [1, 2, 1], 0],
    ['one-for-all', [2, 2, 2], 2],
    ['rest-for-one', [1, 2, 2], 1],
  ] as const)('R54 %s restarts whom it should and cancels those it replaces', (strategy, expected, cancelled) => {
    const ctx = createSimulation()
    const box = ctx.enter(() => mailbox<string>())
    const starts = [0, 0, 0]
    let unwound = 0
    const steady = (index: number) =>
      function* (): Op<void> {
        starts[index]!++
        try {
          yield* waitFor(never())
        } finally {
          unwound++
        }
      }
    const failing = function* (): Op<void> {
      starts[1]!++
      throw new Error(yield* waitFor(box))
    }
    const children = [{ body: steady(0) }, { key: 'failing', body: failing }, { body: steady(2) }]
    ctx.spawn(ctx.enter(() => supervise(children, { strategy })))
    ctx.enter(() => box.post('now'))
    expect([starts, unwound]).toEqual([expected, cancelled])
    expect(ctx.inspect().running).toBe(6) // the supervisor, its three children, and the two nevers they wait for
  })

  test('R54 invalid specifications are refused by name', () => {
    const ctx = createSimulation()
    const body = function* (): Op<void> {}
    const wrong =
      (...args: unknown[]) =>
      () =>
        ctx.enter(() => supervise(...(args as Parameters<typeof supervise>)))
    expect(wrong([])).toThrow(/children must be a list/)
    expect(wrong([{ body }, {}])).toThrow(/children\[1\]\.body/)
    expect(wrong([{ body }], { strategy: 'all' })).toThrow(/strategy must be/)
    expect(wrong([{ body }], { maxRestarts: -1 })).toThrow(/maxRestarts/)
    expect(wrong([{ body }], { windowMs: 0 })).toThrow(/windowMs/)
  })
})
