import { AsyncLocalStorage, executionAsyncResource } from 'node:async_hooks'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { codec, job, millrace } from '../src/index.js'
import type { JobRecord, Logger, Mill, MillOptions } from '../src/index.js'
import { testing } from './support/testing.js'
import { freshStore } from './support/fresh-store.js'
import { useProcesses } from './processes/child.js'

/** C1: the captured context of an enqueue is restored where the job runs, on real files and across processes. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-context-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})
const fresh = (): string => freshStore(folder)

async function open(options: MillOptions = {}): Promise<Mill> {
  const mill = await millrace({ store: fresh(), logger: false, poll: '20ms', ...options })
  mills.push(mill)
  return mill
}
async function started(options: MillOptions = {}): Promise<Mill> {
  const mill = await open(options)
  await mill.start()
  return mill
}
const record = async (mill: Mill, id: string): Promise<JobRecord> => {
  const found = await mill.get(id)
  if (found === undefined) throw new Error('the job does not exist')
  return found
}
const problemsOf = async (promise: Promise<unknown>): Promise<{ code: string; message: string }> =>
  promise.then(
    () => {
      throw new Error('it was not refused')
    },
    (error: { code: string; message: string }) => error,
  )

const tenant = new AsyncLocalStorage<unknown>()
const user = new AsyncLocalStorage<unknown>()
const who = job('who', async () => {
  await new Promise((resolve) => setImmediate(resolve))
  return [tenant.getStore() ?? null, user.getStore() ?? null]
})

describe('captured values', () => {
  test('are restored in the handler, each job its own, also when they run together', async () => {
    const mill = await started({ jobs: [who], capture: { tenant, user } })
    const handles = await Promise.all([
      tenant.run('acme', () => mill.enqueue(who)),
      tenant.run({ id: 7n }, () => user.run('ada', () => mill.enqueue(who))),
      mill.enqueue(who),
      user.run(new Date(0), () => mill.schedule(who, undefined, '10ms')),
    ])
    expect(await Promise.all(handles.map((handle) => handle.result()))).toEqual([
      ['acme', null],
      [{ id: 7n }, 'ada'],
      [null, null],
      [null, new Date(0)],
    ])
    const records = await Promise.all(handles.map((handle) => record(mill, handle.id)))
    expect(records.map((each) => each.captured)).toEqual([
      { tenant: 'acme' },
      { tenant: { id: 7n }, user: 'ada' },
      {},
      { user: new Date(0) },
    ])
  })

  test('are captured once for a bulk, and are restored for each job of it', async () => {
    const asked = vi.fn(() => 'acme')
    const own = { getStore: asked, run: (value: unknown, call: () => unknown) => tenant.run(value, call) }
    const mill = await started({ jobs: [who], capture: { tenant: own } })
    const handles = await mill.enqueueMany(who, Array<undefined>(50).fill(undefined))
    const results = await Promise.all(handles.map((handle) => handle.result()))
    expect(results).toEqual(Array(50).fill(['acme', null]))
    expect(asked).toHaveBeenCalledTimes(1)
  })

  test('are passed on to what a handler enqueues, through ctx and through the mill', async () => {
    const parent = job('parent', async (_: undefined, ctx) => [
      (await ctx.enqueue(who)).id,
      (await user.run('inner', () => mill.enqueue(who))).id,
    ])
    const mill = await started({ jobs: [parent, who], capture: { tenant, user } })
    const handle = await tenant.run('acme', () => mill.enqueue(parent))
    const [viaContext, viaMill] = (await handle.result()) as [string, string]
    expect(await mill.handle(viaContext).result()).toEqual(['acme', null])
    expect(await mill.handle(viaMill).result()).toEqual(['acme', 'inner'])
  })

  test('are restored at each attempt, and where the retry policy and treatAsDone are called', async () => {
    const seen: unknown[] = []
    const note = (where: string): void => void seen.push([where, tenant.getStore()])
    const flaky = job('flaky', {
      run: async (_: undefined, ctx) => {
        note(`run ${ctx.attempt}`)
        throw new Error(`attempt ${ctx.attempt}`)
      },
      accepts: () => (note('accepts'), true),
      retry: { when: () => (note('when'), true), backoff: () => (note('backoff'), 0), jitter: 0 },
      treatAsDone: (error) => (note('treatAsDone'), (error as Error).message === 'attempt 2'),
    })
    const mill = await started({ jobs: [flaky], capture: { tenant } })
    await (await tenant.run('acme', () => mill.enqueue(flaky))).result()
    const places = ['accepts', 'accepts', 'run 1', 'treatAsDone', 'when', 'backoff', 'accepts', 'run 2', 'treatAsDone']
    expect(seen).toEqual(places.map((where) => [where, 'acme']))
  })

  test('with names of another deploy are ignored, and stay on the record', async () => {
    const store = fresh()
    const before = await open({ store, capture: { tenant, user } })
    const { id } = await tenant.run('acme', () => user.run('ada', () => before.enqueue(who)))
    await before.close()
    const mill = await started({ store, jobs: [who], capture: { user } })
    expect(await mill.handle(id).result()).toEqual([null, 'ada'])
    expect((await record(mill, id)).captured).toEqual({ tenant: 'acme', user: 'ada' })
  })

  test('that no longer decode park the job with the reason, charge no attempt, and a retry runs it', async () => {
    class Money {
      readonly cents: number
      constructor(cents: number) {
        this.cents = cents
      }
    }
    const money = {
      is: (value: unknown): value is Money => value instanceof Money,
      write: (value: Money) => value.cents,
      read: (cents: unknown) => new Money(cents as number),
    }
    const knowing = codec({ types: { money } })
    const store = fresh()
    const producer = await open({ store, codec: knowing, capture: { tenant } })
    const { id } = await tenant.run(new Money(5), () => producer.enqueue(who))
    await producer.close()
    const ignorant = await started({ store, jobs: [who], capture: { tenant } })
    await vi.waitFor(async () => expect((await record(ignorant, id)).state).toBe('parked'), { timeout: 15_000 })
    const parked = await record(ignorant, id)
    expect(parked).toMatchObject({ attempt: 0, attempts: [], captured: {} })
    expect(parked.reason).toMatch(/what was captured as "tenant" does not decode: .*money/)
    await ignorant.close()
    const mill = await started({ store, jobs: [who], codec: knowing, capture: { tenant } })
    expect(await mill.retry(id)).toBe(true)
    // The codec returns a new Money; the job's result is written by the same codec.
    expect(await mill.handle(id).result()).toEqual([new Money(5), null])
  })

  test('stay with the job when it is edited', async () => {
    const mill = await open({ jobs: [who], capture: { tenant } })
    const { id } = await tenant.run('acme', () => mill.enqueue(who, undefined, { in: '1h' }))
    expect(await mill.edit(id, { in: 0, labels: ['now'] })).toBe(true)
    await mill.start()
    expect(await mill.handle(id).result()).toEqual(['acme', null])
  })

  test('that cannot be written, or are too large, refuse the enqueue together with all other problems', async () => {
    const mill = await open({ jobs: [who], capture: { tenant, user } })
    const wrong = await problemsOf(
      tenant.run({ db: { query: () => 1 } }, () => mill.enqueue(who, undefined, { lables: [] } as never)),
    )
    expect(wrong.code).toBe('E_INVALID_OPTIONS')
    expect(wrong.message).toMatch(/captured\.tenant\.db\.query .*function/)
    expect(wrong.message).toContain('did you mean "labels"?')
    const large = await problemsOf(user.run('x'.repeat(20_000), () => mill.enqueueMany(who, [undefined, undefined])))
    expect(large.message).toMatch(/captured has 20002 bytes and the limit is 16384 \(user 20002\)/)
    expect(large.message.match(/captured has/g)).toHaveLength(1)
    for await (const { id } of mill.find()) expect(id, 'nothing was written').toBeUndefined()
  })

  test('are not captured where capture is false', async () => {
    const mill = await started({ jobs: [who], capture: false })
    const handle = await tenant.run('acme', () => mill.enqueue(who))
    expect(await handle.result()).toEqual([null, null])
    expect((await record(mill, handle.id)).captured).toEqual({})
  })
})

test('no handler runs in the context of the call that woke its worker, captured or not', async () => {
  // There is no poll: each enqueue wakes the idle worker.
  const mill = await started({ jobs: [who], poll: '1h' })
  for (let round = 0; round < 10; round += 1) {
    const handles = await Promise.all([
      tenant.run('request A', () => mill.enqueue(who)),
      mill.enqueue(who),
      user.run('request B', () => mill.enqueue(who)),
    ])
    const results = await Promise.all(handles.map((handle) => handle.result()))
    expect(results).toEqual(Array(3).fill([null, null]))
  }
})

describe('a logger that asks for the tenant', () => {
  function collect(): { logger: Logger; lines: string[] } {
    const lines: string[] = []
    const at =
      (level: string) =>
      (_: object, message: string): void =>
        void lines.push(`${level} ${message.split(' ').slice(0, 2).join(' ')} for ${String(tenant.getStore())}`)
    return { lines, logger: { debug: () => undefined, info: at('info'), warn: at('warn'), error: at('error') } }
  }

  test('gets it when a job is done, retried, failed and slow', async () => {
    const { logger, lines } = collect()
    let release: () => void = () => undefined
    const opened = new Promise<void>((resolve) => (release = resolve))
    const slow = job('slow', async () => opened)
    const boom = job('boom', {
      run: async () => {
        throw new Error('boom')
      },
      retry: { limit: 1, backoff: () => 0, jitter: 0 },
    })
    const mill = await started({ jobs: [slow, boom, who], capture: { tenant }, logger, slowAfter: '20ms' })
    await (await mill.enqueue(who)).result()
    const failing = await tenant.run('acme', () => mill.enqueue(boom))
    await problemsOf(failing.result())
    const late = await tenant.run('globex', () => mill.enqueue(slow))
    await vi.waitFor(() => expect(lines.some((line) => line.startsWith('error slow slow'))).toBe(true), 15_000)
    release()
    await late.result()
    await mill.stop()
    expect(lines).toEqual(
      expect.arrayContaining([
        'info done who for undefined',
        'warn retrying boom for acme',
        'error failed boom for acme',
        'error slow slow: for globex',
        'info done slow for globex',
      ]),
    )
  })

  test('loses the context but no line when a storage throws, and the attempt fails', async () => {
    const { logger, lines } = collect()
    let broken = true
    const store = {
      getStore: () => 'acme',
      run: (value: unknown, call: () => unknown) => {
        if (broken) throw new Error('the storage is broken')
        return tenant.run(value, call)
      },
    }
    const retry = { backoff: () => 0, jitter: 0 }
    const mill = await started({ jobs: [who], capture: { tenant: store }, logger, retry })
    const handle = await mill.enqueue(who)
    await vi.waitFor(() => expect(lines).toContain('warn retrying who for undefined'), 15_000)
    broken = false
    expect(await handle.result()).toEqual(['acme', null])
    expect((await record(mill, handle.id)).attempts[0]?.error?.message).toBe('the storage is broken')
  })
})

test('the testing kit restores captured values too', async () => {
  const t = await testing({ jobs: [who], capture: { tenant } })
  const handle = await tenant.run('acme', () => t.mill.enqueue(who))
  await t.drain()
  expect(await handle.result()).toEqual(['acme', null])
  await t.close()
})

test('closed mills leave no async context behind, which would slow every promise of the process', async () => {
  // Before Node 24, each storage that is enabled adds a property to every async resource.
  const contexts = (): Promise<number> =>
    new Promise((resolve) => setImmediate(() => resolve(Object.getOwnPropertySymbols(executionAsyncResource()).length)))
  const before = await contexts()
  for (let i = 0; i < 3; i += 1) {
    const mill = await started({ jobs: [who] })
    await (await mill.enqueue(who)).result()
    await mill.close()
  }
  expect(await contexts()).toBe(before)
})

describe('across processes', () => {
  const processes = useProcesses()

  const SETUP = `
    import { AsyncLocalStorage, executionAsyncResource } from 'node:async_hooks'
    const tenant = new AsyncLocalStorage()
    const options = { store: file, poll: '20ms', capture: { tenant } }
  `

  test('what a producer captured is seen by the worker, and by its logger', { timeout: 60_000 }, async () => {
    const producer = processes().run(`${SETUP}
      const mail = job('mail', () => {})
      const mill = await millrace({ ...options, logger: false })
      const { id } = await tenant.run({ name: 'acme', since: new Date(0) }, () => mill.enqueue(mail, { n: 1 }))
      say('enqueued', { id })
      await mill.close()
    `)
    const { id } = await producer.receives('enqueued')
    const worker = processes().run(`${SETUP}
      const at = (level) => (fields, text) => say('log ' + level, { text, tenant: tenant.getStore()?.name })
      const logger = { debug() {}, info() {}, warn: at('warn'), error: at('error') }
      const mail = job('mail', {
        run: async () => {
          const { name, since } = tenant.getStore()
          say('ran', { name, since: since instanceof Date })
          throw new Error('no mail today')
        },
        retry: { limit: 0 },
      })
      const mill = await millrace({ ...options, jobs: [mail], logger })
      await mill.start()
    `)
    expect(await worker.receives('ran')).toMatchObject({ name: 'acme', since: true })
    expect(await worker.receives('log error')).toMatchObject({ text: 'failed mail', tenant: 'acme' })
    const reader = await open({ store: processes().file })
    expect(await record(reader, id as string)).toMatchObject({
      state: 'failed',
      captured: { tenant: { name: 'acme', since: new Date(0) } },
    })
  })
})
