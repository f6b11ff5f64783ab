import { describe, expect, test, vi } from 'vitest'
import { codec, event, job, workflow } from '../src/index.js'
import type { Mill, Work } from '../src/index.js'
import { internalsOf } from '../src/mill/internals.js'
import type { Store } from '../src/store/store.js'
import { freshStore, onPostgres } from './support/fresh-store.js'
import { rawTables } from './support/raw-tables.js'
import { openedMills } from './support/opened-mills.js'

/**
 * Bounds, refusals, records and large numbers of long work through the public API, on either store. The numbers are those of
 * its acceptance tests. `MILLRACE_LONG_WORK=full` runs them as often as they are stated; `npm test` runs small ones.
 */
const IS_FULL = process.env['MILLRACE_LONG_WORK'] === 'full'

const { folder, open, kit } = openedMills('long-work', { poll: '100ms' })

const storeOf = (mill: Mill): Store => (internalsOf(mill) as { readonly store: Store }).store
const codeOf = (error: { code?: string; cause?: { code?: string } }): string =>
  error.code === 'E_STEP_FAILED' ? `E_STEP_FAILED: ${error.cause?.code ?? 'own'}` : (error.code ?? 'no code')

const go = event<number>('go')

/** A schema that a test can change while workflows wait. */
function schemaOf(check: (n: unknown) => string | undefined) {
  const validate = (value: unknown) => {
    const problem = check((value as { n?: unknown } | undefined)?.n)
    return problem === undefined ? { value: value as { n: number } } : { issues: [{ message: problem, path: ['n'] }] }
  }
  return { '~standard': { version: 1 as const, vendor: 'test', validate } }
}

describe('Results', () => {
  test('27: LW28: one that cannot be written, and one of 2 MiB: one act, and the body gets the path or the size', async () => {
    const acts: string[] = []
    const flow = workflow('flow', async (_: undefined, w) => {
      const tried: string[] = []
      const results: Record<string, () => unknown> = {
        function: () => ({ list: [1, () => 1] }),
        large: () => 'x'.repeat(2 * 1024 * 1024),
      }
      for (const [name, make] of Object.entries(results))
        await w
          .step(name, { retry: { limit: 5 } }, () => {
            acts.push(name)
            return make()
          })
          .catch((error: Error & { code: string }) => tried.push(`${error.code} ${error.message}`))
      return tried
    })
    const t = await kit({ jobs: [flow] })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    const tried = (await handle.get())?.result as string[]
    expect(acts).toEqual(['function', 'large'])
    expect(tried[0]).toMatch(/^E_STEP_RESULT .*list\[1\]/)
    expect(tried[1]).toMatch(/^E_STEP_RESULT .*(2097\d{3}|2 MiB)/)
  })
})

describe('Events', () => {
  test('34: LW37, LW38: a bad payload, an unknown event, and a schema that changed', async () => {
    let check = (n: unknown): string | undefined => (typeof n === 'number' ? undefined : 'must be a number')
    const counted = event(
      'counted',
      schemaOf((n) => check(n)),
    )
    const flow = workflow('flow', { events: [counted], run: async (_: undefined, w) => (await w.waitFor(counted)).n })
    const other = workflow('other', async (_: undefined, w) => w.waitFor(go))
    const t = await kit({ jobs: [flow, other] })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    await expect(t.mill.send(handle, counted, { n: 'one' } as never)).rejects.toMatchObject({
      code: 'E_INVALID_PAYLOAD',
    })
    await expect(t.mill.send(handle, counted, { n: 1, f: () => 1 } as never)).rejects.toThrow(/payload\.f/)
    await expect(t.mill.send(handle, go, 1)).rejects.toMatchObject({ code: 'E_UNKNOWN_EVENT' })
    await expect(t.mill.send(handle, 'counter', { n: 1 })).rejects.toThrow(/did you mean "counted"/)
    expect((await handle.get())?.workflow?.unread).toBe(0)
    expect(await t.mill.send(handle, counted, { n: 1 })).toBe(true)
    check = (n) => (typeof n === 'string' ? undefined : 'must be a text')
    await t.drain()
    const parked = await handle.get()
    expect(parked).toMatchObject({ state: 'parked', error: { code: 'E_INVALID_PAYLOAD' }, workflow: { unread: 1 } })
    expect(parked?.error?.message).toMatch(/event "counted" no longer fits: payload\.n must be a text/)
    check = () => undefined
    expect(await t.mill.retry(handle.id)).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'done', result: 1, workflow: { unread: 0 } })
  })

  test('an event that is sent with tx by id is encoded as the workflow reads it, and checked by what it declares', async () => {
    class Money {
      readonly cents: number
      constructor(cents: number) {
        this.cents = cents
      }
    }
    const money = {
      is: (value: unknown): value is Money => value instanceof Money,
      write: ({ cents }: Money) => cents,
      read: (cents: unknown) => new Money(cents as number),
    }
    const paid = event<Money>('paid')
    const flow = workflow('flow', {
      events: [paid],
      codec: codec({ types: { money } }),
      run: async (_: undefined, w) => (await w.waitFor(paid)).cents,
    })
    const sender = job('sender', {
      retry: { limit: 0 },
      run: (id: string, ctx): Promise<unknown> =>
        ctx.transaction((tx: unknown) => {
          const sent = t.mill.send(id, paid, new Money(5), { tx })
          // On SQLite both are answered within the call, and the function of a transaction returns no promise.
          if (onPostgres) return Promise.all([sent, undeclared(id, tx).catch(codeOf)])
          expect(() => undeclared(id, tx)).toThrow(expect.objectContaining({ code: 'E_UNKNOWN_EVENT' }))
          void sent.then((isSent) => (answered = isSent))
          return undefined
        }),
    })
    const undeclared = (id: string, tx: unknown): Promise<boolean> => t.mill.send(id, go, 1, { tx })
    let answered: unknown
    const t = await kit({ jobs: [flow, sender] })
    const handle = await t.mill.enqueue(flow)
    const sending = await t.mill.enqueue(sender, handle.id)
    await t.drain()
    expect((await sending.get())?.state).toBe('done')
    if (onPostgres) expect((await sending.get())?.result).toEqual([true, 'E_UNKNOWN_EVENT'])
    else expect(answered).toBe(true)
    expect(await handle.get()).toMatchObject({ state: 'done', result: 5 })
  })

  test('37: LW41: an inbox of 10,000 takes no more until one is taken', async () => {
    const flow = workflow('flow', async (_: undefined, w) => {
      await w.waitFor(go)
      await w.sleep('1h')
    })
    const store = freshStore(folder)
    const mill = await open({ jobs: [flow] }, store)
    const { id } = await mill.enqueue(flow)
    expect(await mill.send(id, go, 0)).toBe(true)
    const ref = onPostgres ? 'ref' : 'job'
    await rawTables(store).run(
      (table) => `
      insert into ${table('inbox')} (${ref}, kind, name, payload, sent_at)
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 9998)
      select i.${ref}, i.kind, i.name, i.payload, i.sent_at from ${table('inbox')} i, n`,
    )
    expect((await mill.get(id))?.workflow?.unread).toBe(9_999)
    expect(await mill.send(id, go, 1)).toBe(true)
    await expect(mill.send(id, go, 2)).rejects.toMatchObject({ code: 'E_INBOX_FULL' })
    await expect(mill.send(id, go, 2)).rejects.toThrow(/10,?000/)
    await mill.start()
    await vi.waitFor(async () => expect((await mill.get(id))?.workflow?.unread).toBe(9_999), { timeout: 10_000 })
    expect(await mill.send(id, go, 2)).toBe(true)
  })
})

describe('48: LW55: a pause', () => {
  const sleeps = workflow('sleeps', async (_: undefined, w) => {
    await w.sleep('1h')
    return w.now().getTime()
  })
  const waits = workflow('waits', (_: undefined, w) =>
    w.waitFor(go, { timeout: '1h' }).catch((error: { code: string }) => error.code),
  )

  test('in a sleep lets time pass: past its time a resume wakes it, before that it sleeps on', async () => {
    const t = await kit({ jobs: [sleeps] })
    const [early, late] = [await t.mill.enqueue(sleeps), await t.mill.enqueue(sleeps)]
    await t.drain()
    const until = (await early.get())?.dueAt
    for (const { id } of [early, late]) expect(await t.mill.pause(id)).toBe(true)
    await t.advance('30m')
    expect(await t.mill.resume(early.id)).toBe(true)
    expect(await early.get()).toMatchObject({ state: 'scheduled', dueAt: until })
    await t.advance('2h')
    await t.drain()
    expect([(await early.get())?.state, (await late.get())?.state]).toEqual(['done', 'paused'])
    expect(await t.mill.resume(late.id)).toBe(true)
    expect((await late.get())?.state).toBe('ready')
    await t.drain()
    expect(await late.get()).toMatchObject({ state: 'done', result: t.now.getTime() })
  })

  test('keeps an event that is sent meanwhile, and a timeout that passes before it', async () => {
    const t = await kit({ jobs: [waits] })
    const [sent, passed] = [await t.mill.enqueue(waits), await t.mill.enqueue(waits)]
    await t.drain()
    for (const { id } of [sent, passed]) expect(await t.mill.pause(id)).toBe(true)
    expect(await t.mill.send(sent, go, 7)).toBe(true)
    await t.advance('2h')
    expect(await t.mill.send(passed, go, 8)).toBe(true)
    await t.drain()
    for (const handle of [sent, passed]) {
      expect(await handle.get()).toMatchObject({ state: 'paused', workflow: { unread: 1 } })
      expect(await t.mill.resume(handle.id)).toBe(true)
      expect((await handle.get())?.state).toBe('ready')
    }
    await t.drain()
    expect([(await sent.get())?.result, (await passed.get())?.result]).toEqual([7, 'E_TIMEOUT'])
  })

  test('lets a called job end, whose result is there after the resume', async () => {
    const child = job('child', (n: number) => n * 2)
    const calls = workflow('calls', (_: undefined, w) => w.call(child, 21, { in: '1h' }))
    const t = await kit({ jobs: [calls, child] })
    const handle = await t.mill.enqueue(calls)
    await t.drain()
    expect(await t.mill.pause(handle.id)).toBe(true)
    await t.advance('1h')
    await t.drain()
    expect((await t.expectEnqueued(child)).state).toBe('done')
    expect((await handle.get())?.state).toBe('paused')
    expect(await t.mill.resume(handle.id)).toBe(true)
    await t.drain()
    expect(await handle.get()).toMatchObject({ state: 'done', result: 42 })
  })
})

describe('The key of a workflow that has begun', () => {
  test('is not taken over: replace is refused, a schedule follows it, and its clean-up runs when it is cancelled', async () => {
    const undone: number[] = []
    const flow = workflow('flow', async (n: number, w) => {
      try {
        await w.step('reserve', () => n)
        await w.sleep('1h')
        return n
      } finally {
        await w.cleanup((one) => one.step('undo', () => void undone.push(n)))
      }
    })
    const t = await kit({ jobs: [flow] })
    const early = await t.mill.enqueue(flow, 0, { key: 'k' })
    const first = await t.mill.enqueue(flow, 1, { key: 'k', onDuplicate: 'replace' })
    expect(await early.get()).toMatchObject({ state: 'cancelled' })
    await t.drain()
    const replacing = t.mill.enqueue(flow, 2, { key: 'k', onDuplicate: 'replace' })
    await expect(replacing).rejects.toThrow(/held by a workflow that has begun and cannot be replaced/)
    const next = await t.mill.schedule(flow, 3, '2h', { key: 'k' })
    expect([next.id === first.id, (await first.get())?.state]).toEqual([false, 'scheduled'])
    await t.advance('1h')
    await t.drain()
    expect([await first.get(), await next.get()]).toMatchObject([{ state: 'done', result: 1 }, { state: 'scheduled' }])
    await t.advance('1h')
    await t.drain()
    expect(await t.mill.cancel(next.id)).toBe(true)
    await t.drain()
    expect([(await next.get())?.state, undone]).toEqual(['cancelled', [1, 3]])
  })

  test('neither is its unique slot', async () => {
    const flow = workflow('flow', async (n: number, w) => {
      await w.step('s', () => n)
      await w.sleep('1h')
      return n
    })
    const t = await kit({ jobs: [flow] })
    const first = await t.mill.enqueue(flow, 1, { unique: { onDuplicate: 'replace' } })
    await t.drain()
    const replacing = t.mill.enqueue(flow, 1, { unique: { onDuplicate: 'replace' } })
    await expect(replacing).rejects.toThrow(/is unfinished and has begun/)
    // A job that does not wait any more is not postponed: there is a new one beside it.
    const next = await t.mill.enqueue(flow, 1, { in: '1d', unique: { onDuplicate: 'reschedule' } })
    expect([next.isNew, (await first.get())?.state]).toEqual([true, 'scheduled'])
    await t.advance('1h')
    await t.drain()
    expect(await first.get()).toMatchObject({ state: 'done', result: 1 })
  })
})

describe('55: LW66, LW67: the record and why', () => {
  test('say what a suspended workflow waits for, for each kind of waiting', async () => {
    const child = job('child', { run: () => Promise.reject(new Error('down')), retry: { limit: 1 } })
    const bodies: Record<string, (w: Work) => Promise<unknown>> = {
      sleep: (w) => w.sleep('1h'),
      wait: (w) => w.waitFor(go),
      'wait until': (w) => w.waitFor(go, { timeout: '1h', name: 'answer' }),
      call: (w) => w.call(child),
      retry: (w) =>
        w.step('flaky', { retry: { limit: 3, backoff: { start: '1h' }, jitter: 0 } }, () =>
          Promise.reject(new Error('no')),
        ),
    }
    const flow = workflow('flow', async (kind: string, w) => {
      await w.step('first', () => 1)
      return bodies[kind]?.(w)
    })
    const t = await kit({ jobs: [flow, child], workflows: { sticky: 0 } })
    const ids: Record<string, string> = {}
    for (const kind of Object.keys(bodies)) ids[kind] = (await t.mill.enqueue(flow, kind)).id
    await t.drain()
    const called = await t.expectEnqueued(child)
    const inAnHour = t.now.getTime() + 3_600_000
    const at = new Date(inAnHour).toISOString()
    const expected: Record<string, [state: string, waiting: object, why: string]> = {
      sleep: ['scheduled', { kind: 'sleep', name: '', until: new Date(inAnHour) }, `It sleeps for 1 h (${at}).`],
      wait: ['blocked', { kind: 'wait', event: 'go' }, 'It waits for event go.'],
      'wait until': ['blocked', { kind: 'wait', name: 'answer', event: 'go', until: new Date(inAnHour) }, `It waits for event go, for 1 h (${at}) at most.`],
      call: ['blocked', { kind: 'call', name: 'child', job: called.id }, `It waits for child ${called.id}, which is retrying.`],
      retry: ['retrying', { kind: 'step', name: 'flaky', until: new Date(inAnHour) }, `It failed and is tried again in 1 h (${at}).`],
    } // prettier-ignore
    for (const [kind, [state, waiting, why]] of Object.entries(expected)) {
      const id = ids[kind] as string
      const record = await t.mill.get(id)
      expect(record, kind).toMatchObject({ state, workflow: { run: 0, answers: 1, unread: 0, waitingFor: [waiting] } })
      expect((await t.mill.why(id))?.text, kind).toBe(why)
      const steps = await t.mill.steps(id)
      expect(steps[0], kind).toMatchObject({ address: '/step:first#0', state: 'done', attempt: 1, result: 1 })
      expect(steps[1], kind).toMatchObject({ state: kind === 'retry' ? 'retrying' : 'open' })
    }
    const { wait = '' } = ids
    bodies['wait'] = (w) => w.step('bill', () => 1)
    expect(await t.mill.send(wait, go, 1)).toBe(true)
    await t.drain()
    expect((await t.mill.why(wait))?.text).toMatch(
      /^It is parked .*no longer calls \/wait:go#0; it calls \/step:bill#0\./,
    )
    expect(await t.mill.get(wait)).toMatchObject({ state: 'parked', workflow: { unread: 1 } })
  })
})

test('55: LW66: steps that act are shown from the report of their worker', async () => {
  let letGo: () => void = () => undefined
  const held = new Promise<void>((go) => (letGo = go))
  const flow = workflow('flow', async (_: undefined, w) => {
    await w.step('first', () => 1)
    await Promise.all([w.step('slow', () => held), w.step('flaky', { retry: { limit: 1, backoff: { start: 1 } } }, (s) => (s.attempt === 1 ? Promise.reject(new Error('no')) : held))])
    await w.sleep('1h')
  }) // prettier-ignore
  const mill = await open({ jobs: [flow] })
  await mill.start()
  const { id } = await mill.enqueue(flow)
  const seen = async (): Promise<unknown[]> =>
    (await mill.steps(id)).map(({ address, kind, name, state, attempt }) => [address, kind, name, state, attempt])
  await expect.poll(seen).toEqual([
    ['/step:first#0', 'step', 'first', 'done', 1],
    ['/step:slow#0', 'step', 'slow', 'open', 1],
    ['/step:flaky#0', 'step', 'flaky', 'open', 2],
  ])
  expect((await mill.get(id))?.progress).toBeUndefined()
  letGo()
  await expect.poll(seen).toEqual([
    ['/step:first#0', 'step', 'first', 'done', 1],
    ['/step:slow#0', 'step', 'slow', 'done', 1],
    ['/step:flaky#0', 'step', 'flaky', 'done', 2],
    ['/sleep:#0', 'sleep', '', 'open', 0],
  ])
})

describe('53: LW63: restarts', () => {
  const RESTARTS = IS_FULL ? 5_000 : 40

  test(
    `${RESTARTS} of them leave the rows of the last run, and an event sent between two runs is taken`,
    { timeout: 240_000 },
    async () => {
      const flow = workflow('flow', async (n: number, w: Work<number>) => {
        const next = await w.step('add', () => n + 1)
        if (next < RESTARTS) return w.restart(next)
        return [w.run, await w.waitFor(go, { timeout: '20s' })]
      })
      const mill = await open({ jobs: [flow] })
      const { id } = await mill.enqueue(flow, 0)
      await mill.start()
      await vi.waitFor(async () => expect((await mill.get(id))?.workflow?.run).toBeGreaterThan(0), { timeout: 20_000 })
      expect(await mill.send(id, go, 7)).toBe(true)
      expect(await mill.handle(id).result({ timeout: '200s' })).toEqual([RESTARTS - 1, 7])
      const { jobs, workflows } = storeOf(mill)
      while ((await jobs.sweepRows(1_000)).more);
      expect((await workflows.readSteps(id, undefined, 100))?.rows).toHaveLength(2)
      expect((await storeOf(mill).readCensus()).long.steps).toBeLessThanOrEqual(3 * 2)
    },
  )
})

test('66: V4: a process that starts beside sleeping workflows runs other jobs, and reads nothing of those that sleep', async () => {
  const sleeper = workflow('sleeper', async (n: number, w) => {
    await w.step('first', () => n)
    await w.sleep('1d')
  })
  const ping = job('ping', () => 'pong')
  const store = freshStore(folder)
  const options = { jobs: [sleeper, ping], concurrency: 50 }
  const before = await open(options, store)
  await before.enqueueMany(
    sleeper,
    Array.from({ length: 300 }, (_, i) => i),
  )
  await before.start()
  await vi.waitFor(async () => expect((await before.count({ state: 'scheduled' })).count).toBe(300), {
    timeout: 20_000,
  })
  await before.close()
  const after = await open(options, store)
  const { workflows } = await storeOf(after).readCensus()
  await after.start()
  expect(await (await after.enqueue(ping)).result({ timeout: '20s' })).toBe('pong')
  // A claim of one would end its suspension.
  expect((await storeOf(after).readCensus()).workflows).toEqual(workflows)
  expect(workflows).toHaveLength(300)
})

describe('Refusals: what a body or a caller cannot do', () => {
  const plain = job('plain', () => 1)

  test('LW5, LW21, LW28, LW38, LW47, LW48: a verb that is called wrongly rejects with its code, and nothing is recorded', async () => {
    const known = event<number>('known')
    const flow = workflow('flow', {
      events: [known],
      retry: { limit: 0 },
      run: async (_: undefined, w) => ({
        result: await w.step('result', () => ({ f: () => 1 })).catch(codeOf),
        nested: await w.step('nested', () => w.sleep(1)).catch(codeOf),
        'in a transaction': await w.transaction('tx', () => w.step('inner', () => 1)).catch(codeOf),
        'undeclared event': await w.waitFor(go as never).catch(codeOf),
        'no event': await w.waitFor('known' as never).catch(codeOf),
        'no name': await w.step('', () => 1).catch(codeOf),
        'no function': await w.step('s', 1 as never).catch(codeOf),
        'unknown option': await w.step('s', { retries: 1 } as never, () => 1).catch(codeOf),
        'no span': await w.sleep('soon' as never).catch(codeOf),
        'no branches': await w.race({}).catch(codeOf),
        'too many items': await w.each('n', Array.from({ length: 10_001 }), () => 1).catch(codeOf),
        'two keys': await w.each('n', [1, 1], () => 1, { key: String }).catch(codeOf),
        'no job': await w.call(7 as never).catch(codeOf),
        'bad payload': await w.call(plain, (() => 1) as never).catch(codeOf),
      }),
    })
    const t = await kit({ jobs: [flow, plain] })
    const handle = await t.mill.enqueue(flow)
    await t.drain()
    expect((await handle.get())?.result).toEqual({
      result: 'E_STEP_RESULT',
      nested: 'E_STEP_FAILED: E_STEP_NESTED',
      // A transaction of SQLite is synchronous, so the promise of any verb is refused.
      'in a transaction': `E_STEP_FAILED: ${onPostgres ? 'E_STEP_NESTED' : 'E_TX_PROMISE'}`,
      'undeclared event': 'E_UNKNOWN_EVENT',
      'no event': 'E_INVALID_OPTIONS',
      'no name': 'E_INVALID_OPTIONS',
      'no function': 'E_INVALID_OPTIONS',
      'unknown option': 'E_INVALID_OPTIONS',
      'no span': 'E_INVALID_OPTIONS',
      'no branches': 'E_INVALID_OPTIONS',
      'too many items': 'E_INVALID_OPTIONS',
      'two keys': 'E_INVALID_OPTIONS',
      'no job': 'E_INVALID_OPTIONS',
      'bad payload': 'E_INVALID_PAYLOAD',
    })
    expect((await t.mill.steps(handle.id)).map(({ address, state }) => `${address} ${state}`)).toEqual([
      '/step:result#0 failed',
      '/step:nested#0 failed',
      '/tx:tx#0 failed',
      '/call:plain#0 failed',
    ])
    expect((await t.mill.count({ job: 'plain' })).count).toBe(0)
  })

  test('LW17: a verb of a workflow that has ended, or is suspended, does nothing', async () => {
    const kept: Work[] = []
    const flow = workflow('flow', async (isSuspended: boolean, w) => {
      kept.push(w)
      if (isSuspended) await w.sleep('1h')
    })
    const t = await kit({ jobs: [flow] })
    const [ended, suspended] = [await t.mill.enqueue(flow, false), await t.mill.enqueue(flow, true)]
    await t.drain()
    const [over, frozen] = kept as [Work, Work]
    const verbs: Record<string, (w: Work) => Promise<unknown>> = {
      step: (w) => w.step('late', () => expect.unreachable('it acted')),
      sleep: (w) => w.sleep(1),
      call: (w) => w.call(plain),
      all: (w) => w.all([() => 1]),
      cleanup: (w) => w.cleanup(() => 1),
    }
    for (const verb of ['now', 'random', 'uuid', 'version', 'restart'] as const) {
      expect(() => over[verb]('x' as never), verb).toThrow(expect.objectContaining({ code: 'E_WORKFLOW_OVER' }))
      if (verb !== 'restart') expect(frozen[verb]('x'), verb).toBeDefined()
    }
    for (const [name, verb] of Object.entries(verbs))
      await expect(verb(over), name).rejects.toMatchObject({ code: 'E_WORKFLOW_OVER' })
    const settled = await Promise.race([
      ...Object.values(verbs).map((verb) =>
        verb(frozen).then(
          () => 'settled',
          () => 'settled',
        ),
      ),
      new Promise((next) => void setTimeout(next, 20, 'pending')),
    ])
    expect(settled).toBe('pending')
    expect(await t.mill.steps(ended.id)).toEqual([])
    expect((await t.mill.steps(suspended.id)).map(({ address }) => address)).toEqual(['/sleep:#0'])
    await t.advance('1h')
    await t.drain()
    expect((await suspended.get())?.state).toBe('done')
  })

  test('LW45, LW46, LW48, LW63, LW64: what a run may not do, or too often', async () => {
    const code = (error: { code?: string }): string => error.code ?? 'none'
    const nest = (w: Work, depth: number): Promise<unknown> =>
      w.all([(one) => (depth === 0 ? 1 : nest(one, depth - 1))])
    const bodies: Record<string, (w: Work<string>) => unknown> = {
      'restart that is not returned': (w) => void w.restart('x'),
      'too many scopes': (w) => nest(w, 40),
      'too many steps': async (w) => {
        for (let i = 0; i < 20; i += 1) await w.step('s', () => i)
      },
      sibling: async (w) => {
        const seen: string[] = []
        await w
          .all([
            (one) => one.sleep('1h').catch((error: { code: string }) => void seen.push(error.code)),
            (one) => one.step('bad', { retry: { limit: 0 } }, () => Promise.reject(new Error('bad'))),
          ])
          .catch(code)
        return seen
      },
      loser: async (w) => {
        const seen: string[] = []
        await w.race({
          late: (one) => one.sleep('1h').catch((error: { code: string }) => void seen.push(error.code)),
          first: (one) => one.step('first', () => 1),
        })
        return seen
      },
    }
    const flow = workflow('flow', { steps: 10, run: (kind: string, w: Work<string>) => bodies[kind]?.(w) as never })
    const deep = workflow('deep', (n: number, w): Promise<unknown> =>
      w.call(deep as never, (n + 1) as never).catch(code),
    )
    const t = await kit({ jobs: [flow, deep] })
    const ids: Record<string, string> = {}
    for (const kind of Object.keys(bodies)) ids[kind] = (await t.mill.enqueue(flow, kind)).id
    const first = await t.mill.enqueue(deep, 0)
    await t.drain()
    const outcome = async (kind: string): Promise<unknown> => {
      const record = await t.mill.get(ids[kind] as string)
      return [record?.state, record?.error?.code ?? record?.result]
    }
    expect(await outcome('restart that is not returned')).toEqual(['failed', 'E_RESTART_UNUSED'])
    expect(await outcome('too many scopes')).toEqual(['parked', 'E_LOG_LIMIT'])
    expect(await outcome('too many steps')).toEqual(['parked', 'E_LOG_LIMIT'])
    expect(await outcome('sibling')).toEqual(['done', ['E_SIBLING_FAILED']])
    expect(await outcome('loser')).toEqual(['done', ['E_RACE_LOST']])
    expect(await first.get()).toMatchObject({ state: 'done', result: 'E_CALL_DEPTH' })
    expect((await t.mill.count({ job: 'deep' })).count).toBe(33)
  })

  test('LW68: a sequence of no list, of too many items, or of a workflow', async () => {
    const flow = workflow('flow', async (n: number) => n)
    const t = await kit({ jobs: [flow, plain] })
    const many = { length: 1_000_001 } as never
    for (const [named, items] of [
      [plain, 'items'],
      [plain, many],
      [flow, [1]],
    ] as [never, never][])
      await expect(t.mill.sequence(named, items)).rejects.toMatchObject({ code: 'E_INVALID_OPTIONS' })
    await expect(t.mill.sequence(plain, Array(1_000_001) as never)).rejects.toThrow(
      /at most 1,?000,?000, got 1,?000,?001/,
    )
    expect((await t.mill.count()).count).toBe(0)
  })
})
