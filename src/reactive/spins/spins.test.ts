/* oxlint-disable require-yield -- a body need not wait for anything */
import { describe, expect, test } from 'vitest'
import type { Deferred, DerefInDrainError, Fault, Op, Spin } from '../index.js'
import {
  AddressCollisionError,
  CancelledError,
  DisposedError,
  EffectTypeError,
  NotReadyError,
  NotSettledError,
  createContext,
  createSimulation,
  deferred,
  effect,
  mailbox,
  onCancel,
  parallel,
  race,
  read,
  scope,
  signal,
  sleep,
  spin,
  step,
  timeout,
  waitFor,
} from '../index.js'

/** A simulation and the faults it reports. */
function simulate() {
  const faults: Fault[] = []
  const ctx = createSimulation({ onFault: (fault) => faults.push(fault) })
  return { ctx, faults }
}

describe('results', () => {
  test('R26 concurrent runs share one body run, later runs the cached result', async () => {
    const { ctx } = simulate()
    let runs = 0
    const d = ctx.enter(() => deferred<number>())
    const s = ctx.enter(() =>
      spin(function* () {
        runs++
        return yield* waitFor(d)
      }),
    )
    const five = Promise.all([1, 2, 3, 4, 5].map(() => ctx.run(s)))
    ctx.enter(() => d.deliver(7))
    expect(await five).toEqual([7, 7, 7, 7, 7])
    const events: unknown[] = []
    ctx.trace((record) => void (record.type === 'event' && events.push(record)))
    expect([await ctx.run(s), runs, events]).toEqual([7, 1, []])
  })

  test('R26 a body given to run is disposed when it has answered', async () => {
    const { ctx } = simulate()
    const s = ctx.enter(() => signal(1))
    const before = ctx.inspect().nodes
    let runs = 0
    const value = await ctx.run(function* () {
      runs++
      return yield* read(s)
    })
    ctx.enter(() => s.set(2))
    expect([value, runs, ctx.inspect().nodes, ctx.inspect().observers]).toEqual([1, 1, before, 0])
  })

  test('R27 the flags are independent', () => {
    const { ctx } = simulate()
    const { d, s } = ctx.enter(() => ({ d: deferred<number>(), s: signal(1) }))
    const each = ctx.enter(() =>
      spin(function* () {
        const n = yield* read(s)
        return n === 1 ? yield* waitFor(d) : n === 2 ? yield* waitFor(new Promise<number>(() => undefined)) : n
      }),
    )
    const flags = (): unknown[] => [each.completed, each.running, each.dirty]
    expect([flags(), each.result()]).toEqual([[false, false, false], undefined])
    ctx.spawn(each)
    expect(flags()).toEqual([false, true, false])
    ctx.enter(() => d.deliver(5))
    expect([flags(), each.result()]).toEqual([[true, false, false], { ok: true, value: 5 }])
    ctx.enter(() => s.set(2))
    expect([flags(), each.result()]).toEqual([[true, true, false], { ok: true, value: 5 }])
    ctx.enter(() => s.set(3))
    expect([flags(), each.get()]).toEqual([[true, false, false], 3])
  })

  test('R27 between a write and the drain a spin is dirty', async () => {
    const ctx = createContext()
    const s = ctx.enter(() => signal(1))
    const each = ctx.enter(() =>
      spin(function* () {
        return yield* read(s)
      }),
    )
    await ctx.run(each)
    ctx.enter(() => s.set(2))
    expect([each.dirty, each.result()]).toEqual([true, { ok: true, value: 1 }])
    expect(() => each.get()).toThrow(NotReadyError)
    expect(await ctx.run(each)).toBe(2)
  })
})

describe('the body', () => {
  test('R28 a million reads use constant stack and leave one entry', () => {
    const { ctx } = simulate()
    const s = ctx.enter(() => signal(1))
    const sum = ctx.enter(() =>
      spin(function* () {
        let total = 0
        for (let i = 0; i < 1_000_000; i++) total += yield* read(s)
        return total
      }),
    )
    expect(ctx.runSync(sum)).toBe(1_000_000)
    expect((sum as unknown as { node: { log: { length: number } } }).node.log.length).toBe(1)
  })

  test('R28 a body must be a generator function', async () => {
    const { ctx } = simulate()
    const message = /spin body must be a generator function; use yield\* waitFor\(promise\) instead of await/
    for (const body of [async () => 1, async function* () {}, 'text', undefined]) {
      expect(() => ctx.enter(() => spin(body as never))).toThrow(message)
      expect(() => ctx.enter(() => spin(body as never))).toThrow(TypeError)
    }
    for (const body of [() => 5, () => [1, 2], () => Promise.reject(new Error('never seen')), () => null]) {
      await expect(ctx.run(body as never)).rejects.toThrow(message)
    }
    expect(() => ctx.run(5 as never)).toThrow(EffectTypeError)
  })

  test('R28 yielding something else throws at the yield, where the body can catch it', async () => {
    const { ctx } = simulate()
    const s = ctx.enter(() => signal(1))
    const caught = await ctx.run(function* (): Op<unknown> {
      try {
        yield 5 as never
        return 'not reached'
      } catch (error) {
        return error
      }
    })
    expect(caught).toBeInstanceOf(EffectTypeError)
    await expect(
      ctx.run(function* () {
        yield read(s) as never
      }),
    ).rejects.toThrow('write yield* with the star')
  })

  test('R29 kept entries answer from the log: no message is taken twice, no step called again', () => {
    const { ctx } = simulate()
    const { box, s } = ctx.enter(() => ({ box: mailbox<string>(), s: signal(1) }))
    const out: unknown[] = []
    let steps = 0
    ctx.enter(() => {
      box.post('a')
      box.post('b')
    })
    ctx.spawn(function* () {
      const m = yield* waitFor(box)
      const n = yield* step('count', () => ++steps)
      const x = yield* read(s)
      out.push([m, x, n])
    })
    ctx.enter(() => s.set(2))
    expect(out).toEqual([
      ['a', 1, 1],
      ['a', 2, 1],
    ])
    expect(box.size).toBe(1)
  })

  test('R29 recorded errors are thrown again, with the same identity', () => {
    const { ctx } = simulate()
    const s = ctx.enter(() => signal(1))
    const caught: unknown[] = []
    ctx.spawn(function* () {
      try {
        yield* step('fail', () => {
          throw new Error('once')
        })
      } catch (error) {
        caught.push(error)
      }
      yield* read(s)
    })
    ctx.enter(() => s.set(2))
    expect(caught.length).toBe(2)
    expect(caught[0]).toBe(caught[1])
  })

  test('R30 the cut is at the earliest entry that changed', () => {
    const { ctx } = simulate()
    const { p, q } = ctx.enter(() => ({ p: signal(1, { key: 'p' }), q: signal(1, { key: 'q' }) }))
    let runs = 0
    const each = ctx.enter(() =>
      spin(function* () {
        const a = yield* read(p)
        const b = yield* read(q)
        runs++
        return `${a}-${b}`
      }),
    )
    ctx.runSync(each)
    let asks: string[] = []
    ctx.trace((record) => void (record.type === 'ask' && asks.push(`${record.target} ${record.from}`)))
    const after = (cell: typeof p, value: number): unknown[] => {
      asks = []
      ctx.enter(() => cell.set(value))
      return [each.get(), ...asks]
    }
    expect(after(q, 2)).toEqual(['1-2', '/signal:p#0 log', '/signal:q#0 live'])
    expect(after(p, 3)).toEqual(['3-2', '/signal:p#0 live', '/signal:q#0 live'])
    expect(after(q, 9)).toEqual(['3-9', '/signal:p#0 log', '/signal:q#0 live'])
    expect(runs).toBe(4)
  })

  test('R31 a superseded run is closed once: its finally block runs, the code after it does not', () => {
    const { ctx } = simulate()
    const { s, d } = ctx.enter(() => ({ s: signal(0), d: deferred<number>() }))
    let finallies = 0
    let after = 0
    ctx.spawn(function* () {
      yield* read(s)
      try {
        yield* waitFor(d)
      } finally {
        finallies++
      }
      after++
    })
    ctx.enter(() => s.set(1))
    ctx.enter(() => s.set(2))
    expect([finallies, d.waiters]).toEqual([2, 1])
    ctx.enter(() => d.deliver(1))
    expect([finallies, after]).toEqual([3, 1])
  })

  test('R31 effects are refused while unwinding, and an error of finally is a fault', () => {
    const { ctx, faults } = simulate()
    const { s, d, box } = ctx.enter(() => ({ s: signal(0), d: deferred(), box: mailbox<number>() }))
    const refused: unknown[] = []
    ctx.spawn(function* () {
      yield* read(s)
      try {
        yield* waitFor(d)
      } finally {
        try {
          yield* waitFor(box)
        } catch (error) {
          refused.push(error)
        }
        // oxlint-disable-next-line no-unsafe-finally -- that is what is tested
        throw new Error('in finally')
      }
    })
    ctx.enter(() => s.set(1))
    expect(refused[0]).toBeInstanceOf(CancelledError)
    expect(faults.map((fault) => [fault.code, (fault.error as Error).message.slice(0, 10)])).toEqual([
      ['continuation-fault', 'spin /spaw'],
      ['continuation-fault', 'in finally'],
    ])
  })

  test('R31 then of a thenable is called once, and not at all in a replay', async () => {
    const { ctx } = simulate()
    const s = ctx.enter(() => signal(1))
    let asked = 0
    const query = {
      // oxlint-disable-next-line no-thenable -- query builders are like this
      then(resolve: (rows: string) => void) {
        asked++
        resolve('rows')
        throw new Error('too late to matter')
      },
    } as PromiseLike<string>
    const body = ctx.enter(() =>
      spin(function* () {
        const waited = yield* waitFor(query)
        const stepped = yield* step('query', () => query)
        return [waited, stepped, yield* read(s)]
      }),
    )
    expect(await ctx.run(body)).toEqual(['rows', 'rows', 1])
    ctx.enter(() => s.set(2))
    expect([await ctx.run(body), asked]).toEqual([['rows', 'rows', 2], 2])
  })
})

describe('nested spins', () => {
  test('R32 after the cut a child gets the new closure', () => {
    const { ctx } = simulate()
    const m = ctx.enter(() => signal(2))
    const outer = ctx.enter(() =>
      spin(function* () {
        const n = yield* read(m)
        const inner = spin(function* () {
          return 10 * n
        })
        return yield* waitFor(inner)
      }),
    )
    expect(ctx.runSync(outer)).toBe(20)
    ctx.enter(() => m.set(3))
    expect(outer.get()).toBe(30)
  })

  test('R32 equal deps keep the child valid; in the kept prefix it is valid anyway', () => {
    const { ctx } = simulate()
    const { m, x, late } = ctx.enter(() => ({ m: signal(2), x: signal(1), late: signal(0) }))
    const runs = { deps: 0, prefix: 0 }
    const outer = ctx.enter(() =>
      spin(function* () {
        const prefix = spin(function* () {
          runs.prefix++
          return 1
        })
        yield* waitFor(prefix)
        const n = yield* read(m)
        const inner = spin(
          function* () {
            runs.deps++
            return yield* read(x)
          },
          { deps: [x] },
        )
        return n + (yield* waitFor(inner)) + (yield* read(late))
      }),
    )
    expect(ctx.runSync(outer)).toBe(3)
    ctx.enter(() => m.set(3))
    ctx.enter(() => late.set(1))
    expect([outer.get(), runs]).toEqual([5, { deps: 1, prefix: 1 }])
    ctx.enter(() => x.set(5))
    expect([outer.get(), runs]).toEqual([9, { deps: 2, prefix: 1 }])
  })

  test('R32 a child that no run waits for any more is not started for its new body', () => {
    const { ctx } = simulate()
    const { s, source } = ctx.enter(() => ({
      s: signal(0),
      source: spin(function* () {
        yield* waitFor(sleep(1))
        return 'source'
      }),
    }))
    const guarded = ctx.enter(() =>
      spin(function* () {
        yield* read(s)
        return yield* waitFor(timeout(source, 60_000, 'late'))
      }),
    )
    ctx.spawn(guarded)
    ctx.advanceBy(5)
    for (const value of [1, 2]) {
      ctx.enter(() => s.set(value))
      expect([guarded.get(), ctx.inspect().timers, ctx.isIdle()]).toEqual(['source', 0, true])
    }
  })

  test('R32 a child that is not created again is disposed', () => {
    const { ctx } = simulate()
    const { on, s } = ctx.enter(() => ({ on: signal(true), s: signal(1) }))
    let runs = 0
    let child: Spin<number> | undefined
    const outer = ctx.enter(() =>
      spin(function* () {
        if (!(yield* read(on))) return 0
        child = spin(function* () {
          runs++
          return yield* read(s)
        })
        return yield* waitFor(child)
      }),
    )
    expect(ctx.runSync(outer)).toBe(1)
    const { nodes } = ctx.inspect()
    ctx.enter(() => on.set(false))
    ctx.enter(() => s.set(2))
    expect([outer.get(), runs, ctx.inspect().nodes]).toEqual([0, 1, nodes - 1])
    expect(() => child?.get()).toThrow(DisposedError)
  })

  test('R32 two children at one address may not contradict each other', async () => {
    const { ctx } = simulate()
    const s = ctx.enter(() => signal(0))
    const outer = ctx.enter(() =>
      spin(function* () {
        const n = yield* read(s)
        const options = n === 0 ? { key: 'k' } : { key: 'k', equals: false as const }
        return yield* waitFor(
          spin(function* () {
            return n
          }, options),
        )
      }),
    )
    expect(await ctx.run(outer)).toBe(0)
    ctx.enter(() => s.set(1))
    await expect(ctx.run(outer)).rejects.toThrow(AddressCollisionError)
  })

  test('R32 children and cells keep their addresses, and scopes keep those of list items', () => {
    const { ctx } = simulate()
    const ids = ctx.enter(() => signal(['x', 'y']))
    const runs: string[] = []
    const outer = ctx.enter(() =>
      spin(
        function* () {
          const addresses: string[] = []
          for (const id of yield* read(ids)) {
            yield* scope(id, function* () {
              const child = spin(
                function* () {
                  runs.push(id)
                  return id
                },
                { deps: [id] },
              )
              yield* waitFor(child)
              addresses.push(child.addr)
            })
          }
          return addresses
        },
        { key: 'list' },
      ),
    )
    expect(ctx.runSync(outer)).toEqual(['/spin:list#0/scope:x#0/spin:#0', '/spin:list#0/scope:y#0/spin:#0'])
    ctx.enter(() => ids.set(['w', 'x', 'y']))
    expect(runs).toEqual(['x', 'y', 'w'])
  })
})

describe('errors and cancellation', () => {
  test('R33 an error is cached, the same for every caller, and a change recovers from it', async () => {
    const { ctx } = simulate()
    const text = ctx.enter(() => signal('{'))
    let runs = 0
    const parsed = ctx.enter(() =>
      spin(function* () {
        const source = yield* read(text)
        runs++
        return JSON.parse(source) as unknown
      }),
    )
    const errors = await Promise.all([ctx.run(parsed), ctx.run(parsed)].map((each) => each.catch((e: unknown) => e)))
    const again: unknown = await ctx.run(parsed).catch((e: unknown) => e)
    expect(errors[0]).toBeInstanceOf(SyntaxError)
    expect([errors[1] === errors[0], again === errors[0], runs]).toEqual([true, true, 1])
    ctx.enter(() => text.set('[7]'))
    expect(await ctx.run(parsed)).toEqual([7])
  })

  test('R33 a parent can catch what its child threw', () => {
    const { ctx } = simulate()
    const child = ctx.enter(() =>
      spin(function* () {
        throw new Error('child')
      }),
    )
    const parent = function* (): Op<string> {
      try {
        yield* waitFor(child)
        return 'not reached'
      } catch (error) {
        return `caught ${(error as Error).message}`
      }
    }
    expect(ctx.runSync(parent)).toBe('caught child')
  })

  test('R33 an error of a spawned spin is always reported', () => {
    const { ctx, faults } = simulate()
    const reported: unknown[] = []
    const fail = function* (): Op<void> {
      throw new Error('lost?')
    }
    ctx.spawn(fail)
    ctx.spawn(fail, { onError: (error) => reported.push(error) })
    expect([faults.length, faults[0]?.code, reported.length]).toEqual([1, 'continuation-fault', 1])
  })

  /** A parent that waits for a child that waits for `d`; records which of their finally blocks ran. */
  function family(d: Deferred<number>) {
    const ended: string[] = []
    const child = spin(function* () {
      try {
        return yield* waitFor(d)
      } finally {
        ended.push('child')
      }
    })
    const parent = spin(function* () {
      try {
        return yield* waitFor(child)
      } finally {
        ended.push('parent')
      }
    })
    return { child, parent, ended }
  }

  test('R34 cancelling unwinds the parent and the child that only it waited for', async () => {
    const { ctx } = simulate()
    const d = ctx.enter(() => deferred<number>())
    const { child, parent, ended } = ctx.enter(() => family(d))
    const outcome = ctx.run(parent).catch((error: unknown) => error)
    parent.cancel('enough')
    expect(ended).toEqual(['child', 'parent'])
    const error = await outcome
    expect(error).toBeInstanceOf(CancelledError)
    expect((error as CancelledError).cause).toBe('enough')
    expect(child.result()).toMatchObject({ ok: false, error: { code: 'E_CANCELLED' } })
    expect([d.waiters, ctx.inspect().running, ctx.isIdle()]).toEqual([0, 0, true])
  })

  test.each(['cancel', 'dispose'] as const)(
    'R34 on %s every child cleans up before its parent, and waits if it must',
    (end) => {
      const { ctx } = simulate()
      const log: string[] = []
      const { flushed, never } = ctx.enter(() => ({ flushed: deferred<void>(), never: deferred<void>() }))
      const guarded = (name: string, inner: () => Op<unknown>, last?: () => Op<unknown>): Spin<void> =>
        spin(function* () {
          yield* onCancel(() => log.push(`${name} hook`))
          try {
            yield* inner()
          } finally {
            if (last !== undefined) yield* last()
            log.push(name)
          }
        })
      const leaf = (): Spin<void> =>
        guarded(
          'leaf',
          () => waitFor(never),
          () => waitFor(flushed),
        )
      const left = (): Spin<void> => guarded('left', () => waitFor(leaf()))
      const right = (): Spin<void> => guarded('right', () => waitFor(never))
      const top = ctx.enter(() => guarded('top', () => waitFor(parallel(left(), right()))))
      ctx.spawn(top, { onError: () => undefined })
      top[end]()
      // The leaf still flushes: nothing that owns it may close yet. The right branch does not depend on it.
      expect(log).toEqual(['right hook', 'right', 'leaf hook'])
      ctx.enter(() => flushed.deliver())
      expect(log).toEqual(['right hook', 'right', 'leaf hook', 'leaf', 'left hook', 'left', 'top hook', 'top'])
      expect(ctx.inspect()).toMatchObject({ running: 0, waiters: 0, idle: true })
    },
  )

  test.each([
    ['cancel', 'the spin'],
    ['cancel and dispose', 'the spin'],
    ['cancel and dispose', 'its owner'],
  ])('R34 on %s of %s a clean-up that waits for spins of its own ends before that of the parent', (end, which) => {
    const { ctx, faults } = simulate()
    const log: string[] = []
    const { never } = ctx.enter(() => ({ never: deferred<void>() }))
    const guarded = (name: string, inner: () => Spin<void> | Deferred<void>): Spin<void> =>
      spin(function* () {
        const box = mailbox<string>()
        try {
          yield* waitFor(inner() as Spin<void>)
        } finally {
          box.post(name)
          yield* waitFor(sleep(10))
          log.push(`${ctx.now()} ${yield* waitFor(box)}`)
        }
      })
    let parent: Spin<void> | undefined
    const owner = ctx.enter(() =>
      spin(function* () {
        parent = guarded('parent', () => guarded('child', () => never))
        try {
          yield* waitFor(parent)
        } catch {
          yield* waitFor(never)
        }
      }),
    )
    ctx.spawn(owner, { onError: () => undefined })
    parent?.cancel()
    if (end !== 'cancel') (which === 'the spin' ? parent : owner)?.dispose()
    ctx.advanceBy(100)
    expect(log).toEqual(['10 child', '20 parent'])
    expect(faults).toEqual([])
    owner.dispose()
    expect(ctx.inspect()).toMatchObject({ running: 0, waiters: 0, timers: 0, nodes: 0, idle: true })
  })

  test('R34 a spin that cancelled itself, and is disposed then, ends its clean-up', () => {
    const { ctx, faults } = simulate()
    const log: string[] = []
    const self: Spin<void> = ctx.enter(() =>
      spin(function* () {
        self.cancel()
        try {
          yield* waitFor(sleep(1))
        } finally {
          yield* waitFor(sleep(10))
          log.push(`${ctx.now()} one`)
          yield* waitFor(sleep(10))
          log.push(`${ctx.now()} two`)
        }
      }),
    )
    ctx.spawn(self, { onError: () => undefined })
    self.dispose()
    ctx.advanceBy(100)
    expect([log, faults]).toEqual([['10 one', '20 two'], []])
    expect(ctx.inspect()).toMatchObject({ running: 0, timers: 0, nodes: 0, idle: true })
  })

  test('R34 a child that cancels its parent cleans up before it', () => {
    const { ctx } = simulate()
    const ended: string[] = []
    const go = ctx.enter(() => deferred<void>())
    const parent: Spin<void> = ctx.enter(() =>
      spin(function* () {
        try {
          yield* waitFor(child)
        } finally {
          ended.push('parent')
        }
      }),
    )
    const child = ctx.enter(() =>
      spin(function* () {
        try {
          yield* waitFor(go)
          parent.cancel()
          yield* waitFor(sleep(1))
        } finally {
          ended.push('child')
        }
      }),
    )
    ctx.spawn(parent, { onError: () => undefined })
    ctx.enter(() => go.deliver())
    expect(ended).toEqual(['child', 'parent'])
    expect(ctx.isIdle()).toBe(true)
  })

  test('R34 a child with another observer is not cancelled', () => {
    const { ctx } = simulate()
    const d = ctx.enter(() => deferred<number>())
    const { child, parent, ended } = ctx.enter(() => family(d))
    ctx.spawn(parent, { onError: () => undefined })
    const other = ctx.run(child)
    parent.cancel()
    expect([ended, d.waiters]).toEqual([['parent'], 1])
    ctx.enter(() => d.deliver(4))
    return expect(other).resolves.toBe(4)
  })

  test('R34 cancelling clears the timer of a sleep and aborts the signal of a step', () => {
    const { ctx } = simulate()
    let isAborted = false
    const hooks: string[] = []
    const each = ctx.enter(() =>
      spin(function* () {
        yield* onCancel(() => hooks.push('hook'))
        yield* waitFor(sleep(10))
        yield* step('work', (abort) => {
          abort.addEventListener('abort', () => (isAborted = true))
          return new Promise(() => undefined)
        })
      }),
    )
    ctx.spawn(each, { onError: () => undefined })
    expect(ctx.inspect().timers).toBe(1)
    ctx.advanceBy(10)
    each.cancel()
    expect([ctx.inspect().timers, isAborted, hooks]).toEqual([0, true, ['hook']])
    const slept = ctx.enter(() => sleep(5))
    ctx.spawn(slept, { onError: () => undefined })
    slept.cancel()
    expect(ctx.inspect().timers).toBe(0)
  })

  test('R34 a caught cancellation may clean up with effects, and the spin stays cancelled', () => {
    const { ctx } = simulate()
    const d = ctx.enter(() => deferred<number>())
    const cleaned: unknown[] = []
    const each = ctx.enter(() =>
      spin(function* () {
        try {
          return yield* waitFor(d)
        } catch {
          cleaned.push(yield* waitFor(sleep(5, 'slept')))
          cleaned.push(yield* step('tidy', () => 'tidied'))
          return 'not cancelled'
        }
      }),
    )
    ctx.spawn(each, { onError: () => undefined })
    each.cancel()
    expect([each.running, each.result()?.ok, ctx.isIdle()]).toEqual([false, false, false])
    ctx.advanceBy(5)
    expect(cleaned).toEqual(['slept', 'tidied'])
    expect([each.result(), ctx.isIdle()]).toMatchObject([{ error: { code: 'E_CANCELLED' } }, true])
  })

  test('R34 a running or new spin is cancelled at its next effect; a completed or disposed one does not change', async () => {
    const { ctx } = simulate()
    const fresh = ctx.enter(() =>
      spin(function* () {
        yield* waitFor(sleep(1))
      }),
    )
    fresh.cancel('early')
    await expect(ctx.run(fresh)).rejects.toThrow('early')
    const reached: string[] = []
    const self: Spin<void> = ctx.enter(() =>
      spin(function* () {
        self.cancel()
        reached.push('still here')
        yield* waitFor(sleep(1))
        reached.push('not here')
      }),
    )
    await expect(ctx.run(self)).rejects.toThrow(CancelledError)
    expect(reached).toEqual(['still here'])
    const done = ctx.enter(() =>
      spin(function* () {
        return 1
      }),
    )
    ctx.runSync(done)
    done.cancel()
    expect(done.get()).toBe(1)
    done.dispose()
    done.cancel()
    expect(done.result()).toBe(undefined)
  })

  test('R34 a child that was cancelled before it ran may run for the next run of its owner', () => {
    const { ctx } = simulate()
    const { s, outer } = ctx.enter(() => {
      const s = signal(0)
      const ready = spin(function* () {
        return 'ready'
      })
      const inner = spin(function* () {
        return [yield* read(s), yield* waitFor(timeout(ready, 60_000, 'late'))]
      })
      const outer = spin(function* () {
        yield* read(s)
        return yield* waitFor(timeout(inner, 60_000, 'late'))
      })
      return { s, outer }
    })
    ctx.spawn(outer)
    for (const value of [1, 2]) {
      ctx.enter(() => s.set(value))
      expect([outer.get(), ctx.now()]).toEqual([[value, 'ready'], 0])
    }
    expect([ctx.inspect().timers, ctx.isIdle()]).toEqual([0, true])
  })

  test('R34 a timeout whose source was available at once gives the next source its full time', () => {
    const { ctx } = simulate()
    const isSlow = ctx.enter(() => signal(false))
    const guarded = ctx.enter(() =>
      spin(function* () {
        const delay = (yield* read(isSlow)) ? 50 : undefined
        const source = spin(function* () {
          if (delay !== undefined) yield* waitFor(sleep(delay))
          return 'source'
        })
        return yield* waitFor(timeout(source, 60_000, 'late'))
      }),
    )
    ctx.spawn(guarded)
    ctx.enter(() => isSlow.set(true))
    expect(guarded.running).toBe(true)
    ctx.advanceBy(50)
    expect([guarded.get(), ctx.inspect().timers]).toEqual(['source', 0])
  })

  test('R34 cancelling a decided race leaves the winner its value', () => {
    const { ctx } = simulate()
    const winner = ctx.enter(() =>
      spin(function* () {
        return 'first'
      }),
    )
    const raced = ctx.enter(() => race(winner, sleep(100, 'late')))
    expect(ctx.runSync(raced)).toBe('first')
    raced.cancel()
    expect([raced.get(), winner.get(), ctx.inspect().timers]).toEqual(['first', 'first', 0])
  })

  test('R35 reading synchronously is refused in a drain, and the drain continues', async () => {
    const { ctx, faults } = simulate()
    const other = ctx.enter(() =>
      spin(function* () {
        return 1
      }),
    )
    ctx.runSync(other)
    const outcomes = [() => other.get(), () => ctx.runSync(other), () => ctx.advanceBy(1), () => ctx.idle()].map(
      (act) =>
        ctx
          .run(function* () {
            void act()
          })
          .catch((error: unknown) => (error as DerefInDrainError).code),
    )
    expect(await Promise.all(outcomes)).toEqual(Array(4).fill('E_DEREF_IN_DRAIN'))
    let isLater = false
    ctx.spawn(function* () {
      isLater = true
    })
    expect([isLater, faults]).toEqual([true, []])
    const none = ctx.enter(() => spin(function* () {}))
    expect(() => none.get()).toThrow(/has no result yet/)
    expect(() => ctx.enter(() => effect(() => void other.get()))).toThrow(EffectTypeError)
  })

  test('R35 run inside a body returns a promise and reports one fault', async () => {
    const { ctx, faults } = simulate()
    const other = ctx.enter(() =>
      spin(function* () {
        return 1
      }),
    )
    const twice = function* (): Op<number> {
      return (yield* waitFor(ctx.run(other))) + (yield* waitFor(ctx.run(other)))
    }
    expect(await ctx.run(twice)).toBe(2)
    expect(faults.map((fault) => fault.code)).toEqual(['run-in-body'])
  })

  test('R73 runSync of a spin that cannot finish now throws, and the run continues', () => {
    const { ctx } = simulate()
    const d = ctx.enter(() => deferred<number>())
    const each = ctx.enter(() =>
      spin(function* () {
        return yield* waitFor(d)
      }),
    )
    expect(() => ctx.runSync(each)).toThrow(NotSettledError)
    ctx.enter(() => d.deliver(3))
    expect(ctx.runSync(each)).toBe(3)
    const failing = function* (): Op<never> {
      throw new RangeError('mine')
    }
    expect(() => ctx.runSync(failing)).toThrow(RangeError)
    expect(() => createContext().runSync(each)).toThrow(NotSettledError)
  })

  test('an effect created in a body is disposed with the run that created it', () => {
    const { ctx } = simulate()
    const { s, watched } = ctx.enter(() => ({ s: signal('a'), watched: signal(0) }))
    const seen: string[] = []
    const each = ctx.enter(() =>
      spin(function* () {
        const name = yield* read(s)
        effect(() => void seen.push(`${name}${watched.get()}`))
      }),
    )
    ctx.spawn(each)
    ctx.enter(() => watched.set(1))
    ctx.enter(() => s.set('b'))
    ctx.enter(() => watched.set(2))
    expect(seen).toEqual(['a0', 'a1', 'b1', 'b2'])
    each.dispose()
    ctx.enter(() => watched.set(3))
    expect([seen.length, ctx.inspect().observers]).toEqual([4, 0])
  })

  test('a disposed spin rejects its callers and waiters, and cannot run again', async () => {
    const { ctx } = simulate()
    const d = ctx.enter(() => deferred<number>())
    const { child, parent } = ctx.enter(() => family(d))
    const waiting = ctx.run(parent)
    const called = ctx.run(child)
    child.dispose()
    await expect(called).rejects.toThrow(DisposedError)
    await expect(waiting).rejects.toThrow(DisposedError)
    await expect(ctx.run(child)).rejects.toThrow(DisposedError)
    expect(() => ctx.spawn(child)).toThrow(DisposedError)
    expect([d.waiters, ctx.isIdle()]).toEqual([0, true])
  })
})

describe('bodies that cannot go on', () => {
  test('R34 a spin that is cancelled before its first run never begins', async () => {
    const { ctx } = simulate()
    let begun = 0
    const s = ctx.enter(() => signal(1))
    const plain = ctx.enter(() =>
      spin(function* () {
        begun++
        return 1
      }),
    )
    const parent = ctx.enter(() =>
      spin(function* () {
        yield* read(s)
        return yield* waitFor(plain)
      }),
    )
    plain.cancel('not needed')
    expect(plain.result()).toMatchObject({ ok: false, error: { code: 'E_CANCELLED', cause: 'not needed' } })
    await expect(ctx.run(plain)).rejects.toThrow(CancelledError)
    await expect(ctx.run(parent)).rejects.toThrow(CancelledError)
    s.set(2)
    await expect(ctx.run(parent)).rejects.toThrow(CancelledError)
    expect(begun).toBe(0)
  })

  test.each([
    ['an effect that is refused', () => waitFor(5 as unknown as Spin<number>)],
    ['an effect that fails', () => step('fails', () => Promise.reject(new Error('always'))), 'waits'],
  ] as const)('a loop that catches every error of %s', async (_, op, waits?: 'waits') => {
    const { ctx } = simulate()
    let caught = 0
    const loop = ctx.enter(() =>
      spin(function* () {
        for (;;) {
          try {
            yield* op()
          } catch {
            if (++caught >= 30_000) return 'ended by itself'
          }
        }
      }),
    )
    if (waits === undefined) {
      await expect(ctx.run(loop)).rejects.toThrow(/caught 10000 errors of its effects and never waited/)
      expect(caught).toBeLessThan(30_000)
    } else expect(await ctx.run(loop)).toBe('ended by itself')
    expect(ctx.inspect().running).toBe(0)
  })

  test('a loop that yields what is no effect ends with an error', async () => {
    const { ctx } = simulate()
    const loop = ctx.enter(() =>
      spin(function* () {
        for (;;) {
          try {
            yield 5 as never
          } catch {
            // It tries again.
          }
        }
      }),
    )
    await expect(ctx.run(loop)).rejects.toThrow(EffectTypeError)
  })

  test('a clean-up that catches every error of its effects ends, and is reported', async () => {
    const { ctx, faults } = simulate()
    const d = ctx.enter(() => deferred<number>())
    const loop = ctx.enter(() =>
      spin(function* () {
        for (;;) {
          try {
            yield* waitFor(d)
          } catch {
            while (d.waiters === 0) {
              try {
                yield* waitFor(5 as unknown as Spin<number>)
              } catch {
                // It tries again.
              }
            }
          }
        }
      }),
    )
    const called = ctx.run(loop)
    loop.cancel()
    await expect(called).rejects.toThrow(CancelledError)
    expect(faults.map(({ code }) => code)).toEqual(['continuation-fault'])
    expect(ctx.inspect().running).toBe(0)
  })
})

describe('the order in which a re-run ends what it replaces', () => {
  /** A family three deep whose bodies record their ends, below a read of `s`. */
  function family(options: { readonly deps?: readonly unknown[] } = {}) {
    const { ctx, faults } = simulate()
    const log: string[] = []
    const [s, late] = ctx.enter(() => [signal(1), signal(1)])
    const d = ctx.enter(() => deferred<number>())
    const member = (name: string, op: () => Op<number>) =>
      function* () {
        log.push(`${name} begins`)
        try {
          return yield* op()
        } finally {
          log.push(`${name} ends`)
        }
      }
    const parent = ctx.enter(() =>
      spin(
        member('parent', function* () {
          yield* read(s)
          const child = spin(
            member('child', function* () {
              return yield* waitFor(spin(member('grandchild', () => waitFor(d))))
            }),
            options,
          )
          yield* read(late)
          return yield* waitFor(child)
        }),
      ),
    )
    ctx.spawn(parent)
    return { ctx, faults, log, s, late, d, parent }
  }
  const BEGIN = ['parent begins', 'child begins', 'grandchild begins']

  test('R31 children end before the parent that starts over, and run again', async () => {
    const { ctx, faults, log, s, d, parent } = family()
    expect(log.splice(0)).toEqual(BEGIN)
    s.set(2)
    expect(log.splice(0)).toEqual(['grandchild ends', 'child ends', 'parent ends', ...BEGIN])
    d.deliver(7)
    expect(await ctx.run(parent)).toBe(7)
    expect([log, faults]).toEqual([['grandchild ends', 'child ends', 'parent ends'], []])
  })

  test('R32 children that were created before the change, or whose deps are the same, go on', () => {
    const early = family()
    early.log.splice(0)
    early.late.set(2)
    expect(early.log).toEqual(['parent ends', 'parent begins'])
    const kept = family({ deps: [1] })
    kept.log.splice(0)
    kept.s.set(2)
    expect(kept.log).toEqual(['parent ends', 'parent begins'])
  })
})
