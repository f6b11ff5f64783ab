import { AsyncLocalStorage } from 'node:async_hooks'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { Abort, job, millrace, Snooze, sqlite } from '../src/index.js'
import type { AttemptEnd, EnqueueCall, Hooks, Logger, Mill, MillOptions, SettledAttempt } from '../src/index.js'
import { chooseLibrary } from '../src/store/sqlite/connection/library.js'
import type { SqliteDatabase } from '../src/store/sqlite/connection/driver.js'
import { testing } from './support/testing.js'
import { freshStore } from './support/fresh-store.js'

/** S10: hooks around enqueue, start and settle, through the public API, on real files. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-hooks-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mills: Mill[] = []
const handles: SqliteDatabase[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
  for (const handle of handles.splice(0)) handle.close()
})
let files = 0
async function open(options: MillOptions): Promise<Mill> {
  const mill = await millrace({ store: freshStore(folder), logger: false, poll: '20ms', ...options })
  mills.push(mill)
  return mill
}
async function started(options: MillOptions): Promise<Mill> {
  const mill = await open(options)
  await mill.start()
  return mill
}
const refusal = async (promise: Promise<unknown>): Promise<Error & { code?: string }> =>
  promise.then(
    () => {
      throw new Error('it was not refused')
    },
    (error: Error) => error,
  )
const count = async (mill: Mill): Promise<number> => {
  let found = 0
  for await (const { state } of mill.find()) found += state === 'cancelled' ? 0 : 1
  return found
}

/** A mill on a handle of the app, and a transaction on it that commits whatever happened inside. */
async function withHandle(
  hooks: NonNullable<MillOptions['hooks']>,
  more: MillOptions = {},
): Promise<{ mill: Mill; inTransaction: (work: (tx: unknown) => void) => void }> {
  const db = new (chooseLibrary().open)(join(folder, `handle-${(files += 1)}.db`))
  db.exec('pragma journal_mode = wal')
  handles.push(db)
  const mill = await open({ store: sqlite(db), jobs: [echo], hooks, ...more })
  const inTransaction = (work: (tx: unknown) => void): void => {
    db.exec('begin immediate')
    work(db)
    db.exec('commit')
  }
  return { mill, inTransaction }
}

const echo = job('echo', async (p: unknown) => p)
const once = { retry: { limit: 0 } } as const

describe('the enqueue hook', () => {
  test('sees each call that enqueues, with the job, the payloads and the options', async () => {
    const calls: EnqueueCall[] = []
    const parent = job('parent', async (_: undefined, ctx) => void (await ctx.enqueue(echo, 'child')))
    const hooks: Hooks = {
      enqueue: (call, next) => {
        calls.push(call)
        return next()
      },
    }
    const mill = await started({ jobs: [echo, parent], hooks })
    await mill.enqueue(echo, 1, { labels: ['a'] })
    await mill.enqueueMany('echo', [1, 2], (payload, index) => ({ priority: index, title: String(payload) }))
    await mill.schedule(echo, 3, '1h', { key: 'k' })
    await (await mill.enqueue(parent)).result()
    expect(calls).toEqual([
      { verb: 'enqueue', job: 'echo', queue: 'default', items: [{ payload: 1, options: { labels: ['a'] } }] },
      {
        verb: 'enqueueMany',
        job: 'echo',
        queue: 'default',
        items: [
          { payload: 1, options: { priority: 0, title: '1' } },
          { payload: 2, options: { priority: 1, title: '2' } },
        ],
      },
      { verb: 'schedule', job: 'echo', queue: 'default', items: [{ payload: 3, options: { key: 'k' } }], when: '1h' },
      { verb: 'enqueue', job: 'parent', queue: 'default', items: [{ payload: undefined, options: {} }] },
      { verb: 'enqueue', job: 'echo', queue: 'default', items: [{ payload: 'child', options: {} }] },
    ])
  })

  test('returns the caller its handles, also when it forgets to return them, and gets them itself', async () => {
    const seen: string[] = []
    const hooks: Hooks = {
      enqueue: async (_, next) => {
        for (const handle of await next()) seen.push(handle.id)
      },
    }
    const mill = await open({ jobs: [echo], hooks })
    const one = await mill.enqueue(echo, 1)
    const many = await mill.enqueueMany(echo, [1, 2])
    expect([one, ...many].map((handle) => handle.id)).toEqual(seen)
    expect(await mill.enqueueMany(echo, [])).toEqual([])
  })

  test('may override options of the call, for all or for each', async () => {
    const hooks: Hooks = {
      enqueue: (call, next) =>
        call.verb === 'enqueueMany'
          ? next((item, index) => ({ labels: [...(item.options.labels ?? []), `no-${index}`] }))
          : next({ queue: 'tenant-7', labels: ['hooked'] }),
    }
    const mill = await open({ jobs: [echo], hooks })
    expect(await (await mill.enqueue(echo, 1, { priority: 3, labels: ['own'] })).get()).toMatchObject({
      queue: 'tenant-7',
      priority: 3,
      labels: ['hooked'],
    })
    const many = await mill.enqueueMany(echo, [1, 2], { labels: ['own'] })
    const labels = await Promise.all(many.map(async (handle) => (await handle.get())?.labels))
    expect(labels).toEqual([
      ['own', 'no-0'],
      ['own', 'no-1'],
    ])
    expect(await (await mill.schedule(echo, 1, '1h')).get()).toMatchObject({ state: 'scheduled', queue: 'tenant-7' })
  })

  test.each<[string, Hooks['enqueue'], RegExp]>([
    ['throws', () => Promise.reject(new RangeError('quota spent')), /^quota spent$/],
    [
      'throws at once',
      () => {
        throw new RangeError('quota spent')
      },
      /^quota spent$/,
    ],
    ['never calls next', () => undefined, /hooks\.enqueue ended without calling next\(\)/],
    ['lays over a typo', (_, next) => next({ lables: ['x'] } as never), /did you mean "labels"\?/],
    [
      'overrides with a value that is no options object',
      (_, next) => next(5 as never),
      /next\(\) takes options that override.* got 5/,
    ],
    ['overrides with a date', (_, next) => next(new Date() as never), /next\(\) takes options that override/],
    [
      'lays over a promise',
      (_, next) => next(Promise.reject(new Error('x')) as never),
      /next\(\) takes options, and got a promise/,
    ],
    [
      'lays over by an async function',
      (_, next) => next((async () => ({})) as never),
      /takes options, and got a promise/,
    ],
    ['lays over a tx', (_, next) => next({ tx: {} }), /next\(\)\.tx cannot be changed by a hook/],
    ['lays over a time where there is one', (_, next) => next({ in: '1h' }), /both in and at/],
  ])('that %s refuses the call, and nothing is written', async (_, enqueue, message) => {
    const mill = await open({ jobs: [echo], hooks: { enqueue } })
    expect((await refusal(mill.enqueue(echo, 1, { at: new Date() }))).message).toMatch(message)
    expect((await refusal(mill.enqueueMany(echo, [1, 2], { at: new Date() }))).message).toMatch(message)
    expect(await count(mill)).toBe(0)
  })

  test('that calls next twice enqueues once, and the caller has its handle', async () => {
    const lines: unknown[] = []
    const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined } as unknown as Logger
    const error: Logger['error'] = (fields, message) => void lines.push([fields, message])
    const twice: Hooks['enqueue'] = async (_, next) => {
      await next()
      await next({ queue: 'other' })
    }
    const mill = await open({ jobs: [echo], hooks: { enqueue: twice }, logger: { ...logger, error } })
    expect((await (await mill.enqueue(echo, 1)).get())?.queue).toBe('default')
    expect(await count(mill)).toBe(1)
    const text = expect.stringContaining('hooks.enqueue called next() twice') as string
    const err = expect.objectContaining({ message: text }) as Error
    expect(lines).toEqual([[{ job: 'echo', err }, expect.stringContaining('hooks.enqueue failed') as string]])
  })

  test('does not see an invalid call, which is refused as without hooks', async () => {
    const enqueue = vi.fn((_: EnqueueCall, next: () => unknown) => next())
    const mill = await open({ jobs: [echo], hooks: { enqueue } })
    const wrongs = [
      mill.enqueue(echo, 1, { lables: [] } as never),
      mill.enqueue(echo, 1, null as never),
      mill.enqueue('ecko', 1),
      mill.enqueueMany(echo, 5 as never),
      mill.schedule(echo, 1, '1h', 5 as never),
    ]
    const messages = (await Promise.all(wrongs.map(refusal))).map((error) => error.message)
    expect(messages).toEqual([
      expect.stringContaining('did you mean "labels"?') as string,
      expect.stringContaining('must be an object, got null') as string,
      expect.stringContaining('did you mean "echo"?') as string,
      expect.stringContaining('payloads must be an array, got 5') as string,
      expect.stringContaining('must be an object, got 5') as string,
    ])
    expect(enqueue).not.toHaveBeenCalled()
  })

  test('around a wrong payload sees the refusal, and cannot hide it', async () => {
    const seen: string[] = []
    const picky = job('picky', { run: async (n: number) => n, accepts: (n) => n > 0 })
    const hooks: Hooks = {
      enqueue: async (_, next) => {
        await next().catch((error: { code: string }) => seen.push(error.code))
      },
    }
    const mill = await open({ jobs: [picky], hooks })
    expect(await refusal(mill.enqueue(picky, -1))).toMatchObject({ code: 'E_INVALID_PAYLOAD' })
    expect(seen).toEqual(['E_INVALID_PAYLOAD'])
  })

  test('decides what is captured: context is captured where next is called', async () => {
    const span = new AsyncLocalStorage<unknown>()
    const asking = job('asking', async () => span.getStore())
    const hooks: Hooks = { enqueue: (call, next) => span.run(`${call.job} producer`, () => next()) }
    const mill = await started({ jobs: [asking], hooks, capture: { span } })
    expect(await (await mill.enqueue(asking)).result()).toBe('asking producer')
  })
})

describe('the enqueue hook with tx', () => {
  test.each<[string, Hooks['enqueue'], unknown, RegExp]>([
    ['lets pass what is refused', (_, next) => next(), { f: () => 1 }, /payloads\[1\]\.f/],
    [
      'refuses',
      () => {
        throw new Error('quota spent')
      },
      2,
      /quota spent/,
    ],
    ['lays over what is wrong', (_, next) => next({ queue: 5 as never }), 2, /queue must be text/],
  ])('that %s: a bulk with a function of options is refused within the call', async (_, enqueue, second, message) => {
    const { mill, inTransaction } = await withHandle({ enqueue })
    const calls: number[] = []
    const optionsOf = (tx: unknown) => (__: unknown, i: number) => (calls.push(i), { tx })
    inTransaction((tx) => expect(() => void mill.enqueueMany(echo, [1, second], optionsOf(tx))).toThrow(message))
    expect([await count(mill), calls]).toEqual([0, [0, 1]])
  })

  const spans: string[] = []
  const span = (end: string) => ({ end: () => spans.push(end) })

  test('may await what next returned, as a span does, and sees refusals too', async () => {
    const { mill, inTransaction } = await withHandle({
      enqueue: (call, next) => next().finally(() => span(call.verb).end()),
    })
    inTransaction((tx) => {
      void mill.enqueue(echo, 1, { tx })
      void mill.schedule(echo, 2, '1h', { tx })
      expect(() => void mill.enqueueMany(echo, [3, () => 4], { tx })).toThrow(/payloads\[1\]/)
    })
    await vi.waitFor(() => expect([...spans].sort()).toEqual(['enqueue', 'enqueueMany', 'schedule']), 15_000)
    expect(await count(mill)).toBe(2)
  })

  test.each<[string, Hooks['enqueue'], string]>([
    [
      'throws after next',
      (_, next) => {
        void next()
        throw new Error('too late')
      },
      'too late',
    ],
    ['awaits before next', async (_, next) => void (await Promise.resolve(), await next()), 'awaited before it called'],
    ['never calls next', () => undefined, 'ended without calling next()'],
  ])('that %s is refused within the call and leaves nothing, also inside another', async (_, enqueue, message) => {
    const outer: Hooks = { enqueue: async (__, next) => void (await next().catch(() => undefined)) }
    const { mill, inTransaction } = await withHandle([outer, { enqueue }])
    inTransaction((tx) => {
      for (const call of [
        () => mill.enqueue(echo, 1, { tx }),
        () => mill.enqueueMany(echo, [1, 2], () => ({ tx })),
        () => mill.schedule(echo, 1, '1h', { tx, key: 'k' }),
      ])
        expect(() => void call()).toThrow(message)
    })
    expect(await count(mill)).toBe(0)
  })

  test('cannot take a job out of its transaction, and may pass on its options', async () => {
    const enqueue: Hooks['enqueue'] = (call, next) =>
      next(call.verb === 'enqueue' ? { tx: undefined } : (item) => ({ ...item.options, queue: 'slow' }))
    const { mill, inTransaction } = await withHandle({ enqueue })
    inTransaction((tx) => {
      expect(() => void mill.enqueue(echo, 1, { tx })).toThrow(/next\(\)\.tx cannot be changed by a hook/)
      void mill.enqueueMany(echo, [2], { tx })
    })
    expect(await count(mill)).toBe(1)
  })

  test('that enqueues by itself in the same transaction is undone with the call, and earlier writes stay', async () => {
    let fails = false
    const made: { mill?: Mill } = {}
    const hooks: Hooks = {
      enqueue: (call, next) => {
        void next()
        const [item] = call.items
        if (item?.payload === 'outer') void made.mill?.enqueue(echo, 'inner', { tx: item.options.tx })
        if (fails && item?.payload === 'outer') throw new Error('undo')
      },
    }
    const { mill, inTransaction } = await withHandle(hooks)
    made.mill = mill
    inTransaction((tx) => {
      void mill.enqueue(echo, 'outer', { tx })
      fails = true
      expect(() => void mill.enqueue(echo, 'outer', { tx })).toThrow('undo')
    })
    expect(await count(mill)).toBe(2)
  })

  test('that calls next twice, or fails after the call has ended, changes nothing', async () => {
    const enqueue: Hooks['enqueue'] = async (_, next) => {
      void next()
      await next()
      throw new Error('not awaited')
    }
    const failures: string[] = []
    const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined } as unknown as Logger
    const error: Logger['error'] = (fields) => void failures.push((fields as { err: Error }).err.message)
    const { mill, inTransaction } = await withHandle({ enqueue }, { logger: { ...logger, error } })
    inTransaction((tx) => void mill.enqueue(echo, 1, { tx }))
    await vi.waitFor(() => expect(failures).toEqual([expect.stringContaining('twice'), 'not awaited']), 15_000)
    expect(await count(mill)).toBe(1)
  })

  test('is not called when there is no transaction, and is refused when it ends the one there is', async () => {
    const enqueue = vi.fn((call: EnqueueCall, next: () => unknown) => {
      void next()
      const { tx } = (call.items[0] as { options: { tx: SqliteDatabase } }).options
      tx.exec('rollback')
    })
    const { mill, inTransaction } = await withHandle({ enqueue })
    const db = handles.at(-1) as SqliteDatabase
    expect(() => void mill.enqueue(echo, 1, { tx: db })).toThrow(/no open transaction/)
    expect(() => void mill.enqueue(echo, 1, { tx: {} })).toThrow(/tx must be/)
    expect(enqueue).not.toHaveBeenCalled()
    db.exec('begin')
    expect(() => void mill.enqueue(echo, 1, { tx: db })).toThrow('a hook ended the transaction itself')
    inTransaction(() => undefined)
    expect(await count(mill)).toBe(0)
  })
})

describe('the start hook', () => {
  test('is around the handler of each attempt, and sees its context and its result', async () => {
    const seen: unknown[] = []
    const connection = new AsyncLocalStorage<string>()
    const using = job('using', {
      run: (p: number, ctx) => {
        if (ctx.attempt === 1) throw new Error('first')
        return `${p} on ${connection.getStore() ?? 'nothing'}`
      },
      retry: { backoff: () => 0, jitter: 0 },
    })
    const hooks: Hooks = {
      start: async (ctx, next) => {
        seen.push(['before', ctx.job, ctx.attempt, ctx.queue.name])
        await connection.run('a connection', next).then(
          (result) => seen.push(['after', result]),
          (error: Error) => seen.push(['failed', error.message]),
        )
      },
    }
    const mill = await started({ jobs: [using], hooks })
    expect(await (await mill.enqueue(using, 5)).result()).toBe('5 on a connection')
    expect(seen).toEqual([
      ['before', 'using', 1, 'default'],
      ['failed', 'first'],
      ['before', 'using', 2, 'default'],
      ['after', '5 on a connection'],
    ])
  })

  test('runs with the captured context restored', async () => {
    const tenant = new AsyncLocalStorage<unknown>()
    const seen: unknown[] = []
    const hooks: Hooks = {
      start: async (_, next) => {
        seen.push(tenant.getStore())
        await next()
      },
      settle: () => seen.push(tenant.getStore()),
    }
    const mill = await started({ jobs: [echo], hooks, capture: { tenant } })
    await (await tenant.run('acme', () => mill.enqueue(echo, 1))).result()
    await vi.waitFor(() => expect(seen).toEqual(['acme', 'acme']), 15_000)
  })

  test.each<[string, Hooks['start'], RegExp]>([
    ['throws before', () => Promise.reject(new Error('no connection')), /no connection/],
    ['throws after', async (_, next) => void (await next(), await Promise.reject(new Error('no commit'))), /no commit/],
    ['never calls next', () => undefined, /hooks\.start ended without calling next\(\)/],
    ['aborts', () => Promise.reject(new Abort('closed for good')), /closed for good/],
  ])('that %s fails the attempt', async (_, start, message) => {
    const mill = await started({ jobs: [echo], hooks: { start }, ...once })
    const error = await refusal((await mill.enqueue(echo, 1)).result())
    expect(error).toMatchObject({ code: 'E_JOB_FAILED' })
    expect(error.message).toMatch(message)
  })

  test('that snoozes charges no attempt', async () => {
    let open = false
    const hooks: Hooks = {
      start: async (_, next) => {
        if (!open) {
          open = true
          throw new Snooze('10ms')
        }
        await next()
      },
    }
    const mill = await started({ jobs: [echo], hooks, ...once })
    const handle = await mill.enqueue(echo, 1)
    expect(await handle.result()).toBe(1)
    expect(await handle.get()).toMatchObject({ attempt: 1, attempts: [{ exit: 'snoozed' }, {}] })
  })

  test('that swallows the handler’s error does not make it a success', async () => {
    const boom = job('boom', async () => {
      throw new Error('boom')
    })
    const hooks: Hooks = { start: (_, next) => next().catch(() => 'fine') }
    const mill = await started({ jobs: [boom], hooks, ...once })
    expect((await refusal((await mill.enqueue(boom)).result())).message).toContain('boom')
  })

  test('of several is nested, the first outermost, each with its own this', async () => {
    const order: string[] = []
    class Layer implements Hooks {
      readonly name: string
      constructor(name: string) {
        this.name = name
      }
      async start(_: unknown, next: () => Promise<unknown>): Promise<void> {
        order.push(`${this.name} in`)
        await next()
        order.push(`${this.name} out`)
      }
      enqueue(_: unknown, next: () => unknown): unknown {
        order.push(`${this.name} enqueue`)
        return next()
      }
    }
    const mill = await started({ jobs: [echo], hooks: [new Layer('a'), {}, new Layer('b')] })
    await (await mill.enqueue(echo, 1)).result()
    expect(order).toEqual(['a enqueue', 'b enqueue', 'a in', 'b in', 'b out', 'a out'])
  })
})

describe('the settle hook', () => {
  const told = (): { ends: [SettledAttempt, AttemptEnd][]; hooks: Hooks } => {
    const ends: [SettledAttempt, AttemptEnd][] = []
    return { ends, hooks: { settle: (attempt, end) => void ends.push([attempt, end]) } }
  }

  test('is called with each outcome, once it is on disk', async () => {
    const flaky = job('flaky', {
      run: async (_: undefined, ctx) => {
        if (ctx.attempt === 1) throw new RangeError('first')
        return 'fine'
      },
      retry: { backoff: () => 5, jitter: 0 },
    })
    const states: unknown[] = []
    const { ends, hooks } = told()
    const mill = await started({
      jobs: [flaky],
      hooks: [
        hooks,
        { settle: async ({ id }, { state }) => state === 'done' && states.push((await mill.get(id))?.state) },
      ],
    })
    const { id } = await mill.enqueue(flaky)
    await vi.waitFor(() => expect(states).toEqual(['done']), 15_000)
    const ms = expect.any(Number) as number
    const error = expect.objectContaining({ name: 'RangeError', message: 'first' }) as object
    const of = { id, job: 'flaky', queue: 'default' }
    expect(ends).toEqual([
      [
        { ...of, attempt: 1 },
        { state: 'retrying', ms, error, reason: undefined, againInMs: 5 },
      ],
      [
        { ...of, attempt: 2 },
        { state: 'done', ms, error: undefined, reason: undefined, againInMs: undefined },
      ],
    ])
  })

  test('is called for jobs that failed, were snoozed, parked and given back', async () => {
    let fits = true
    const sleepy = job('sleepy', async () => {
      throw new Snooze('1h')
    })
    const boom = job('boom', async () => {
      throw new Abort('never')
    })
    const picky = job('picky', { run: async () => 1, accepts: () => fits })
    const endless = job('endless', async () => new Promise(() => undefined))
    const { ends, hooks } = told()
    const mill = await open({ jobs: [sleepy, boom, picky, endless, echo], hooks })
    await mill.enqueue(sleepy)
    await mill.enqueue(boom)
    await mill.enqueue(picky)
    await mill.enqueue(endless)
    fits = false
    await mill.start()
    await vi.waitFor(() => expect(ends).toHaveLength(3), { timeout: 15_000 })
    await mill.stop({ deadline: 0 })
    const byJob = Object.fromEntries(ends.map(([{ job: name }, end]) => [name, end]))
    expect(byJob).toMatchObject({
      sleepy: { state: 'scheduled', againInMs: 3_600_000 },
      boom: { state: 'failed', error: { message: 'never' } },
      picky: { state: 'parked', reason: expect.stringContaining('no longer fits') as string },
      endless: { state: 'ready', againInMs: undefined },
    })
    expect(ends).toHaveLength(4)
  })

  test('that throws or rejects is logged with a limit, changes nothing, and work continues', async () => {
    const lines: { fields: Record<string, unknown>; message: string }[] = []
    const error: Logger['error'] = (fields, message) =>
      void lines.push({ fields: fields as Record<string, unknown>, message })
    const logger: Logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error }
    const throwing: Hooks = {
      settle: () => {
        throw new Error('no metrics')
      },
    }
    const rejecting: Hooks = { settle: () => Promise.reject(new Error('no network')) }
    const mill = await started({ jobs: [echo], hooks: [throwing, rejecting], logger })
    const handles = await mill.enqueueMany(
      echo,
      Array.from({ length: 150 }, (_, i) => i),
    )
    await Promise.all(handles.map((handle) => handle.result()))
    await mill.stop()
    const messageOf = (line: (typeof lines)[number]): unknown => (line.fields['err'] as Error).message
    const message = 'hooks.settle failed; no job is affected'
    expect(lines.filter((line) => messageOf(line) === 'no metrics')).toHaveLength(2)
    expect(lines.filter((line) => messageOf(line) === 'no network')).toHaveLength(2)
    expect(lines[0]).toEqual({ fields: { id: handles[0]?.id, job: 'echo', err: new Error('no metrics') }, message })
    expect((await handles[149]?.get())?.state).toBe('done')
  })
})

describe('the enqueue hook, for jobs that no call enqueues,', () => {
  const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined }

  test('is called with the ticks of a schedule and with what follows a group, and gets their handles', async () => {
    const calls: EnqueueCall[] = []
    const ids: string[] = []
    const hooks: Hooks = {
      enqueue: async (call, next) => {
        if (call.verb === 'enqueue') return next()
        calls.push(call)
        for (const { id } of await next()) ids.push(id)
      },
    }
    const t = await testing({ jobs: [echo], hooks })
    await t.mill.recurring('beat', echo, 'tick', { every: '1h' }, { labels: ['r'], queue: 'clock' })
    const group = t.mill.group('g', { whenDone: [echo, 'all', { key: 'k', title: 'end' }] })
    await t.mill.enqueue(echo, 'member', { group: 'g' })
    await group.seal()
    await t.drain()
    await t.advance('1h')
    await t.mill.schedules.runNow('beat')
    const tick = { payload: 'tick', options: { queue: 'clock', labels: ['r'] } }
    const end = { payload: 'all', options: { queue: 'default', key: 'k', title: 'end' } }
    expect(calls).toEqual([
      { verb: 'whenDone', group: 'g', job: 'echo', queue: 'default', items: [end] },
      { verb: 'tick', schedule: 'beat', job: 'echo', queue: 'clock', items: [tick] },
      { verb: 'tick', schedule: 'beat', job: 'echo', queue: 'clock', items: [tick] },
    ])
    const written = await Promise.all(ids.map(async (id) => (await t.mill.get(id))?.payload))
    expect(written).toEqual(['all', 'tick', 'tick'])
    await t.close()
  })

  test('is called in the context that was captured for the job, and not in that of the commit that woke the engine', async () => {
    const tenant = new AsyncLocalStorage<string>()
    const other = new AsyncLocalStorage<string>()
    const seen: string[] = []
    const hooks: Hooks = {
      enqueue: (call, next) => {
        if (call.verb !== 'enqueue')
          seen.push(`${call.group ?? call.schedule} ${tenant.getStore()} ${other.getStore()}`)
        return next()
      },
    }
    const mill = await started({ jobs: [echo], hooks, capture: { tenant } })
    const seal = (name: string): Promise<unknown> => mill.group(name, { whenDone: [echo, name] }).seal()
    await other.run('unrelated', async () => {
      await tenant.run('acme', () => seal('a'))
      await seal('b')
      await tenant.run('acme', () => mill.recurring('c', echo, 1, { every: '1d' }))
      await mill.recurring('d', echo, 1, { every: '1d' })
      await tenant.run('caller', () => Promise.all(['c', 'd'].map((id) => mill.schedules.runNow(id))))
    })
    await vi.waitFor(() => expect(seen).toHaveLength(4))
    expect(seen.toSorted()).toEqual([
      'a acme undefined',
      'b undefined undefined',
      'c acme undefined',
      'd undefined undefined',
    ])
  })

  test('stops no schedule and no other hook: what it throws, rejects with or overrides is logged', async () => {
    const lines: string[] = []
    const seen: string[] = []
    const error: Logger['error'] = (fields) => void lines.push((fields as { err: Error }).err.message)
    const note = (text: string): Hooks => ({ enqueue: (call, next) => (seen.push(`${text} ${call.verb}`), next()) })
    const hooks: Hooks[] = [
      {
        enqueue: () => {
          throw new Error('thrown')
        },
      },
      { enqueue: () => Promise.reject(new Error('rejected')) },
      { enqueue: () => undefined },
      { enqueue: (_, next) => next({ queue: 'slow' }) },
      { enqueue: (_, next) => next().then(() => Promise.reject(new Error('late'))) },
      note('last'),
    ]
    const t = await testing({ jobs: [echo], hooks, logger: { ...quiet, error } })
    await t.mill.recurring('beat', echo, 1, { every: '1h' })
    await t.advance('2h')
    await t.mill.group('g', { whenDone: [echo, 2] }).seal()
    await t.drain()
    expect(seen).toEqual(['last tick', 'last tick', 'last whenDone'])
    const records = []
    for await (const { payload, queue, state } of t.mill.find()) records.push(`${String(payload)} ${queue} ${state}`)
    expect(records.toSorted()).toEqual(['1 default done', '1 default done', '2 default done'])
    expect([...new Set(lines)].toSorted()).toEqual([
      'hooks.enqueue ended without calling next(); throw an error to refuse',
      expect.stringMatching(/^hooks.enqueue gave options to next\(\) .* where call.verb is 'tick'$/),
      expect.stringMatching(/^hooks.enqueue gave options to next\(\) .* where call.verb is 'whenDone'$/),
      'late',
      'rejected',
      'thrown',
    ])
    await t.close()
  })

  test('gets what an encrypted job was given, and undefined for a payload that does not decode', async () => {
    const seen: unknown[] = []
    const hooks: Hooks = {
      enqueue: (call, next) => (seen.push([call.verb, call.items.map(({ payload }) => payload)]), next()),
    }
    const secret = job('secret', { run: async (p: unknown) => p, encrypt: true })
    const encryption = { current: 'a', keys: { a: Buffer.alloc(32, 1).toString('base64') } }
    const unreadable = job('unreadable', {
      run: async (p: unknown) => p,
      codec: {
        encode: () => '1',
        decode: () => {
          throw new Error('no')
        },
      },
    })
    const t = await testing({ jobs: [secret, unreadable], hooks, encryption })
    await t.mill.recurring('beat', secret, { pin: 1 }, { every: '1h' })
    await t.mill.group('g', { whenDone: [secret, { pin: 2 }] }).seal()
    await t.drain()
    await t.advance('1h')
    await t.mill.group('h', { whenDone: [unreadable, 3] }).seal()
    await t.drain()
    expect(seen).toEqual([
      ['whenDone', [{ pin: 2 }]],
      ['tick', [{ pin: 1 }]],
      ['whenDone', [undefined]],
    ])
    await t.close()
  })
})

test('the testing kit calls the hooks too', async () => {
  const seen: string[] = []
  const hooks: Hooks = {
    enqueue: (call, next) => (seen.push(`enqueue ${call.job}`), next()),
    start: async (ctx, next) => {
      seen.push(`start ${ctx.job}`)
      await next()
    },
    settle: (attempt, end) => seen.push(`settle ${attempt.job} ${end.state}`),
  }
  const t = await testing({ jobs: [echo], hooks })
  await t.mill.enqueue(echo, 1)
  await t.drain()
  expect(seen).toEqual(['enqueue echo', 'start echo', 'settle echo done'])
  await t.close()
})
