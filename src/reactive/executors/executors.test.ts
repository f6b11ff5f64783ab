/* oxlint-disable require-yield -- a body need not wait for anything */
import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import type { Context, Spin } from '../index.js'
import {
  ClockModeError,
  DerefInDrainError,
  EffectTypeError,
  createContext,
  createSimulation,
  effect,
  eventLoopExecutor,
  iterate,
  mailbox,
  read,
  signal,
  sleep,
  synchronousExecutor,
  waitFor,
  workerPoolExecutor,
} from '../index.js'

/** A module for worker threads, as a data: URL, so that no file is needed. */
const workerModule = `data:text/javascript,${encodeURIComponent(`
  export const double = (n) => n * 2
  export const hold = (shared) => {
    const order = Atomics.add(shared, 0, 1) + 1
    Atomics.wait(shared, 1, 0)
    return 'held by ' + order
  }
  export const crash = () => process.exit(3)
  export const fail = () => { throw new RangeError('no') }
  export const odd = () => () => 1
`)}`

describe('executors', () => {
  test('R16 a body sees the stores of the code that started it, before and after it was parked', async () => {
    const requestId = new AsyncLocalStorage<string>()
    const ctx = createContext()
    const seen: Record<string, (string | undefined)[]> = { r1: [], r2: [] }
    const serve = (id: string): void =>
      requestId.run(id, () => {
        ctx.spawn(function* () {
          seen[id]?.push(requestId.getStore())
          yield* waitFor(sleep(1))
          seen[id]?.push(requestId.getStore())
          yield* waitFor(Promise.resolve())
          seen[id]?.push(requestId.getStore())
        })
      })
    serve('r1')
    serve('r2')
    await ctx.idle()
    expect(seen).toEqual({ r1: ['r1', 'r1', 'r1'], r2: ['r2', 'r2', 'r2'] })
  })

  test('R16 a re-run keeps the stores of the code that started it, not of the writer', () => {
    const requestId = new AsyncLocalStorage<string>()
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(0))
    const seen: (string | undefined)[] = []
    requestId.run('starter', () =>
      ctx.spawn(function* () {
        yield* read(s)
        seen.push(requestId.getStore())
      }),
    )
    requestId.run('writer', () => ctx.enter(() => s.set(1)))
    expect(seen).toEqual(['starter', 'starter'])
  })

  test('R17 the event-loop executor is never inline, the synchronous one always', async () => {
    const order: string[] = []
    eventLoopExecutor().execute(() => order.push('later'))
    synchronousExecutor().execute(() => order.push('at once'))
    order.push('after')
    await Promise.resolve()
    expect(order).toEqual(['at once', 'after', 'later'])
  })

  test('R17 offloaded work runs in all threads of the pool while the event loop turns', async () => {
    await using ctx = createContext({ executor: workerPoolExecutor({ size: 2, module: workerModule }) })
    const shared = new Int32Array(new SharedArrayBuffer(8))
    const held = [1, 2, 3, 4].map(() => ctx.offload<string>('hold', [shared]))
    // The threads block until this event loop, which keeps turning, releases them.
    while (Atomics.load(shared, 0) < 2) await new Promise<void>((resolve) => void setImmediate(resolve))
    expect(ctx.inspect().offloaded).toBe(4)
    Atomics.store(shared, 1, 1)
    Atomics.notify(shared, 1)
    expect((await Promise.all(held)).sort()).toEqual(['held by 1', 'held by 2', 'held by 3', 'held by 4'])
    const doubled = await ctx.run(function* () {
      return yield* waitFor(ctx.offload<number>('double', [21]))
    })
    expect(doubled).toBe(42)
  })

  test('R17 a crashed worker rejects its task and is replaced; invalid arguments and names are reported', async () => {
    await using ctx = createContext({ executor: workerPoolExecutor({ size: 1, module: workerModule }) })
    await expect(ctx.offload('crash', [])).rejects.toThrow('the worker thread ended with code 3')
    expect(await ctx.offload('double', [4])).toBe(8)
    await expect(ctx.offload('fail', [])).rejects.toThrow(RangeError)
    await expect(ctx.offload('double', [() => 1])).rejects.toThrow(/could not be cloned/)
    await expect(ctx.offload('odd', [])).rejects.toThrow(/cannot be sent back/)
    await expect(ctx.offload('absent', [])).rejects.toThrow(/exports no function absent/)
    expect(await ctx.offload('double', [5])).toBe(10)
    expect(() => createContext().offload('double', [1])).toThrow(EffectTypeError)
    expect(() => workerPoolExecutor({ size: 0, module: workerModule })).toThrow(RangeError)
  })

  test('R5 closing ends the worker threads', async () => {
    const executor = workerPoolExecutor({ size: 2, module: workerModule })
    const ctx = createContext({ executor })
    await Promise.all([ctx.offload('double', [1]), ctx.offload('double', [2])])
    await ctx.close()
    await expect(executor.offload?.('double', [1])).rejects.toThrow('the worker pool is closed')
  })

  test('R5 closing rejects offloaded tasks that run and those still queued', async () => {
    const ctx = createContext({ executor: workerPoolExecutor({ size: 1, module: workerModule }) })
    const shared = new Int32Array(new SharedArrayBuffer(8))
    const tasks = [1, 2, 3].map(() => ctx.offload('hold', [shared]))
    const ended = Promise.allSettled(tasks)
    expect(await ctx.close({ deadlineMs: 0 })).toMatchObject({ timedOut: true, offloaded: 3 })
    expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  })

  test('R17 a worker pool needs its module', () => {
    for (const options of [{}, { module: '' }, { module: 5 }, undefined, null]) {
      expect(() => workerPoolExecutor(options as never)).toThrow(/module must be the file: address/)
    }
  })

  test('R18 armed timers are counted; cancel and stop clear them', async () => {
    const ctx = createContext()
    const sleeps = ctx.enter(() => [100_000, 100_000, 100_000].map((ms) => sleep(ms)))
    for (const each of sleeps) ctx.spawn(each, { onError: () => undefined })
    expect(await ctx.idle({ timeoutMs: 0 })).toBe(false)
    expect(ctx.inspect().timers).toBe(3)
    sleeps[0]?.cancel()
    expect(ctx.inspect().timers).toBe(2)
    await ctx.stop()
    expect(ctx.inspect().timers).toBe(0)
  })

  test('R18 a delay must be a finite number of 0 or more; a very long one does not fire at once', async () => {
    const ctx = createContext()
    for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY, '5' as never]) {
      expect(() => ctx.enter(() => sleep(ms))).toThrow(RangeError)
      expect(() => eventLoopExecutor().executeAfter(ms, () => undefined)).toThrow(RangeError)
    }
    let isFired = false
    const handle = eventLoopExecutor().executeAfter(2 ** 31 + 10, () => (isFired = true))
    await new Promise<void>((resolve) => void eventLoopExecutor().executeAfter(2, resolve))
    handle.cancel()
    expect(isFired).toBe(false)
  })

  test('R18 with the synchronous executor and real time the delay is ignored', () => {
    const ctx = createContext({ executor: synchronousExecutor() })
    expect(ctx.runSync(ctx.enter(() => sleep(100_000, 'at once')))).toBe('at once')
    expect(ctx.inspect().timers).toBe(0)
  })
})

describe('the virtual clock', () => {
  test('R19 due timers fire in order, and each is drained before time moves on', () => {
    const ctx = createSimulation()
    const log: unknown[] = []
    const logging = (each: Spin<unknown>): void =>
      void ctx.spawn(function* () {
        log.push(yield* waitFor(each))
      })
    logging(ctx.enter(() => sleep(30, 'c')))
    logging(ctx.enter(() => sleep(10, 'a')))
    ctx.spawn(function* () {
      yield* waitFor(sleep(10))
      log.push(yield* waitFor(sleep(10, 'b')))
    })
    expect(ctx.advanceTo(25)).toBe(3)
    expect([log, ctx.now()]).toEqual([['a', 'b'], 25])
    expect(ctx.advanceBy(5)).toBe(1)
    expect([log, ctx.now()]).toEqual([['a', 'b', 'c'], 30])
  })

  test('R19 equal due times fire in arming order, and cancelled timers are swept', () => {
    const ctx = createSimulation()
    const log: number[] = []
    const cancelled: Spin<void>[] = []
    for (let i = 0; i < 200; i++) {
      ctx.spawn(function* () {
        yield* waitFor(sleep(7))
        log.push(i)
      })
      const extra = ctx.enter(() => sleep(6))
      ctx.spawn(extra, { onError: () => undefined })
      cancelled.push(extra)
    }
    for (const each of cancelled) each.cancel()
    expect(ctx.inspect().timers).toBe(200)
    expect(ctx.advanceTo(7)).toBe(200)
    expect(log).toEqual(Array.from({ length: 200 }, (_, i) => i))
  })

  test('R19 time moves only forward, not in a drain, and not on a real clock', () => {
    const ctx = createSimulation()
    ctx.advanceTo(10)
    expect(() => ctx.advanceTo(9)).toThrow(RangeError)
    expect(() => ctx.advanceBy(Number.NaN)).toThrow(RangeError)
    expect(() => createContext().advanceBy(1)).toThrow(ClockModeError)
    const errors: unknown[] = []
    ctx.enter(() => {
      const s = signal(0)
      effect(() => {
        if (s.get() === 0) return
        try {
          ctx.advanceBy(1)
        } catch (error) {
          errors.push(error)
        }
      })
      s.set(1)
    })
    expect(errors[0]).toBeInstanceOf(DerefInDrainError)
  })

  test('R20 the same program gives the same trace', () => {
    expect(mixedProgram(7)).toBe(mixedProgram(7))
    expect(mixedProgram(7)).not.toBe(mixedProgram(8))
  })
})

/** 20 signals, 10 spins, mailboxes and timers under 1,000 seeded operations; returns the trace as text. */
function mixedProgram(seed: number): string {
  const ctx: Context = createSimulation()
  const trace: string[] = []
  ctx.trace((record) => trace.push(JSON.stringify(record)))
  const random = seeded(seed)
  const pick = (n: number): number => Math.floor(random() * n)
  const cells = ctx.enter(() => Array.from({ length: 20 }, (_, i) => signal(i)))
  const boxes = ctx.enter(() => [mailbox<number>(), mailbox<number>()])
  for (let i = 0; i < 10; i++) {
    const [a, b] = [cells[pick(20)], cells[pick(20)]] as [(typeof cells)[0], (typeof cells)[0]]
    ctx.spawn(function* () {
      const x = yield* read(a)
      if (x % 3 === 0) yield* waitFor(sleep(1 + (x % 5)))
      return x + (yield* read(b))
    })
  }
  for (const box of boxes) {
    ctx.spawn(() =>
      iterate(0, function* (n) {
        const message = yield* waitFor(box)
        const extra = yield* read(cells[message % 20] as (typeof cells)[0])
        return { next: n + message + extra }
      }),
    )
  }
  for (let i = 0; i < 1000; i++) {
    const act = pick(4)
    if (act === 0) ctx.advanceBy(pick(4))
    else if (act === 1) ctx.enter(() => boxes[pick(2)]?.post(pick(50)))
    else ctx.enter(() => cells[pick(20)]?.set(pick(9)))
  }
  return trace.join('\n')
}

function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
