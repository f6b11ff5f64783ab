import { describe, expect, test } from 'vitest'
import type { Op } from './index.js'
import {
  DisposedError,
  computed,
  createSimulation,
  deferred,
  effect,
  mailbox,
  read,
  signal,
  sleep,
  spin,
  waitFor,
} from './index.js'

describe('bounded tables', () => {
  test('R67 after 10,000 changes there is as much as after 10', () => {
    const ctx = createSimulation()
    const { s, d } = ctx.enter(() => ({ s: signal(0), d: deferred<never>() }))
    ctx.spawn(function* () {
      yield* read(s)
      yield* waitFor(d)
    })
    const change = (count: number): void => {
      for (let i = 0; i < count; i++) s.update((n) => n + 1)
    }
    change(10)
    const { generation: _, stamp: __, ...few } = ctx.inspect()
    change(9990)
    const { generation, stamp: ___, ...many } = ctx.inspect()
    expect([many, d.waiters, generation]).toEqual([few, 1, 10_000])
  })

  test('R67 cancelled waits leave no waiters, messages no events, and sleeps no timers', () => {
    const ctx = createSimulation()
    const { s, box } = ctx.enter(() => ({ s: signal(0), box: mailbox<number>() }))
    const taken: number[] = []
    const taker = function* (): Op<void> {
      yield* read(s)
      taken.push(yield* waitFor(box))
      yield* waitFor(sleep(1000))
    }
    const spawned = Array.from({ length: 100 }, () => ctx.spawn(taker, { onError: () => undefined }))
    for (let i = 1; i <= 100; i++) s.set(i)
    expect([box.waiters, ctx.inspect().waiters]).toEqual([100, 100])
    for (const each of spawned.slice(10)) each.cancel()
    expect([box.waiters, ctx.inspect().waiters, ctx.inspect().running]).toEqual([10, 10, 10])
    for (let i = 0; i < 10; i++) box.post(i)
    expect(ctx.inspect()).toMatchObject({ pending: 0, timers: 10, queueIdle: true })
    expect([taken.length, box.size, box.waiters]).toEqual([10, 0, 0])
    for (const each of spawned) each.cancel()
    expect(ctx.inspect()).toMatchObject({ pending: 0, timers: 0, waiters: 0, running: 0 })
  })
})

describe('dispose of a spin', () => {
  test('R68 it unregisters from every dependency, and nothing runs again', async () => {
    const ctx = createSimulation()
    const cells = ctx.enter(() => [signal(1), signal(2), signal(3)])
    const { nodes } = ctx.inspect()
    let runs = 0
    const sum = ctx.enter(() =>
      spin(function* () {
        let total = 0
        for (const cell of cells) total += yield* read(cell)
        runs++
        return total
      }),
    )
    expect(ctx.runSync(sum)).toBe(6)
    expect(ctx.inspect()).toMatchObject({ nodes: nodes + 1, observers: 3 })
    sum.dispose()
    for (const cell of cells) cell.update((n) => n + 1)
    expect([runs, ctx.inspect().observers, ctx.inspect().nodes, sum.result()]).toEqual([1, 0, nodes, undefined])
    expect(() => sum.get()).toThrow(DisposedError)
    await expect(ctx.run(sum)).rejects.toThrow(DisposedError)
  })

  test('R68 a run in progress is released with its children, and its callers are rejected', async () => {
    const ctx = createSimulation()
    const { s, d } = ctx.enter(() => ({ s: signal(1), d: deferred<number>() }))
    const { nodes } = ctx.inspect()
    const outer = ctx.enter(() =>
      spin(function* () {
        yield* read(s)
        const inner = spin(function* () {
          return (yield* read(s)) + (yield* waitFor(d))
        })
        return yield* waitFor(inner)
      }),
    )
    const called = ctx.run(outer)
    expect(ctx.inspect()).toMatchObject({ nodes: nodes + 2, observers: 3, waiters: 2, running: 2 })
    outer.dispose()
    await expect(called).rejects.toThrow(DisposedError)
    expect(ctx.inspect()).toMatchObject({ nodes, observers: 0, waiters: 0, running: 0, pending: 0 })
    expect(d.waiters).toBe(0)
  })
})

describe('deep graphs', () => {
  test('R69 a chain of 10,000 spins and a fan-out of 100,000 update and are disposed without a deep stack', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    let tip = ctx.enter(() =>
      spin(function* () {
        return yield* read(s)
      }),
    )
    const all = [tip]
    for (let i = 0; i < 10_000; i++) {
      const below = tip
      tip = ctx.enter(() =>
        spin(function* () {
          return (yield* waitFor(below)) + 1
        }),
      )
      all.push(tip)
    }
    expect(ctx.runSync(tip)).toBe(10_000)
    s.set(1)
    expect(tip.get()).toBe(10_001)
    for (const each of all.toReversed()) each.dispose()
    expect(ctx.inspect()).toMatchObject({ observers: 0, nodes: 1 })
    let sum = 0
    const stops = ctx.enter(() => {
      const next = computed(() => s.get() + 1)
      return Array.from({ length: 100_000 }, () => effect(() => void (sum += next.get())))
    })
    sum = 0
    s.set(2)
    expect(sum).toBe(300_000)
    for (const stop of stops) stop()
    expect(ctx.inspect()).toMatchObject({ observers: 0, nodes: 1 })
  })
})
