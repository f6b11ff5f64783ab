/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import type { ReactiveContext } from '../context/context.js'
import { failEvent } from './events.js'
import type { Context, Fault } from '../index.js'
import {
  createContext,
  createSimulation,
  deferred,
  effect,
  eventLoopExecutor,
  iterate,
  mailbox,
  read,
  signal,
  spin,
  waitFor,
} from '../index.js'

const inside = (ctx: Context): ReactiveContext => ctx as ReactiveContext

describe('one queue, one drainer', () => {
  test('R8 100,000 posts in one turn arrive in order', async () => {
    const ctx = createContext()
    const box = ctx.enter(() => mailbox<number>())
    let next = 0
    let isOrdered = true
    ctx.spawn(() =>
      iterate(undefined, function* () {
        isOrdered &&= (yield* waitFor(box)) === next
        next++
        return next === 100_000 ? { done: undefined } : { next: undefined }
      }),
    )
    ctx.enter(() => {
      for (let i = 0; i < 100_000; i++) box.post(i)
    })
    expect(await ctx.idle()).toBe(true)
    expect([next, isOrdered]).toEqual([100_000, true])
  })

  test('R8 enqueuing runs no user code before it returns', async () => {
    const ctx = createContext()
    const seen: number[] = []
    const s = ctx.enter(() => signal(0))
    ctx.enter(() => effect(() => void seen.push(s.get())))
    ctx.enter(() => s.set(1))
    expect(seen).toEqual([0])
    await ctx.idle()
    expect(seen).toEqual([0, 1])
  })

  test('R8 an event of unknown type is a fault and is skipped', () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    inside(ctx).enqueue({ type: 'mystery' } as never)
    expect(faults.map((fault) => fault.code)).toEqual(['unknown-event'])
    expect(ctx.isIdle()).toBe(true)
  })

  test('R9 a drain inside a drain handles nothing and changes no order', () => {
    const ctx = createSimulation()
    const order: string[] = []
    const { a, b } = ctx.enter(() => ({ a: signal(0), b: signal(0) }))
    let inner: number | undefined
    b.watch('key', () => {
      inner = inside(ctx).drainNow()
    })
    ctx.enter(() => {
      effect(() => {
        order.push(`a${a.get()}`)
        if (a.get() === 1) b.set(1)
      })
      effect(() => void order.push(`b${b.get()}`))
      a.set(1)
    })
    expect(inner).toBe(0)
    expect(order).toEqual(['a0', 'b0', 'a1', 'b1'])
  })

  test('R10 a thousand writes in one turn call the executor once', async () => {
    let asked = 0
    const loop = eventLoopExecutor()
    const ctx = createContext({ executor: { ...loop, execute: (task) => (asked++, loop.execute(task)) } })
    ctx.enter(() => {
      const [s, unread] = [signal(0), signal(0)]
      for (let i = 1; i <= 1000; i++) unread.set(i)
      expect(asked).toBe(0) // Without observers there is nothing to do, so no session is needed.
      effect(() => void s.get())
      for (let i = 1; i <= 1000; i++) s.set(i)
    })
    expect(asked).toBe(1)
    await ctx.idle()
    expect([asked, ctx.inspect().generation]).toEqual([1, 2000])
  })

  test('R11 an event that arrives between the last take and the release is handled', async () => {
    const ctx = createContext()
    const seen: number[] = []
    const { s, late } = ctx.enter(() => ({ s: signal(0), late: signal(0) }))
    ctx.enter(() => effect(() => void seen.push(late.get())))
    ctx.enter(() => effect(() => void s.get()))
    inside(ctx).beforeRelease = () => {
      inside(ctx).beforeRelease = undefined
      ctx.enter(() => late.set(1))
    }
    ctx.enter(() => s.set(1))
    await ctx.idle()
    expect(seen).toEqual([0, 1])
  })

  test('R12 a drain that never ends lets timers fire', async () => {
    const ctx = createContext({ drainBudget: { events: 50 } })
    const box = ctx.enter(() => mailbox<number>())
    let isOver = false
    ctx.spawn(() =>
      iterate(undefined, function* () {
        box.post(yield* waitFor(box))
        return isOver ? { done: undefined } : { next: undefined }
      }),
    )
    ctx.enter(() => box.post(1))
    let ticks = 0
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        if (++ticks < 20) return
        clearInterval(timer)
        resolve()
      }, 1)
    })
    isOver = true
    expect(await ctx.idle()).toBe(true)
  })

  test('R12 order is unaffected by the pauses', async () => {
    const ctx = createContext({ drainBudget: { events: 3, ms: 0 } })
    const box = ctx.enter(() => mailbox<number>())
    const seen: number[] = []
    ctx.spawn(() =>
      iterate(undefined, function* () {
        seen.push(yield* waitFor(box))
        return seen.length === 20 ? { done: undefined } : { next: undefined }
      }),
    )
    ctx.enter(() => {
      for (let i = 0; i < 20; i++) box.post(i)
    })
    await ctx.idle()
    expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => i))
  })
})

describe('faults', () => {
  test('R13 an event handler that throws does not affect the other events', async () => {
    const faults: Fault[] = []
    const ctx = createContext({ onFault: (fault) => faults.push(fault) })
    const done: string[] = []
    ctx.enter(() => {
      const cells = ['E1', 'E2', 'E3'].map((name) => ({ name, cell: signal(0) }))
      for (const { name, cell } of cells) {
        effect(() => {
          if (cell.get() === 0) return
          // oxlint-disable-next-line no-throw-literal -- a handler may throw anything
          if (name === 'E1') throw 'boom'
          done.push(name)
        })
      }
      for (const { cell } of cells) cell.set(1)
    })
    await ctx.idle()
    expect(done).toEqual(['E2', 'E3'])
    expect(faults).toEqual([{ code: 'event-error', site: 'effect', error: 'boom' }])
  })

  test('R13 a failed execution rejects its caller; a failed completion is the result of every waiting parent', async () => {
    const faults: Fault[] = []
    const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
    const d = ctx.enter(() => deferred<number>())
    const child = ctx.enter(() =>
      spin(function* () {
        return yield* waitFor(d)
      }),
    )
    const parents = [1, 2].map(() =>
      ctx.enter(() =>
        spin(function* () {
          return yield* waitFor(child)
        }),
      ),
    )
    const other = ctx.enter(() =>
      spin(function* () {
        return yield* waitFor(d)
      }),
    )
    for (const each of [...parents, other]) ctx.spawn(each, { onError: () => undefined })
    const node = (child as unknown as { node: never }).node
    failEvent(inside(ctx), { type: 'spin-completion', node }, 'boom')
    expect(parents.map((parent) => parent.result())).toEqual(parents.map(() => ({ ok: false, error: 'boom' })))
    expect([other.running, faults]).toEqual([true, []])

    const rejected = new Promise((resolve, reject) => {
      failEvent(inside(ctx), { type: 'spin-execution', node, caller: { resolve, reject } }, 'boom')
    })
    await expect(rejected).rejects.toBe('boom')
    failEvent(inside(ctx), { type: 'mailbox-post', node: undefined as never, message: 1 }, 'boom')
    expect(faults).toEqual([{ code: 'event-error', site: 'mailbox-post', error: 'boom' }])
  })

  test('R14 a task that throws is one fault, and a hook that throws is ignored', async () => {
    const faults: Fault[] = []
    const ctx = createContext({
      onFault: (fault) => {
        faults.push(fault)
        throw new Error('the hook fails too')
      },
    })
    ctx.execute(() => {
      throw new Error('task')
    })
    let isAfter = false
    ctx.execute(() => (isAfter = true))
    await Promise.resolve()
    await Promise.resolve()
    expect(faults.map(({ code, error }) => [code, (error as Error).message])).toEqual([['executor-task-fault', 'task']])
    expect(isAfter).toBe(true)
  })

  test('R15 the events of a change come in the order cause, child, parent', () => {
    const ctx = createSimulation()
    const s = ctx.enter(() => signal(1, { key: 's' }))
    const child = ctx.enter(() =>
      spin(
        function* () {
          return (yield* read(s)) * 10
        },
        { key: 'child' },
      ),
    )
    const parent = ctx.enter(() =>
      spin(
        function* () {
          return yield* waitFor(child)
        },
        { key: 'parent' },
      ),
    )
    ctx.runSync(parent)
    const events: string[] = []
    ctx.trace((record) => {
      if (record.type === 'event') events.push(`${record.event}(${record.addr})`)
    })
    ctx.enter(() => s.set(2))
    expect(events).toEqual([
      'signal-change(/signal:s#0)',
      'spin-completion(/spin:child#0)',
      'spin-completion(/spin:parent#0)',
    ])
    expect(parent.get()).toBe(20)
  })
})
