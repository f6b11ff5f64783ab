/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import type { Context, Spin } from '../index.js'
import {
  ContextStoppedError,
  DerefInDrainError,
  DisposedError,
  ForeignContextError,
  batch,
  computed,
  createContext,
  createSimulation,
  currentContext,
  debounce,
  deferred,
  effect,
  iterate,
  mailbox,
  parallel,
  race,
  read,
  sample,
  semaphore,
  signal,
  sleep,
  spin,
  step,
  throttle,
  waitFor,
} from '../index.js'
import type { ReactiveContext } from '../context/context.js'

/** Rate, its square as a spin, and how often the body ran. */
function square(ctx: Context) {
  const rate = ctx.enter(() => signal(3))
  const runs = { count: 0 }
  const squared = ctx.enter(() =>
    spin(function* () {
      const value = yield* read(rate)
      runs.count++
      return value * value
    }),
  )
  return { rate, squared, runs }
}

const get = <T>(ctx: Context, cell: { get(): T }): T => ctx.enter(() => cell.get())

describe('an overlay', () => {
  test('R55 writes of forks stay in the fork, and results are inherited while they are valid', async () => {
    const ctx = createSimulation()
    const { rate, squared, runs } = square(ctx)
    expect(await ctx.run(squared)).toBe(9)
    const [a, b, idle] = [ctx.fork(), ctx.fork(), ctx.fork()]
    a.enter(() => rate.set(4))
    b.enter(() => rate.set(5))
    expect([await a.run(squared), await b.run(squared), await ctx.run(squared)]).toEqual([16, 25, 9])
    expect([get(a, squared), get(b, squared), get(ctx, squared), squared.get(), get(idle, squared)]).toEqual([
      16, 25, 9, 9, 9,
    ])
    expect(runs.count).toBe(3)
    expect([a, b, ctx].map((each) => get(each, rate))).toEqual([4, 5, 3])
  })

  test('R55 a fork follows its parent until it writes', async () => {
    const ctx = createSimulation()
    const { rate, squared, runs } = square(ctx)
    const twice = ctx.enter(() => computed(() => rate.get() * 2))
    ctx.spawn(squared)
    const [fork, own] = [ctx.fork(), ctx.fork()]
    expect([get(fork, rate), get(fork, twice), get(fork, squared)]).toEqual([3, 6, 9])
    own.enter(() => rate.set(3)) // The same value, but it is the fork's own from now on.
    ctx.enter(() => rate.set(4))
    expect([get(fork, rate), get(fork, twice), get(fork, squared)]).toEqual([4, 8, 16])
    expect([get(own, rate), get(own, twice), get(own, squared)]).toEqual([3, 6, 9])
    // The fork takes the parent's new result, and `own` still has the old one.
    expect(runs.count).toBe(2)
    expect([get(fork, { get: () => rate.version }), get(own, { get: () => rate.version })]).toEqual([1, 0])
  })

  test('R55 what is live in a fork runs again when the parent writes, once for a batch', () => {
    const ctx = createSimulation()
    const [w, h] = ctx.enter(() => [signal(2), signal(3)])
    const fork = ctx.fork()
    const seen: unknown[] = []
    fork.enter(() => effect(() => void seen.push(w.get() * h.get())))
    fork.spawn(function* () {
      seen.push(`${yield* read(w)}x${yield* read(h)}`)
    })
    fork.enter(() => w.watch('w', (next, old) => seen.push([old, next])))
    ctx.enter(() =>
      batch(() => {
        w.set(4)
        h.set(5)
      }),
    )
    expect(seen).toEqual([6, '2x3', [2, 4], 20, '4x5'])
    fork.enter(() => h.set(1))
    ctx.enter(() => h.set(9))
    expect(seen.slice(5)).toEqual([4, '4x1'])
  })

  test('R55 an undrained write of the parent is seen by computeds and effects of a fork', async () => {
    const ctx = createContext()
    const n = ctx.enter(() => signal(1))
    const fork = ctx.fork()
    const seen: number[] = []
    const next = ctx.enter(() => computed(() => n.get() + 1))
    fork.enter(() => effect(() => void seen.push(next.get())))
    ctx.enter(() => n.set(2))
    expect(get(fork, next)).toBe(3)
    await fork.idle()
    expect(seen).toEqual([2, 3])
    await ctx.close()
  })

  test('R55 effects and watchers of the parent do not see what a fork writes', () => {
    const ctx = createSimulation()
    const n = ctx.enter(() => signal(1))
    const seen: unknown[] = []
    ctx.enter(() => effect(() => void seen.push(n.get())))
    ctx.enter(() => n.watch('all', (next) => seen.push(`watch ${next}`)))
    const fork = ctx.fork()
    fork.enter(() => n.set(2))
    expect([seen, get(fork, n), get(ctx, n)]).toEqual([[1], 2, 1])
  })

  test('R55 cells of a fork do not exist outside', async () => {
    const ctx = createSimulation()
    const [fork, sibling] = [ctx.fork(), ctx.fork()]
    const { s, d, box, sp } = fork.enter(() => ({
      s: signal(1),
      d: deferred(),
      box: mailbox(),
      sp: spin(function* () {
        return 1
      }),
    }))
    expect([get(fork, s), get(fork.fork(), s), s.get()]).toEqual([1, 1, 1])
    for (const other of [ctx, sibling]) {
      expect(() => other.enter(() => s.set(2))).toThrow(ForeignContextError)
      expect(() => other.enter(() => computed(() => s.get()).get())).toThrow(ForeignContextError)
      expect(() => other.enter(() => d.deliver(1))).toThrow(ForeignContextError)
      expect(() => other.enter(() => box.post(1))).toThrow(ForeignContextError)
      expect(() => other.spawn(sp)).toThrow(ForeignContextError)
      for (const use of [
        () => read(s),
        () => waitFor(sp),
        () => waitFor(d),
        () => waitFor(box),
        () => waitFor(parallel(sp)),
      ]) {
        await expect(other.run(use)).rejects.toThrow(ForeignContextError)
      }
    }
  })

  test('R55 every way to write a signal writes to the fork', async () => {
    const ctx = createContext()
    const n = ctx.enter(() => signal(1))
    const fork = ctx.fork()
    await fork.enter(async () => {
      expect(n.update((old) => old + 1)).toBe(2)
      expect([n.compareAndSet(1, 7), n.compareAndSet(2, 3), n.peek(), n.version]).toEqual([false, true, 3, 2])
      expect(await n.updateAsync(async (old) => old + 1)).toBe(4)
    })
    expect([n.get(), n.peek(), n.version]).toEqual([1, 1, 0])
    await ctx.close()
  })

  test('R55 a write of the fork runs the live spins of the parent in the fork, through computeds and other spins', () => {
    const ctx = createSimulation()
    const n = ctx.enter(() => signal(1))
    const runs: string[] = []
    const plus = ctx.enter(() => computed(() => n.get() + 1))
    const inner: Spin<number> = ctx.enter(() =>
      spin(function* () {
        const value = yield* read(plus)
        runs.push(`inner ${value} ${currentContext() === ctx ? 'parent' : 'fork'}`)
        return value * 10
      }),
    )
    ctx.spawn(function* () {
      const value = yield* waitFor(inner)
      runs.push(`outer ${value}`)
    })
    const fork = ctx.fork()
    fork.enter(() => n.set(5))
    expect(runs).toEqual(['inner 2 parent', 'outer 20', 'inner 6 fork', 'outer 60'])
    fork.enter(() => n.set(6))
    ctx.enter(() => n.set(2))
    expect(runs.slice(4)).toEqual(['inner 7 fork', 'outer 70', 'inner 3 parent', 'outer 30'])
  })

  test('R55 a spin with children is inherited with them', async () => {
    const ctx = createSimulation()
    const [m, n] = ctx.enter(() => [signal(2), signal(10)])
    let runs = 0
    const outer = ctx.enter(() =>
      spin(function* () {
        const factor = yield* read(m)
        const child = spin(function* () {
          runs++
          return factor * (yield* read(n))
        })
        return yield* waitFor(child)
      }),
    )
    expect(await ctx.run(outer)).toBe(20)
    const fork = ctx.fork()
    expect([await fork.run(outer), runs]).toEqual([20, 1])
    fork.enter(() => n.set(11))
    expect([get(fork, outer), runs]).toEqual([22, 2])
    fork.enter(() => m.set(3))
    expect([get(fork, outer), get(ctx, outer), runs]).toEqual([33, 20, 3])
    ctx.enter(() => m.set(5))
    expect([get(fork, outer), get(ctx, outer), runs]).toEqual([33, 50, 4])
  })

  test('R55 a chain of 10,000 spins and computeds is inherited without a deep call stack', () => {
    const ctx = createSimulation()
    const n = ctx.enter(() => signal(0))
    let runs = 0
    let tip = ctx.enter(() => spin(() => read(n)))
    let last = ctx.enter(() => computed(() => n.get()))
    ctx.enter(() => {
      for (let i = 0; i < 10_000; i++) {
        const [below, before] = [tip, last]
        tip = spin(function* () {
          runs++
          return (yield* waitFor(below)) + 1
        })
        last = computed(() => before.get() + 1)
        if (i % 1000 === 999) last.get() // Evaluated bit by bit: the functions call each other the first time.
      }
    })
    expect([ctx.runSync(tip), last.get()]).toEqual([10_000, 10_000])
    const fork = ctx.fork()
    expect([fork.runSync(tip), get(fork, last), runs]).toEqual([10_000, 10_000, 10_000])
    fork.enter(() => n.set(1))
    expect([get(fork, tip), get(fork, last), get(ctx, tip)]).toEqual([10_001, 10_001, 10_000])
  })

  test('R55 a fork costs the same whatever its parent holds', () => {
    const time = (signals: number): number => {
      const ctx = createSimulation()
      const cells = ctx.enter(() => Array.from({ length: signals }, (_, i) => signal(i)))
      let best = Number.POSITIVE_INFINITY
      for (let round = 0; round < 20; round++) {
        const startedAt = performance.now()
        for (let i = 0; i < 200; i++) ctx.fork()
        best = Math.min(best, performance.now() - startedAt)
      }
      expect(cells.length).toBe(signals)
      return best
    }
    time(10) // Warm up.
    const [few, many] = [time(10), time(100_000)]
    expect(many / few).toBeLessThan(5)
  })
})

describe('shared and local', () => {
  test('R56 the parent may drain while the fork drains', () => {
    const ctx = createSimulation()
    const { rate, squared } = square(ctx)
    const fork = ctx.fork()
    const seen: unknown[] = []
    ctx.enter(() =>
      effect(() => {
        if (rate.get() !== 4) return
        // The parent holds its drain lock here.
        fork.enter(() => rate.set(10))
        fork.spawn(squared)
        seen.push(
          (ctx as ReactiveContext).isDraining,
          fork.enter(() => squared.result()),
        )
      }),
    )
    ctx.enter(() => rate.set(4))
    expect(seen).toEqual([true, { ok: true, value: 100 }])
  })

  test('R56 the clock is shared, timers are local', () => {
    const ctx = createSimulation()
    const fork = ctx.fork({ bindings: { who: 'fork' } })
    const log: unknown[] = []
    const nap = (world: Context, ms: number): void => {
      world.spawn(function* () {
        yield* waitFor(sleep(ms))
        log.push([world === ctx ? 'parent' : 'fork', world.now()])
      })
    }
    nap(ctx, 10)
    nap(fork, 5)
    nap(fork, 10)
    expect([ctx.inspect().timers, fork.inspect().timers]).toEqual([1, 2])
    expect(fork.advanceTo(10)).toBe(3)
    expect(log).toEqual([
      ['fork', 5],
      ['parent', 10],
      ['fork', 10],
    ])
    expect([ctx.now(), fork.now(), fork.inspect().timers]).toEqual([10, 10, 0])
    ctx.spawn(
      function* () {
        fork.advanceBy(1)
      },
      { onError: (error) => log.push(error) },
    )
    expect(log[3]).toBeInstanceOf(DerefInDrainError)
  })

  test('R56 bindings of a fork are added to those of the parent; faults go to the same hook', () => {
    const faults: unknown[] = []
    const ctx = createSimulation({ bindings: { a: 1, b: 1 }, onFault: ({ code }) => faults.push(code) })
    const fork = ctx.fork({ bindings: { b: 2, c: 2 } })
    expect([fork.bindings, fork.fork().bindings, ctx.bindings]).toEqual([
      { a: 1, b: 2, c: 2 },
      { a: 1, b: 2, c: 2 },
      { a: 1, b: 1 },
    ])
    fork.spawn(function* () {
      throw new Error('unseen')
    })
    expect(faults).toEqual(['continuation-fault'])
    expect(fork.inspect().stamp).toBe(ctx.inspect().stamp)
  })

  test('R56 fork options are checked', () => {
    const ctx = createSimulation()
    expect(() => ctx.fork(5 as never)).toThrow('fork: options must be an object, got 5')
    expect(() => ctx.fork({ binding: {} } as never)).toThrow('fork: unknown option binding; known is bindings')
    expect(() => ctx.fork({ bindings: 'x' as never })).toThrow('fork: bindings must be an object, got "x"')
  })
})

describe('events at fork time', () => {
  test('R57 a write that is not drained yet is seen by stamps', async () => {
    const ctx = createContext()
    const text = ctx.enter(() => signal(''))
    const len = ctx.enter(() =>
      spin(function* () {
        return (yield* read(text)).length
      }),
    )
    expect(await ctx.run(len)).toBe(0)
    ctx.enter(() => text.set('abc'))
    const fork = ctx.fork()
    expect(fork.inspect().pending).toBe(0)
    expect(await fork.run(() => waitFor(len))).toBe(3)
    await ctx.close()
  })

  /** A consumer of `box` in `ctx` that notes what it gets, and in which world. */
  function consume(ctx: Context) {
    const box = ctx.enter(() => mailbox<string>())
    const got: string[] = []
    ctx.spawn(() =>
      iterate(0, function* (n) {
        const message = yield* waitFor(box)
        got.push(`${currentContext() === ctx ? 'parent' : 'fork'} ${n} ${message}`)
        return { next: n + 1 }
      }),
    )
    return { box, got }
  }

  test('R57 a pending post is received once, by the parent; the fork answers its own posts', async () => {
    const ctx = createContext()
    const { box, got } = consume(ctx)
    await ctx.idle({ timeoutMs: 0 })
    ctx.enter(() => box.post('a'))
    await ctx.idle({ timeoutMs: 0 })
    ctx.enter(() => box.post('b'))
    const fork = ctx.fork()
    fork.enter(() => box.post('c'))
    await expect.poll(() => got).toEqual(['parent 0 a', 'parent 1 b', 'fork 1 c'])
    fork.enter(() => box.post('d'))
    await expect.poll(() => got.length).toBe(4)
    expect([got[3], box.size, fork.enter(() => box.size)]).toEqual(['fork 2 d', 0, 0])
    await ctx.close()
  })

  test('R57 a message on its way to a run of the parent is not there in the fork', async () => {
    const ctx = createContext({ drainBudget: { events: 1 } })
    const { box, got } = consume(ctx)
    await ctx.idle({ timeoutMs: 0 })
    let fork: Context | undefined
    const end = ctx.trace((record) => {
      if (record.type !== 'event' || record.event !== 'mailbox-post') return
      end()
      fork = ctx.fork() // The post is processed, and the run has not been resumed.
      fork.enter(() => box.post('mine'))
    })
    ctx.enter(() => box.post('theirs'))
    await expect.poll(() => got.toSorted()).toEqual(['fork 0 mine', 'parent 0 theirs'])
    await ctx.close()
  })

  test('R57 messages that wait at fork time are received in both worlds', () => {
    const ctx = createSimulation()
    const box = ctx.enter(() => mailbox<number>())
    ctx.enter(() => [1, 2].forEach((n) => box.post(n)))
    const fork = ctx.fork()
    const take = (world: Context): number => world.runSync(() => waitFor(box))
    expect([take(fork), take(fork), fork.enter(() => box.size), ctx.enter(() => box.size)]).toEqual([1, 2, 0, 2])
    expect([take(ctx), take(ctx)]).toEqual([1, 2])
  })
})

describe('runs in progress', () => {
  /** "hi" to a name, once `go` was delivered. */
  function greet(ctx: Context) {
    const { name, go } = ctx.enter(() => ({ name: signal('ann'), go: deferred<string>() }))
    let ended = 0
    const greeting = ctx.enter(() =>
      spin(function* () {
        const who = yield* read(name)
        try {
          return `${yield* waitFor(go)} ${who}`
        } finally {
          ended++
        }
      }),
    )
    ctx.spawn(greeting, { onError: () => undefined })
    return { name, go, greeting, ended: () => ended }
  }

  test('R58 a parked run is inherited as its log', () => {
    const ctx = createSimulation()
    const { name, go, greeting } = greet(ctx)
    const fork = ctx.fork()
    fork.enter(() => name.set('bob'))
    fork.enter(() => go.deliver('hi'))
    expect([fork.enter(() => greeting.result()), ctx.enter(() => greeting.running), go.waiters]).toEqual([
      { ok: true, value: 'hi bob' },
      true,
      1,
    ])
    ctx.enter(() => go.deliver('hey'))
    expect([greeting.get(), get(fork, greeting)]).toEqual(['hey ann', 'hi bob'])
  })

  test('R58 a delivery of the parent resumes the run of a fork that follows', () => {
    const ctx = createSimulation()
    const { name, go, greeting } = greet(ctx)
    const [changed, untouched] = [ctx.fork(), ctx.fork()]
    changed.enter(() => name.set('bob'))
    expect([changed, untouched].map((each) => each.enter(() => greeting.running))).toEqual([true, true])
    ctx.enter(() => go.deliver('hi'))
    expect([ctx, changed, untouched].map((each) => get(each, greeting))).toEqual(['hi ann', 'hi bob', 'hi ann'])
  })

  test('R58 cancelling in the fork does not touch the run of the parent', async () => {
    const ctx = createSimulation()
    const { go, greeting, ended } = greet(ctx)
    const fork = ctx.fork()
    fork.enter(() => greeting.cancel('no'))
    await expect(fork.run(greeting)).rejects.toThrow(/cancelled/)
    expect([ended(), ctx.enter(() => greeting.running)]).toEqual([0, true])
    ctx.enter(() => go.deliver('hi'))
    expect(get(ctx, greeting)).toBe('hi ann')
    const other = ctx.fork()
    other.enter(() => greeting.dispose())
    await expect(other.run(greeting)).rejects.toThrow(/disposed/)
    expect(get(ctx, greeting)).toBe('hi ann')
  })

  test('R58 a run that waits for a child resumes when the child completes in the fork', () => {
    const ctx = createSimulation()
    const { go, greeting } = greet(ctx)
    const [loud, joined, first] = ctx.enter(() => [
      spin(function* () {
        return (yield* waitFor(greeting)).toUpperCase()
      }),
      parallel(greeting, sleep(0, 'x')),
      race(greeting, sleep(100, 'late')),
    ])
    for (const each of [loud, joined, first]) ctx.spawn(each)
    const fork = ctx.fork()
    fork.enter(() => go.deliver('hi'))
    fork.advanceBy(0)
    const results = (world: Context): unknown[] =>
      world.enter(() => [loud, joined, first].map((each) => (each.result() as { value: unknown } | undefined)?.value))
    expect(results(fork)).toEqual(['HI ANN', ['hi ann', 'x'], 'hi ann'])
    expect(results(ctx)).toEqual([undefined, undefined, undefined])
  })

  test('R58 steps that were answered are not called again, and taken messages are not taken again', () => {
    const ctx = createSimulation()
    const { n, box, go } = ctx.enter(() => ({ n: signal(1), box: mailbox<string>(), go: deferred<void>() }))
    let calls = 0
    const each = ctx.enter(() =>
      spin(function* () {
        const id = yield* step('id', () => ++calls)
        const factor = yield* read(n)
        const message = yield* waitFor(box)
        yield* waitFor(go)
        return [id, factor, message]
      }),
    )
    ctx.spawn(each)
    ctx.enter(() => ['a', 'b'].forEach((message) => box.post(message)))
    const fork = ctx.fork()
    // The cut is before the take: in the fork the message goes back and is taken again.
    fork.enter(() => n.set(2))
    fork.enter(() => go.deliver())
    expect([get(fork, each), fork.enter(() => box.size), calls]).toEqual([[1, 2, 'a'], 1, 1])
    ctx.enter(() => go.deliver())
    expect([get(ctx, each), ctx.enter(() => box.size), calls]).toEqual([[1, 1, 'a'], 1, 1])
  })

  test('R58 a sleeping run sleeps the rest of its time in the fork', () => {
    const ctx = createSimulation()
    const slept = ctx.enter(() => sleep(100, 'done'))
    ctx.spawn(slept)
    ctx.advanceBy(60)
    const fork = ctx.fork()
    fork.spawn(slept)
    expect(fork.inspect().timers).toBe(1)
    ctx.advanceBy(39)
    expect(fork.enter(() => slept.running)).toBe(true)
    ctx.advanceBy(1)
    expect([get(fork, slept), get(ctx, slept)]).toEqual(['done', 'done'])
  })

  test('R58 debounced, sampled and throttled values go their own way in a fork', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    const paced = ctx.enter(() => [
      debounce(s, 100),
      sample(s, 100),
      throttle(s, 10, (all: number[] | undefined, n) => [...(all ?? []), n]),
    ])
    for (const each of paced) ctx.spawn(each)
    ctx.advanceTo(40)
    s.set(2)
    const fork = ctx.fork()
    const values = (world: Context): unknown[] =>
      world.enter(() => paced.map((each) => (each.result() as { value: unknown } | undefined)?.value))
    fork.enter(() => s.set(3))
    ctx.advanceTo(100)
    expect([values(ctx), values(fork)]).toEqual([
      [undefined, 2, [1, 2]],
      [undefined, 3, [1, 2, 3]],
    ])
    ctx.advanceTo(140)
    expect([values(ctx)[0], values(fork)[0]]).toEqual([2, 3])
  })

  test('R58 permits are counted in each world', async () => {
    const ctx = createSimulation()
    const gate = ctx.enter(() => semaphore(1))
    const go = ctx.enter(() => deferred<void>())
    const held = ctx.enter(() => gate.holding(spin(() => waitFor(go))))
    ctx.spawn(held)
    const fork = ctx.fork()
    const next = ctx.enter(() =>
      gate.holding(
        spin(function* () {
          return 'next'
        }),
      ),
    )
    fork.spawn(next)
    expect([fork.enter(() => gate.permits), fork.enter(() => next.running)]).toEqual([0, true])
    fork.enter(() => go.deliver())
    expect([get(fork, next), fork.enter(() => gate.permits), ctx.enter(() => gate.permits)]).toEqual(['next', 1, 0])
    ctx.enter(() => go.deliver())
    expect(ctx.enter(() => gate.permits)).toBe(1)
  })
})

describe('lifetime', () => {
  test('R59 forks of forks: each level sees its own writes', () => {
    const ctx = createSimulation()
    const { rate, squared } = square(ctx)
    ctx.spawn(squared)
    const levels: Context[] = [ctx]
    for (let depth = 1; depth <= 40; depth++) {
      const fork = (levels[depth - 1] as Context).fork()
      expect([fork.depth, fork.parent]).toEqual([depth, levels[depth - 1]])
      if (depth % 10 === 0) fork.enter(() => rate.set(depth))
      levels.push(fork)
    }
    const view = (depth: number): unknown[] => [
      get(levels[depth] as Context, rate),
      get(levels[depth] as Context, squared),
    ]
    expect([0, 9, 10, 15, 20, 39, 40].map(view)).toEqual([
      [3, 9],
      [3, 9],
      [10, 100],
      [10, 100],
      [20, 400],
      [30, 900],
      [40, 1600],
    ])
    ctx.enter(() => rate.set(1))
    expect([0, 9, 10].map(view)).toEqual([
      [1, 1],
      [1, 1],
      [10, 100],
    ])
    levels[10]?.enter(() => rate.set(11))
    expect([10, 19, 20].map(view)).toEqual([
      [11, 121],
      [11, 121],
      [20, 400],
    ])
  })

  test('R59 closing a fork leaves the parent; closing the parent stops its forks', async () => {
    const ctx = createSimulation()
    const { rate, squared } = square(ctx)
    const [fork, other] = [ctx.fork(), ctx.fork()]
    const below = other.fork()
    const waiting = below.run(() => waitFor(sleep(1000))).catch((error: unknown) => error)
    await fork.close()
    expect([fork.state, ctx.state]).toEqual(['closed', 'running'])
    expect(() => fork.enter(() => rate.set(1))).toThrow(ContextStoppedError)
    expect(() => fork.fork()).toThrow(ContextStoppedError)
    expect(ctx.runSync(squared)).toBe(9)
    await ctx.close()
    expect([other.state, below.state]).toEqual(['closed', 'closed'])
    expect(await waiting).toBeInstanceOf(ContextStoppedError)
    expect(() => other.enter(() => rate.get())).toThrow(ContextStoppedError)
    expect(() => ctx.fork()).toThrow(ContextStoppedError)
    await expect(other.run(squared)).rejects.toThrow(ContextStoppedError)
  })

  test('R59 a stopped parent stops its forks', async () => {
    const ctx = createSimulation()
    const rate = ctx.enter(() => signal(1))
    const fork = ctx.fork()
    fork.spawn(() => waitFor(sleep(10)))
    expect(fork.inspect().timers).toBe(1)
    await ctx.stop()
    expect([fork.state, fork.inspect().timers, get(fork, rate)]).toEqual(['stopped', 0, 1])
    expect(() => fork.enter(() => rate.set(2))).toThrow(ContextStoppedError)
  })
})

describe('disposed signals', () => {
  test('a signal that a fork disposed stays as it was there, and lives on in the parent', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    const fork = ctx.fork()
    const seen: number[] = []
    fork.enter(() => effect(() => void seen.push(s.get())))
    fork.enter(() => s.dispose())
    s.set(2)
    expect([s.get(), fork.enter(() => s.get()), seen]).toEqual([2, 1, [1]])
    expect(() => fork.enter(() => s.set(3))).toThrow(DisposedError)
  })

  test('a signal that the parent disposed is disposed in forks that follow it, with its last value', () => {
    const ctx = createSimulation()
    const [s, own] = ctx.enter(() => [signal(1), signal(1)])
    const [before, below] = [ctx.fork(), ctx.fork().fork()]
    const seen: number[] = []
    for (const fork of [before, below]) fork.enter(() => effect(() => void seen.push(s.get() + own.get())))
    before.enter(() => own.set(10))
    ctx.enter(() =>
      batch(() => {
        s.set(2)
        s.dispose()
        own.dispose()
      }),
    )
    const after = ctx.fork()
    for (const fork of [before, below, after]) {
      expect(fork.enter(() => s.get())).toBe(2)
      expect(() => fork.enter(() => s.set(3))).toThrow(DisposedError)
    }
    // What a fork has written is its own.
    expect(before.enter(() => own.set(11))).toBe(11)
    expect(() => below.enter(() => own.set(11))).toThrow(DisposedError)
  })

  test('a plain read in a fork makes no node there', () => {
    const ctx = createSimulation()
    const signals = ctx.enter(() => Array.from({ length: 100 }, (_, i) => signal(i)))
    const fork = ctx.fork()
    fork.enter(() => signals.forEach((s, i) => expect([s.get(), s.peek(), s.version]).toEqual([i, i, 0])))
    expect(fork.inspect().nodes).toBe(0)
    signals[0]?.set(7)
    expect(fork.enter(() => signals[0]?.get())).toBe(7)
  })
})
