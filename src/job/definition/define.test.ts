import { describe, expect, test } from 'vitest'
import { DefinitionError, InvalidOptionsError, InvalidPayloadError, NotYetError } from '../../errors.js'
import type { TestContext } from '../attempt/context.js'
import { category, job } from './define.js'
import type { AnyJob, Handler } from './define.js'
import { isLazy, lazy } from './lazy.js'
import { testContext } from '../attempt/test-context.js'
import { isCategory, isJob } from './brands.js'

const caught = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error) => error,
  )

describe('a job', () => {
  test('is a frozen value with a name, recognised by its brand', () => {
    const defined = job('a', () => 1)
    expect(isJob(defined)).toBe(true)
    expect(isCategory(defined)).toBe(false)
    expect(Object.isFrozen(defined)).toBe(true)
    expect(defined.name).toBe('a')
  })

  test('has the short form for the full one', () => {
    const run = (): number => 1
    expect(job('a', run).options).toEqual({ run })
  })

  test('is refused with every problem, and its name', () => {
    const wrong = { rnu: 1, queue: '', rate: { max: 0, per: '1s' } }
    expect(() => job('', wrong as never)).toThrow(InvalidOptionsError)
    try {
      job('', wrong as never)
    } catch (error) {
      expect((error as InvalidOptionsError).problems.map((p) => p.path)).toEqual(['name', 'rnu', 'queue', 'rate.max'])
      expect((error as Error).message).toContain('job("")')
    }
  })

  test.each([undefined, null, 5, 'x', []])('is refused when its options are number %#', (options) => {
    expect(() => job('a', options as never)).toThrow(InvalidOptionsError)
  })

  test.each<unknown>([5, null, undefined, {}, ''])('is refused with the name number %#', (name) => {
    expect(() => job(name as string, () => 1)).toThrow(InvalidOptionsError)
  })

  // The subject of the error must not be built with JSON.stringify, which throws for these.
  const loop: Record<string, unknown> = {}
  loop['loop'] = loop
  test.each<[string, unknown]>([
    ['a BigInt', 5n],
    ['a cycle', loop],
  ])('is refused with a name that is %s, by the usual error', (_, name) => {
    expect(() => job(name as string, () => 1)).toThrow(InvalidOptionsError)
  })
})

describe('a category', () => {
  test('is a frozen value with a name, recognised by its brand', () => {
    const defined = category('c')
    expect(isCategory(defined)).toBe(true)
    expect(isJob(defined)).toBe(false)
    expect(Object.isFrozen(defined)).toBe(true)
  })

  test('is refused with every problem', () => {
    expect(() => category('c', { qeue: 'x', timeout: 'x' } as never)).toThrow(/2 problems[^]*qeue[^]*timeout/)
  })
})

describe('running a job directly', () => {
  test('calls the handler with the payload and resolves with its result', async () => {
    expect(await job('double', (n: number) => n * 2).run(21)).toBe(42)
    expect(await job('later', async (n: number) => n * 2).run(21)).toBe(42)
  })

  test('rejects with the error of the handler', async () => {
    const boom = new Error('boom')
    const failing = job('a', () => {
      throw boom
    })
    expect(await caught(failing.run(undefined))).toBe(boom)
  })

  test('does not call the handler with a payload that the check refuses', async () => {
    let called = 0
    const positive = job('positive', { run: (n: number) => (called += n), accepts: (n) => n > 0 })
    expect(await positive.run(1)).toBe(1)
    expect(await caught(positive.run(-1))).toBeInstanceOf(InvalidPayloadError)
    expect(called).toBe(1)
  })

  test('uses a recording context when none is passed', async () => {
    const child = job('child', (p: { n: number }) => p.n)
    let seen: TestContext | undefined
    const parent = job('parent', {
      queue: 'family',
      run: async (_: undefined, ctx) => {
        seen = ctx as TestContext
        ctx.log('hello', { n: 1 })
        ctx.progress(1, 2)
        ctx.progress(2)
        const handle = await ctx.enqueue(child, { n: 5 }, { labels: ['x'] })
        const named = await ctx.enqueue('by-name')
        return [handle.isNew, handle.id !== named.id]
      },
    })
    expect(await parent.run(undefined)).toEqual([true, true])
    expect(seen).toMatchObject({
      id: 'test',
      job: 'parent',
      attempt: 1,
      queue: { name: 'family' },
      logged: ['hello {"n":1}'],
      progressed: [
        { done: 1, total: 2 },
        { done: 2, total: undefined },
      ],
      enqueued: [
        { job: child, payload: { n: 5 }, options: { labels: ['x'] } },
        { job: 'by-name', payload: undefined, options: undefined },
      ],
    })
    expect(seen?.signal.aborted).toBe(false)
  })

  test('uses the context that is passed', async () => {
    const ctx = testContext(job('other', () => 1) as AnyJob, 7)
    expect(await job('a', (_: undefined, c) => [c.job, c.attempt]).run(undefined, ctx)).toEqual(['other', 7])
  })

  test('falls back to the handler of its category, which sees the job’s name', async () => {
    const notification = category('notification', { run: (p: never, ctx) => `${ctx.job}: ${String(p)}` })
    expect(await job('send-sms', { is: [notification] }).run('hi')).toBe('send-sms: hi')
    expect(await job('send-fax', { is: [notification] }).run('ho')).toBe('send-fax: ho')
  })

  test('is refused when neither it nor a category has a handler', async () => {
    expect(await caught(job('a', { is: [category('c')] }).run(1))).toBeInstanceOf(DefinitionError)
  })

  test('records the settlement, and refuses access to a database', async () => {
    const ctx = testContext(job('a', () => 1) as AnyJob)
    const tx = { mine: true }
    expect(ctx.settleIn(tx, 5)).toBeUndefined()
    expect(await ctx.transaction(() => 'value')).toBe('value')
    expect(ctx.settled).toEqual([
      { tx, result: 5 },
      { tx: undefined, result: 'value' },
    ])
    expect(await caught(ctx.transaction((db: { exec(sql: string): void }) => db.exec('delete from t')))).toMatchObject({
      code: 'E_TX_UNREACHABLE',
    })
    expect(ctx.settled).toHaveLength(2)
  })

  test('refuses by name the calls that a recording context cannot answer', async () => {
    const ctx = testContext(job('a', () => 1) as AnyJob)
    const handle = await ctx.enqueue('x')
    const parent = job('p', () => 1)
    expect(await ctx.results(parent)).toEqual([])
    const refused = [handle.get(), handle.cancel(), handle.result()]
    for (const each of refused) expect(await caught(each)).toBeInstanceOf(NotYetError)
  })

  test('records when the handler pauses its queue', async () => {
    const ctx = testContext(job('a', () => 1) as AnyJob)
    await job('a', (_: undefined, c) => c.queue.pauseUntil('1m')).run(undefined, ctx)
    expect(ctx.pausedUntil).toEqual(['1m'])
  })
})

describe('a lazy handler', () => {
  const handler: Handler<number, number> = (n) => n + 1

  test.each<[string, () => Promise<unknown>]>([
    ['the function itself', async () => handler],
    ['the default export', async () => ({ default: handler })],
    ['the export run', async () => ({ run: handler, other: 1 })],
    ['run when the default export is no function', async () => ({ default: {}, run: handler })],
  ])('may be %s', async (_, importer) => {
    const lazily = job('a', { run: lazy(importer as () => Promise<Handler<number, number>>) })
    expect(await lazily.run(1)).toBe(2)
  })

  test('is loaded at the first run, and once for concurrent runs', async () => {
    let loads = 0
    const run = lazy(async () => {
      loads += 1
      return handler
    })
    const lazily = job('a', { run })
    expect(isLazy(run)).toBe(true)
    expect(loads).toBe(0)
    expect(await Promise.all([lazily.run(1), lazily.run(2), lazily.run(3)])).toEqual([2, 3, 4])
    expect(loads).toBe(1)
  })

  test('that could not be loaded is loaded again at the next run', async () => {
    let loads = 0
    const lazily = job('a', {
      run: lazy(async () => {
        loads += 1
        if (loads === 1) throw new Error('the disk was away')
        return handler
      }),
    })
    expect(await caught(lazily.run(1))).toMatchObject({ message: 'the disk was away' })
    expect(await lazily.run(1)).toBe(2)
    expect(loads).toBe(2)
  })

  test('whose module has no handler is refused with the names of its exports', async () => {
    const lazily = job('a', { run: lazy((async () => ({ charge: handler })) as never) })
    expect(await caught(lazily.run(1 as never))).toMatchObject({
      message: expect.stringContaining('it exports charge') as string,
    })
  })

  test.each<[unknown, string]>([
    [{}, 'it exports nothing'],
    [null, 'must return the handler or its module, got null'],
    ['./charge.js', 'must return the handler or its module, got "./charge.js"'],
    [{ run: function* () {} }, 'must not be a generator function'],
    [async function* () {}, 'must not be a generator function'],
  ])('is refused when the importer returns something else: %#', async (loaded, message) => {
    const lazily = job('a', { run: lazy((async () => loaded) as never) })
    expect(await caught(lazily.run(1 as never))).toMatchObject({ message: expect.stringContaining(message) as string })
  })

  test('takes a function that imports it, and not what that returns', () => {
    expect(() => lazy(Promise.resolve(handler) as never)).toThrow(/lazy\(\) takes a function .*, got a Promise/)
  })

  test.each([null, undefined, 5, 'text', {}, handler])('is not %#', (value) => {
    expect(isLazy(value)).toBe(false)
  })

  // An importer that throws synchronously returns no promise to catch it on.
  test('whose importer throws synchronously rejects, and is loaded again at the next run', async () => {
    let loads = 0
    const lazily = job('a', {
      run: lazy(() => {
        loads += 1
        if (loads === 1) throw new Error('at once')
        return Promise.resolve(handler)
      }),
    })
    expect(await caught(lazily.run(1))).toMatchObject({ message: 'at once' })
    expect(await lazily.run(1)).toBe(2)
  })
})
