/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import { codec } from '../../codec/codec.js'
import type { Context, Op, Signal, Spin, Turned } from '../index.js'
import {
  ContextStoppedError,
  SerializeError,
  computed,
  createContext,
  createSimulation,
  deferred,
  deserialize,
  effect,
  iterate,
  mailbox,
  parallel,
  race,
  read,
  restore,
  semaphore,
  signal,
  sleep,
  spin,
  step,
  throttle,
  timeout,
  waitFor,
} from '../index.js'

/** Makes the cells of a program, and hands them out again after each restore. */
function program<C>(make: (ctx: Context) => C) {
  const start = (ctx: Context = createSimulation()) => ({ ctx, cells: ctx.enter(() => make(ctx)) })
  const again = (snapshot: ReturnType<Context['snapshot']>, options: Parameters<typeof restore>[1] = {}) => {
    let cells: C | undefined
    const ctx = restore(snapshot, { ...options, build: (built) => (cells = make(built)) })
    return { ctx, cells: cells as C }
  }
  /** The same through text. */
  const reload = (ctx: Context) => again(deserialize(ctx.snapshot().serialize()))
  return { start, again, reload }
}

const at = <T>(ctx: Context, f: () => T): T => ctx.enter(f)

describe('snapshot', () => {
  test('R60 a snapshot does not change, and its restores are independent', () => {
    const { start, again } = program(() => ({ list: signal([1], { key: 'list' }) }))
    const { ctx, cells } = start()
    const snapshot = ctx.snapshot()
    cells.list.get().push(2)
    const [a, b] = [again(snapshot), again(snapshot)]
    expect([a.cells.list.get(), cells.list.get()]).toEqual([[1], [1, 2]])
    a.cells.list.get().push(3)
    b.cells.list.set([4])
    expect([a, b, again(snapshot), { cells }].map((each) => each.cells.list.get())).toEqual([[1, 3], [4], [1], [1, 2]])
  })

  test('R60 a snapshot cannot be written to', () => {
    const { ctx } = program(() => signal(1, { key: 'n' })).start()
    const snapshot = ctx.snapshot()
    expect(snapshot.addresses).toEqual(['/signal:n#0'])
    expect(() => (snapshot.addresses as string[]).push('x')).toThrow(TypeError)
    expect(() => Object.assign(snapshot, { addresses: [] })).toThrow(TypeError)
  })

  test('R60 running, stopped, forked and draining contexts have snapshots; a closed one has none', async () => {
    const { start, again } = program(() => ({ n: signal(1, { key: 'n' }), m: signal(1, { key: 'm' }) }))
    const { ctx, cells } = start()
    const fork = ctx.fork()
    at(fork, () => cells.n.set(2))
    at(ctx, () => cells.m.set(5))
    const values = (snapshot: ReturnType<Context['snapshot']>): unknown => {
      const { n, m } = again(snapshot).cells
      return [n.get(), m.get()]
    }
    expect([values(fork.snapshot()), values(ctx.snapshot())]).toEqual([
      [2, 5],
      [1, 5],
    ])
    let inside: ReturnType<Context['snapshot']> | undefined
    at(ctx, () => effect(() => void (inside = cells.n.get() === 7 ? ctx.snapshot() : undefined)))
    at(ctx, () => cells.n.set(7))
    expect(inside && values(inside)).toEqual([7, 5])
    await ctx.stop()
    expect(values(ctx.snapshot())).toEqual([7, 5])
    await ctx.close()
    expect(() => ctx.snapshot()).toThrow(ContextStoppedError)
  })

  test('R60 queued events are part of it, or not', async () => {
    const { start, again } = program((ctx) => {
      const cells = {
        n: signal(0, { key: 'n' }),
        d: deferred<string>({ key: 'd' }),
        box: mailbox<string>({ key: 'box' }),
      }
      const got = spin(
        function* () {
          return [yield* read(cells.n), yield* waitFor(cells.d), yield* waitFor(cells.box)]
        },
        { key: 'got' },
      )
      ctx.spawn(got)
      return { ...cells, got }
    })
    const { ctx, cells } = start(createContext())
    await ctx.idle({ timeoutMs: 0 })
    at(ctx, () => [cells.n.set(1), cells.d.deliver('d'), cells.box.post('m')])
    const [all, committed] = [ctx.snapshot(), ctx.snapshot({ includePending: false })]
    expect([again(all).cells.got.result(), again(committed).cells.got.result()]).toEqual([
      { ok: true, value: [1, 'd', 'm'] },
      undefined,
    ])
    await ctx.close()
  })

  test('R60 a run in progress is stored without its last result, unless asked for', () => {
    const { start, again } = program((ctx) => {
      const n = signal(1, { key: 'n' })
      const slow = spin(
        function* () {
          const value = yield* read(n)
          if (value > 1) yield* waitFor(sleep(10))
          return value
        },
        { key: 'slow' },
      )
      ctx.spawn(slow)
      return { n, slow }
    })
    const { ctx, cells } = start()
    at(ctx, () => cells.n.set(2))
    const [clean, kept] = [ctx.snapshot(), ctx.snapshot({ cleanInFlight: false })].map((each) => again(each))
    expect([clean?.cells.slow.result(), kept?.cells.slow.result()]).toEqual([undefined, { ok: true, value: 1 }])
    for (const each of [clean, kept]) {
      each?.ctx.advanceBy(10)
      expect(each?.cells.slow.get()).toBe(2)
    }
  })

  test('R60 options are checked', () => {
    const ctx = createSimulation()
    expect(() => ctx.snapshot(5 as never)).toThrow('snapshot: options must be an object, got 5')
    expect(() => ctx.snapshot({ pending: true } as never)).toThrow(
      'snapshot: unknown option pending; known are includePending, cleanInFlight',
    )
    expect(() => ctx.snapshot({ cleanInFlight: 1 as never })).toThrow('cleanInFlight must be true or false, got 1')
  })
})

describe('restore', () => {
  /** One outer and two inner spins over n: n + n². */
  const nested = program((ctx) => {
    const n = signal(4, { key: 'n' })
    const calls: string[] = []
    const outer = spin(
      function* () {
        const same = spin(
          function* () {
            const value = yield* read(n)
            return yield* step('same', () => (calls.push('same'), value))
          },
          { key: 'same' },
        )
        const square = spin(
          function* () {
            const value = yield* read(n)
            return yield* step('square', () => (calls.push('square'), value * value))
          },
          { key: 'square' },
        )
        return (yield* waitFor(same)) + (yield* waitFor(square))
      },
      { key: 'outer' },
    )
    ctx.spawn(outer)
    return { n, outer, calls }
  })

  test('R61 spins are rebuilt at the same addresses, without calling a step again', () => {
    const { ctx, cells } = nested.start()
    expect([cells.outer.get(), cells.calls]).toEqual([20, ['same', 'square']])
    const snapshot = ctx.snapshot()
    expect(snapshot.addresses).toEqual([
      '/signal:n#0',
      '/spin:outer#0',
      '/spin:outer#0/spin:same#0',
      '/spin:outer#0/spin:square#0',
    ])
    const again = nested.again(deserialize(snapshot.serialize()))
    expect([again.cells.outer.get(), again.cells.calls]).toEqual([20, []])
    expect(again.ctx.snapshot().addresses).toEqual(snapshot.addresses)
    expect(again.ctx.inspect()).toMatchObject({ observers: ctx.inspect().observers, running: 0, pending: 0 })
    at(again.ctx, () => again.cells.n.set(5))
    expect([again.cells.outer.get(), again.cells.calls]).toEqual([30, ['same', 'square']])
    expect(cells.outer.get()).toBe(20)
  })

  test('R61 without stored results a body just computes', () => {
    const { n } = createSimulation().enter(() => ({ n: signal(1, { key: 'n' }) }))
    expect(n.get()).toBe(1)
    const ctx = createSimulation()
    at(ctx, () => signal(6, { key: 'n' }))
    const again = nested.again(ctx.snapshot())
    expect([again.cells.outer.get(), again.cells.calls]).toEqual([42, ['same', 'square']])
  })

  test('R61 parked runs wait again: for a deferred, a message, a timer, a child and a permit', () => {
    const { start, reload } = program((ctx) => {
      const cells = {
        d: deferred<string>({ key: 'd' }),
        box: mailbox<string>({ key: 'box' }),
        gate: semaphore(1, { key: 'gate' }),
      }
      const log: unknown[] = []
      const note = (name: string, wait: () => Spin<unknown>): void => {
        ctx.spawn(
          spin(
            function* () {
              const value = yield* waitFor(wait())
              log.push([name, value, ctx.now()])
            },
            { key: name },
          ),
        )
      }
      const held = (key: string, ms: number) => (): Spin<unknown> =>
        cells.gate.holding(spin(() => waitFor(sleep(ms, key))))
      note('deferred', () => spin(() => waitFor(cells.d)))
      note('box', () => spin(() => waitFor(cells.box)))
      note('nap', () => sleep(30, 'slept'))
      note('race', () => race(cells.d, sleep(50, 'late')))
      note('timeout', () =>
        timeout(
          spin(() => waitFor(cells.d)),
          20,
          'gave up',
        ),
      )
      note('parallel', () => parallel(cells.d, sleep(5, 'x')))
      note('first', held('first', 25))
      note('second', held('second', 25))
      return { ...cells, log }
    })
    const { ctx, cells } = start()
    ctx.advanceBy(10)
    const again = reload(ctx)
    expect([again.ctx.now(), again.ctx.inspect().timers, again.cells.gate.permits]).toEqual([10, 4, 0])
    for (const each of [{ ctx, cells }, again]) {
      each.ctx.advanceTo(40)
      at(each.ctx, () => [each.cells.box.post('m'), each.cells.d.deliver('d')])
      each.ctx.advanceTo(100)
    }
    expect(again.cells.log).toEqual(cells.log)
    expect(cells.log.length).toBe(8)
    expect([again.cells.gate.permits, again.ctx.isIdle()]).toEqual([1, true])
  })

  test('R61 a throttled window continues', () => {
    const { start, reload } = program((ctx) => {
      const s = signal(1, { key: 's' })
      const folded = throttle(s, 10, (all: number[] | undefined, n) => [...(all ?? []), n])
      ctx.spawn(folded)
      return { s, folded }
    })
    const { ctx, cells } = start()
    ctx.advanceTo(20)
    cells.s.set(2)
    const again = reload(ctx)
    for (const each of [{ ctx, cells }, again]) {
      each.cells.s.set(3)
      each.ctx.advanceTo(99)
      expect(each.cells.folded.completed).toBe(false)
      each.ctx.advanceTo(100)
      expect(each.cells.folded.get()).toEqual([1, 2, 3])
    }
  })

  test('R61 messages that were taken are not taken again, and takers keep their order', () => {
    const { start, reload } = program((ctx) => {
      const box = mailbox<number>({ key: 'box' })
      const n = signal(1, { key: 'n' })
      const log: string[] = []
      for (const key of ['a', 'b', 'c']) {
        ctx.spawn(
          spin(
            () =>
              iterate(0, function* (turn) {
                const factor = yield* read(n)
                const first = yield* waitFor(box)
                const second = yield* waitFor(box)
                log.push(`${key}${turn}: ${factor * (first + second)}`)
                return { next: turn + 1 }
              }),
            { key },
          ),
        )
      }
      return { box, n, log }
    })
    const { ctx, cells } = start()
    const post = (each: { ctx: Context; cells: typeof cells }, ...messages: number[]): void =>
      at(each.ctx, () => messages.forEach((message) => each.cells.box.post(message)))
    post({ ctx, cells }, 1, 2, 3, 4) // a has 1 and 4, its turn is over; b has 2, c has 3.
    const again = reload(ctx)
    for (const each of [{ ctx, cells }, again]) {
      post(each, 5)
      at(each.ctx, () => each.cells.n.set(10))
      post(each, 6, 7, 8)
    }
    expect(cells.log.slice(1)).toEqual(again.cells.log)
    expect(again.cells.log.length).toBeGreaterThan(1)
  })

  test('R61 what changed before the snapshot and was not drained yet runs after the restore', async () => {
    const { start, again } = program((ctx) => {
      const n = signal(1, { key: 'n' })
      const twice = computed(() => n.get() * 2)
      const inner = spin(
        function* () {
          return (yield* read(twice)) + 1
        },
        { key: 'inner' },
      )
      const outer = spin(
        function* () {
          return (yield* waitFor(inner)) * 10
        },
        { key: 'outer' },
      )
      ctx.spawn(outer)
      return { n, outer }
    })
    const { ctx, cells } = start(createContext())
    await ctx.idle()
    expect(cells.outer.get()).toBe(30)
    at(ctx, () => cells.n.set(2))
    for (const includePending of [true, false]) {
      expect(again(ctx.snapshot({ includePending })).cells.outer.get()).toBe(50)
    }
    await ctx.close()
  })

  test('R61 errors, cancelled spins and steps that failed come back', () => {
    let calls = 0
    const { start, reload } = program((ctx) => {
      const failing = spin(
        function* () {
          try {
            yield* step('fails', () => {
              calls++
              throw new RangeError('too far')
            })
          } catch (error) {
            throw new Error(`after ${(error as Error).message}`, { cause: error })
          }
        },
        { key: 'failing' },
      )
      const cancelled = spin(() => waitFor(sleep(10)), { key: 'cancelled' })
      for (const each of [failing, cancelled]) ctx.spawn(each, { onError: () => undefined })
      return { failing, cancelled }
    })
    const { ctx, cells } = start()
    cells.cancelled.cancel('enough')
    const again = reload(ctx)
    expect(() => again.cells.failing.get()).toThrow('after too far')
    expect(() => again.cells.cancelled.get()).toThrow(/was cancelled/)
    expect([calls, again.ctx.inspect().timers]).toEqual([1, 0])
  })

  test('R61 a cell may be created after the restore, and gets its state and its events', async () => {
    const ctx = createContext()
    const make = () => ({ n: signal(1, { key: 'n' }), box: mailbox<string>({ key: 'box' }) })
    const { n, box } = at(ctx, make)
    at(ctx, () => [n.set(2), box.post('late')])
    const again = restore(ctx.snapshot())
    const cells = at(again, make)
    expect([cells.n.get(), again.inspect().pending]).toEqual([2, 1])
    expect(await again.run(() => waitFor(cells.box))).toBe('late')
  })

  test('R61 unused state is kept, and a restored context can be forked and stored again', () => {
    const { ctx } = nested.start()
    at(ctx, () => signal('unused', { key: 'unused' }))
    const again = nested.again(ctx.snapshot())
    expect(again.ctx.snapshot().addresses).toContain('/signal:unused#0')
    const fork = again.ctx.fork()
    at(fork, () => again.cells.n.set(1))
    expect([at(fork, () => again.cells.outer.get()), again.cells.outer.get()]).toEqual([2, 20])
    expect(nested.again(fork.snapshot()).cells.outer.get()).toBe(2)
    expect(fork.snapshot().addresses).toContain('/signal:unused#0')
  })

  test('R61 misuse of restore is refused', () => {
    const ctx = createSimulation()
    const snapshot = ctx.snapshot()
    expect(() => restore(snapshot.serialize() as never)).toThrow(/read text with deserialize\(text\) first/)
    expect(() => restore({} as never)).toThrow(TypeError)
    expect(() => restore(snapshot, { build: 5 as never })).toThrow('restore: build must be a function, got 5')
    expect(() => restore(snapshot, { drain: 'no' as never })).toThrow('restore: drain must be true or false, got "no"')
    expect(() => restore(snapshot, { binding: {} } as never)).toThrow(/restore: unknown option binding/)
    expect(() =>
      restore(snapshot, {
        build: () => {
          throw new Error('mine')
        },
      }),
    ).toThrow('mine')
  })
})

describe('serialize', () => {
  const values: Record<string, unknown> = {
    undefined: undefined,
    nan: Number.NaN,
    infinity: Number.POSITIVE_INFINITY,
    minus: Number.NEGATIVE_INFINITY,
    zero: -0,
    big: 12345678901234567890n,
    date: new Date(0),
    map: new Map<unknown, unknown>([
      ['b', 1],
      ['a', new Set([2, 1])],
    ]),
    bytes: new Uint8Array([1, 2, 255]),
    json: { b: [1, null, 'x', true], a: {} },
    dollar: { $: 1, $$: 2, __proto__: null },
  }

  test('R62 every tagged type comes back', () => {
    const { start, reload } = program(() => ({ all: signal<Record<string, unknown>>({}, { key: 'all' }) }))
    const { ctx, cells } = start()
    const error = Object.assign(new RangeError('far', { cause: new Error('near') }), { code: 'E_FAR' })
    at(ctx, () => cells.all.set({ ...values, error }))
    const { error: loaded, ...others } = reload(ctx).cells.all.get()
    const { __proto__: _, ...dollar } = values['dollar'] as Record<string, unknown>
    expect(others).toEqual({ ...values, dollar })
    expect([...(others['map'] as Map<unknown, unknown>).keys()]).toEqual(['b', 'a'])
    expect(loaded).toMatchObject({ name: 'RangeError', message: 'far', code: 'E_FAR', cause: { message: 'near' } })
    expect((loaded as Error).stack).toBe(error.stack)
  })

  test('R62 a restored context that was not drained has the same text', async () => {
    const make = (ctx: Context) => {
      const n = signal({ b: 1, a: 2 }, { key: 'n' })
      const box = mailbox<string>({ key: 'box' })
      const d = deferred<number>({ key: 'd' })
      ctx.spawn(function* () {
        yield* read(n)
        yield* waitFor(sleep(1000))
      })
      ctx.spawn(function* () {
        yield* waitFor(box)
        yield* waitFor(d)
      })
      return { n, box, d }
    }
    const ctx = createContext({ clock: 'virtual' })
    const { n, box, d } = at(ctx, () => make(ctx))
    await ctx.idle({ timeoutMs: 0 })
    at(ctx, () => box.post('taken'))
    await ctx.idle({ timeoutMs: 0 })
    ctx.advanceBy(400)
    at(ctx, () => [n.set({ a: 1, b: 1 }), box.post('queued'), d.deliver(1)])
    const text = ctx.snapshot().serialize()
    expect(JSON.parse(text)).toMatchObject({
      format: 'millrace-snapshot',
      version: 1,
      now: 400,
      queue: [{ type: 'signal-change' }, { type: 'mailbox-post' }, { type: 'deferred-delivery' }],
      timers: [{ remainingMs: 600 }],
    })
    const bare = restore(deserialize(text), { drain: false })
    expect(bare.snapshot().serialize()).toBe(text)
    const built = restore(deserialize(text), { drain: false, build: make })
    expect(built.snapshot().serialize()).toBe(text)
    await ctx.close()
  })

  test('R62 equal states give equal text', () => {
    const textOf = (keys: readonly string[]): string => {
      const ctx = createSimulation()
      at(ctx, () => keys.forEach((key) => signal({ x: 1, y: { b: 1, a: 2 } }, { key })))
      return ctx.snapshot().serialize()
    }
    expect(textOf(['a', 'b'])).toBe(textOf(['b', 'a']))
  })

  test('R62 a value that cannot be written is named with its address and path', () => {
    class Money {}
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    const cases: [unknown, string, RegExp][] = [
      [{ f: () => 1 }, 'value.f', /function/],
      [[Symbol('s')], 'value[0]', /symbol/i],
      [cycle, 'value.self', /./],
      [new Money(), 'value', /Money/],
    ]
    for (const [value, path, says] of cases) {
      const ctx = createSimulation()
      at(ctx, () => signal<unknown>(value, { key: 'bad' }))
      const snapshot = ctx.snapshot() // A snapshot in memory may have anything.
      const error = thrownBy(() => snapshot.serialize())
      expect(error).toBeInstanceOf(SerializeError)
      expect(error).toMatchObject({ code: 'E_SERIALIZE', addr: '/signal:bad#0', path })
      expect(error.message).toMatch(/^\/signal:bad#0: its state cannot be written at /)
      expect(error.message).toMatch(says)
    }
    const ctx = createContext()
    at(ctx, () => mailbox<unknown>({ key: 'box' })).post(() => 1)
    expect(thrownBy(() => ctx.snapshot().serialize()).message).toMatch(
      /^the queued mailbox-post of \/mailbox:box#0: its state cannot be written at message/,
    )
  })

  test('R62 a codec of the user writes other types', () => {
    class Money {
      readonly cents: number
      constructor(cents: number) {
        this.cents = cents
      }
    }
    const own = codec({
      types: {
        money: {
          is: (value: unknown): value is Money => value instanceof Money,
          write: (money) => money.cents,
          read: (cents) => new Money(Number(cents)),
        },
      },
    })
    const make = (): Signal<Money> => signal(new Money(1), { key: 'price' })
    const ctx = createSimulation()
    at(ctx, make).set(new Money(250))
    const text = ctx.snapshot().serialize(own)
    let loaded: Signal<Money> | undefined
    restore(deserialize(text, own), { build: () => (loaded = make()) })
    expect([loaded?.get(), loaded?.get() instanceof Money]).toEqual([new Money(250), true])
    expect(() => deserialize(text)).toThrow(SerializeError)
    const bytes = codec({ encode: () => new Uint8Array(1), decode: () => 1 })
    expect(() => ctx.snapshot().serialize(bytes)).toThrow('the codec must write a snapshot as text')
    const hidden = codec({
      encode: (value) => `x${JSON.stringify(value)}`,
      decode: (written) => JSON.parse(String(written).slice(1)) as unknown,
    })
    expect(deserialize(ctx.snapshot().serialize(hidden), hidden).addresses).toEqual(['/signal:price#0'])
  })

  test('R62 text that is not a snapshot is refused', () => {
    const good = createSimulation().snapshot().serialize()
    const cases: [unknown, RegExp][] = [
      [5, /takes the text of a snapshot, got 5/],
      ['', /this text is not a snapshot/],
      [good.slice(0, -5), /this text is not a snapshot/],
      ['[]', /the snapshot must be an object, got an array/],
      ['{}', /format must be "millrace-snapshot", got undefined/],
      [good.replace('"version":1', '"version":2'), /version must be 1, got 2; it was written by another version/],
      [
        good.replace('"cells":{}', '"cells":{"/a":{"kind":"pipe"}}'),
        /\/a: kind must be signal, deferred, mailbox or spin/,
      ],
      [
        good.replace('"cells":{}', '"cells":{"/a":{"kind":"spin","stamp":-1}}'),
        /\/a: stamp must be a whole number from 0 to 0, got -1/,
      ],
      [good.replace('"cells":{}', '"cells":{"/a":{"kind":"mailbox","lastOrder":0}}'), /\/a: messages must be a list/],
      [good.replace('"queue":[]', '"queue":[{"addr":"/a","type":"boom"}]'), /queue\[0\]\.type must be/],
      [good.replace('"timers":[]', '"timers":[{"spin":1}]'), /timers\[0\]\.spin must be text, got 1/],
      [good.replace('"clock":"virtual"', '"clock":"sundial"'), /clock must be "real" or "virtual"/],
    ]
    for (const [text, says] of cases) {
      const error = thrownBy(() => deserialize(text as string))
      expect(error).toBeInstanceOf(SerializeError)
      expect(error.message).toMatch(says)
    }
    expect(deserialize(good).addresses).toEqual([])
  })

  test('R62 numbers that no context has, unknown log entries and impossible timers are refused', () => {
    const ctx = createSimulation()
    ctx.enter(() => {
      const s = signal(1, { key: 's' })
      const loop = spin(
        () =>
          iterate(0, function* (n: number): Op<Turned<number, void>> {
            yield* read(s)
            yield* waitFor(sleep(50))
            return { next: n + 1 }
          }),
        { key: 'loop' },
      )
      ctx.spawn(loop)
    })
    ctx.advanceBy(70)
    const t = ctx.enter(() => signal(0, { key: 't' }))
    t.set(1)
    const good = ctx.snapshot().serialize()
    const stamp = ctx.inspect().stamp
    const timer = /"timers":\[(.*)\]/.exec(good)?.[1] ?? ''
    const cases: [from: RegExp | string, to: string, says: RegExp][] = [
      [/"stamp":\d+,"timers"/, '"stamp":9007199254740991,"timers"', /: stamp must be a whole number from 0 to 4503599/],
      [/"stamp":\d+,"timers"/, '"stamp":1e308,"timers"', /: stamp must be a whole number/],
      [/"stamp":\d+,"timers"/, '"stamp":0,"timers"', /stamp must be a whole number from 0 to 0, got \d/],
      [/"stamp":\d+,"value":1/, `"stamp":${stamp + 1},"value":1`, /: stamp must be a whole number from 0 to \d+, got/],
      ['"now":70', '"now":1e999', /: now must be a time from 0 to 8640000000000000, got Infinity/],
      ['"now":70', '"now":1e308', /: now must be a time/],
      [/"generation":\d+/, '"generation":1.5', /: generation must be a whole number from 0 to \d+, got 1.5/],
      ['"turn":1', '"turn":-1', /value\.turn must be a whole number from 0 to \d+, got -1/],
      ['"kind":"track"', '"kind":"boom"', /log\[1\]\.kind must be one of spin, signal, .*, got "boom"/],
      [/"n":0/, '"n":0.5', /log\[0\]\.n must be a whole number/],
      ['"isRunning":true', '"isRunning":"yes"', /isRunning must be true, or left out, got "yes"/],
      [timer, `${timer},${timer}`, /timers\[1\]\.spin must be a spin without another timer/],
      [/"spin":"[^"]*"/, '"spin":"/spin:other#0"', /timers\[0\]\.spin must be the address of a stored spin/],
      [/"spin":"[^"]*"/, '"spin":"/signal:s#0"', /timers\[0\]\.spin must be the address of a stored spin/],
      ['"remainingMs":30', '"remainingMs":1e999', /remainingMs must be a finite number of 0 or more, got Infinity/],
    ]
    for (const [from, to, says] of cases) {
      const text = good.replace(from, to)
      expect(text).not.toBe(good)
      const error = thrownBy(() => deserialize(text))
      expect(error).toMatchObject({ code: 'E_SERIALIZE' })
      expect(error.message).toMatch(says)
    }
    expect([deserialize(good).serialize(), t.get()]).toEqual([good, 1])
  })
})

describe('what a snapshot could not give back', () => {
  test('a key is refused while another cell or spin of its kind has it', () => {
    const ctx = createSimulation()
    const fork = ctx.fork()
    const first = ctx.enter(() => signal(1, { key: 'k' }))
    for (const each of [ctx, fork]) {
      const error = thrownBy(() => each.enter(() => signal(2, { key: 'k' })))
      expect(error).toMatchObject({ code: 'E_ADDRESS', addr: '/signal:k#0' })
      expect(error.message).toMatch(/taken by another signal with the key "k"/)
    }
    const named = ctx.enter(() => [mailbox({ key: 'k' }), deferred({ key: 'k' }), spin(function* () {}, { key: 'k' })])
    expect(() => ctx.enter(() => spin(function* () {}, { key: 'k' }))).toThrow(/E_ADDRESS|another spin with the key/)
    expect(named).toHaveLength(3)
    first.dispose()
    expect(ctx.enter(() => signal(3, { key: 'k' })).addr).toBe('/signal:k#0')
  })

  test('R62 a value that is nested too deep is named with its address', () => {
    const ctx = createSimulation()
    let deep: unknown = 0
    for (let i = 0; i < 100_000; i++) deep = [deep]
    const cells = ctx.enter(() => [signal<unknown>(1, { key: 'flat' }), signal(deep, { key: 'deep' })])
    const error = thrownBy(() => ctx.snapshot().serialize())
    expect(error).toMatchObject({ code: 'E_SERIALIZE', addr: '/signal:deep#0' })
    expect(error.message).toMatch(/nested too deep/)
    for (const value of [1, 2]) cells[1]?.set(value) // The value before the last one is in a snapshot too.
    const text = ctx.snapshot().serialize()
    expect(text).toContain('/signal:deep#0')
    const read = (): unknown => deserialize(text.replace('"value":2', `"value":${'['.repeat(2e4)}${']'.repeat(2e4)}`))
    expect(thrownBy(read)).toMatchObject({ code: 'E_SERIALIZE' })
  })
})

function thrownBy(f: () => unknown): Error {
  try {
    f()
  } catch (error) {
    return error as Error
  }
  throw new Error('nothing was thrown')
}
