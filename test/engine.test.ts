import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { Abort, category, codec, job, lazy, millrace, Snooze } from '../src/index.js'
import { describeAboveStore } from './support/above-store.js'
import { freshStore } from './support/fresh-store.js'
import type { Context, Handle, Job, JobFilter, JobRecord, Logger, Mill, MillOptions, State } from '../src/index.js'

/** The engine through the public API, on real files. Nothing sleeps: handles, gates and records are awaited. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-engine-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const mills: Mill[] = []
afterEach(async () => {
  for (const mill of mills.splice(0)) await mill.close({ deadline: 0 })
})
const fresh = (): string => freshStore(folder)

/** A mill on a file of its own, with polls short enough that nothing waits for one. */
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

/** A promise and the way to resolve it. */
function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void } {
  let open: (value: T) => void = () => undefined
  const opened = new Promise<T>((resolve) => (open = resolve))
  return { opened, open: (value) => open(value) }
}

const record = async (handle: { get(): Promise<JobRecord | undefined> }): Promise<JobRecord> => {
  const found = await handle.get()
  if (found === undefined) throw new Error('the job does not exist')
  return found
}

/** Polls the record until it is in this state: for states without an event. */
const becomes = (handle: Handle<unknown>, state: State | 'gone'): Promise<void> =>
  vi.waitFor(async () => expect((await handle.get())?.state ?? 'gone').toBe(state), { timeout: 15_000, interval: 5 })

const caught = async (promise: Promise<unknown>): Promise<Error & { code?: string; cause?: unknown }> =>
  promise.then(
    (value) => {
      throw new Error(`it resolved with ${String(value)}`)
    },
    (error: Error) => error,
  )

const once = { retry: { limit: 0 } } as const
const now = { backoff: () => 0, jitter: 0 } as const
const boom = job('boom', async (): Promise<string> => {
  throw new RangeError('boom')
})
const echo = job('echo', async (p: unknown) => p)
const never = job(
  'never',
  (_: unknown, ctx: Context) =>
    new Promise<string>((_resolve, reject) => {
      ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error))
    }),
)

describeAboveStore('D2: a schema', () => {
  const dated = v.pipe(
    v.object({ at: v.string() }),
    v.transform((p) => ({ at: new Date(p.at) })),
  )

  test('is checked at enqueue, the input is stored as given, and the output is computed for each run of the handler', async () => {
    const reading = job('reading', { input: dated, run: (p: { at: Date }) => p.at } as never) as Job<
      { at: string },
      Date
    >
    const mill = await started({ jobs: [reading] })
    const handle = await mill.enqueue(reading, { at: '2026-01-01T00:00:00Z' })
    expect(await handle.result()).toEqual(new Date('2026-01-01T00:00:00Z'))
    expect((await record(handle)).payload).toEqual({ at: '2026-01-01T00:00:00Z' })
    expect(await caught(mill.enqueue(reading, { at: 5 } as never))).toMatchObject({ code: 'E_INVALID_PAYLOAD' })
  })

  test('that the payload no longer fits parks the job with the reason and charges no attempt; edit makes it ready', async () => {
    const store = fresh()
    const before = await open({ store, jobs: [job('mail', async (p: { to: string }) => p.to)] })
    const { id } = await before.enqueue('mail', { to: 'ada' })
    await before.close()
    const strict = v.object({ to: v.string(), subject: v.string() })
    const runs: unknown[] = []
    const mail = job('mail', { input: strict, run: async (p: unknown) => runs.push(p) } as never) as Job<
      unknown,
      number
    >
    const mill = await started({ store, jobs: [mail] })
    const handle = mill.handle(id)
    await becomes(handle, 'parked')
    const parked = await record(handle)
    expect(parked).toMatchObject({ attempt: 0, attempts: [], payload: { to: 'ada' } })
    expect(parked.reason).toMatch(/the payload no longer fits: payload\.subject/)
    expect(await mill.cancel(id)).toBe(false)
    expect(await mill.edit(id, { payload: { to: 'ada', subject: 'hi' } })).toBe(true)
    expect(await handle.result()).toBe(1)
    expect(runs).toEqual([{ to: 'ada', subject: 'hi' }])
    expect(await record(handle)).toMatchObject({ attempt: 1, reason: undefined, error: undefined })
  })

  test('that still does not fit parks the job again after a retry', async () => {
    const store = fresh()
    const before = await open({ store, jobs: [job('mail', async (p: { n: number }) => p.n)] })
    const { id } = await before.enqueue('mail', { n: 1 })
    await before.close()
    const mill = await started({
      store,
      jobs: [job('mail', { run: async (p: { n: number }) => p.n, accepts: (p) => p.n > 1 })],
    })
    await becomes(mill.handle(id), 'parked')
    expect(await mill.retry(id)).toBe(true)
    await vi.waitFor(async () => {
      const found = await record(mill.handle(id))
      expect(found.state).toBe('parked')
      expect(found.attempts.map((a) => a.exit)).toEqual(['retried'])
    }, 15_000)
    expect((await record(mill.handle(id))).attempt).toBe(0)
  })
})

describeAboveStore('D4, D5: categories and direct runs', () => {
  const notification = category('notification', {
    queue: 'notify',
    retry: { limit: 0 },
    labels: ['n'],
    run: async (p: unknown, ctx: Context) => `${ctx.job} ${ctx.queue.name} ${String(p)}`,
  })
  const sms = job('send-sms', { is: [notification] })
  const fax = job('send-fax', { is: [notification], queue: 'slow', run: async () => 'own' } as never) as Job<
    unknown,
    unknown
  >

  test('a category’s fallback and options apply, and a filter by it finds its jobs', async () => {
    const mill = await started({ jobs: [sms, fax, boom] })
    const [a, b] = [await mill.enqueue(sms, 'hi'), await mill.enqueue(fax, 'ho')]
    await mill.enqueue(boom, undefined, once)
    expect([await a.result(), await b.result()]).toEqual(['send-sms notify hi', 'own'])
    expect(await record(a)).toMatchObject({ queue: 'notify', labels: ['n'] })
    const found: string[] = []
    for await (const each of mill.find({ job: notification, order: 'oldest' })) found.push(each.job)
    expect(found).toEqual(['send-sms', 'send-fax'])
  })

  test('mill.run runs the handler that a worker would run, and mill.jobs lists what it inherits', async () => {
    const mill = await open({ jobs: { sms, fax }, timeout: '5m' })
    expect(await mill.run('send-sms', 'x')).toBe('send-sms notify x')
    expect(mill.has('send-sms')).toBe(true)
    expect(mill.jobs()).toMatchObject([
      {
        name: 'send-sms',
        queue: 'notify',
        retryLimit: 0,
        timeoutMs: 300_000,
        categories: ['notification'],
        labels: ['n'],
      },
      { name: 'send-fax', queue: 'slow', categories: ['notification'] },
    ])
  })

  test('a tie is refused when the app is built', async () => {
    const [x, y] = [category('x', { queue: 'x' }), category('y', { queue: 'y' })]
    const torn = job('torn', {
      is: [category('l', { is: [x], run: () => 1 }), category('r', { is: [y] })],
    })
    expect(await caught(open({ jobs: [torn] }))).toMatchObject({ code: 'E_DEFINITION' })
  })
})

describe('D7, D8: names', () => {
  test('a job whose name no worker defines is left, charges no attempt, and runs once it is registered', async () => {
    const store = fresh()
    const producer = await open({ store })
    const stranger = job('stranger', async () => 'known now')
    const handle = await producer.enqueue(stranger)
    const worker = await started({ store, jobs: [echo] })
    // A job after it in the queue runs, so the worker skipped the one it does not define.
    expect(await (await producer.enqueue(echo, 1)).result()).toBe(1)
    expect(await record(handle)).toMatchObject({ state: 'ready', attempt: 0 })
    worker.register(stranger)
    expect(await handle.result()).toBe('known now')
  })

  describeAboveStore('a started mill that enqueues a job it does not define', () => {
    const stranger = job('stranger', async () => 'known now')
    const watched = (warned: string[]): Logger => {
      const nothing = (): void => undefined
      return { debug: nothing, info: nothing, error: nothing, warn: (_, message) => void warned.push(message) }
    }
    const ofStranger = (warned: readonly string[]): string[] => warned.filter((line) => line.includes('stranger'))

    test('warns once a name, with what to do, whichever verb enqueues it', async () => {
      const warned: string[] = []
      const mill = await started({ jobs: [echo], logger: watched(warned) })
      await mill.enqueue(stranger)
      await mill.enqueueMany(stranger, [undefined])
      await mill.flow((f) => f.add(stranger))
      expect(ofStranger(warned)).toEqual([
        'job "stranger" was enqueued here and is not registered in this process: no worker of this process runs it. Pass it in jobs: millrace({ jobs: […] }), or call mill.register(job), unless another process runs it',
      ])
    })

    test.each<[string, (mill: Mill) => Promise<unknown>]>([
      ['enqueueMany', (mill) => mill.enqueueMany(stranger, [undefined])],
      ['schedule', (mill) => mill.schedule(stranger, undefined, '1h')],
      ['flow', (mill) => mill.flow((f) => f.add(stranger))],
      ['recurring', (mill) => mill.recurring('r', stranger, undefined, '0 9 * * *')],
      ['seal of a group', (mill) => mill.group('g', { whenDone: [stranger, undefined] }).seal()],
    ])('warns of %s', async (_, enqueue) => {
      const warned: string[] = []
      await enqueue(await started({ jobs: [echo], logger: watched(warned) }))
      expect(ofStranger(warned)).toHaveLength(1)
    })

    test('warns at the start of what was enqueued before it, unless it was registered meanwhile', async () => {
      const warned: string[] = []
      const mill = await open({ jobs: [echo], logger: watched(warned) })
      const late = job('late stranger', async () => 1)
      await mill.enqueue(stranger)
      await mill.enqueue(late)
      expect(ofStranger(warned)).toEqual([])
      mill.register(late)
      await mill.start()
      expect(ofStranger(warned)).toHaveLength(1)
      expect(warned.join()).not.toContain('late')
    })

    test('warns of nothing where the mill was never started, or an unknown handler runs all names', async () => {
      const warned: string[] = []
      const producer = await open({ logger: watched(warned) })
      await producer.enqueue(stranger)
      const all = await started({ unknown: async () => 1, logger: watched(warned) })
      await all.enqueue(stranger)
      await all.unschedule(stranger, 'k')
      expect(ofStranger(warned)).toEqual([])
    })
  })

  test('a worker is judged by its own lease: one of a shorter lease does not run its live jobs', async () => {
    const store = fresh()
    let runs = 0
    // The first worker beats once a second, and the second one declares a worker with its own lease dead after half of that.
    const long = job('long', async () => {
      runs += 1
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      return runs
    })
    const first = await started({ store, jobs: [long], lease: '3s' })
    const handle = await first.enqueue(long)
    await becomes(handle, 'running')
    await started({ store, jobs: [long], lease: '500ms' })
    expect(await handle.result()).toBe(1)
  })

  test('the optional unknown handler runs undefined names, and gets the name', async () => {
    const store = fresh()
    const producer = await open({ store })
    const handle = await producer.enqueue(
      job('stranger', async () => 'never'),
      undefined,
    )
    await started({ store, unknown: async (_: unknown, ctx: Context) => `caught ${ctx.job}` })
    expect(await handle.result()).toBe('caught stranger')
  })

  test('a lazy handler is loaded when its first job runs, and a failed import is a failed attempt like any other', async () => {
    let loads = 0
    const heavy = job('heavy', {
      run: lazy(async () => {
        loads += 1
        if (loads === 1) throw new Error('the disk was away')
        return { run: async (p: { n: number }) => p.n + 1 }
      }),
      retry: now,
    })
    const mill = await open({ jobs: [heavy] })
    const handle = await mill.enqueue(heavy, { n: 1 })
    expect(loads).toBe(0)
    await mill.start()
    expect(await handle.result()).toBe(2)
    const { attempt, attempts } = await record(handle)
    expect([attempt, attempts[0]?.error?.message, loads]).toEqual([2, 'the disk was away', 2])
  })
})

describe('E1 to E3: enqueueing', () => {
  test('returns a handle with a time-ordered id, and every option is in the record', async () => {
    const mill = await open({ jobs: [job('mail', { run: async (p: { to: string }) => p.to, labels: ['mine'] })] })
    const [a, b] = [await mill.enqueue('mail', { to: 'a' }), await mill.enqueue('mail', { to: 'b' })]
    expect(a.id < b.id).toBe(true)
    expect(a.isNew).toBe(true)
    const expires = new Date(Date.now() + 3_600_000)
    const handle = await mill.enqueue(
      'mail',
      { to: 'ada' },
      {
        title: 'For {to}',
        labels: ['x', 'mine', 'y'],
        queue: 'post',
        priority: -3,
        key: 'k',
        in: '30m',
        retry: { limit: Infinity },
        timeout: Infinity,
        expires,
        meta: { since: new Date(0), n: 5n },
      },
    )
    const found = await record(handle)
    expect(found).toMatchObject({
      id: handle.id,
      job: 'mail',
      title: 'For ada',
      labels: ['mine', 'x', 'y'],
      queue: 'post',
      priority: -3,
      key: 'k',
      state: 'scheduled',
      payload: { to: 'ada' },
      expiresAt: expires,
      meta: { since: new Date(0), n: 5n },
      attempt: 0,
      crashes: 0,
      attempts: [],
      startedAt: undefined,
      settledAt: undefined,
      result: undefined,
      error: undefined,
    })
    expect(found.dueAt.getTime() - found.createdAt.getTime()).toBe(1_800_000)
  })

  test('a title may be a function of the payload in the definition, and enqueue’s own wins', async () => {
    const mail = job('mail', { run: async (p: { to: string }) => p.to, title: (p) => `to ${p.to}` })
    const mill = await open({ jobs: [mail] })
    expect((await record(await mill.enqueue(mail, { to: 'a' }))).title).toBe('to a')
    expect((await record(await mill.enqueue(mail, { to: 'a' }, { title: 'own' }))).title).toBe('own')
  })

  // Otherwise sixteen of the job and sixteen of the call were each within the bound, and the job had thirty-two.
  test('a job has at most sixteen labels, from its definition and the call together', async () => {
    const labels = (from: string): string[] => Array.from({ length: 16 }, (_, i) => `${from}${i}`)
    const mill = await open({ jobs: [job('mail', { run: async () => 1, labels: labels('a') })] })
    expect(await caught(mill.enqueue('mail', undefined, { labels: labels('b') }))).toMatchObject({
      code: 'E_INVALID_OPTIONS',
    })
  })

  test('many are enqueued together, with options for each, in order', async () => {
    const mill = await started({ jobs: [echo] })
    const handles = await mill.enqueueMany(
      echo,
      Array.from({ length: 1_000 }, (_, i) => i),
      (p, i) => ({
        labels: [`l${i % 3}`],
        title: `number ${String(p)}`,
      }),
    )
    expect(await Promise.all(handles.map((handle) => handle.result()))).toEqual(
      Array.from({ length: 1_000 }, (_, i) => i),
    )
    let count = 0
    for await (const each of mill.find({ label: 'l1' }))
      count += each.title === `number ${String(each.payload)}` ? 1 : 0
    expect(count).toBe(333)
  })

  test('a job that has not begun when it expires is cancelled, with the reason', async () => {
    const mill = await open({ jobs: [echo], keep: { cancelled: '1h' } })
    const handle = await mill.enqueue(echo, 1, { expires: 0 })
    await mill.start()
    expect(await caught(handle.result())).toMatchObject({
      code: 'E_JOB_CANCELLED',
      message: expect.stringContaining('expired') as string,
    })
    expect(await record(handle)).toMatchObject({ state: 'cancelled', attempt: 0 })
  })

  test('a scheduled job expires as well, and a job that began in time does not', async () => {
    const mill = await started({ jobs: [echo, never] })
    const waiting = await mill.enqueue(echo, 1, { in: '1h', expires: '100ms' })
    const inTime = await mill.enqueue(echo, 2, { expires: '1h' })
    expect(await inTime.result()).toBe(2)
    expect(await caught(waiting.result())).toMatchObject({ code: 'E_JOB_CANCELLED' })
  })

  // "Cancelled if it has not begun by then": this one has begun, failed, and waits for its retry.
  test('a job that began in time and waits for a retry does not expire as one that never began', async () => {
    const mill = await started({ jobs: [boom] })
    const handle = await mill.enqueue(boom, undefined, {
      expires: '1s',
      retry: { limit: 1, backoff: { start: '1500ms' } },
    })
    const error = await caught(handle.result())
    expect(error.code).toBe('E_JOB_FAILED')
  })
})

describe('keys', () => {
  const slow = (): { work: Job<{ n: number }, number>; begun: Promise<void>; finish: () => void } => {
    const [begun, finish] = [gate(), gate()]
    const work = job('work', async (p: { n: number }) => {
      begun.open()
      await finish.opened
      return p.n
    })
    return { work, begun: begun.opened, finish: () => finish.open() }
  }

  test('return: a second enqueue writes nothing and returns the first one’s handle; a finished job frees its key', async () => {
    const mill = await open({ jobs: [echo] })
    const first = await mill.enqueue(echo, 1, { key: 'k' })
    const second = await mill.enqueue(echo, 2, { key: 'k' })
    expect([second.id, second.isNew, first.isNew]).toEqual([first.id, false, true])
    expect((await record(second)).payload).toBe(1)
    await mill.start()
    expect(await second.result()).toBe(1)
    const third = await mill.enqueue(echo, 3, { key: 'k' })
    expect(third.isNew).toBe(true)
    expect(await third.result()).toBe(3)
  })

  test('are per job: another job may hold the same key', async () => {
    const mill = await open({ jobs: [echo, boom] })
    const handles = [await mill.enqueue(echo, 1, { key: 'k' }), await mill.enqueue(boom, undefined, { key: 'k' })]
    expect(handles.map((handle) => handle.isNew)).toEqual([true, true])
  })

  test('reject: the call is refused and names the holder', async () => {
    const mill = await open({ jobs: [echo] })
    const first = await mill.enqueue(echo, 1, { key: 'k' })
    const error = await caught(mill.enqueue(echo, 2, { key: 'k', onDuplicate: 'reject' }))
    expect(error).toMatchObject({ code: 'E_DUPLICATE_KEY', existingId: first.id })
  })

  test('replace: the waiting job is cancelled, with its replacement as the reason, and the new one takes the key', async () => {
    const mill = await open({ jobs: [echo] })
    const first = await mill.enqueue(echo, 1, { key: 'k', in: '1h' })
    const second = await mill.enqueue(echo, 2, { key: 'k', onDuplicate: 'replace' })
    expect(second.isNew).toBe(true)
    expect(await record(first)).toMatchObject({ state: 'cancelled', reason: `replaced by ${second.id}` })
    await mill.start()
    expect(await second.result()).toBe(2)
  })

  test('replace: a running job is not replaced', async () => {
    const { work, begun, finish } = slow()
    const mill = await started({ jobs: [work] })
    const first = await mill.enqueue(work, { n: 1 }, { key: 'k' })
    await begun
    expect(await caught(mill.enqueue(work, { n: 2 }, { key: 'k', onDuplicate: 'replace' }))).toMatchObject({
      code: 'E_DUPLICATE_KEY',
    })
    finish()
    expect(await first.result()).toBe(1)
  })

  test('of one turn, by a hundred callers, make one job', async () => {
    const mill = await open({ jobs: [echo] })
    const handles = await Promise.all(Array.from({ length: 100 }, (_, i) => mill.enqueue(echo, i, { key: 'k' })))
    expect(new Set(handles.map((handle) => handle.id)).size).toBe(1)
    expect(handles.filter((handle) => handle.isNew)).toHaveLength(1)
  })

  test('twice in one bulk conflict with each other', async () => {
    const mill = await open({ jobs: [echo] })
    const handles = await mill.enqueueMany(echo, [1, 2, 3], (p) => ({ key: p === 3 ? 'other' : 'same' }))
    expect(handles.map((handle) => handle.isNew)).toEqual([true, false, true])
  })

  test('a retried job takes its key again, and is refused when another job holds it', async () => {
    const mill = await started({ jobs: [boom] })
    const first = await mill.enqueue(boom, undefined, { key: 'k', ...once })
    await caught(first.result())
    const second = await mill.enqueue(boom, undefined, { key: 'k', in: '1h' })
    expect(await caught(mill.retry(first.id))).toMatchObject({ code: 'E_DUPLICATE_KEY', existingId: second.id })
    await second.cancel()
    expect(await mill.retry(first.id)).toBe(true)
  })

  test('a new job of a new queue is written although another enqueue of the same turn was refused', async () => {
    const mill = await open({ jobs: [echo] })
    await mill.enqueue(echo, 0, { key: 'k' })
    const [fine, refused] = await Promise.allSettled([
      mill.enqueue(echo, 1, { queue: 'brand-new' }),
      mill.enqueue(echo, 2, { key: 'k', onDuplicate: 'reject' }),
    ])
    expect(refused.status).toBe('rejected')
    expect(fine.status).toBe('fulfilled')
    if (fine.status === 'fulfilled') expect(await record(fine.value)).toMatchObject({ queue: 'brand-new', payload: 1 })
  })
})

describe('T1, T2: time', () => {
  test.each<[string, unknown]>([
    ['a duration', '50ms'],
    ['an ISO duration', 'PT0.05S'],
    ['milliseconds', 50],
    ['fields', { milliseconds: 50 }],
  ])('a job scheduled by %s is due that long after its enqueue, and does not run before', async (_, when) => {
    const mill = await started({ jobs: [echo] })
    const handle = await mill.schedule(echo, 'x', when as never)
    expect(await handle.result()).toBe('x')
    const { startedAt, dueAt, createdAt } = await record(handle)
    expect(dueAt.getTime() - createdAt.getTime()).toBe(50)
    expect(startedAt?.getTime()).toBeGreaterThanOrEqual(dueAt.getTime())
  })

  test.each<[string, (at: Date) => unknown]>([
    ['a Date', (at) => at],
    ['ISO text', (at) => at.toISOString()],
    ['ISO text with an offset', (at) => new Date(at.getTime() + 3_600_000).toISOString().replace('Z', '+01:00')],
    ['an object with epochMilliseconds', (at) => ({ epochMilliseconds: at.getTime() })],
  ])('a job scheduled by %s is due then, and does not run before', async (_, when) => {
    const mill = await started({ jobs: [echo] })
    const at = new Date(Date.now() + 50)
    const handle = await mill.schedule(echo, 'x', when(at) as never)
    expect(await handle.result()).toBe('x')
    const { startedAt, dueAt } = await record(handle)
    expect(dueAt).toEqual(at)
    expect(startedAt?.getTime()).toBeGreaterThanOrEqual(at.getTime())
  })

  test('a time in the past runs at once', async () => {
    const mill = await started({ jobs: [echo] })
    expect(await (await mill.schedule(echo, 1, new Date(0))).result()).toBe(1)
  })

  test('a day in a hundred years is stored exactly', async () => {
    const mill = await started({ jobs: [echo] })
    const at = new Date(Date.now() + 50 * 365 * 86_400_000)
    const handle = await mill.schedule(echo, 1, at)
    expect((await record(handle)).dueAt).toEqual(at)
    expect((await record(handle)).state).toBe('scheduled')
  })

  test('scheduling under a key moves the waiting job, with its payload', async () => {
    const mill = await open({ jobs: [echo] })
    const first = await mill.schedule(echo, 1, '1h', { key: 'k' })
    const second = await mill.schedule(echo, 2, '2h', { key: 'k' })
    expect([second.id, second.isNew]).toEqual([first.id, false])
    const { payload, dueAt, createdAt } = await record(first)
    expect(payload).toBe(2)
    expect(dueAt.getTime() - createdAt.getTime()).toBeGreaterThan(7_000_000)
    await mill.start()
    await mill.schedule(echo, 3, 0, { key: 'k' })
    expect(await first.result()).toBe(3)
  })

  test('scheduling under a key takes the new queue and priority as well', async () => {
    const mill = await open({ jobs: [echo] })
    const first = await mill.schedule(echo, 1, '1h', { key: 'k' })
    await mill.schedule(echo, 2, '1h', { key: 'k', queue: 'other', priority: 5, title: 'new' })
    expect(await record(first)).toMatchObject({ title: 'new', queue: 'other', priority: 5 })
  })

  test('unschedule is true while it waits and false after, and it never runs', async () => {
    const mill = await started({ jobs: [echo] })
    const handle = await mill.schedule(echo, 1, '1h', { key: 'k' })
    expect(await mill.unschedule(echo, 'k')).toBe(true)
    expect(await mill.unschedule(echo, 'k')).toBe(false)
    expect(await mill.unschedule('echo', 'other')).toBe(false)
    expect(await caught(handle.result())).toMatchObject({
      code: 'E_JOB_CANCELLED',
      message: expect.stringContaining('was cancelled: unschedule() was called') as string,
    })
  })

  // The newest job of the key is finished; the holder of the key is the older, retried one.
  test('unschedule finds the waiting job of the key, also when a newer one has ended', async () => {
    const mill = await open({ jobs: [echo] })
    const first = await mill.enqueue(echo, 1, { key: 'k' })
    await first.cancel()
    const second = await mill.enqueue(echo, 2, { key: 'k' })
    await second.cancel()
    expect(await mill.retry(first.id)).toBe(true)
    expect(await mill.unschedule(echo, 'k')).toBe(true)
  })
})

describe('X2, X3: outcomes and retries', () => {
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['false', false],
    ['null', null],
    ['an error', new Error('only returned')],
    ['NaN', NaN],
    ['an empty text', ''],
  ])('a handler that returns %s succeeded', async (_, value) => {
    const giving = job('giving', async () => value)
    const mill = await started({ jobs: [giving] })
    const handle = await mill.enqueue(giving)
    expect(await handle.result()).toEqual(value)
    expect(await record(handle)).toMatchObject({ state: 'done', attempt: 1 })
  })

  test('a handler that throws is retried up to the limit, and its attempts are recorded', async () => {
    let runs = 0
    const failing = job('failing', {
      run: async () => {
        runs += 1
        throw new RangeError(`number ${runs}`)
      },
      retry: { limit: 3, ...now },
    })
    const mill = await started({ jobs: [failing] })
    const handle = await mill.enqueue(failing)
    const error = await caught(handle.result())
    expect(error).toMatchObject({ code: 'E_JOB_FAILED', message: expect.stringContaining('number 4') as string })
    expect(error.cause).toBeInstanceOf(RangeError)
    expect(runs).toBe(4)
    const found = await record(handle)
    expect(found).toMatchObject({ state: 'failed', attempt: 4, error: { name: 'RangeError', message: 'number 4' } })
    expect(found.attempts.map((a) => a.error?.message)).toEqual(['number 1', 'number 2', 'number 3', 'number 4'])
    expect(found.error?.stack).toContain('engine.test')
  })

  test('the attempt number counts up, and a later success is the end', async () => {
    const flaky = job('flaky', {
      run: async (_: undefined, ctx) => {
        if (ctx.attempt < 3) throw new Error('not yet')
        return ctx.attempt
      },
      retry: now,
    })
    const mill = await started({ jobs: [flaky] })
    const handle = await mill.enqueue(flaky)
    expect(await handle.result()).toBe(3)
    const { attempts, attempt, error } = await record(handle)
    expect([attempts.length, attempt, error]).toEqual([3, 3, undefined])
  })

  test('the most specific retry wins, option by option', async () => {
    let runs = 0
    const failing = job('failing', {
      run: async () => {
        runs += 1
        throw new Error('no')
      },
      is: [category('c', { retry: { limit: 9, backoff: 'fixed' } })],
      retry: { backoff: () => 0, jitter: 0 },
    })
    const mill = await started({ jobs: [failing], retry: { limit: 50 } })
    await caught((await mill.enqueue(failing, undefined, { retry: { limit: 2 } })).result())
    expect(runs).toBe(3)
  })

  test('Abort fails the job at once with its reason', async () => {
    const aborting = job('aborting', async () => {
      throw new Abort('the card was removed')
    })
    const mill = await started({ jobs: [aborting] })
    const handle = await mill.enqueue(aborting)
    expect(await caught(handle.result())).toMatchObject({
      message: expect.stringContaining('the card was removed') as string,
    })
    expect(await record(handle)).toMatchObject({ state: 'failed', attempt: 1 })
  })

  test('Snooze retries later without charging an attempt', async () => {
    let runs = 0
    const snoozing = job('snoozing', {
      run: async (_: undefined, ctx) => {
        runs += 1
        if (runs <= 3) throw new Snooze(1)
        return ctx.attempt
      },
      retry: { limit: 0 },
    })
    const mill = await started({ jobs: [snoozing] })
    const handle = await mill.enqueue(snoozing)
    expect(await handle.result()).toBe(1)
    const { attempt, attempts } = await record(handle)
    expect(attempt).toBe(1)
    expect(attempts.map((a) => a.exit)).toEqual(['snoozed', 'snoozed', 'snoozed', undefined])
  })

  test('Snooze accepts an instant, and is logged like a retry', async () => {
    const lines: string[] = []
    const nothing = (): void => undefined
    const info = (_: object, message: string): void => void lines.push(message)
    const runs: number[] = []
    const at = Date.now() + 1_500
    const later = job('later', async () => {
      runs.push(Date.now())
      if (runs.length === 1) throw new Snooze(new Date(at))
      return runs.length
    })
    const mill = await started({ jobs: [later], logger: { debug: nothing, info, warn: nothing, error: nothing } })
    const handle = await mill.enqueue(later)
    expect(await handle.result()).toBe(2)
    expect(runs[1]).toBeGreaterThanOrEqual(at - 5)
    expect((await record(handle)).attempts.map((a) => a.exit)).toEqual(['snoozed', undefined])
    expect(lines).toContainEqual(expect.stringMatching(/^snoozed later for (1\.\d s|\d+ ms)$/))
  })

  test('a Snooze until an instant in the past is a failed attempt, since it would run again at once for ever', async () => {
    const past = job('past', {
      run: async (_: undefined, ctx) => {
        if (ctx.attempt === 1) throw new Snooze('2020-01-01T00:00:00Z')
        return ctx.attempt
      },
      retry: { limit: 1, backoff: { start: 1 } },
    })
    const handle = await (await started({ jobs: [past] })).enqueue(past)
    expect(await handle.result()).toBe(2)
    expect((await record(handle)).attempts[0]?.error?.message).toMatch(
      /new Snooze\(\): the delay must be an instant that is still to come, got 2020-01-01T00:00:00.000Z, which was \d+ d/,
    )
  })

  test.each<[unknown, string]>([
    ['10m', 'snoozed for 10 m'],
    [{ hours: 2, minutes: 5 }, 'snoozed for 2 h 5 m'],
    [new Date(0), 'snoozed until 1970-01-01T00:00:00.000Z'],
    ['1970-01-01T01:00:00+01:00', 'snoozed until 1970-01-01T00:00:00.000Z'],
    ['later', 'snoozed for "later"'],
  ])('Snooze(%j) says what it waits for', (delay, message) => {
    expect(new Snooze(delay as never).message).toBe(message)
  })

  test('a Snooze with an invalid delay is a failed attempt that says so, and is retried', async () => {
    const wrong = job('wrong', {
      run: async (_: undefined, ctx) => {
        if (ctx.attempt === 1) throw new Snooze({ seconds: Number('Fri, 31 Dec 1999 23:59:59 GMT') })
        return ctx.attempt
      },
      retry: { limit: 1, backoff: { start: 1 } },
    })
    const mill = await started({ jobs: [wrong] })
    const handle = await mill.enqueue(wrong)
    expect(await handle.result()).toBe(2)
    expect((await record(handle)).attempts[0]?.error).toMatchObject({
      code: 'E_INVALID_OPTIONS',
      message: expect.stringContaining('new Snooze(): the delay must be a duration') as string,
    })
  })

  test('treatAsDone turns a given error into success, and others stay failures', async () => {
    const idempotent = job('idempotent', {
      run: async (p: { code: number }) => {
        throw Object.assign(new Error('conflict'), { status: p.code })
      },
      treatAsDone: (error) => (error as { status: number }).status === 409,
      ...once,
    })
    const mill = await started({ jobs: [idempotent] })
    const handle = await mill.enqueue(idempotent, { code: 409 })
    expect(await handle.result()).toBeUndefined()
    expect(await record(handle)).toMatchObject({ state: 'done', reason: 'treated as done: conflict' })
    expect(await caught((await mill.enqueue(idempotent, { code: 500 })).result())).toMatchObject({
      code: 'E_JOB_FAILED',
    })
  })

  test('when decides which errors are retried, and a when that throws costs no retry', async () => {
    const seen: [string, number][] = []
    const choosy = job('choosy', {
      run: async (_: undefined, ctx) => {
        throw new Error(ctx.attempt < 3 ? 'temporary' : 'final')
      },
      retry: {
        ...now,
        when: (error, attempt) => {
          seen.push([(error as Error).message, attempt])
          if (attempt === 1) throw new Error('the predicate is broken')
          return (error as Error).message === 'temporary'
        },
      },
    })
    const mill = await started({ jobs: [choosy] })
    const handle = await mill.enqueue(choosy)
    await caught(handle.result())
    expect((await record(handle)).attempt).toBe(3)
    expect(seen).toEqual([
      ['temporary', 1],
      ['temporary', 2],
      ['final', 3],
    ])
  })
})

describeAboveStore('X8: timeouts and slow handlers', () => {
  test('a timeout aborts the signal with a TimeoutError, and a handler that throws then failed by it', async () => {
    const reasons: unknown[] = []
    const patient = job('patient', {
      run: (_: undefined, ctx) =>
        new Promise((_resolve, reject) => {
          ctx.signal.addEventListener('abort', () => {
            reasons.push(ctx.signal.reason)
            reject(new Error('gave up'))
          })
        }),
      timeout: '30ms',
      ...once,
    })
    const mill = await started({ jobs: [patient] })
    const error = await caught((await mill.enqueue(patient)).result())
    expect(reasons).toMatchObject([{ code: 'E_TIMEOUT' }])
    expect(error.cause).toMatchObject({ name: 'TimeoutError', cause: { message: 'gave up' } })
  })

  test('a handler that returns after its timeout succeeded anyway', async () => {
    const late = job('late', {
      run: async (_: undefined, ctx) => {
        await new Promise<void>((next) => ctx.signal.addEventListener('abort', () => next()))
        return 'late but done'
      },
      timeout: '20ms',
    })
    const mill = await started({ jobs: [late] })
    expect(await (await mill.enqueue(late)).result()).toBe('late but done')
  })

  test('enqueue’s own timeout wins, also Infinity', async () => {
    const mill = await started({ jobs: [never], timeout: Infinity, ...once })
    expect((await caught((await mill.enqueue(never, 1, { timeout: '20ms' })).result())).message).toContain(
      'longer than its timeout',
    )
  })

  test('a handler past slowAfter is logged as an error, repeatedly, with its last log line', async () => {
    const { logger, lines } = collect()
    const release = gate()
    const slow = job('slow', async (_: undefined, ctx) => {
      ctx.log('half-way')
      await release.opened
    })
    const mill = await started({ jobs: [slow], slowAfter: '20ms', logger })
    const handle = await mill.enqueue(slow)
    await vi.waitFor(
      () => expect(lines.filter((l) => l.message.startsWith('slow slow')).length).toBeGreaterThanOrEqual(2),
      15_000,
    )
    release.open()
    await handle.result()
    expect(lines.find((l) => l.message.startsWith('slow slow'))).toMatchObject({
      level: 'error',
      fields: {
        id: handle.id,
        job: 'slow',
        queue: 'default',
        attempt: 1,
        ms: expect.any(Number) as number,
      },
      message: expect.stringMatching(/ \(last log: half-way\)$/) as string,
    })
  })
})

describe('X12: start and stop', () => {
  test('stop lets running jobs finish, starts nothing more, and start resumes', async () => {
    const [begun, finish] = [gate(), gate()]
    const runs: number[] = []
    const work = job('work', async (n: number) => {
      runs.push(n)
      if (n === 1) {
        begun.open()
        await finish.opened
      }
      return n
    })
    const mill = await started({ jobs: [work], concurrency: 1 })
    const handles = await mill.enqueueMany(work, [1, 2, 3])
    await begun.opened
    const stopped = mill.stop()
    finish.open()
    await stopped
    expect(runs).toEqual([1])
    expect(await record(handles[0] as Handle<number>)).toMatchObject({ state: 'done', result: 1 })
    expect(await record(handles[1] as Handle<number>)).toMatchObject({ state: 'ready', attempt: 0, attempts: [] })
    await mill.start()
    expect(await Promise.all(handles.map((handle) => handle.result()))).toEqual([1, 2, 3])
  })

  test('past the deadline running jobs are aborted and given back uncharged, and run again after start', async () => {
    const begun = gate()
    let runs = 0
    const reasons: unknown[] = []
    const stubborn = job('stubborn', async (_: undefined, ctx) => {
      runs += 1
      if (runs > 1) return 'second run'
      begun.open()
      return new Promise<string>((_resolve, reject) =>
        ctx.signal.addEventListener('abort', () => {
          reasons.push(ctx.signal.reason)
          reject(new Error('stopped'))
        }),
      )
    })
    const mill = await started({ jobs: [stubborn] })
    const handle = await mill.enqueue(stubborn)
    await begun.opened
    await mill.stop({ deadline: 10 })
    expect(reasons).toMatchObject([{ code: 'E_STOPPED' }])
    expect(await record(handle)).toMatchObject({ state: 'ready', attempt: 0, crashes: 0, error: undefined })
    await mill.start()
    expect(await handle.result()).toBe('second run')
    expect(await record(handle)).toMatchObject({ attempt: 1 })
  })

  test('a handler that ignores the abort is given back as well, and what it returns later is not recorded', async () => {
    const [begun, finish] = [gate(), gate<string>()]
    const deaf = job('deaf', async (_: undefined, ctx) => {
      if (ctx.attempt === 1) begun.open()
      return finish.opened
    })
    const mill = await started({ jobs: [deaf] })
    const handle = await mill.enqueue(deaf)
    await begun.opened
    await mill.stop({ deadline: 0 })
    finish.open('too late')
    await Promise.resolve()
    expect(await record(handle)).toMatchObject({ state: 'ready', attempt: 0 })
  })

  // Otherwise the timer of the timeout found an existing abort reason and took it for a timeout whose grace is over.
  test('a job whose timeout passes in the grace after the deadline is given back uncharged', async () => {
    const begun = gate()
    const deaf = job('deaf', {
      run: () => {
        begun.open()
        return new Promise<void>(() => undefined)
      },
      timeout: '300ms',
    })
    const mill = await started({ jobs: [deaf] })
    const handle = await mill.enqueue(deaf)
    await begun.opened
    await mill.stop({ deadline: 180 })
    expect(await record(handle)).toMatchObject({ state: 'ready', attempt: 0 })
  })

  test('a second start and a second stop are no-ops', async () => {
    const mill = await open({ jobs: [echo] })
    await Promise.all([mill.start(), mill.start()])
    await mill.start()
    expect(await (await mill.enqueue(echo, 1)).result()).toBe(1)
    await Promise.all([mill.stop(), mill.stop()])
    await mill.stop()
    const handle = await mill.enqueue(echo, 2)
    expect((await record(handle)).state).toBe('ready')
  })

  test('close refuses later calls, may be called twice, and await using closes', async () => {
    const mill = await millrace({ store: fresh(), jobs: [echo], logger: false })
    await mill.close()
    await mill.close()
    expect(await caught(mill.enqueue(echo, 1))).toMatchObject({ code: 'E_CLOSED' })
    expect(await caught(mill.get('00000000-0000-7000-8000-000000000000'))).toMatchObject({ code: 'E_CLOSED' })
    await caught(mill.start())
    const other = await millrace({ store: fresh(), logger: false })
    await other[Symbol.asyncDispose]()
    expect(await caught(other.enqueue(echo, 1))).toMatchObject({ code: 'E_CLOSED' })
  })

  // Otherwise both found it open, and the second one closed the closed database: "database is not open".
  test('closed by two callers at once closes once', async () => {
    const mill = await millrace({ store: fresh(), jobs: [echo], logger: false })
    const closings = await Promise.allSettled([mill.close(), mill.close()])
    expect(closings.map((each) => each.status)).toEqual(['fulfilled', 'fulfilled'])
  })

  test('closing rejects calls that await a result', async () => {
    const mill = await open({ jobs: [echo] })
    const handle = await mill.enqueue(echo, 1)
    const waiting = caught(handle.result({ timeout: '10s' }))
    await mill.close()
    expect(await waiting).toMatchObject({ code: 'E_CLOSED' })
  })
})

describeAboveStore('O2: mills', () => {
  test('before start a mill is a producer only', async () => {
    const mill = await open({ jobs: [echo] })
    const handle = await mill.enqueue(echo, 1)
    expect((await caught(handle.result({ timeout: '200ms' }))).message).toContain('it is ready')
  })

  test('two in one process on two files are independent of each other', async () => {
    const [a, b] = [await started({ jobs: [echo] }), await started({ jobs: [job('echo', async () => 'of b')] })]
    const [inA, inB] = [await a.enqueue('echo', 'of a'), await b.enqueue('echo')]
    expect([await inA.result(), await inB.result()]).toEqual(['of a', 'of b'])
    expect(await a.get(inB.id)).toBeUndefined()
    expect(await b.get(inA.id)).toBeUndefined()
    await a.close()
    expect(await (await b.enqueue('echo')).result()).toBe('of b')
  })

  test('a result reaches a second mill on the same file, and so do failures and commands', async () => {
    const store = fresh()
    const [worker, client] = [await started({ store, jobs: [echo, boom] }), await open({ store, jobs: [echo, boom] })]
    const handle = await worker.enqueue(echo, { from: 'worker' })
    expect(await client.handle(handle.id).result()).toEqual({ from: 'worker' })
    expect(await (await client.enqueue(echo, 'from the client')).result()).toBe('from the client')
    expect(await caught((await client.enqueue(boom, undefined, once)).result())).toMatchObject({ code: 'E_JOB_FAILED' })
    const later = await worker.enqueue(echo, 1, { in: '1h' })
    expect(await client.cancel(later.id)).toBe(true)
    expect(await caught(later.result())).toMatchObject({ code: 'E_JOB_CANCELLED' })
  })

  test('configure changes concurrency while it runs', async () => {
    let [running, most] = [0, 0]
    const release = gate()
    const work = job('work', async () => {
      running += 1
      most = Math.max(most, running)
      await release.opened
      running -= 1
    })
    const mill = await started({ jobs: [work], concurrency: 1 })
    const handles = await mill.enqueueMany(work, Array(5).fill(undefined))
    await vi.waitFor(() => expect(running).toBe(1), 15_000)
    mill.configure({ concurrency: 5 })
    await vi.waitFor(() => expect(running).toBe(5), 15_000)
    release.open()
    await Promise.all(handles.map((handle) => handle.result()))
    expect(most).toBe(5)
  })
})

describe('handle.result()', () => {
  test('is refused inside a handler', async () => {
    let refused: unknown
    const store = fresh()
    const outer = job('outer', async (_: undefined, ctx) => {
      const inner = await ctx.enqueue(echo, 'inner')
      refused = await inner.result().catch((error: unknown) => error)
      return inner.id
    })
    const mill = await started({ store, jobs: [outer, echo] })
    const inner = await (await mill.enqueue(outer)).result()
    expect(refused).toMatchObject({ code: 'E_RESULT_IN_HANDLER', message: expect.stringContaining('ctx.enqueue') })
    expect(await mill.handle(inner).result()).toBe('inner')
  })

  test('rejects for a failed job with the error it failed by, revived', async () => {
    const deep = job('deep', async () => {
      throw Object.assign(new TypeError('outer', { cause: new Error('inner') }), { code: 'E_MINE' })
    })
    const mill = await started({ jobs: [deep] })
    const handle = await mill.enqueue(deep, undefined, once)
    const error = await caught(handle.result())
    expect(error).toMatchObject({ code: 'E_JOB_FAILED', jobId: handle.id })
    expect(error.cause).toBeInstanceOf(TypeError)
    expect(error.cause).toMatchObject({ message: 'outer', code: 'E_MINE', cause: { message: 'inner' } })
  })

  test('rejects for a done job whose result does not decode', async () => {
    const own = codec({
      encode: (value) => JSON.stringify(value ?? null),
      decode: (text) => {
        if (String(text).includes('sealed')) throw new Error('no key here')
        return JSON.parse(String(text)) as unknown
      },
    })
    const seal = job('seal', { codec: own, run: async () => 'sealed' })
    const mill = await started({ jobs: [seal] })
    const handle = await mill.enqueue(seal)
    const error = await caught(handle.result())
    expect(error).toMatchObject({ code: 'E_JOB_FAILED', jobId: handle.id })
    expect(error.message).toMatch(/it is done, but its result does not decode: .*no key here/)
    expect(await record(handle)).toMatchObject({ state: 'done', result: undefined })
  })

  test('rejects for a cancelled job, and for a deleted one', async () => {
    const mill = await open({ jobs: [echo] })
    const [a, b] = [await mill.enqueue(echo, 1), await mill.enqueue(echo, 2)]
    const waiting = [caught(a.result()), caught(b.result())]
    expect(await a.cancel()).toBe(true)
    expect(await mill.delete(b.id)).toBe(true)
    expect(await waiting[0]).toMatchObject({ code: 'E_JOB_CANCELLED', jobId: a.id })
    expect(await waiting[1]).toMatchObject({ code: 'E_JOB_GONE', jobId: b.id })
    expect(await caught(mill.handle('00000000-0000-7000-8000-000000000000').result())).toMatchObject({
      code: 'E_JOB_GONE',
    })
  })

  test.each<[State, (mill: Mill) => Promise<Handle<unknown>>]>([
    ['ready', (mill) => mill.enqueue(echo, 1)],
    ['scheduled', (mill) => mill.enqueue(echo, 1, { in: '1h' })],
  ])('rejects after its timeout, naming the state: %s', async (state, make) => {
    const mill = await open({ jobs: [echo] })
    const error = await caught((await make(mill)).result({ timeout: '200ms' }))
    expect(error).toMatchObject({ code: 'E_TIMEOUT' })
    expect(error.message).toContain(`it is ${state}`)
  })

  test('may be awaited repeatedly, by many callers', async () => {
    const mill = await started({ jobs: [echo] })
    const handle = await mill.enqueue(echo, { n: 1 })
    expect(await Promise.all(Array.from({ length: 50 }, () => handle.result()))).toEqual(Array(50).fill({ n: 1 }))
    expect(await handle.result()).toEqual({ n: 1 })
  })
})

describe('commands, in every state', () => {
  type Made = { readonly mill: Mill; readonly handle: Handle<unknown>; readonly release: () => void }

  const hold = (): { jobs: Job<never, unknown>[]; begun: Promise<void>; release: () => void } => {
    const [begun, release] = [gate(), gate()]
    const held = job('held', async () => {
      begun.open()
      await release.opened
    })
    return { jobs: [held as never, echo as never, boom as never], begun: begun.opened, release: () => release.open() }
  }

  const make: { readonly [S in Exclude<State, 'blocked'>]: () => Promise<Made> } = {
    scheduled: async () => made(await open({ jobs: hold().jobs }), (mill) => mill.enqueue(echo, 1, { in: '1h' })),
    ready: async () => made(await open({ jobs: hold().jobs }), (mill) => mill.enqueue(echo, 1)),
    running: async () => {
      const { jobs, begun, release } = hold()
      const done = await made(await started({ jobs }), (mill) => mill.enqueue('held'), release)
      await begun
      return done
    },
    retrying: async () => {
      const done = await made(await started({ jobs: hold().jobs }), (mill) =>
        mill.enqueue(boom, undefined, { retry: { backoff: { start: '1h' } } }),
      )
      await becomes(done.handle, 'retrying')
      return done
    },
    paused: async () => {
      const done = await made(await open({ jobs: hold().jobs }), (mill) => mill.enqueue(echo, 1))
      await done.mill.pause(done.handle.id)
      return done
    },
    parked: async () => {
      const store = fresh()
      const first = await open({ store, jobs: [echo] })
      const { id } = await first.enqueue(echo, 1)
      const second = await started({
        store,
        jobs: [job('echo', { run: async (p: unknown) => p, accepts: (p) => p !== 1 })],
      })
      await becomes(second.handle(id), 'parked')
      return { mill: second, handle: second.handle(id), release: () => undefined }
    },
    done: async () => {
      const done = await made(await started({ jobs: hold().jobs }), (mill) => mill.enqueue(echo, 1))
      await done.handle.result()
      return done
    },
    failed: async () => {
      const done = await made(await started({ jobs: hold().jobs }), (mill) => mill.enqueue(boom, undefined, once))
      await caught(done.handle.result())
      return done
    },
    cancelled: async () => {
      const done = await made(await open({ jobs: hold().jobs }), (mill) => mill.enqueue(echo, 1))
      await done.handle.cancel()
      return done
    },
  }
  async function made(
    mill: Mill,
    enqueue: (mill: Mill) => Promise<Handle<unknown>>,
    release = (): void => undefined,
  ): Promise<Made> {
    return { mill, handle: await enqueue(mill), release }
  }

  const verbs = {
    cancel: (mill: Mill, id: string) => mill.cancel(id),
    pause: (mill: Mill, id: string) => mill.pause(id),
    resume: (mill: Mill, id: string) => mill.resume(id),
    retry: (mill: Mill, id: string) => mill.retry(id),
    edit: (mill: Mill, id: string) => mill.edit(id, { title: 'edited', priority: 7 }),
    delete: (mill: Mill, id: string) => mill.delete(id),
  } as const
  const TRUE_IN: { readonly [V in keyof typeof verbs]: readonly State[] } = {
    cancel: ['scheduled', 'ready', 'retrying', 'paused', 'running'],
    pause: ['scheduled', 'ready', 'retrying', 'paused', 'running'],
    resume: ['paused'],
    retry: ['retrying', 'parked', 'failed', 'cancelled'],
    edit: ['scheduled', 'ready', 'retrying', 'paused', 'parked'],
    delete: ['scheduled', 'ready', 'retrying', 'paused', 'parked', 'done', 'failed', 'cancelled'],
  }

  for (const state of Object.keys(make) as (keyof typeof make)[])
    for (const verb of Object.keys(verbs) as (keyof typeof verbs)[]) {
      const means = TRUE_IN[verb].includes(state)
      test(`${verb} of a job that is ${state} ${means ? 'is applied or requested' : 'is false and changes nothing'}`, async () => {
        const { mill, handle, release } = await make[state]()
        const before = await record(handle)
        expect(before.state).toBe(state)
        expect(await verbs[verb](mill, handle.id)).toBe(means)
        const after = await handle.get()
        if (!means || state === 'running') expect(after).toEqual(before)
        else if (verb === 'delete') expect(after).toBeUndefined()
        else if (verb === 'cancel') expect(after).toMatchObject({ state: 'cancelled', reason: 'cancel() was called' })
        else if (verb === 'pause') expect(after).toMatchObject({ state: 'paused', reason: 'pause() was called' })
        else if (verb === 'resume') expect(after).toMatchObject({ state: 'ready', reason: undefined })
        else if (verb === 'edit') expect(after).toMatchObject({ title: 'edited', priority: 7 })
        else expect(after?.attempts.map((a) => a.exit)).toContain('retried')
        release()
      })
    }

  test('a retried job has all its retries again', async () => {
    let runs = 0
    const failing = job('failing', {
      run: async () => {
        runs += 1
        throw new Error('no')
      },
      retry: { limit: 2, ...now },
    })
    const mill = await started({ jobs: [failing] })
    const handle = await mill.enqueue(failing)
    await caught(handle.result())
    expect(runs).toBe(3)
    expect(await mill.retry(handle.id)).toBe(true)
    await vi.waitFor(async () => expect(await record(handle)).toMatchObject({ state: 'failed', attempt: 6 }), 15_000)
    expect(runs).toBe(6)
  })

  test('edit fills a title’s fields from the payload, as enqueue does', async () => {
    const mill = await open({ jobs: [job('mail', async (p: { to: string }) => p.to)] })
    const handle = await mill.enqueue('mail', { to: 'ada' })
    expect(await mill.edit(handle.id, { title: 'For {to}' })).toBe(true)
    expect((await record(handle)).title).toBe('For ada')
  })

  test('edit changes payload, queue, priority, labels, title, meta, time, retry and timeout of a waiting job', async () => {
    const mill = await open({ jobs: [echo] })
    const handle = await mill.enqueue(echo, 1, { labels: ['a'], retry: { limit: 5 } })
    const at = new Date(Date.now() + 3_600_000)
    expect(
      await mill.edit(handle.id, {
        payload: 2,
        queue: 'other',
        priority: 4,
        labels: ['b'],
        title: 't',
        meta: { m: 1n },
        at,
        timeout: '1s',
      }),
    ).toBe(true)
    expect(await record(handle)).toMatchObject({
      state: 'scheduled',
      payload: 2,
      queue: 'other',
      priority: 4,
      labels: ['b'],
      title: 't',
      meta: { m: 1n },
      dueAt: at,
    })
    await mill.start()
    expect(await mill.edit(handle.id, { in: 0 })).toBe(true)
    expect(await handle.result()).toBe(2)
  })
})

describe('finding', () => {
  const all = async (mill: Mill, filter: JobFilter = {}): Promise<unknown[]> => {
    const found: unknown[] = []
    for await (const each of mill.find(filter)) found.push(each.payload)
    return found
  }

  test('returns every job once, newest first, page by page, or oldest first, or no more than a limit', async () => {
    const mill = await open({ jobs: [echo] })
    const numbers = Array.from({ length: 1_234 }, (_, i) => i)
    await mill.enqueueMany(echo, numbers)
    expect(await all(mill, { order: 'oldest' })).toEqual(numbers)
    expect(await all(mill)).toEqual([...numbers].reverse())
    expect(await all(mill, { limit: 3 })).toEqual([1_233, 1_232, 1_231])
    expect(await all(mill, { limit: 201, order: 'oldest' })).toEqual(numbers.slice(0, 201))
    expect(await all(mill, { limit: 0 })).toEqual([])
  })

  test('every field of a filter narrows the result', async () => {
    const mill = await open({ jobs: [echo, boom] })
    const [a, b] = [
      await mill.enqueue(echo, 'a', { queue: 'x', labels: ['l', 'm'], key: 'k' }),
      await mill.enqueue(echo, 'b', { labels: ['l'] }),
    ]
    await mill.enqueue(boom, undefined, { queue: 'x' })
    await b.cancel()
    expect(await all(mill, { job: echo })).toEqual(['b', 'a'])
    expect(await all(mill, { job: ['echo', boom] })).toHaveLength(3)
    expect(await all(mill, { queue: 'x', job: 'echo' })).toEqual(['a'])
    expect(await all(mill, { queue: ['x', 'default'] })).toHaveLength(3)
    expect(await all(mill, { label: 'l' })).toEqual(['b', 'a'])
    expect(await all(mill, { label: 'm' })).toEqual(['a'])
    expect(await all(mill, { key: 'k' })).toEqual(['a'])
    expect(await all(mill, { state: 'cancelled' })).toEqual(['b'])
    expect(await all(mill, { state: ['ready', 'cancelled'], label: 'l' })).toEqual(['b', 'a'])
    const { createdAt } = await record(a)
    expect(await all(mill, { createdBefore: createdAt })).toEqual([])
    expect(await all(mill, { createdAfter: new Date(createdAt.getTime() - 1) })).toHaveLength(3)
    expect(await all(mill, { job: 'nobody' })).toEqual([])
    expect(await all(mill, { job: [] })).toEqual([])
  })

  test('is counted by the same filter, exactly up to ten thousand', async () => {
    const mill = await open({ jobs: [echo] })
    const many = (size: number): number[] => Array.from({ length: size }, (_, i) => i)
    await mill.enqueueMany(echo, many(9_999), { queue: 'x', labels: ['l'] })
    expect(await mill.count({ label: 'l' })).toEqual({ count: 9_999, exact: true })
    await mill.enqueue(echo, 1, { queue: 'x' })
    expect(await mill.count({ queue: 'x' })).toEqual({ count: 10_000, exact: true })
    await mill.enqueue(echo, 1)
    expect(await mill.count()).toEqual({ count: 10_000, exact: false })
    expect(await mill.count({ job: echo, queue: 'default', state: ['ready', 'done'] })).toEqual({
      count: 1,
      exact: true,
    })
    expect(await mill.count({ state: [] })).toEqual({ count: 0, exact: true })
    await expect(mill.count({ limit: 3 } as never)).rejects.toThrow('limit')
  })

  test('unfinished members of a group are counted by its counters, ended ones by their rows', async () => {
    const mill = await open({ jobs: [echo] })
    const numbers = Array.from({ length: 10_050 }, (_, i) => i)
    const handles = await mill.enqueueMany(echo, numbers, { group: 'g' })
    await mill.enqueue(echo, 1, { group: 'g', queue: 'x' })
    expect(await mill.count({ group: 'g', state: 'ready' })).toEqual({ count: 10_051, exact: true })
    expect(await mill.count({ group: 'g', state: ['ready', 'paused'], queue: 'x' })).toEqual({ count: 1, exact: true })
    for (const handle of handles.slice(0, 3)) await handle.cancel()
    await mill.delete(handles[0]?.id ?? '')
    expect(await mill.count({ group: 'g', state: 'cancelled' })).toEqual({ count: 2, exact: true })
    expect(await mill.count({ group: 'g', state: 'ready' })).toEqual({ count: 10_048, exact: true })
    expect(await mill.count({ group: 'g' })).toEqual({ count: 10_000, exact: false })
  })

  test('may be stopped before its end', async () => {
    const mill = await open({ jobs: [echo] })
    await mill.enqueueMany(echo, [1, 2, 3])
    for await (const each of mill.find()) {
      expect(each.payload).toBe(3)
      break
    }
    expect(await all(mill)).toEqual([3, 2, 1])
  })
})

describe('S7: keeping and pruning', () => {
  test('none keeps nothing: the job runs and is deleted', async () => {
    let ran = 0
    const fleeting = job('fleeting', { run: async () => (ran += 1), keep: 'none' })
    const mill = await started({ jobs: [fleeting] })
    const handle = await mill.enqueue(fleeting, undefined, { key: 'k' })
    expect(await caught(handle.result())).toMatchObject({ code: 'E_JOB_GONE' })
    expect(ran).toBe(1)
    expect(await handle.get()).toBeUndefined()
    expect((await mill.enqueue(fleeting, undefined, { key: 'k' })).isNew).toBe(true)
  })

  test('jobs whose keep time is over are pruned after a start, and the rest stays', async () => {
    const mill = await started({ jobs: [echo, boom], keep: { done: 1, failed: Infinity } })
    const handles = await mill.enqueueMany(
      echo,
      Array.from({ length: 50 }, (_, i) => i),
    )
    const kept = await mill.enqueue(boom, undefined, once)
    await Promise.all(handles.map((handle) => handle.result().catch(() => undefined)))
    await caught(kept.result())
    await mill.stop()
    await mill.start()
    for (const handle of handles) await becomes(handle, 'gone')
    expect((await record(kept)).state).toBe('failed')
  })
})

describe('concurrency and order', () => {
  test('is never exceeded, and is used', async () => {
    let [running, most] = [0, 0]
    const work = job('work', async () => {
      running += 1
      most = Math.max(most, running)
      await new Promise<void>((next) => setImmediate(next))
      running -= 1
    })
    const mill = await started({ jobs: [work], concurrency: 7 })
    const handles = await mill.enqueueMany(work, Array(500).fill(undefined))
    await Promise.all(handles.map((handle) => handle.result()))
    expect(most).toBe(7)
  })

  test('per queue is never exceeded, while other queues use the rest', async () => {
    const running = new Map<string, number>()
    const most = new Map<string, number>()
    const work = job('work', async (_: undefined, ctx) => {
      const count = (running.get(ctx.queue.name) ?? 0) + 1
      running.set(ctx.queue.name, count)
      most.set(ctx.queue.name, Math.max(most.get(ctx.queue.name) ?? 0, count))
      await new Promise<void>((next) => setImmediate(next))
      running.set(ctx.queue.name, (running.get(ctx.queue.name) ?? 0) - 1)
    })
    const mill = await started({ jobs: [work], concurrency: 10, queues: { narrow: 2, one: { concurrency: 1 } } })
    const queues = ['narrow', 'one', 'wide', 'wide', 'wide']
    const handles = await mill.enqueueMany(work, Array(400).fill(undefined), (_, i) => ({ queue: queues[i % 5] }))
    await Promise.all(handles.map((handle) => handle.result()))
    expect(most.get('narrow')).toBe(2)
    expect(most.get('one')).toBe(1)
    expect(most.get('wide')).toBeGreaterThan(2)
    expect(most.get('wide')).toBeLessThanOrEqual(10)
  })

  test('higher priority runs first, and equal priorities in the order of enqueue', async () => {
    const order: number[] = []
    const work = job('work', async (n: number) => void order.push(n))
    const mill = await open({ jobs: [work], concurrency: 1 })
    const priorities = [0, 5, -5, 0, 10, 5]
    const handles = await mill.enqueueMany(work, [0, 1, 2, 3, 4, 5], (_, i) => ({ priority: priorities[i] }))
    await mill.start()
    await Promise.all(handles.map((handle) => handle.result()))
    expect(order).toEqual([4, 1, 5, 0, 3, 2])
  })

  test('priority orders across queues and job names as well', async () => {
    const order: string[] = []
    const [a, b] = ['a', 'b'].map((name) => job(name, async (p: string) => void order.push(p))) as [
      Job<string, void>,
      Job<string, void>,
    ]
    const mill = await open({ jobs: [a, b], concurrency: 1 })
    const handles = [
      await mill.enqueue(a, 'low', { priority: 1 }),
      await mill.enqueue(b, 'high', { priority: 9, queue: 'x' }),
      await mill.enqueue(a, 'middle', { priority: 5, queue: 'y' }),
    ]
    await mill.start()
    await Promise.all(handles.map((handle) => handle.result()))
    expect(order).toEqual(['high', 'middle', 'low'])
  })
})

describeAboveStore('ctx', () => {
  test('has the job’s identity, logs into the record and reports progress while it runs', async () => {
    const release = gate()
    const seen = gate<Record<string, unknown>>()
    const work = job('work', async (_: undefined, ctx) => {
      ctx.log('beginning', { n: 1 })
      ctx.progress(3, 10)
      seen.open({ id: ctx.id, job: ctx.job, attempt: ctx.attempt, queue: ctx.queue.name, aborted: ctx.signal.aborted })
      await release.opened
    })
    const mill = await started({ jobs: [work] })
    const handle = await mill.enqueue(work, undefined, { queue: 'q' })
    expect(await seen.opened).toEqual({ id: handle.id, job: 'work', attempt: 1, queue: 'q', aborted: false })
    await vi.waitFor(async () => expect((await record(handle)).progress).toEqual({ done: 3, total: 10 }), 15_000)
    expect((await record(handle)).state).toBe('running')
    release.open()
    await handle.result()
    expect((await record(handle)).attempts[0]?.log).toEqual(['beginning {"n":1}'])
  })
})

interface Line {
  readonly level: string
  readonly fields: Record<string, unknown>
  readonly message: string
}
function collect(): { logger: Logger; lines: Line[] } {
  const lines: Line[] = []
  const at =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push({ level, fields: fields as Record<string, unknown>, message })
  return { lines, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

describeAboveStore('log lines', () => {
  const told = (lines: Line[], id: string): string[] =>
    lines
      .filter((line) => line.fields['id'] === id)
      .map((line) => `${line.level} ${line.message.split(' ').slice(0, 2).join(' ')}`)

  test('report each transition at its level, with id, queue, attempt and ms', async () => {
    const { logger, lines } = collect()
    const flaky = job('flaky', {
      run: async (_: undefined, ctx) => {
        if (ctx.attempt === 1) throw new Error('first')
      },
      retry: now,
    })
    const mill = await started({ jobs: [flaky, boom, echo], logger })
    const [fine, failing] = [await mill.enqueue(flaky), await mill.enqueue(boom, undefined, once)]
    await fine.result()
    await caught(failing.result())
    await mill.stop()
    // A worker that polls may begin a job before its enqueue has resolved: the order of the two lines is not defined.
    const ran = (id: string, ready: string): string[] => {
      expect(told(lines, id)).toContain(ready)
      return told(lines, id).filter((line) => line !== ready)
    }
    expect(ran(fine.id, 'debug ready flaky')).toEqual([
      'debug running flaky',
      'warn retrying flaky',
      'debug running flaky',
      'info done flaky',
    ])
    expect(ran(failing.id, 'debug ready boom')).toEqual(['debug running boom', 'error failed boom'])
    const done = lines.find((line) => line.message.startsWith('done flaky'))
    const ms = expect.any(Number) as number
    expect(done?.fields).toEqual({ id: fine.id, job: 'flaky', queue: 'default', attempt: 2, ms })
    const failed = lines.find((line) => line.message.startsWith('failed boom'))
    expect(failed?.fields).toMatchObject({ attempt: 1, err: { name: 'RangeError', message: 'boom' } })
  })

  test('report what was parked, and why', async () => {
    const { logger, lines } = collect()
    let fits = true
    const picky = job('picky', { run: async (p: number) => p, accepts: () => fits })
    const mill = await open({ jobs: [picky], logger })
    const handle = await mill.enqueue(picky, 1)
    fits = false
    await mill.start()
    await becomes(handle, 'parked')
    await mill.stop()
    expect(told(lines, handle.id)).toEqual(['debug ready picky', 'debug running picky', 'error parked picky'])
    expect(lines.find((line) => line.level === 'error')?.message).toContain('no longer fits')
  })

  test('report what was scheduled, cancelled and retried by command', async () => {
    const { logger, lines } = collect()
    const mill = await open({ jobs: [echo], logger })
    const handle = await mill.enqueue(echo, 1, { in: '1h' })
    await handle.cancel()
    await mill.retry(handle.id)
    await mill.start()
    await handle.result()
    await mill.stop()
    expect(told(lines, handle.id)).toEqual([
      'debug scheduled echo',
      'info cancelled echo',
      'debug ready echo',
      'debug running echo',
      'info done echo',
    ])
  })

  test('report what expired', async () => {
    const { logger, lines } = collect()
    const mill = await open({ jobs: [echo], logger })
    const handle = await mill.enqueue(echo, 1, { expires: 0 })
    await mill.start()
    await caught(handle.result())
    await mill.stop()
    expect(told(lines, handle.id)).toContain('info cancelled echo')
  })

  test('contain what a handler logs', async () => {
    const { logger, lines } = collect()
    const chatty = job('chatty', async (_: undefined, ctx) => ctx.log('hello', 5))
    const mill = await started({ jobs: [chatty], logger })
    const handle = await mill.enqueue(chatty)
    await handle.result()
    const fields = { id: handle.id, job: 'chatty', queue: 'default', attempt: 1 }
    expect(lines).toContainEqual({ level: 'info', fields, message: 'chatty: hello 5' })
  })

  test('contain what a handler logs in pino’s shape as fields, and the record keeps it as text', async () => {
    const { logger, lines } = collect()
    const charge = job('charge', async (_: undefined, ctx) => ctx.log({ orderId: 7, id: 'mine' }, 'charged'))
    const mill = await started({ jobs: [charge], logger })
    const handle = await mill.enqueue(charge)
    await handle.result()
    const fields = { id: handle.id, job: 'charge', queue: 'default', attempt: 1, orderId: 7, 'log.id': 'mine' }
    expect(lines).toContainEqual({ level: 'info', fields, message: 'charge: charged' })
    expect((await record(handle)).attempts[0]?.log).toEqual(['charged {"orderId":7,"id":"mine"}'])
  })

  test('report a failure as an error of the same class name, with its fields, stack and cause', async () => {
    const { logger, lines } = collect()
    class HttpError extends Error {
      readonly status = 503
      readonly code = 'E_BUSY'
      readonly request = { headers: { authorization: 'secret' } }
    }
    const call = job('call', {
      run: async () => {
        throw new HttpError('busy', { cause: new TypeError('fetch failed') })
      },
      retry: { limit: 0 },
    })
    const mill = await started({ jobs: [call], logger })
    const handle = await mill.enqueue(call)
    const failed = await caught(handle.result())
    const err = lines.find((line) => line.message === 'failed call')?.fields['err'] as Error
    for (const error of [err, failed.cause as Error]) {
      expect(error).toBeInstanceOf(Error)
      // What pino's standard serializer shows: the class, the texts, and every enumerable field.
      expect(error.constructor.name).toBe('HttpError')
      expect(Object.fromEntries(Object.entries(error))).toEqual({ status: 503, code: 'E_BUSY' })
      expect(error.stack).toContain('engine.test.ts')
      expect(error.cause).toMatchObject({ name: 'TypeError', message: 'fetch failed' })
    }
    expect((await record(handle)).error).toMatchObject({
      name: 'Error',
      type: 'HttpError',
      code: 'E_BUSY',
      props: { status: 503 },
    })
  })

  test('do not call a job with parents ready', async () => {
    const { logger, lines } = collect()
    const mill = await open({ jobs: [echo], logger })
    const first = await mill.enqueue(echo, 1, { in: '1h' })
    const child = await mill.enqueue(echo, 2, { after: [first] })
    expect(told(lines, child.id)).toEqual(['debug enqueued echo'])
  })

  test('report what a stop gave back, and that it stopped', async () => {
    const { logger, lines } = collect()
    const begun = gate()
    const deaf = job('deaf', () => {
      begun.open()
      return new Promise<void>(() => undefined)
    })
    const mill = await started({ jobs: [deaf], logger })
    const handle = await mill.enqueue(deaf)
    await begun.opened
    await mill.close({ deadline: 0 })
    expect(told(lines, handle.id).at(-1)).toBe('info gave back')
    expect(lines.at(-1)).toEqual({
      level: 'info',
      fields: { givenBack: 1 },
      message: 'stopped; gave back 1 job that had not ended by the deadline',
    })
  })

  test('a logger that throws costs no job', async () => {
    const throwing = (): never => {
      throw new Error('the log is full')
    }
    const mill = await started({
      jobs: [echo],
      logger: { debug: throwing, info: throwing, warn: throwing, error: throwing },
    })
    expect(await (await mill.enqueue(echo, 1)).result()).toBe(1)
  })
})

test('a producer that does not list the job reads a result with the job’s own codec', async () => {
  class Money {
    readonly cents: number
    constructor(cents: number) {
      this.cents = cents
    }
  }
  const shop = codec({
    types: {
      money: {
        is: (v: unknown): v is Money => v instanceof Money,
        write: (m: Money) => m.cents,
        read: (c: unknown) => new Money(c as number),
      },
    },
  })
  const bill = job('bill', { run: async (m: Money) => new Money(m.cents + 1), codec: shop })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-own-codec-'))
  const store = join(folder, 'jobs.db')
  const worker = await millrace({ store, jobs: [bill], logger: false, poll: 50 })
  const producer = await millrace({ store, logger: false })
  await worker.start()
  const handle = await producer.enqueue(bill, new Money(1))
  expect(await handle.result({ timeout: '10s' })).toEqual(new Money(2))
  expect((await handle.get())?.payload).toEqual(new Money(1))
  await Promise.all([worker.close(), producer.close()])
  rmSync(folder, { recursive: true, force: true })
})
