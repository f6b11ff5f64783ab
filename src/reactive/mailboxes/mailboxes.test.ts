/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import type { Context, Mailbox, Op, Permit, Spin } from '../index.js'
import {
  ForeignContextError,
  createContext,
  createSimulation,
  deferred,
  iterate,
  mailbox,
  read,
  semaphore,
  signal,
  sleep,
  spin,
  waitFor,
} from '../index.js'

/** A spin that takes `count` messages and records them. */
function taker<T>(ctx: Context, box: Mailbox<T>, out: T[], count = 1): Spin<void> {
  const made = ctx.enter(() =>
    spin(function* () {
      for (let i = 0; i < count; i++) out.push(yield* waitFor(box))
    }),
  )
  ctx.spawn(made, { onError: () => undefined })
  return made
}

describe('waiters', () => {
  test('R47 a cancelled taker is skipped without consuming a message', () => {
    const ctx = createSimulation()
    const box = ctx.enter(() => mailbox<string>())
    const out: string[][] = [[], [], []]
    const first = taker(ctx, box, out[0] as string[])
    const second = taker(ctx, box, out[1] as string[])
    first.cancel()
    ctx.enter(() => box.post('m'))
    expect([out, box.waiters]).toEqual([[[], ['m'], []], 0])
    second.cancel()
    const again = [taker(ctx, box, []), taker(ctx, box, [])]
    for (const each of again) each.cancel()
    ctx.enter(() => box.post('n'))
    expect([box.size, box.waiters]).toEqual([1, 0])
    taker(ctx, box, out[2] as string[])
    expect([out[2], box.size]).toEqual([['n'], 0])
  })

  test('R47 messages handed to runs that died go back to the front, in order', async () => {
    const ctx = createContext()
    const { box, s } = ctx.enter(() => ({ box: mailbox<number>(), s: signal(0) }))
    const dying = [taker(ctx, box, []), taker(ctx, box, [])]
    expect(await ctx.idle({ timeoutMs: 0 })).toBe(false)
    expect(box.waiters).toBe(2)
    const out: number[] = []
    // Messages are handed over one event after the post: at the event of the write both are in flight, and then their takers die.
    ctx.enter(() => {
      s.watch('kill', () => dying.forEach((each) => each.cancel()))
      for (const m of [1, 2, 3]) box.post(m)
    })
    ctx.spawn(function* () {
      s.set(1)
    })
    await ctx.idle()
    taker(ctx, box, out, 3)
    await ctx.idle()
    expect(out).toEqual([1, 2, 3])
  })

  test('R47 the run that replaces an unfinished run takes its messages again', () => {
    const ctx = createSimulation()
    const { box, s, gate } = ctx.enter(() => ({ box: mailbox<string>(), s: signal(1), gate: deferred() }))
    const done: unknown[] = []
    const others: string[] = []
    ctx.spawn(function* () {
      const x = yield* read(s)
      const m = yield* waitFor(box)
      yield* waitFor(gate)
      done.push([m, x])
    })
    taker(ctx, box, others)
    ctx.enter(() => box.post('a'))
    ctx.enter(() => s.set(2))
    ctx.enter(() => gate.deliver(undefined))
    expect([done, others, box.size]).toEqual([[['a', 2]], [], 0])
  })

  test('R47 ten thousand changes leave one waiter', () => {
    const ctx = createSimulation()
    const { s, d } = ctx.enter(() => ({ s: signal(0), d: deferred() }))
    ctx.spawn(function* () {
      yield* read(s)
      yield* waitFor(d)
    })
    const change = (from: number, to: number): unknown => {
      for (let i = from; i <= to; i++) ctx.enter(() => s.set(i))
      const { generation: _g, stamp: _s, ...counts } = ctx.inspect()
      return counts
    }
    expect(change(1, 10)).toEqual(change(11, 10_000))
    expect(d.waiters).toBe(1)
  })
})

describe('deferreds and mailboxes', () => {
  test('R48 the first delivery counts, for readers before and after', async () => {
    const ctx = createSimulation()
    const d = ctx.enter(() => deferred<string>())
    const reader = function* () {
      return yield* waitFor(d)
    }
    const early = [1, 2, 3].map(() => ctx.run(reader))
    expect(ctx.enter(() => [d.deliver('a'), d.deliver('b'), d.fail('c')])).toEqual([true, false, false])
    expect(await Promise.all([...early, ctx.run(reader)])).toEqual(['a', 'a', 'a', 'a'])
  })

  test.each([false, undefined, null, 0, ''])('R48 %s can be delivered', (value) => {
    const ctx = createSimulation()
    const d = ctx.enter(() => deferred<unknown>())
    ctx.enter(() => d.deliver(value))
    const got = ctx.runSync(function* () {
      return [yield* waitFor(d)]
    })
    expect(got).toEqual([value])
  })

  test('R48 a failure is thrown to every reader, and an error of one reader does not affect the others', async () => {
    const ctx = createSimulation()
    const d = ctx.enter(() => deferred<number>())
    const failing = ctx.run(function* () {
      yield* waitFor(d)
      throw new Error('mine')
    })
    const other = ctx.run(function* () {
      return yield* waitFor(d)
    })
    ctx.enter(() => d.deliver(1))
    await expect(failing).rejects.toThrow('mine')
    expect(await other).toBe(1)
    const broken = ctx.enter(() => deferred<number>())
    ctx.enter(() => broken.fail(new RangeError('broken')))
    await expect(
      ctx.run(function* () {
        yield* waitFor(broken)
      }),
    ).rejects.toThrow(RangeError)
  })

  test('R49 messages come in order, takers are served in order', () => {
    const ctx = createSimulation()
    const box = ctx.enter(() => mailbox<string | number>())
    const out: (string | number)[] = []
    ctx.enter(() => ['a', 'b', 'c'].forEach((m) => box.post(m)))
    taker(ctx, box, out, 3)
    expect(out).toEqual(['a', 'b', 'c'])
    const [one, two]: (string | number)[][] = [[], []]
    taker(ctx, box, one as never)
    taker(ctx, box, two as never)
    expect(ctx.enter(() => [box.post(1), box.post(2)])).toEqual([undefined, undefined])
    expect([one, two]).toEqual([[1], [2]])
  })

  test('R49 a taker that throws has consumed its message, and its error is reported', () => {
    const errors: unknown[] = []
    const ctx = createSimulation()
    const box = ctx.enter(() => mailbox<string>())
    ctx.spawn(
      function* () {
        throw new Error(`cannot handle ${yield* waitFor(box)}`)
      },
      { onError: (error) => errors.push((error as Error).message) },
    )
    const out: string[] = []
    taker(ctx, box, out)
    ctx.enter(() => ['x', 'y'].forEach((m) => box.post(m)))
    expect([errors, out]).toEqual([['cannot handle x'], ['y']])
  })

  test('R49 posting to a mailbox of another root is refused', () => {
    const [a, b] = [createSimulation(), createSimulation()]
    const box = a.enter(() => mailbox<number>())
    expect(() => b.enter(() => box.post(1))).toThrow(ForeignContextError)
  })

  test('R50 permits are never exceeded and granted in waiting order', () => {
    const ctx = createSimulation()
    const gate = ctx.enter(() => semaphore(2))
    let active = 0
    let most = 0
    const order: number[] = []
    for (let i = 0; i < 10; i++) {
      const work = ctx.enter(() =>
        spin(function* () {
          most = Math.max(most, ++active)
          order.push(i)
          yield* waitFor(sleep(20))
          active--
        }),
      )
      ctx.spawn(ctx.enter(() => gate.holding(work)))
    }
    ctx.advanceBy(100)
    expect([most, active, gate.permits, ctx.now()]).toEqual([2, 0, 2, 100])
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  test('R50 a permit is released on error and on cancel, and only once', async () => {
    const ctx = createSimulation()
    const gate = ctx.enter(() => semaphore(1))
    const failing = ctx.enter(() =>
      gate.holding(
        spin(function* () {
          throw new Error('inner')
        }),
      ),
    )
    await expect(ctx.run(failing)).rejects.toThrow('inner')
    const held = ctx.enter(() => gate.holding(sleep(1000)))
    ctx.spawn(held, { onError: () => undefined })
    expect([gate.permits, ctx.inspect().timers]).toEqual([0, 1])
    held.cancel()
    expect([gate.permits, ctx.inspect().timers]).toEqual([1, 0])
    const permit: Permit = ctx.runSync(ctx.enter(() => gate.acquire()))
    ctx.enter(() => permit.release())
    expect(() => ctx.enter(() => permit.release())).toThrow('over-released')
    for (const n of [0, -1, 1.5, Number.NaN]) expect(() => ctx.enter(() => semaphore(n))).toThrow(RangeError)
  })

  test('R50 a body that runs again after releasing its permit acquires another', () => {
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault.error) })
    const faults: unknown[] = []
    const { gate, a } = ctx.enter(() => ({ gate: semaphore(1), a: signal(0) }))
    let inside = 0
    const seen: number[] = []
    const body = function* (): Op<void> {
      const permit = yield* waitFor(gate.acquire())
      try {
        yield* read(a)
        seen.push(++inside)
        try {
          yield* waitFor(sleep(10))
        } finally {
          inside--
        }
      } finally {
        permit.release()
      }
    }
    ctx.spawn(body)
    ctx.spawn(body)
    ctx.enter(() => a.set(1))
    ctx.advanceBy(100)
    expect([seen, inside, gate.permits, faults]).toEqual([[1, 1, 1], 0, 1, []])
  })

  test('R50 a body that runs again keeps the permit it still holds', () => {
    const ctx = createSimulation()
    const { gate, a } = ctx.enter(() => ({ gate: semaphore(2), a: signal(0) }))
    const permits = new Set<unknown>()
    ctx.spawn(function* () {
      permits.add(yield* waitFor(gate.acquire()))
      yield* read(a)
    })
    ctx.enter(() => a.set(1))
    expect([permits.size, gate.permits]).toEqual([1, 1])
  })

  test('R50 a permit can be released outside any context', async () => {
    const ctx = createSimulation()
    const gate = ctx.enter(() => semaphore(1))
    const permit = await ctx.run(ctx.enter(() => gate.acquire()))
    const next = ctx.run(ctx.enter(() => gate.holding(sleep(0, 'served'))))
    permit.release()
    ctx.advanceBy(0)
    expect([await next, gate.permits]).toEqual(['served', 1])
    expect(() => permit.release()).toThrow('over-released')
  })

  test('a re-run of a body gets the same cells', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    const counts: number[] = []
    ctx.spawn(function* () {
      const memory = signal(0, { key: 'memory' })
      yield* read(s)
      counts.push(memory.update((n) => n + 1))
    })
    ctx.enter(() => s.set(1))
    ctx.enter(() => s.set(2))
    expect(counts).toEqual([1, 2, 3])
  })

  test('a loop over a mailbox takes all available messages in one resume', () => {
    const ctx = createSimulation()
    const box = ctx.enter(() => mailbox<number>())
    ctx.enter(() => {
      for (let i = 1; i <= 100; i++) box.post(i)
    })
    const sum = ctx.runSync(() =>
      iterate(0, function* (total) {
        const next = total + (yield* waitFor(box))
        return box.size === 0 ? { done: next } : { next }
      }),
    )
    expect(sum).toBe(5050)
  })
})
