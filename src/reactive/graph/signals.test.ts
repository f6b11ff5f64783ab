/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import type { Context, Fault, Signal } from '../index.js'
import {
  CycleError,
  EffectTypeError,
  batch,
  computed,
  createContext,
  createSimulation,
  deferred,
  effect,
  mailbox,
  read,
  semaphore,
  signal,
  spin,
  track,
} from '../index.js'

describe('signals', () => {
  test('R21 a write takes effect at once and increments the version', () => {
    createSimulation().enter(() => {
      const s = signal(1)
      expect(s.version).toBe(0)
      expect(s.update((x) => x + 1)).toBe(2)
      expect([s.get(), s.peek(), s.version]).toEqual([2, 2, 1])
      expect(s.set(5)).toBe(5)
    })
  })

  test.each([undefined, null, 0, '', false, Number.NaN])('R21 %s is an ordinary value', (value) => {
    createSimulation().enter(() => {
      const s = signal<unknown>('start')
      const seen: unknown[] = []
      effect(() => void seen.push(s.get()))
      expect(s.set(value)).toBe(value)
      expect(seen).toEqual(['start', value])
    })
  })

  test('R21 an update that throws leaves the signal unchanged', () => {
    createSimulation().enter(() => {
      const s = signal(1)
      const fail = (): number => {
        throw new Error('no')
      }
      expect(() => s.update(fail)).toThrow('no')
      expect([s.get(), s.version]).toEqual([1, 0])
    })
  })

  test('R21 track gives the value, the value before its last change, and whether it ever changed', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal('a'))
    const seen: unknown[] = []
    ctx.spawn(function* () {
      seen.push(yield* track(s))
    })
    ctx.enter(() => s.set('b'))
    expect(seen).toEqual([
      { new: 'a', old: undefined, first: true },
      { new: 'b', old: 'a', first: false },
    ])
  })

  test('R22 an equal write changes nothing; equals: false always notifies', () => {
    const runsAfterEqualWrite = (equals: false | undefined): number => {
      const ctx = createSimulation()
      const s = ctx.enter(() => signal(0, { equals }))
      let runs = 0
      ctx.spawn(function* () {
        yield* read(s)
        runs++
      })
      const { stamp } = ctx.inspect()
      ctx.enter(() => s.set(0))
      expect(ctx.inspect().stamp === stamp).toBe(equals === undefined)
      return runs
    }
    expect([runsAfterEqualWrite(undefined), runsAfterEqualWrite(false)]).toEqual([1, 2])
  })

  test('R22 a comparator that throws counts as changed and is reported', () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    ctx.enter(() => {
      const s = signal(1, {
        equals: () => {
          throw new Error('cannot compare')
        },
      })
      expect([s.set(1), s.version]).toEqual([1, 1])
    })
    expect(faults.map((fault) => [fault.code, fault.site])).toEqual([['event-error', 'equals']])
  })

  test('R22 unknown options are refused by name', () => {
    createSimulation().enter(() => {
      expect(() => signal(1, { equals: 5 as never })).toThrow(/options\.equals must be false or a function/)
      expect(() => signal(1, { key: 5 as never })).toThrow(/options\.key must be a string, got 5/)
      expect(() => signal(1, null as never)).toThrow(/options must be an object, got null/)
      expect(() => computed(5 as never)).toThrow(/expected a function, got 5/)
      expect(() => effect('x' as never)).toThrow(/expected a function, got "x"/)
      expect(() => signal(1).watch('k', 1 as never)).toThrow(/expected a function/)
    })
  })

  test('R23 compareAndSet needs the seen value; updateAsync starts over after a conflict', async () => {
    const ctx = createContext()
    const s = ctx.enter(() => signal(1))
    expect(ctx.enter(() => s.compareAndSet(0, 9))).toBe(false)
    expect(ctx.enter(() => s.compareAndSet(1, 1))).toBe(true)
    const gates: (() => void)[] = []
    let runs = 0
    const updated = ctx.enter(() =>
      s.updateAsync(async (v) => {
        runs++
        await new Promise<void>((resolve) => gates.push(resolve))
        return v + 10
      }),
    )
    ctx.enter(() => s.set(5))
    gates[0]?.()
    while (gates.length < 2) await Promise.resolve()
    gates[1]?.()
    expect([await updated, s.get(), runs]).toEqual([15, 15, 2])
  })

  test('R24 a batch is one change: no part of it is ever seen', () => {
    const ctx = createSimulation()
    const { w, h } = ctx.enter(() => ({ w: signal(2), h: signal(3) }))
    const results: number[] = []
    let runs = 0
    const area = ctx.enter(() =>
      spin(function* () {
        const product = (yield* read(w)) * (yield* read(h))
        runs++
        results.push(product)
        return product
      }),
    )
    expect(ctx.runSync(area)).toBe(6)
    ctx.enter(() =>
      batch(() => {
        w.set(4)
        batch(() => h.set(5))
        expect(runs).toBe(1)
      }),
    )
    expect([area.get(), runs, results]).toEqual([20, 2, [6, 20]])
  })

  test('R24 a batch that throws keeps and announces its writes; an async one is refused', () => {
    createSimulation().enter(() => {
      const s = signal(0)
      const seen: number[] = []
      effect(() => void seen.push(s.get()))
      const fail = (): never => {
        s.set(1)
        throw new Error('late')
      }
      expect(() => batch(fail)).toThrow('late')
      expect(seen).toEqual([0, 1])
      expect(() => batch(() => Promise.reject(new Error('never seen')))).toThrow('batch is synchronous')
      expect(batch(() => 'value')).toBe('value')
    })
  })

  test('R24 events come in the order of first writes, in one generation', () => {
    const ctx = createSimulation()
    const { a, b } = ctx.enter(() => ({ a: signal(0, { key: 'a' }), b: signal(0, { key: 'b' }) }))
    const events: unknown[] = []
    ctx.trace((record) => void (record.type === 'event' && events.push([record.addr, record.generation])))
    ctx.enter(() =>
      batch(() => {
        b.set(1)
        a.set(1)
        b.set(2)
      }),
    )
    expect(events).toEqual([
      ['/signal:b#0', 1],
      ['/signal:a#0', 1],
    ])
  })

  test('R25 a watcher gets every changing write, in a batch too, and its error is a fault', () => {
    const faults: Fault[] = []
    createSimulation({ onFault: (fault) => faults.push(fault) }).enter(() => {
      const s = signal(0)
      const heard: [number, number][] = []
      s.watch('bad', () => {
        throw new Error('watcher')
      })
      const stop = s.watch('good', (next, old) => heard.push([next, old]))
      batch(() => {
        s.set(1)
        s.set(1)
        s.set(2)
      })
      stop()
      s.set(3)
      expect(heard).toEqual([
        [1, 0],
        [2, 1],
      ])
      expect(faults.map((fault) => fault.code)).toEqual(['watcher-fault', 'watcher-fault', 'watcher-fault'])
    })
  })

  test('R25 a computed may only read', () => {
    const ctx = createSimulation()
    ctx.enter(() => {
      const { s, d, box } = { s: signal(0), d: deferred<number>(), box: mailbox<number>() }
      const attempts = [
        () => s.set(1),
        () => s.update((x) => x + 1),
        () => d.deliver(1),
        () => box.post(1),
        () => batch(() => 1),
        () => spin(function* () {}),
        () => deferred(),
        () => mailbox(),
        () => ctx.spawn(function* () {}),
      ]
      for (const attempt of attempts) expect(() => computed(attempt).get()).toThrow(EffectTypeError)
      expect([s.get(), ctx.isIdle()]).toEqual([0, true])
    })
  })

  test.each<[string, (ctx: Context, s: Signal<number>) => unknown]>([
    ['effect', () => effect(() => undefined)],
    ['runSync', (ctx) => ctx.runSync(function* () {})],
    ['advanceBy', (ctx) => ctx.advanceBy(1)],
    ['semaphore', () => semaphore(1)],
    ['watch', (_, s) => s.watch('k', () => undefined)],
  ])('R25 %s is refused in a computed', (_, use) => {
    const ctx = createSimulation()
    ctx.enter(() => {
      const s = signal(1)
      expect(() => computed(() => use(ctx, s)).get()).toThrow(EffectTypeError)
    })
    expect(ctx.inspect().running).toBe(0)
  })

  test('R25 a computed that reads itself gets the path of the cycle', () => {
    createSimulation().enter(() => {
      const a: { get(): number } = computed(function first() {
        return b.get() + 1
      })
      const b: { get(): number } = computed(function second() {
        return a.get() + 1
      })
      let thrown: unknown
      try {
        a.get()
      } catch (error) {
        thrown = error
      }
      expect(thrown).toBeInstanceOf(CycleError)
      expect((thrown as CycleError).path).toEqual(['computed first', 'computed second', 'computed first'])
    })
  })

  test('R25 computeds of a cycle recover when a change breaks it, whichever was read first', () => {
    for (const isObserved of [false, true]) {
      createSimulation().enter(() => {
        const { on, other } = { on: signal(true), other: signal(0) }
        const a: { get(): number } = computed(() => (on.get() ? b.get() : 1))
        const b: { get(): number } = computed(() => a.get() + 1)
        const c = computed(() => other.get() + b.get())
        const tried = (cell: { get(): number }): unknown => {
          try {
            return cell.get()
          } catch (error) {
            return (error as CycleError).code
          }
        }
        const seen: unknown[] = []
        if (isObserved) effect(() => void seen.push([tried(a), tried(b), tried(c)]))
        for (const value of [true, false, true, false]) {
          on.set(value)
          other.set(other.get() + 1)
          const n = other.get()
          const expected = value ? ['E_REACTIVE_CYCLE', 'E_REACTIVE_CYCLE', 'E_REACTIVE_CYCLE'] : [1, 2, n + 2]
          expect([tried(a), tried(b), tried(c)]).toEqual(expected)
          if (isObserved) expect(seen.at(-1)).toEqual(expected)
        }
      })
    }
  })

  test('R25 a computed without observers is not referenced by what it reads', () => {
    const ctx = createSimulation()
    ctx.enter(() => {
      const s = signal(1)
      const twice = computed(() => s.get() * 2)
      expect([twice.get(), twice.peek(), ctx.inspect().observers]).toEqual([2, 2, 0])
      const stop = effect(() => void twice.get())
      expect(ctx.inspect().observers).toBe(2)
      stop()
      s.set(2)
      expect([ctx.inspect().observers, twice.get()]).toEqual([0, 4])
    })
  })
})
