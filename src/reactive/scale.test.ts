/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import type { Context, Op, Spin } from './index.js'
import { computed, createSimulation, deferred, effect, never, read, signal, spin, waitFor } from './index.js'

/** A chain of spins, each the value before it plus one; returns the last. */
function chain(ctx: Context, length: number, first: () => Spin<number>): Spin<number> {
  let tip = ctx.enter(first)
  for (let i = 0; i < length; i++) {
    const below = tip
    tip = ctx.enter(() =>
      spin(function* () {
        return (yield* waitFor(below)) + 1
      }),
    )
  }
  return tip
}

describe('deep and wide graphs without a deep call stack', () => {
  test('a chain of 10,000 spins is run from its tip, updated and cancelled', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    const tip = chain(ctx, 10_000, () =>
      spin(function* () {
        return yield* read(s)
      }),
    )
    expect(ctx.runSync(tip)).toBe(10_000)
    ctx.enter(() => s.set(1))
    expect(tip.get()).toBe(10_001)
  })

  test('a chain of 10,000 parked spins resumes, is superseded and cancelled', () => {
    const ctx = createSimulation()
    const { s, d } = ctx.enter(() => ({ s: signal(0), d: deferred<number>() }))
    const bottom = (): Spin<number> =>
      spin(function* () {
        return (yield* read(s)) + (yield* waitFor(d))
      })
    const tip = chain(ctx, 10_000, bottom)
    const other = chain(ctx, 10_000, bottom)
    ctx.spawn(tip)
    ctx.spawn(other, { onError: () => undefined })
    ctx.enter(() => s.set(5))
    other.cancel()
    expect([ctx.inspect().running, d.waiters]).toEqual([10_001, 1])
    ctx.enter(() => d.deliver(1))
    expect([tip.get(), ctx.inspect().running]).toEqual([10_006, 0])
  })

  test('a chain of 10,000 cancelled spins cleans up from its bottom, which waits', () => {
    const ctx = createSimulation()
    const flushed = ctx.enter(() => deferred<void>())
    let cleaned = 0
    const nest = (depth: number): Spin<void> =>
      spin(function* () {
        try {
          yield* waitFor(depth === 0 ? never() : nest(depth - 1))
        } finally {
          if (depth === 0) yield* waitFor(flushed)
          if (cleaned === depth) cleaned++
        }
      })
    const outer = ctx.enter(() => nest(10_000))
    ctx.spawn(outer, { onError: () => undefined })
    outer.cancel()
    expect(cleaned).toBe(0)
    ctx.enter(() => flushed.deliver())
    expect([cleaned, ctx.inspect().running]).toEqual([10_001, 0])
  })

  test('10,000 nested owners are disposed', () => {
    const ctx = createSimulation()
    const nest = (depth: number): Spin<number> =>
      spin(function* () {
        return depth === 0 ? 0 : (yield* waitFor(nest(depth - 1))) + 1
      })
    const { nodes } = ctx.inspect()
    const outer = ctx.enter(() => nest(10_000))
    expect(ctx.runSync(outer)).toBe(10_000)
    expect(ctx.inspect().nodes).toBe(nodes + 10_001)
    outer.dispose()
    expect(ctx.inspect()).toMatchObject({ nodes, observers: 0 })
  })

  test('a fan-out of 100,000 spins is updated by one write', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    let sum = 0
    const add = function* (): Op<void> {
      sum += yield* read(s)
    }
    for (let i = 0; i < 100_000; i++) ctx.spawn(add)
    ctx.enter(() => s.set(1))
    expect(sum).toBe(100_000)
    expect(ctx.inspect().observers).toBe(100_000)
  })

  test('a chain of 10,000 computeds and a fan-out of 100,000 are updated by one write', () => {
    const ctx = createSimulation()
    ctx.enter(() => {
      const s = signal(0)
      let tip = computed(() => s.get())
      for (let i = 0; i < 10_000; i++) {
        const below = tip
        tip = computed(() => below.get() + 1)
        tip.get() // Read while the chain grows: a first read from the tip would recurse once for each node.
      }
      const tips: number[] = []
      const stop = effect(() => void tips.push(tip.get()))
      s.set(1)
      stop()
      s.set(2)
      expect([tips, tip.get()]).toEqual([[10_000, 10_001], 10_002])
      const wide = Array.from({ length: 100_000 }, () => computed(() => s.get() + 1))
      const sum = computed(() => wide.reduce((total, each) => total + each.get(), 0))
      const sums: number[] = []
      effect(() => void sums.push(sum.get()))
      s.set(3)
      expect(sums).toEqual([300_000, 400_000])
    })
  })

  test('one spin may read 20,000 cells, and a change of the last re-reads only that', () => {
    const ctx = createSimulation()
    const cells = ctx.enter(() => Array.from({ length: 20_000 }, () => signal(1)))
    const sum = ctx.enter(() =>
      spin(function* () {
        let total = 0
        for (const cell of cells) total += (yield* read(cell)) + (yield* read(cell))
        return total
      }),
    )
    expect(ctx.runSync(sum)).toBe(40_000)
    let live = 0
    ctx.trace((record) => void (record.type === 'ask' && record.from === 'live' && live++))
    ctx.enter(() => cells.at(-1)?.set(2))
    expect([sum.get(), live]).toEqual([40_002, 1])
  })
})
