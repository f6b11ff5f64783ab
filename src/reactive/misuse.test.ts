/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import type { EffectTypeError, Op, Spin } from './index.js'
import {
  CycleError,
  EffectOutsideSpinError,
  ForeignContextError,
  computed,
  createSimulation,
  deferred,
  effect,
  iterate,
  mailbox,
  onCancel,
  parallel,
  race,
  read,
  scope,
  signal,
  spin,
  step,
  supervise,
  track,
  untracked,
  waitFor,
} from './index.js'

describe('effects in the wrong place', () => {
  test('R63 outside a body', () => {
    const ctx = createSimulation()
    const { s, box } = ctx.enter(() => ({ s: signal(1), box: mailbox() }))
    const drive = (op: Op<unknown>) => () => [...(op as Iterable<unknown>)]
    for (const op of [
      () => track(s),
      () => read(s),
      () => waitFor(box),
      () => step('k', () => 1),
      () => scope('k', function* () {}),
      () =>
        iterate(0, function* () {
          return { done: 1 }
        }),
      () => onCancel(() => undefined),
    ]) {
      expect(drive(op())).toThrow(EffectOutsideSpinError)
      expect(ctx.enter(() => drive(op()))).toThrow(EffectOutsideSpinError)
    }
  })

  test('R63 created in another body, before the body, or used twice', async () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    let kept: Op<number> | undefined
    await ctx.run(function* () {
      kept = read(s)
    })
    const early = ctx.enter(() => read(s))
    for (const op of [kept as Op<number>, early]) {
      await expect(
        ctx.run(function* () {
          yield* op
        }),
      ).rejects.toThrow(EffectOutsideSpinError)
    }
    for (const make of [
      () => read(s),
      () =>
        scope('k', function* () {
          return 1
        }),
    ]) {
      await expect(
        ctx.run(function* () {
          const once = make()
          yield* once
          yield* once
        }),
      ).rejects.toThrow(/was used a second time/)
    }
  })
})

describe('arguments of the wrong type', () => {
  test('R64 the yield throws an error that names what to use instead', () => {
    const ctx = createSimulation()
    const { s, sp } = ctx.enter(() => ({ s: signal(1), sp: spin(function* () {}) }))
    const errorOf = (op: () => Op<unknown>): unknown =>
      ctx.runSync(function* () {
        try {
          yield* op()
          return 'nothing'
        } catch (error) {
          return [(error as EffectTypeError).code, (error as Error).message]
        }
      })
    expect(errorOf(() => track(sp as never))).toEqual(['E_EFFECT_TYPE', 'track takes a signal; use waitFor for spins'])
    expect(errorOf(() => waitFor(s as never))).toEqual([
      'E_EFFECT_TYPE',
      'waitFor takes a spin, deferred, mailbox or promise; use track for signals',
    ])
    expect(errorOf(() => waitFor(undefined as never))).toEqual([
      'E_EFFECT_TYPE',
      'waitFor takes a spin, deferred, mailbox or promise, got undefined',
    ])
    expect(errorOf(() => track({} as never))).toEqual([
      'E_EFFECT_TYPE',
      'track takes a signal or computed, got an object',
    ])
    const sum = ctx.enter(() => computed(() => 1))
    expect(errorOf(() => waitFor(sum as never))).toEqual(errorOf(() => waitFor(s as never)))
  })

  test('R64 keys and functions are checked when the effect is created', async () => {
    const ctx = createSimulation()
    const wrong = [
      () => step(5 as never, () => 1),
      () => step('k', 5 as never),
      () => scope(5 as never, function* () {}),
      () => scope('k', 5 as never),
      () => iterate(0, 5 as never),
      () => onCancel(5 as never),
    ]
    for (const make of wrong) expect(make).toThrow(TypeError)
    await expect(
      ctx.run(() =>
        iterate(0, function* () {
          return { oops: 1 } as never
        }),
      ),
    ).rejects.toThrow('iterate: a turn must return { next } or { done }')
  })
})

describe('wrong arguments', () => {
  const ctx = createSimulation()
  const body = function* (): Op<void> {}
  test.each<[string, () => unknown, RegExp]>([
    ['effect(async)', () => effect((async () => undefined) as never), /effect: expected a plain function/],
    ['effect(function*)', () => effect(function* () {} as never), /effect: expected a plain function/],
    [
      'signal option',
      () => signal(1, { equal: false } as never),
      /signal: unknown option equal; known are key, equals/,
    ],
    ['mailbox option', () => mailbox({ name: 'a' } as never), /mailbox: unknown option name; known are key/],
    ['spin option', () => spin(body, { kye: 'a' } as never), /spin: unknown option kye; known are key, deps, equals/],
    ['simulation null', () => createSimulation(null as never), /createSimulation: options must be an object/],
    ['simulation 0', () => createSimulation(0 as never), /createSimulation: options must be an object/],
    ['simulation fn', () => createSimulation((() => 1) as never), /createSimulation: options must be an object/],
    ['simulation clock', () => createSimulation({ clock: 'real' } as never), /clock of a simulation is virtual/],
    ['supervise []', () => supervise([]), /supervise: children must be a list of one or more .* got an empty list/],
    ['supervise null', () => supervise([{ body }], null as never), /supervise: options must be an object, got null/],
    ['untracked', () => untracked(5 as never), /untracked: expected a function, got 5/],
    ['stop', () => ctx.stop(null as never), /stop: options must be an object, got null/],
    ['idle', () => ctx.idle(null as never), /idle: options must be an object, got null/],
    ['trace', () => ctx.trace(5 as never), /trace: expected a function, got 5/],
    ['advanceBy Infinity', () => ctx.advanceBy(Number.POSITIVE_INFINITY), /must be a finite number/],
    ['advanceTo Infinity', () => ctx.advanceTo(Number.POSITIVE_INFINITY), /expected a finite time/],
    ['advanceBy null', () => ctx.advanceBy(null as never), /must be a finite number/],
    ['advanceBy true', () => ctx.advanceBy(true as never), /must be a finite number/],
    ['advanceBy text', () => ctx.advanceBy('5' as never), /must be a finite number/],
    ['race(null)', () => race(null as never), /race: argument 0 must be a spin/],
  ])('%s is refused in words', (_, use, message) => {
    expect(() => ctx.enter(use)).toThrow(message)
    expect([ctx.state, ctx.now()]).toEqual(['running', 0])
  })

  test('an error of a trace listener is a fault and does not become a result', async () => {
    const faults: string[] = []
    const traced = createSimulation({ onFault: ({ code, site }) => faults.push(`${code} ${site}`) })
    const end = traced.trace(() => {
      throw new Error('listener')
    })
    const s = traced.enter(() => signal(1))
    expect(await traced.run(() => read(s))).toBe(1)
    end()
    expect(new Set(faults)).toEqual(new Set(['watcher-fault trace']))
  })
})

describe('cycles and cells of other contexts', () => {
  test('R65 a spin that waits for itself, directly or through others, gets the path of the cycle', async () => {
    const ctx = createSimulation()
    const a: Spin<unknown> = ctx.enter(() => spin(() => waitFor(b), { key: 'a' }))
    const b: Spin<unknown> = ctx.enter(() => spin(() => waitFor(a), { key: 'b' }))
    const error: unknown = await ctx.run(a).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(CycleError)
    expect((error as CycleError).path).toEqual(['/spin:a#0', '/spin:b#0', '/spin:a#0'])
    const self: Spin<unknown> = ctx.enter(() => spin(() => waitFor(self), { key: 'self' }))
    await expect(ctx.run(self)).rejects.toMatchObject({ path: ['/spin:self#0', '/spin:self#0'] })
    const joined: Spin<unknown> = ctx.enter(() => spin(() => waitFor(parallel(joined)), { key: 'joined' }))
    await expect(ctx.run(joined)).rejects.toThrow(CycleError)
    expect(ctx.isIdle()).toBe(true)
  })

  test('R65 a cycle that only a later change closes is found too', async () => {
    const ctx = createSimulation()
    const isClosed = ctx.enter(() => signal(false))
    const a: Spin<number> = ctx.enter(() =>
      spin(
        function* () {
          return (yield* read(isClosed)) ? yield* waitFor(b) : 1
        },
        { key: 'a' },
      ),
    )
    const b: Spin<number> = ctx.enter(() =>
      spin(
        function* () {
          return (yield* waitFor(a)) + 1
        },
        { key: 'b' },
      ),
    )
    expect(await ctx.run(b)).toBe(2)
    ctx.enter(() => isClosed.set(true))
    expect(ctx.isIdle()).toBe(true)
    await expect(ctx.run(a)).rejects.toThrow(CycleError)
    ctx.enter(() => isClosed.set(false))
    expect(await ctx.run(b)).toBe(2)
  })

  test('R65 a cell of another root is refused, wherever it is used', async () => {
    const [here, there] = [createSimulation(), createSimulation()]
    const strange = there.enter(() => ({ s: signal(1), d: deferred(), box: mailbox(), sp: spin(function* () {}) }))
    const uses: (() => Op<unknown>)[] = [
      () => read(strange.s),
      () => waitFor(strange.d),
      () => waitFor(strange.box),
      () => waitFor(strange.sp),
    ]
    for (const use of uses) await expect(here.run(use)).rejects.toThrow(ForeignContextError)
    here.enter(() => {
      expect(() => strange.s.set(2)).toThrow(ForeignContextError)
      expect(() => strange.d.deliver(1)).toThrow(ForeignContextError)
      expect(() => computed(() => strange.s.get()).get()).toThrow(ForeignContextError)
      expect(() => effect(() => void strange.s.get())).toThrow(ForeignContextError)
      expect(() => here.spawn(strange.sp)).toThrow(ForeignContextError)
    })
    expect(strange.s.get()).toBe(1)
  })

  test('no misuse stops the drain for others', () => {
    const ctx = createSimulation({ onFault: () => undefined })
    const { s, box } = ctx.enter(() => ({ s: signal(0), box: mailbox<number>() }))
    const seen: number[] = []
    const misuses: (() => Op<unknown>)[] = [
      () => waitFor(undefined as never),
      () => track(5 as never),
      function* () {
        yield 5 as never
      },
      function* () {
        return ctx.runSync(function* () {})
      },
      () => 5 as never,
      function* () {
        s.set((yield* read(s)) + 1)
      },
    ]
    for (const misuse of misuses) ctx.spawn(misuse)
    ctx.spawn(function* () {
      for (;;) seen.push(yield* waitFor(box))
    })
    ctx.enter(() => [box.post(1), box.post(2)])
    expect(seen).toEqual([1, 2])
  })
})
