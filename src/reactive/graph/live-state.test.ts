import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { Context, Fault, Signal, Spin } from '../index.js'
import {
  ContextStoppedError,
  DisposedError,
  computed,
  createContext,
  createSimulation,
  debounce,
  effect,
  latest,
  read,
  sample,
  signal,
  spin,
  throttle,
  waitFor,
} from '../index.js'

/** A feed that records when it is started and stopped. */
function feed(): { readonly log: string[]; readonly whileObserved: () => () => void } {
  const log: string[] = []
  const whileObserved = (): (() => void) => {
    log.push('start')
    return () => void log.push('stop')
  }
  return { log, whileObserved }
}

describe('the first and the last observer', () => {
  test('a feed starts with the first observer and stops with the last', () => {
    const ctx = createSimulation()
    const { log, whileObserved } = feed()
    const s = ctx.enter(() => signal(0, { whileObserved }))
    s.get()
    s.set(1)
    expect(log).toEqual([])
    const stops = ctx.enter(() => [effect(() => void s.get()), effect(() => void s.get())])
    expect(log).toEqual(['start'])
    s.set(2)
    stops[0]?.()
    expect(log).toEqual(['start'])
    stops[1]?.()
    expect(log).toEqual(['start', 'stop'])
    ctx.enter(() => effect(() => void s.get()))
    expect(log).toEqual(['start', 'stop', 'start'])
  })

  test('observers through computeds, spins, watchers and readers of values count', async () => {
    const ctx = createSimulation()
    const { log, whileObserved } = feed()
    const { s, twice } = ctx.enter(() => {
      const inner = signal(1, { whileObserved })
      const double = computed(() => inner.get() * 2)
      return { s: inner, twice: computed(() => double.get() + 1) }
    })
    expect(twice.get()).toBe(3)
    expect(log.splice(0)).toEqual([])
    ctx.enter(() => effect(() => void twice.get()))()
    expect(log.splice(0)).toEqual(['start', 'stop'])
    const reader = ctx.spawn(function* () {
      return yield* read(twice)
    })
    expect(log.splice(0)).toEqual(['start'])
    reader.dispose()
    expect(log.splice(0)).toEqual(['stop'])
    s.watch('w', () => undefined)()
    expect(log.splice(0)).toEqual(['start', 'stop'])
    const values = s[Symbol.asyncIterator]()
    await values.next()
    expect(log.splice(0)).toEqual(['start'])
    await values.return?.()
    expect(log.splice(0)).toEqual(['stop'])
  })

  test('an observer that another replaces within one turn does not stop the feed', async () => {
    const ctx = createContext()
    const { log, whileObserved } = feed()
    const s = ctx.enter(() => signal(0, { whileObserved }))
    const stop = ctx.enter(() => effect(() => void s.get()))
    await ctx.idle()
    stop()
    ctx.enter(() => effect(() => void s.get()))
    await ctx.idle()
    expect(log).toEqual(['start'])
    await ctx.close()
    expect(log).toEqual(['start', 'stop'])
  })

  test.each(['an effect', 'a reader'])('stop ends the feed whose only observer is %s', async (observer) => {
    const ctx = createContext()
    const log: string[] = []
    const errors: unknown[] = []
    const s = ctx.enter(() =>
      signal(0, {
        whileObserved: (cell) => {
          const tick = (): void => {
            try {
              cell.set(cell.peek() + 1)
            } catch (error) {
              errors.push(error)
            }
          }
          const timer = setInterval(tick, 1)
          return () => {
            clearInterval(timer)
            log.push(ctx.inspect().state)
          }
        },
      }),
    )
    if (observer === 'an effect') ctx.enter(() => effect(() => void s.get()))
    else await s[Symbol.asyncIterator]().next()
    await ctx.idle()
    await ctx.stop()
    expect(log).toEqual(['stopping'])
    const { version } = s
    await new Promise((resolve) => void setTimeout(resolve, 10))
    expect([errors, s.version]).toEqual([[], version])
    await ctx.close()
    expect(log).toEqual(['stopping'])
  })

  test('a feed whose function stops the context is stopped', async () => {
    const ctx = createSimulation()
    const log: string[] = []
    const s = ctx.enter(() =>
      signal(0, {
        whileObserved: () => {
          void ctx.stop()
          return () => void log.push('stop')
        },
      }),
    )
    ctx.enter(() => effect(() => void s.get()))
    await ctx.stop()
    expect(log).toEqual(['stop'])
  })

  test('the feed writes its signal, and its errors are faults', () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    const source = new EventEmitter()
    const price = ctx.enter(() =>
      signal(0, {
        key: 'price',
        whileObserved: (cell) => {
          const listener = (value: number): void => void cell.set(value)
          source.on('price', listener)
          return () => source.off('price', listener)
        },
      }),
    )
    const seen: number[] = []
    source.emit('price', 1)
    const stop = ctx.enter(() => effect(() => void seen.push(price.get())))
    source.emit('price', 2)
    stop()
    source.emit('price', 3)
    expect([seen, price.get(), source.listenerCount('price')]).toEqual([[0, 2], 2, 0])
    const broken = ctx.enter(() =>
      signal(0, {
        whileObserved: () => {
          throw new Error('no feed')
        },
      }),
    )
    const wrong = ctx.enter(() => signal(0, { whileObserved: (() => 5) as never }))
    ctx.enter(() => effect(() => void broken.get()))
    ctx.enter(() => effect(() => void wrong.get()))
    expect(faults.map(({ code, site, error }) => [code, site, (error as Error).message])).toEqual([
      ['watcher-fault', 'whileObserved', 'no feed'],
      ['watcher-fault', 'whileObserved', 'whileObserved must return nothing or a function that stops the feed, got 5'],
    ])
  })

  test('the feed writes to its own context, also when its source speaks inside a fork or another context', async () => {
    const [ctx, foreign] = [createSimulation(), createSimulation()]
    const source = new EventEmitter()
    const { price, other } = ctx.enter(() => ({
      price: signal(0, {
        whileObserved: (cell) => {
          source.on('price', (value: number) => cell.set(value))
          source.on('more', () => cell.update((value) => value + 1))
          source.on('swap', (next: number) => cell.compareAndSet(cell.get(), next))
          source.on('later', (next: number) => void cell.updateAsync(() => Promise.resolve(next)))
        },
      }),
      other: signal(0),
    }))
    const seen: number[] = []
    ctx.enter(() => effect(() => void seen.push(price.get())))
    const fork = ctx.fork()
    fork.enter(() => price.set(500))
    fork.enter(() => {
      source.emit('price', 1)
      other.set(7)
      source.emit('more')
      source.emit('swap', 3)
      source.emit('later', 4)
    })
    await new Promise((resolve) => void setTimeout(resolve))
    foreign.enter(() => source.emit('more'))
    expect(seen).toEqual([0, 1, 2, 3, 4, 5])
    expect(fork.enter(() => [price.get(), other.get()])).toEqual([500, 7])
    expect(other.get()).toBe(0)
  })

  test('whileObserved must be a plain function', () => {
    const ctx = createSimulation()
    const create = (whileObserved: unknown): unknown => ctx.enter(() => signal(0, { whileObserved } as never))
    expect(() => create(5)).toThrow(TypeError)
    expect(() => create(5)).toThrow(
      'signal: options.whileObserved must be a plain function that returns a function to stop with, got 5',
    )
    expect(() => create(async () => undefined)).toThrow('which is async or a generator')
  })

  test('a fork does not start the feeds of its parent', () => {
    const ctx = createSimulation()
    const { log, whileObserved } = feed()
    const s = ctx.enter(() => signal(0, { whileObserved }))
    const fork = ctx.fork()
    fork.enter(() => effect(() => void s.get()))
    expect(log).toEqual([])
  })
})

describe('dispose of a signal', () => {
  test('its observers do not run again, it keeps its value, and refuses writes and watchers', () => {
    const ctx = createSimulation()
    const { log, whileObserved } = feed()
    const s = ctx.enter(() => signal(1, { key: 'gone', whileObserved }))
    const { nodes } = ctx.inspect()
    let runs = 0
    let watched = 0
    s.watch('w', () => watched++)
    const stop = ctx.enter(() => effect(() => void (s.get(), runs++)))
    s.set(2)
    s.dispose()
    s.dispose()
    expect([runs, watched, log, s.get(), s.peek(), s.version]).toEqual([2, 1, ['start', 'stop'], 2, 2, 1])
    expect(() => s.set(3)).toThrow(DisposedError)
    expect(() => s.update((n) => n + 1)).toThrow('signal.write: signal /signal:gone#0 was disposed')
    expect(() => s.watch('x', () => undefined)).toThrow(DisposedError)
    expect(ctx.inspect()).toMatchObject({ nodes, observers: 0 }) // The effect took the place of the signal.
    stop()
    expect(ctx.inspect()).toMatchObject({ nodes: nodes - 1, observers: 0 })
  })

  test('a spin that reads it, and a computed, keep what they read', () => {
    const ctx = createSimulation()
    const { s, other } = ctx.enter(() => ({ s: signal(1), other: signal(10) }))
    const sum = ctx.enter(() =>
      spin(function* () {
        return (yield* read(s)) + (yield* read(other))
      }),
    )
    const product = ctx.enter(() => computed(() => s.get() * other.get()))
    expect([ctx.runSync(sum), product.get()]).toEqual([11, 10])
    s.dispose()
    other.set(20)
    expect([ctx.runSync(sum), product.get()]).toEqual([21, 20])
  })

  test('a signal of a body is disposed when a run does not create it again', () => {
    const ctx = createSimulation()
    const on = ctx.enter(() => signal(true))
    const made: { set(n: number): number }[] = []
    ctx.spawn(function* () {
      if (yield* read(on)) made.push(signal(1, { key: 'inner' }))
    })
    const { nodes } = ctx.inspect()
    on.set(false)
    expect(ctx.inspect().nodes).toBe(nodes - 1)
    expect(() => made[0]?.set(2)).toThrow(DisposedError)
  })

  test('computeds count as nodes while they are observed', () => {
    const ctx = createSimulation()
    ctx.enter(() => {
      const s = signal(0)
      const { nodes } = ctx.inspect()
      const chain = computed(() => computed(() => s.get()).get())
      chain.get()
      expect(ctx.inspect().nodes).toBe(nodes)
      const stop = effect(() => void chain.get())
      expect(ctx.inspect().nodes).toBe(nodes + 3)
      stop()
      expect(ctx.inspect().nodes).toBe(nodes)
    })
  })
})

describe('paced spins', () => {
  const paces: Record<string, (s: Signal<number>) => Spin<number>> = {
    sample: (s) => sample(s, 100),
    debounce: (s) => debounce(s, 100),
    throttle: (s) => throttle<number, number>(s, 10, (_, v) => v),
  }

  test.each(Object.entries(paces))('%s rests when its last observer has ended, and starts again', (_, pace) => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1))
    const paced = ctx.enter(() => pace(s))
    const seen: number[] = []
    const follow = (): { dispose(): void } =>
      ctx.spawn(function* () {
        seen.push(yield* waitFor(paced))
      })
    const [first, other] = [follow(), follow()]
    ctx.advanceBy(100)
    s.set(2)
    first.dispose()
    expect(ctx.inspect()).toMatchObject({ timers: 1, observers: 2, running: 1 })
    other.dispose()
    expect(ctx.inspect()).toMatchObject({ timers: 0, observers: 0, running: 0 })
    for (let i = 0; i < 1000; i++) s.set(i)
    ctx.advanceBy(1000)
    const second = follow()
    ctx.advanceBy(100)
    second.dispose() // It rests after a delivery, too.
    s.set(5)
    expect(ctx.inspect()).toMatchObject({ timers: 0, observers: 0, running: 0 })
    expect(seen).toEqual([1, 1, 999])
  })

  test('effects of many clients read one paced spin', () => {
    const ctx = createSimulation()
    const progress = ctx.enter(() => signal(0))
    let samples = 0
    const paced = ctx.enter(() => {
      const sampled = sample(progress, 100)
      return latest(
        spin(function* () {
          const value = yield* waitFor(sampled)
          samples++
          return value
        }),
        -1,
      )
    })
    const seen: number[][] = []
    const clients = Array.from({ length: 50 }, () => {
      const mine: number[] = []
      seen.push(mine)
      return ctx.enter(() => effect(() => void mine.push(paced.get())))
    })
    for (let i = 1; i <= 300; i++) {
      progress.set(i)
      ctx.advanceBy(1)
    }
    expect(new Set(seen.map((mine) => mine.join()))).toEqual(new Set(['-1,100,200,300']))
    expect([samples, ctx.inspect().running]).toEqual([3, 0])
    for (const stop of clients) stop()
    progress.set(1000)
    expect(ctx.inspect()).toMatchObject({ timers: 0, observers: 0 })
    expect(paced.get()).toBe(300) // The last one it had.
  })

  test('latest in a fork does not write to the parent', () => {
    const ctx = createSimulation()
    const { source, last } = ctx.enter(() => {
      const inner = signal(1)
      const twice = spin(function* () {
        return (yield* read(inner)) * 2
      })
      return { source: inner, last: latest(twice, 0) }
    })
    const seen: number[] = []
    ctx.enter(() => effect(() => void seen.push(last.get())))
    const fork = ctx.fork()
    fork.enter(() => source.set(10))
    expect([fork.enter(() => last.get()), last.get(), seen]).toEqual([20, 2, [0, 2]])
  })

  test('latest throws the error of its spin, and heals', () => {
    const ctx = createSimulation()
    const text = ctx.enter(() => signal('{'))
    const parsed = ctx.enter(() =>
      latest(
        spin(function* () {
          return JSON.parse(yield* read(text)) as unknown
        }),
      ),
    )
    const seen: unknown[] = []
    ctx.enter(() =>
      effect(() => {
        try {
          seen.push(parsed.get())
        } catch (error) {
          seen.push((error as Error).name)
        }
      }),
    )
    text.set('[7]')
    expect(seen).toEqual([undefined, 'SyntaxError', [7]])
    expect(() => ctx.enter(() => latest(text as never))).toThrow('latest takes a spin, got a SignalNode')
  })
})

describe('readers of values', () => {
  test('a reader gets the present value, then each change; a slow one gets the latest only', async () => {
    const ctx = createContext()
    const s = ctx.enter(() => signal(0))
    const values = s[Symbol.asyncIterator]()
    expect(await values.next()).toEqual({ done: false, value: 0 })
    const next = values.next()
    s.set(1)
    expect(await next).toEqual({ done: false, value: 1 })
    for (let i = 2; i <= 100; i++) s.set(i)
    await ctx.idle()
    s.set(200)
    await ctx.idle()
    expect(await values.next()).toEqual({ done: false, value: 200 }) // It replaced the 100 that was not taken.
    const [a, b] = [values.next(), values.next()]
    s.set(101)
    await ctx.idle()
    s.set(102)
    expect([(await a).value, (await b).value]).toEqual([101, 102])
    await values.return?.()
    expect(await values.next()).toEqual({ done: true, value: undefined })
    expect(ctx.inspect().observers).toBe(0)
  })

  test('for await over a computed ends with break, and releases it', async () => {
    const ctx = createContext()
    const { s, twice } = ctx.enter(() => {
      const inner = signal(1)
      return { s: inner, twice: computed(() => inner.get() * 2) }
    })
    const seen: number[] = []
    for await (const value of twice) {
      seen.push(value)
      if (value > 5) break
      s.update((n) => n + 1)
    }
    expect([seen, ctx.inspect().observers]).toEqual([[2, 4, 6], 0])
  })

  test('an iterator that is never used observes nothing', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    s[Symbol.asyncIterator]()
    s.stream()
    expect(ctx.inspect().observers).toBe(0)
  })

  test('it ends when the signal is disposed, when the context stops, and by an error of a computed', async () => {
    const ctx = createContext()
    const { s, t, bad } = ctx.enter(() => {
      const inner = signal(0)
      const check = computed(() => {
        if (inner.get() > 0) throw new Error('too much')
        return inner.get()
      })
      return { s: signal(0), t: inner, bad: check }
    })
    const ofDisposed = s[Symbol.asyncIterator]()
    const [ofFailed, ofStopped] = [bad[Symbol.asyncIterator](), t[Symbol.asyncIterator]()]
    for (const each of [ofDisposed, ofFailed, ofStopped]) await each.next()
    const pending = [ofDisposed.next(), ofFailed.next()]
    s.dispose()
    t.set(1)
    expect(await pending[0]).toEqual({ done: true, value: undefined })
    await expect(pending[1]).rejects.toThrow('too much')
    expect(await ofFailed.next()).toEqual({ done: true, value: undefined })
    expect((await ofStopped.next()).value).toBe(1)
    const last = ofStopped.next()
    await ctx.stop()
    expect(await last).toEqual({ done: true, value: undefined })
    await expect(t[Symbol.asyncIterator]().next()).rejects.toThrow(ContextStoppedError)
  })

  test.each([
    ['the signal is disposed', (s: Signal<number>) => s.dispose()],
    ['the context stops', (_: Signal<number>, ctx: Context) => ctx.stop()],
    ['the context closes', (_: Signal<number>, ctx: Context) => ctx.close()],
  ])('a reader gets a value that was written just before %s', async (_, end) => {
    const ctx = createContext()
    const { s, twice } = ctx.enter(() => {
      const inner = signal(0)
      return { s: inner, twice: computed(() => inner.get() * 2) }
    })
    const collect = async (cell: AsyncIterable<number>): Promise<number[]> => {
      const seen: number[] = []
      for await (const value of cell) seen.push(value)
      return seen
    }
    const [ofSignal, ofStream, ofComputed] = [collect(s), collect(s.stream()), collect(twice)]
    await new Promise((resolve) => void setTimeout(resolve))
    s.set(100)
    await end(s, ctx)
    await ctx.stop()
    expect([await ofSignal, await ofStream, await ofComputed]).toEqual([
      [0, 100],
      [0, 100],
      [0, 200],
    ])
  })

  test('a loop that waits for a value ends when return() is called from outside', async () => {
    const ctx = createContext()
    const { log, whileObserved } = feed()
    const values = ctx.enter(() => signal(1, { whileObserved }))[Symbol.asyncIterator]()
    const seen: number[] = []
    const loop = (async () => {
      for await (const value of values as AsyncIterableIterator<number>) seen.push(value)
    })()
    await ctx.idle()
    await values.return?.()
    await loop
    await ctx.idle()
    expect([seen, log, ctx.inspect().observers]).toEqual([[1], ['start', 'stop'], 0])
    await ctx.close()
  })

  test('a reader of a signal that is disposed already gets its last value', async () => {
    const ctx = createContext()
    const s = ctx.enter(() => signal(7))
    s.dispose()
    const seen: number[] = []
    for await (const value of s) seen.push(value)
    expect([seen, ctx.inspect().observers]).toEqual([[7], 0])
  })

  test('a stream buffers nothing, skips what a slow reader missed, and stops with cancel', async () => {
    const ctx = createContext()
    const { log, whileObserved } = feed()
    const s = ctx.enter(() => signal(0, { whileObserved }))
    const reader = s.stream().getReader()
    expect(await reader.read()).toEqual({ done: false, value: 0 })
    for (let i = 1; i <= 1000; i++) s.set(i)
    await ctx.idle()
    expect(await reader.read()).toEqual({ done: false, value: 1000 })
    expect(log).toEqual(['start'])
    await reader.cancel()
    await ctx.idle()
    expect([log, ctx.inspect().observers]).toEqual([['start', 'stop'], 0])
    const ended = s.stream().getReader()
    await ended.read()
    const last = ended.read()
    await ctx.close()
    expect(await last).toEqual({ done: true, value: undefined })
  })

  test('a stream can be piped, as into a response', async () => {
    const ctx = createContext()
    const s = ctx.enter(() => signal('a'))
    const seen: string[] = []
    const events = new TransformStream<string, string>({
      transform: (value, controller) => controller.enqueue(`data: ${value}\n\n`),
    })
    const piped = s
      .stream()
      .pipeThrough(events)
      .pipeTo(new WritableStream<string>({ write: (text) => void seen.push(text) }))
    await expect.poll(() => seen.length).toBe(1)
    s.set('b')
    await expect.poll(() => seen.length).toBe(2)
    s.dispose()
    await piped
    expect(seen).toEqual(['data: a\n\n', 'data: b\n\n'])
  })

  test('a reader in a fork ends when the fork disposes the signal, and one of the parent does not', async () => {
    const ctx = createContext()
    const s = ctx.enter(() => signal(1))
    const fork = ctx.fork()
    const values = fork.enter(() => s[Symbol.asyncIterator]())
    const others = s[Symbol.asyncIterator]()
    expect([await values.next(), await others.next()]).toEqual(Array(2).fill({ done: false, value: 1 }))
    const last = values.next()
    fork.enter(() => s.dispose())
    expect(await last).toEqual({ done: true, value: undefined })
    s.set(2)
    expect(await others.next()).toEqual({ done: false, value: 2 })
    await ctx.close()
  })

  test('a stream has no options, and says so', () => {
    const ctx = createSimulation()
    const cells = ctx.enter(() => [signal(0), computed(() => 0)])
    for (const cell of cells) {
      const stream = cell.stream.bind(cell) as (options?: unknown) => unknown
      const refused = expect.objectContaining({ code: 'E_INVALID_OPTIONS' })
      expect(() => stream({ highWaterMark: 5 })).toThrow(refused)
      expect(() => stream({ highWaterMark: 5 })).toThrow(/highWaterMark is no option/)
      expect(() => stream(5)).toThrow(refused)
      expect(stream({})).toBeInstanceOf(ReadableStream)
    }
  })
})
