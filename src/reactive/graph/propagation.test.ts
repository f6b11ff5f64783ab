/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import type { GraphNode } from './graph.js'
import { observersOf } from './graph.js'
import type { Context, Fault, Op, Signal, Spin } from '../index.js'
import {
  CycleError,
  attempt,
  batch,
  computed,
  createSimulation,
  deferred,
  effect,
  iterate,
  mailbox,
  read,
  signal,
  spin,
  waitFor,
} from '../index.js'
import { SpinCell } from '../spins/spin.js'

const observers = (cell: Signal<unknown> | Spin<unknown>): number =>
  observersOf(cell instanceof SpinCell ? cell.node : (cell as unknown as GraphNode))

/** Creates a spin in `ctx` and runs it once. */
function started<T>(ctx: Context, body: () => Op<T>): Spin<T> {
  const made = ctx.enter(() => spin(body))
  ctx.spawn(made, { onError: () => undefined })
  return made
}

describe('generations and order', () => {
  test('R36 each write is a generation, a batch is one', () => {
    const ctx = createSimulation()
    const cells = ctx.enter(() => [signal(0), signal(0), signal(0)])
    const seen: number[] = []
    for (const cell of cells) {
      ctx.enter(() => cell.set(1))
      seen.push(ctx.inspect().generation)
    }
    ctx.enter(() => batch(() => cells.forEach((cell) => cell.set(2))))
    expect([seen, ctx.inspect().generation]).toEqual([[1, 2, 3], 4])
  })

  test('R37 a chain runs in order of dependency', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    let log: string[] = []
    let last: Spin<number> | undefined
    for (const name of ['a', 'b', 'c', 'd']) {
      const before = last
      last = started(ctx, function* () {
        const n = before === undefined ? yield* read(s) : yield* waitFor(before)
        log.push(name)
        return n + 1
      })
    }
    log = []
    ctx.enter(() => s.set(1))
    expect([log, last?.get()]).toEqual([['a', 'b', 'c', 'd'], 5])
  })

  test('R37 independent nodes run in the order of their first observation', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    let log: number[] = []
    for (const n of [1, 2, 3]) {
      started(ctx, function* () {
        yield* read(s)
        log.push(n)
      })
    }
    log = []
    ctx.enter(() => s.set(1))
    ctx.enter(() => s.set(2))
    expect(log).toEqual([1, 2, 3, 1, 2, 3])
  })

  test('R38 no body sees a part of a change', () => {
    const ctx = createSimulation()
    const price = ctx.enter(() => signal(100))
    const totals: number[] = []
    const tax = started(ctx, function* () {
      return 0.2 * (yield* read(price))
    })
    started(ctx, function* () {
      const total = (yield* waitFor(tax)) + (yield* read(price))
      totals.push(total)
      return total
    })
    ctx.enter(() => price.set(200))
    expect(totals).toEqual([120, 240])
  })

  test('R38 a run that is about to resume never continues with outdated values', () => {
    const ctx = createSimulation()
    const { n, d } = ctx.enter(() => ({ n: signal(1), d: deferred<number>() }))
    const results: number[] = []
    started(ctx, function* () {
      const before = yield* read(n)
      const sum = before + (yield* waitFor(d))
      results.push(sum)
      return sum
    })
    // The delivery is queued first, the write second; the resume must not run with the old n.
    ctx.enter(() =>
      batch(() => {
        d.deliver(10)
        n.set(2)
      }),
    )
    expect(results).toEqual([12])
  })

  test('R38 a spin is not valid while a spin it waits for is still being validated', () => {
    for (const isSourceEqual of [false, true]) {
      const ctx = createSimulation()
      const { x, y, result, first } = ctx.enter(() => {
        const x = signal(0)
        const y = signal(0)
        const copyOf = (cell: Signal<number>, by = 1) =>
          spin(function* () {
            return Math.floor((yield* read(cell)) / by)
          })
        const first = spin(function* () {
          return (yield* read(x)) + (yield* waitFor(copyOf(y)))
        })
        const result = spin(function* () {
          yield* waitFor(first)
          const last = yield* waitFor(attempt(copyOf(x, isSourceEqual ? 10 : 1)))
          return last.ok ? last.value : undefined
        })
        return { x, y, result, first }
      })
      ctx.spawn(result)
      ctx.enter(() => y.set(2))
      ctx.enter(() =>
        batch(() => {
          x.set(1)
          y.set(1)
        }),
      )
      expect([first.dirty, result.dirty]).toEqual([false, false])
      expect(result.get()).toBe(isSourceEqual ? 0 : 1)
    }
  })

  test('R39 each node runs at most once for a change, whatever the paths', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    const runs = { L: 0, M: 0, N: 0, J: 0 }
    const [l, m, n] = (['L', 'M', 'N'] as const).map((name) =>
      started(ctx, function* () {
        const value = yield* read(s)
        runs[name]++
        return value
      }),
    ) as [Spin<number>, Spin<number>, Spin<number>]
    const j = started(ctx, function* () {
      const sum = (yield* waitFor(l)) + (yield* waitFor(m)) + (yield* waitFor(n)) + (yield* read(s))
      runs.J++
      return sum
    })
    for (const value of [1, 2, 3, 4]) ctx.enter(() => s.set(value))
    expect([runs, j.get()]).toEqual([{ L: 5, M: 5, N: 5, J: 5 }, 16])
  })

  test('R40 a child that a run waits for the first time is refreshed first', () => {
    const ctx = createSimulation()
    const { mode, qty } = ctx.enter(() => ({ mode: signal('off'), qty: signal(2) }))
    const reports: string[] = []
    const price = started(ctx, function* () {
      return 5 * (yield* read(qty))
    })
    const bill = started(ctx, function* () {
      return (yield* read(mode)) === 'on' ? yield* waitFor(price) : -1
    })
    started(ctx, function* () {
      const report = `${yield* read(mode)}:${yield* waitFor(bill)}`
      reports.push(report)
      return report
    })
    ctx.enter(() =>
      batch(() => {
        mode.set('on')
        qty.set(3)
      }),
    )
    ctx.enter(() => mode.set('off'))
    expect([reports, observers(price)]).toEqual([['off:-1', 'on:15', 'off:-1'], 0])
  })

  test('R41 an owned child does not run before its owner, and not at all when dropped', () => {
    const ctx = createSimulation()
    const { flag, s } = ctx.enter(() => ({ flag: signal(true), s: signal(0) }))
    let runs = 0
    const owner = started(ctx, function* () {
      // The child reads s before the owner uses it, so the child is reached first.
      const isOn = yield* read(flag)
      if (!isOn) return -1
      return yield* waitFor(
        spin(function* () {
          runs++
          return yield* read(s)
        }),
      )
    })
    ctx.enter(() =>
      batch(() => {
        s.set(1)
        flag.set(false)
      }),
    )
    expect([owner.get(), runs]).toEqual([-1, 1])
  })

  test('R41 a child shared by two parents updates both, once', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    const runs = { C: 0, P1: 0, P2: 0 }
    const c = started(ctx, function* () {
      runs.C++
      return (yield* read(s)) * 10
    })
    const [p1, p2] = (['P1', 'P2'] as const).map((name) =>
      started(ctx, function* () {
        const sum = (yield* read(s)) + (yield* waitFor(c))
        runs[name]++
        return sum
      }),
    ) as [Spin<number>, Spin<number>]
    ctx.enter(() => s.set(2))
    expect([p1.get(), p2.get(), runs]).toEqual([22, 22, { C: 2, P1: 2, P2: 2 }])
  })
})

describe('edges', () => {
  test('R42 a spin is an observer from the moment it reads, not from its completion', () => {
    const ctx = createSimulation()
    const { n, d } = ctx.enter(() => ({ n: signal(1), d: deferred<number>() }))
    const results: number[] = []
    started(ctx, function* () {
      const value = yield* read(n)
      const sum = value + (yield* waitFor(d))
      results.push(sum)
      return sum
    })
    expect(observers(n)).toBe(1)
    ctx.enter(() => n.set(2))
    ctx.enter(() => d.deliver(10))
    expect(results).toEqual([12])
  })

  test('R43 observers survive a re-run from any cut', () => {
    const ctx = createSimulation()
    const cells = ctx.enter(() => [signal(1), signal(2), signal(3)])
    const sum = started(ctx, function* () {
      let total = 0
      for (const cell of cells) total += yield* read(cell)
      return total
    })
    ctx.enter(() => cells[1]?.set(20))
    ctx.enter(() => cells[1]?.set(21))
    expect(cells.map(observers)).toEqual([1, 1, 1])
    for (const cell of cells) ctx.enter(() => cell.set(100))
    expect(sum.get()).toBe(300)
  })

  test('R44 dependencies that a run did not use are unregistered when it completes', () => {
    const ctx = createSimulation()
    const cells = ctx.enter(() => ({ x: signal(1), y: signal(2), z: signal(3) }))
    const which = ctx.enter(() => signal<keyof typeof cells>('x'))
    let runs = 0
    const picked = started(ctx, function* () {
      const value = yield* read(cells[yield* read(which)])
      runs++
      return value
    })
    ctx.enter(() => cells.y.set(20))
    ctx.enter(() => cells.z.set(30))
    expect(runs).toBe(1)
    ctx.enter(() => which.set('z'))
    expect([picked.get(), runs, observers(cells.x), observers(cells.z)]).toEqual([30, 2, 0, 1])
    ctx.enter(() => cells.x.set(10))
    expect(runs).toBe(2)
  })

  test('R44 while a run is in progress the old registrations remain', () => {
    const ctx = createSimulation()
    const { a, b, d } = ctx.enter(() => ({ a: signal(0), b: signal(0), d: deferred() }))
    started(ctx, function* () {
      if ((yield* read(a)) === 1) yield* waitFor(d)
      else yield* read(b)
    })
    ctx.enter(() => a.set(1))
    expect(observers(b)).toBe(1)
    ctx.enter(() => d.deliver(undefined))
    expect(observers(b)).toBe(0)
  })

  test('R45 an equal result stops the propagation', () => {
    const ctx = createSimulation()
    const n = ctx.enter(() => signal(2))
    const runs = { parity: 0, label: 0 }
    const parity = started(ctx, function* () {
      runs.parity++
      return (yield* read(n)) % 2
    })
    const label = started(ctx, function* () {
      const odd = yield* waitFor(parity)
      runs.label++
      return odd === 1 ? 'odd' : 'even'
    })
    ctx.enter(() => n.set(4))
    expect([runs, label.get()]).toEqual([{ parity: 2, label: 1 }, 'even'])
  })

  test('R45 an equal result stops it through computeds too, and unblocks waiting spins', () => {
    const ctx = createSimulation()
    const { n, gate } = ctx.enter(() => ({ n: signal(2), gate: signal(0) }))
    const half = ctx.enter(() => computed(() => Math.floor(n.get() / 2)))
    let runs = 0
    const waits: (() => void)[] = []
    const slow = started(ctx, function* () {
      yield* read(gate)
      yield* waitFor(new Promise<void>((resolve) => waits.push(resolve)))
      return 'same'
    })
    const top = started(ctx, function* () {
      const value = [yield* waitFor(slow), yield* read(half)]
      runs++
      return value
    })
    waits.shift()?.()
    return Promise.resolve()
      .then(() => Promise.resolve())
      .then(() => {
        expect([top.get(), runs]).toEqual([['same', 1], 1])
        ctx.enter(() => n.set(3))
        ctx.enter(() => gate.set(1))
        expect([top.dirty, runs]).toEqual([true, 1])
        waits.shift()?.()
        return Promise.resolve().then(() => Promise.resolve())
      })
      .then(() => expect([top.get(), top.dirty, runs]).toEqual([['same', 1], false, 1]))
  })

  test('R46 a body that writes what it reads settles when its value does', () => {
    const ctx = createSimulation()
    const n = ctx.enter(() => signal(0))
    const each = started(ctx, function* () {
      const value = yield* read(n)
      if (value < 5) n.set(value + 1)
      return value
    })
    expect([n.get(), each.get()]).toEqual([5, 5])
  })

  test('R46 a spin that never settles gets E_REACTIVE_CYCLE, and the others keep working', async () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    const { n, other } = ctx.enter(() => ({ n: signal(0), other: signal(0) }))
    const watching = started(ctx, function* () {
      return yield* read(other)
    })
    const runaway = started(ctx, function* () {
      n.set((yield* read(n)) + 1)
    })
    expect(runaway.result()).toMatchObject({ ok: false, error: { code: 'E_REACTIVE_CYCLE' } })
    expect([n.get() <= 110, ctx.isIdle()]).toEqual([true, true])
    await expect(ctx.run(runaway)).rejects.toThrow(CycleError)
    ctx.enter(() => other.set(1))
    expect(watching.get()).toBe(1)
    ctx.enter(() => effect(() => void n.set(n.get() + 1)))
    expect(faults.map((fault) => (fault.error as CycleError).code)).toEqual(['E_REACTIVE_CYCLE'])
    ctx.enter(() => other.set(2))
    expect(watching.get()).toBe(2)
  })

  test('R46 frequent writes are not feedback: in one run, message by message, or passed on', () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    const { inbox, total, shown } = ctx.enter(() => ({ inbox: mailbox<number>(), total: signal(0), shown: signal(0) }))
    ctx.spawn(() =>
      iterate(0, function* (n) {
        total.set(total.peek() + (yield* waitFor(inbox)))
        return { next: n + 1 }
      }),
    )
    ctx.enter(() => effect(() => void shown.set(total.get() * 2)))
    // One event after another in one drain, so that every message runs the effect.
    const post = (left: number): void => {
      inbox.post(1)
      if (left > 1)
        ctx.spawn(function* () {
          post(left - 1)
        })
    }
    ctx.spawn(function* () {
      post(150)
    })
    expect([total.peek(), shown.peek(), inbox.waiters, inbox.size]).toEqual([150, 300, 1, 0])
    ctx.spawn(function* () {
      yield* read(shown)
      for (let i = 0; i < 150; i++) total.set(-i)
    })
    expect([total.peek(), shown.peek(), faults]).toEqual([-149, -298, []])
  })

  test('R46 a chain through a child, a parent and a spawned spin is feedback, and is reported once', () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    const n = ctx.enter(() => signal(0))
    const copy = ctx.enter(() =>
      spin(function* () {
        return yield* read(n)
      }),
    )
    ctx.spawn(function* () {
      const seen = yield* waitFor(copy)
      ctx.spawn(function* () {
        n.set(seen + 1)
      })
    })
    expect([n.peek() < 1000, ctx.isIdle()]).toEqual([true, true])
    expect(faults.map((fault) => (fault.error as CycleError).code)).toEqual(['E_REACTIVE_CYCLE'])
    ctx.spawn(function* () {
      n.set((yield* waitFor(copy)) + 1)
    })
    expect(faults.slice(1).map((fault) => (fault.error as CycleError).code)).toContain('E_REACTIVE_CYCLE')
  })

  test('R46 two spins that write to each other for ever are stopped too', () => {
    const ctx = createSimulation()
    const { a, b } = ctx.enter(() => ({ a: signal(0), b: signal(0) }))
    const ping = started(ctx, function* () {
      b.set((yield* read(a)) + 1)
    })
    const pong = started(ctx, function* () {
      a.set((yield* read(b)) + 1)
    })
    const codes = [ping, pong].map((each) => {
      const result = each.result()
      return result?.ok === false ? (result.error as CycleError).code : undefined
    })
    expect(codes).toContain('E_REACTIVE_CYCLE')
    expect(ctx.isIdle()).toBe(true)
  })
})
