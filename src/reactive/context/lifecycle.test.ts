/* oxlint-disable require-yield -- a body need not wait for anything */
import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { Executor, Fault } from '../index.js'
import {
  ContextStoppedError,
  NoContextError,
  createContext,
  createSimulation,
  currentContext,
  deferred,
  effect,
  eventLoopExecutor,
  iterate,
  mailbox,
  onCancel,
  signal,
  sleep,
  spin,
  step,
  waitFor,
} from '../index.js'

/** An executor whose timers fire when the test fires them, even after a cancel, as a late callback would. */
function handDriven(): Executor & { fireAll(): void; readonly armed: number } {
  const timers: { task: () => void; isCancelled: boolean }[] = []
  return {
    ...eventLoopExecutor(),
    executeAfter: (_ms, task) => {
      const timer = { task, isCancelled: false }
      timers.push(timer)
      return { cancel: () => void (timer.isCancelled = true) }
    },
    fireAll: () => {
      for (const timer of timers.splice(0)) timer.task()
    },
    get armed() {
      return timers.filter((timer) => !timer.isCancelled).length
    },
  }
}

describe('creating', () => {
  test('R1 a new context is running, without timers and with an empty queue', () => {
    expect(createContext().inspect()).toMatchObject({ pending: 0, running: 0, timers: 0, state: 'running' })
  })

  test.each([
    [{ speed: 1 }, /unknown option speed/],
    [null, /options must be an object, got null/],
    ['fast', /options must be an object, got "fast"/],
    [{ drainBudget: { events: -1 } }, /drainBudget\.events must be a whole number of 1 or more, got -1/],
    [{ drainBudget: { ms: 1.5 } }, /drainBudget\.ms .* got 1\.5/],
    [{ drainBudget: 5 }, /drainBudget must be an object/],
    [{ clock: 'sundial' }, /clock must be 'real' or 'virtual', got "sundial"/],
    [{ executor: {} }, /executor must be an Executor/],
    [{ onFault: 1 }, /onFault must be a function/],
    [{ bindings: 1 }, /bindings must be an object/],
    [{ keepAlive: 'yes' }, /keepAlive must be true or false/],
    [{ logLimit: 0 }, /logLimit must be a whole number of 1 or more, got 0/],
  ])('R1 wrong options %j are refused by name', (options, message) => {
    expect(() => createContext(options as never)).toThrow(TypeError)
    expect(() => createContext(options as never)).toThrow(message)
  })

  test('R1 one error names all invalid options', () => {
    expect(() => createContext({ clock: 'x', keepAlive: 1 } as never)).toThrow(/clock.*keepAlive/)
  })
})

describe('the current context', () => {
  test('R2 it is carried through promises, timers and microtasks, separately for each context', async () => {
    const [a, b] = [createContext(), createContext()]
    const visit = async (): Promise<string[]> => {
      const seen = [currentContext().id]
      await Promise.resolve()
      seen.push(currentContext().id)
      await new Promise<void>((resolve) => void setImmediate(resolve))
      seen.push(currentContext().id)
      await new Promise<void>((resolve) => void setTimeout(resolve))
      seen.push(await new Promise<string>((resolve) => queueMicrotask(() => resolve(currentContext().id))))
      return seen
    }
    const [inA, inB] = await Promise.all([a.enter(visit), b.enter(visit)])
    expect(new Set(inA)).toEqual(new Set([a.id]))
    expect(new Set(inB)).toEqual(new Set([b.id]))
    expect(a.id).not.toBe(b.id)
  })

  test('R2 constructors need a current context', () => {
    expect(() => signal(1)).toThrow(NoContextError)
    expect(() => signal(1)).toThrow('no current context: call inside ctx.enter(...)')
    expect(() => currentContext()).toThrow(NoContextError)
  })

  test('R2 reads and writes without a current context use the context of the cell', async () => {
    const ctx = createContext()
    const feed = new EventEmitter()
    const seen: number[] = []
    const { s, box, done } = ctx.enter(() => ({ s: signal(1), box: mailbox<number>(), done: deferred<string>() }))
    ctx.enter(() => effect(() => void seen.push(s.get())))
    ctx.spawn(() =>
      iterate(0, function* (n) {
        seen.push(yield* waitFor(box))
        return { next: n + 1 }
      }),
    )
    const answer = ctx.run(function* () {
      return yield* waitFor(done)
    })
    feed.on('change', (n: number) => {
      expect(() => currentContext()).toThrow(NoContextError)
      s.set(n)
      s.update((old) => old + 1)
      box.post(n * 10)
      done.deliver('delivered')
    })
    setImmediate(() => feed.emit('change', 5))
    expect(await answer).toBe('delivered')
    expect([s.get(), s.peek(), seen]).toEqual([6, 6, [1, 6, 50]])
    await ctx.stop()
    expect(() => s.set(2)).toThrow(ContextStoppedError)
    expect(() => box.post(2)).toThrow(ContextStoppedError)
  })

  test('R2 inside a body it is the context that runs the body', () => {
    const ctx = createSimulation({ bindings: { tenant: 't1' } })
    const seen: unknown[] = []
    ctx.spawn(function* () {
      seen.push(currentContext().bindings['tenant'])
      yield* waitFor(sleep(5))
      seen.push(currentContext().bindings['tenant'])
    })
    ctx.advanceBy(5)
    expect(seen).toEqual(['t1', 't1'])
  })
})

describe('stopping', () => {
  test('R3 the event in progress finishes, no further event is taken, the rest stays queued', async () => {
    const ctx = createContext()
    const processed: string[] = []
    let report: Promise<unknown> | undefined
    ctx.enter(() => {
      const cells = ['one', 'two', 'three'].map((name) => ({ name, cell: signal(0) }))
      for (const { name, cell } of cells) {
        effect(() => {
          if (cell.get() === 0) return
          processed.push(name)
          report = ctx.stop()
        })
      }
      // Three events: only the first is processed, though one refresh of the graph would cover all three.
      for (const { cell } of cells.slice(0, 1)) cell.set(1)
      const box = mailbox<number>()
      box.post(1)
      box.post(2)
    })
    expect(ctx.inspect().pending).toBe(3)
    await ctx.idle()
    expect(processed).toEqual(['one'])
    expect(await report).toEqual({ state: 'stopped', timedOut: false, pending: 2, running: 0, offloaded: 0 })
  })

  test('R3 a second call returns the same report', async () => {
    const ctx = createContext()
    expect(await ctx.stop()).toBe(await ctx.stop())
  })

  test('R3 stop waits for an offloaded task that never ends until the deadline', async () => {
    const never: Executor = { ...eventLoopExecutor(), offload: () => new Promise(() => undefined) }
    const ctx = createContext({ executor: never })
    void ctx.offload('never', [])
    const startedAt = performance.now()
    expect(await ctx.stop({ deadlineMs: 100 })).toMatchObject({ timedOut: true, offloaded: 1 })
    expect(performance.now() - startedAt).toBeGreaterThan(98)
  })

  test('R3 stop waits for a task that ends in time, and refuses an invalid deadline', async () => {
    let end: (value: unknown) => void = () => undefined
    const ends: Executor = { ...eventLoopExecutor(), offload: () => new Promise((resolve) => (end = resolve)) }
    const ctx = createContext({ executor: ends })
    const task = ctx.offload('ends', [])
    expect(() => ctx.stop({ deadlineMs: -1 })).toThrow(RangeError)
    const report = ctx.stop({ deadlineMs: 60_000 })
    end(1)
    expect(await task).toBe(1)
    expect(await report).toMatchObject({ timedOut: false, offloaded: 0 })
  })

  test('R4 a callback that fires after the stop is dropped, and no timer is armed', async () => {
    const executor = handDriven()
    const ctx = createContext({ executor })
    let hit = false
    ctx.spawn(function* () {
      yield* waitFor(sleep(20))
      hit = true
    })
    expect(await ctx.idle({ timeoutMs: 0 })).toBe(false)
    expect([ctx.inspect().timers, executor.armed]).toEqual([1, 1])
    await ctx.stop()
    executor.fireAll()
    expect(await ctx.idle()).toBe(false)
    expect([hit, ctx.inspect().timers, executor.armed]).toEqual([false, 0, 0])
  })

  test('R4 writes are refused and reads still work', async () => {
    const ctx = createSimulation()
    const { s, box, d, done } = ctx.enter(() => ({
      s: signal(1),
      box: mailbox<number>(),
      d: deferred<number>(),
      done: spin(function* () {
        return 7
      }),
    }))
    ctx.runSync(done)
    const parked = ctx.run(function* () {
      return yield* waitFor(d)
    })
    await ctx.stop()
    ctx.enter(() => {
      expect(() => s.set(2)).toThrow(ContextStoppedError)
      expect(() => box.post(1)).toThrow(ContextStoppedError)
      expect(() => d.deliver(1)).toThrow(ContextStoppedError)
      expect(() => ctx.spawn(done)).toThrow(ContextStoppedError)
      expect([s.get(), done.get()]).toEqual([1, 7])
    })
    await expect(ctx.run(done)).rejects.toThrow(ContextStoppedError)
    await expect(parked).rejects.toThrow(ContextStoppedError)
  })

  test('R5 a closed context refuses every use', async () => {
    const ctx = createContext()
    const s = ctx.enter(() => signal(1))
    expect(await ctx.close()).toMatchObject({ state: 'stopped' })
    expect(ctx.state).toBe('closed')
    expect(() => ctx.enter(() => 1)).toThrow(ContextStoppedError)
    expect(() => s.get()).toThrow(ContextStoppedError)
    expect(() => s.peek()).toThrow(ContextStoppedError)
    await expect(ctx.run(function* () {})).rejects.toThrow(ContextStoppedError)
    expect(await ctx.close()).toMatchObject({ state: 'stopped' })
  })

  test('R5 closing cleans up: steps are aborted, hooks called, effects disposed, and no body runs', async () => {
    const faults: Fault[] = []
    const ctx = createContext({ onFault: (fault) => faults.push(fault) })
    const log: string[] = []
    ctx.enter(() => {
      effect(() => () => log.push('effect'))
      effect(() => () => {
        throw new Error('clean-up')
      })
      effect(() => () => log.push('ended before'))()
    })
    ctx.spawn(function* () {
      try {
        yield* onCancel(() => log.push('hook'))
        yield* step('hang', (signal) => {
          signal.addEventListener('abort', () => log.push('abort'))
          return new Promise(() => undefined)
        })
      } finally {
        log.push('finally')
      }
    })
    await ctx.idle({ timeoutMs: 0 })
    await ctx.stop()
    expect(log).toEqual(['ended before'])
    expect(await ctx.close()).toMatchObject({ running: 1 })
    expect(log).toEqual(['ended before', 'abort', 'hook', 'effect'])
    expect(faults).toMatchObject([{ site: 'effect cleanup' }])
  })

  test('R5 closing closes the executor, also at the end of a scope', async () => {
    let closes = 0
    const executor: Executor = { ...eventLoopExecutor(), close: () => Promise.resolve(void closes++) }
    {
      await using ctx = createContext({ executor })
      expect(ctx.state).toBe('running')
    }
    expect(closes).toBe(1)
  })
})

describe('idle', () => {
  test('R7 a spin parked on a deferred is running; delivering makes it idle', async () => {
    const ctx = createContext()
    const d = ctx.enter(() => deferred<number>())
    ctx.spawn(function* () {
      yield* waitFor(d)
    })
    expect(await ctx.idle({ timeoutMs: 10 })).toBe(false)
    expect(ctx.inspect()).toMatchObject({ queueIdle: true, idle: false, running: 1 })
    ctx.enter(() => d.deliver(1))
    expect(await ctx.idle()).toBe(true)
    expect(ctx.isIdle()).toBe(true)
  })

  test('R7 with no work it resolves before any timer can fire', async () => {
    let isLate = false
    const timer = setTimeout(() => (isLate = true))
    expect(await createContext().idle()).toBe(true)
    clearTimeout(timer)
    expect(isLate).toBe(false)
  })

  test('R7 idle() resolves false when the context stops', async () => {
    const ctx = createContext()
    ctx.spawn(function* () {
      yield* waitFor(deferred())
    })
    const idle = ctx.idle()
    await ctx.stop()
    expect(await idle).toBe(false)
    expect(() => createContext().idle({ timeoutMs: Number.NaN })).toThrow(RangeError)
  })
})
